//! `rank-study diagnose` through the binary: rows, and the page made of them.

use crate::browser;
use crate::common::binary::{Folder, Record, number};
use crate::common::tiny;
use serde_json::Value;

/// Trains on a text, in which some heads come to need logits.
pub fn train(folder: &Folder, name: &str, set: &[&str]) {
    let run = tiny::training(
        "arm = \"mhsa\"\nlayers = 2\nd_model = 16\nwindow = 4\ncontext = 48\nbatch = 4\nsteps = 40\n\
         warmup_steps = 4\nlearning_rate = 3e-2\neval_every = 20\neval_batches = 1\nkeep_checkpoints = [20, 40]",
    );
    folder.write("run.toml", run);
    folder.write("text.txt", "pack my box with five dozen jugs\nof liquor, said he\n".repeat(40));
    let set: Vec<&str> = set.iter().flat_map(|set| ["--set", set]).collect();
    folder.done(&[&["train", "run.toml", "--text", "text.txt", "--out", name][..], &set].concat());
}

/// At larger errors the attention of so young a model is uniform, and needs no logits.
pub const FLAGS: [&str; 8] =
    ["--text", "text.txt", "--passages", "1", "--tolerance", "0.0001", "--quiet", "--out"];

/// The JSON in the script called `id`.
fn script(page: &str, id: &str) -> Value {
    let (_, rest) = page.split_once(&format!(" id=\"{id}\">")).unwrap();
    serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap()
}

#[test]
fn steps_of_a_run_stand_side_by_side_with_the_numbers_of_the_rows() {
    let folder = Folder::new();
    train(&folder, "runs/a", &[]);
    let said = folder.done(&[&["diagnose", "runs/a", "--all"][..], &FLAGS, &["looked"]].concat());
    assert!(said.contains("4 heads on 48 tokens") && said.contains("looked/index.html"), "{said}");
    let (_, rows) = folder.csv("looked/rows.csv");
    assert_eq!(rows.len(), 2 * 2 * 2, "steps × layers × heads");
    assert!(folder.path("looked/rows.parquet").exists());

    let page = folder.read("looked/index.html");
    let data = script(&page, "numbers");
    let quantities = data["quantities"].as_array().unwrap().iter();
    let columns: Vec<&str> = quantities.map(|of| of["column"].as_str().unwrap()).collect();
    for row in &rows {
        assert!(!row["needed"].is_empty(), "{row:?}");
        let model = usize::from(row["step"] == "40");
        let head = data["models"][model]["heads"].as_array().unwrap().iter().find(|head| {
            [&head["layer"], &head["head"]].map(Value::to_string)
                == [row["layer"].clone(), row["head"].clone()]
        });
        for (at, column) in
            columns.iter().enumerate().filter(|(_, column)| !row[**column].is_empty())
        {
            let measured = number(row, column) * if *column == "spread" { 0.5 } else { 1.0 };
            let told = head.unwrap()["values"][at].as_f64().unwrap();
            assert!((told - measured).abs() <= 1e-4 * measured, "{column}: {told} for {measured}");
        }
    }
    let tokens = data["models"][0]["tokens"].as_array().unwrap();
    let text: String = tokens.iter().map(|token| token.as_str().unwrap()).collect();
    assert_eq!(text, "pack my box with five dozen jugs\nof liquor, said");
    let manifest: toml::Table = folder.read("looked/manifest.toml").parse().unwrap();
    assert!(page.contains(manifest["text_sha256"].as_str().unwrap()));

    let again = folder.done(&[&["diagnose", "runs/a", "--all"][..], &FLAGS, &["looked"]].concat());
    assert!(again.contains("0 layers measured, 4 done before"), "{again}");
    assert_eq!(folder.read("looked/index.html"), page);
}

#[test]
fn models_are_compared_and_layers_chosen() {
    let folder = Folder::new();
    train(&folder, "runs/a", &[]);
    train(&folder, "runs/b", &["arm=ls"]);
    let compared = ["--compare", "runs/b", "--step", "40", "--layer", "1", "--json"];
    let said = folder.done(&[&["diagnose", "runs/a"][..], &compared, &FLAGS, &["both"]].concat());
    let rows: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(rows.as_array().unwrap().len(), 4);
    let data = script(&folder.read("both/index.html"), "numbers");
    let titles = [0, 1].map(|at| data["models"][at]["title"].as_str().unwrap().to_owned());
    assert_eq!(titles, ["a, step 40", "b, step 40"]);
    assert_eq!(data["models"][0]["heads"].as_array().unwrap().len(), 2, "of layer 1 alone");
    let heads = data["models"][1]["heads"].as_array().unwrap().iter();
    assert_eq!(heads.filter(|head| head["kind"] == "local:4").count(), 1);
}

#[test]
fn only_the_largest_heads_are_fitted_and_of_the_others_the_floor_is_told() {
    let folder = Folder::new();
    train(&folder, "runs/a", &[]);
    let few = ["diagnose", "runs/a", "--step", "40", "--above", "0", "--most", "2"];
    let said = folder.done(&[&few[..], &FLAGS, &["few"]].concat());
    assert!(said.contains("2 heads were fitted"), "{said}");
    assert_eq!(said.matches("(not fitted)").count(), 1, "the third of the three largest: {said}");
    let (_, rows) = folder.csv("few/rows.csv");
    let actual = |row: &Record| number(row, "actual");
    let (screened, fitted): (Vec<_>, Vec<_>) =
        rows.into_iter().partition(|row| row["needed"].is_empty());
    assert_eq!((fitted.len(), screened.len()), (2, 2));
    let least = fitted.iter().map(actual).fold(f64::INFINITY, f64::min);
    assert!(screened.iter().map(actual).all(|actual| actual < least), "{screened:?}");
    let none =
        folder.done(&[&["diagnose", "runs/a", "--step", "40"][..], &FLAGS, &["none"]].concat());
    assert!(none.contains("No head was fitted"), "none is above 20: {none}");
}

#[test]
fn what_cannot_be_looked_at_is_told_in_a_line() {
    let folder = Folder::new();
    train(&folder, "runs/a", &[]);
    train(&folder, "other/a", &[]);
    for (flag, value, part) in [
        ("--compare", "other/a", "--compare"),
        ("--tokens", "49", "--tokens must be 1 to 48"),
        ("--compare", "gone", "gone"),
        ("--layer", "2", "0 to 1, not 2"),
        ("--step", "30", "30"),
    ] {
        let wrong = ["diagnose", "runs/a", flag, value];
        let told = folder.refused(&[&wrong[..], &FLAGS, &["out"]].concat());
        assert!(told.contains(part), "{told}");
    }
}

#[test]
fn the_page_works_in_a_browser() {
    if !browser::is_there() {
        return;
    }
    let folder = Folder::new();
    train(&folder, "runs/a", &[]);
    folder.done(&[&["diagnose", "runs/a", "--all"][..], &FLAGS, &["looked"]].concat());
    folder.done(&[&["diagnose", "runs/a", "--all", "--step", "40"][..], &FLAGS, &["one"]].concat());
    let pages = ["looked", "one"].map(|out| folder.path(out).join("index.html"));
    browser::check("diagnose.mjs", &pages.each_ref().map(|page| page.as_path()), 12);
}

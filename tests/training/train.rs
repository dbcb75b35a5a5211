//! `rank-study train`, and `sweep` of training runs, through the binary.

use std::fs::File;
use std::path::Path;

use crate::common::binary::{Folder, number};
use polars::prelude::{DataFrame, DataType, ParquetReader, SerReader};
use rank_study::experiments::training::TrainingMeasurement;

const RUN: &str = r#"
arm = "ls"
layers = 2
d_model = 8
heads = 2
global_heads = 1
window = 3
context = 8
batch = 2
steps = 20
warmup_steps = 2
eval_every = 4
eval_batches = 2
corpus = { tokens = 4000 }
"#;

const STUDY: &str = r#"
study = "lm"
kind = "train"
view = "training"
[train]
layers = 1
d_model = 8
heads = 2
window = 3
context = 8
batch = 2
steps = 5
eval_every = 5
eval_batches = 2
corpus = { tokens = 4000 }
[[run]]
name = "mhsa"
arm = "mhsa"
[[run]]
name = "ls"
arm = "ls"
"#;

const TEXT: &str =
    "the quick brown fox jumps over the lazy dog; pack my box with five dozen jugs\n";

fn with_run() -> Folder {
    let folder = Folder::new();
    folder.write("run.toml", RUN);
    folder.write("text.txt", TEXT.repeat(20));
    folder
}

/// Trains for six steps.
fn train(folder: &Folder, out: &str, more: &[&str]) -> String {
    let arguments = ["train", "run.toml", "--set", "steps=6", "--out", out];
    folder.done(&[&arguments[..], more].concat())
}

fn parquet(path: &Path) -> DataFrame {
    ParquetReader::new(File::open(path).unwrap()).finish().unwrap()
}

fn names(frame: &DataFrame) -> Vec<&str> {
    frame.get_column_names().into_iter().map(|name| name.as_str()).collect()
}

/// The losses and gradients of every step, as they stand in the file.
fn losses(folder: &Folder, out: &str) -> Vec<(String, String)> {
    let (_, steps) = folder.csv(&format!("{out}/steps.csv"));
    steps.into_iter().map(|row| (row["loss_nats"].clone(), row["grad_norm"].clone())).collect()
}

#[test]
fn steps_and_evaluations_are_kept() {
    let folder = with_run();
    let printed = train(&folder, "r", &[]);
    assert!(printed.contains("completed") && printed.contains("6 of 6"), "{printed}");
    let (header, steps) = folder.csv("r/steps.csv");
    assert_eq!(
        header,
        ["step", "tokens", "loss_nats", "learning_rate", "grad_norm", "wall_time_s"]
    );
    for (at, row) in steps.iter().enumerate() {
        assert_eq!(number(row, "step"), at as f64 + 1.0);
        assert_eq!(number(row, "tokens"), 16.0 * (at as f64 + 1.0), "batch 2 of context 8");
        assert!(number(row, "loss_nats") > 0.0 && number(row, "grad_norm") > 0.0, "{row:?}");
    }
    assert_eq!(steps.len(), 6);
    let (header, evals) = folder.csv("r/eval.csv");
    assert_eq!(
        header,
        [
            "step", "split", "tokens", "loss_nats", "perplexity", "bytes", "loss_nats_per_byte",
            "perplexity_per_byte"
        ]
    );
    let at: Vec<&str> =
        evals.iter().filter(|r| r["split"] == "valid").map(|r| r["step"].as_str()).collect();
    assert_eq!(at, ["4", "6"], "every fourth step and the last");
    for row in &evals {
        let off = (number(row, "loss_nats").exp() - number(row, "perplexity")).abs();
        assert!(off < 1e-9 * number(row, "perplexity"), "perplexity off by {off}: {row:?}");
    }
}

#[test]
fn every_heads_logits_are_kept() {
    let folder = with_run();
    train(&folder, "r", &[]);
    let heads = parquet(&folder.path("r/heads.parquet"));
    assert_eq!(
        names(&heads),
        [
            "step", "layer", "head", "kind", "window", "max_logit", "min_logit", "max_abs_logit",
            "entropy_nats"
        ]
    );
    assert_eq!(heads.height(), 6 * 2 * 2, "steps × layers × heads");
    assert_eq!(heads.column("step").unwrap().dtype(), &DataType::Int64);
    let number = |name: &str| -> Vec<f64> {
        heads.column(name).unwrap().f64().unwrap().into_no_null_iter().collect()
    };
    let (high, low) = (number("max_logit"), number("min_logit"));
    for (at, found) in number("max_abs_logit").into_iter().enumerate() {
        assert_eq!(found, high[at].abs().max(low[at].abs()), "row {at}");
    }
    for entropy in number("entropy_nats") {
        assert!((0.0..=8.0_f64.ln()).contains(&entropy), "entropy of {entropy} over 8 tokens");
    }
    let kinds = heads.column("kind").unwrap().str().unwrap().clone();
    let windows = heads.column("window").unwrap().i64().unwrap().clone();
    for (kind, window) in kinds.iter().zip(windows.iter()) {
        let window_of_kind = if kind == Some("local") { Some(3) } else { None };
        assert_eq!(window, window_of_kind, "{kind:?}");
    }
    assert_eq!(kinds.iter().filter(|kind| *kind == Some("local")).count(), 12);
}

#[test]
fn a_manifest_says_what_was_run() {
    let folder = with_run();
    train(&folder, "r", &["--text", "text.txt"]);
    let manifest: toml::Table = folder.read("r/manifest.toml").parse().unwrap();
    assert_eq!(manifest["outcome"].as_str(), Some("completed"));
    assert_eq!(manifest["dtype"].as_str(), Some("float32"));
    assert_eq!(manifest["device"].as_str(), Some("cpu"));
    assert!(manifest["parameters"].as_integer() > Some(0), "{manifest}");
    assert!(manifest.contains_key("git_revision"), "{manifest}");
    let definition = manifest["definition"].as_table().unwrap();
    assert_eq!(definition["steps"].as_integer(), Some(6), "as --set gave it");
    assert_eq!(definition["window"].as_integer(), Some(3));
    let corpus = manifest["corpus"].as_table().unwrap();
    use sha2::Digest as _;
    let digest = sha2::Sha256::digest(TEXT.repeat(20));
    let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(corpus["sha256"].as_str(), Some(digest.as_str()));
    assert_eq!(corpus["source"].as_str(), Some("text.txt"));
}

#[test]
fn the_same_definition_gives_the_same_losses() {
    let folder = with_run();
    for (text, other) in [(&[][..], "seed=1"), (&["--text", "text.txt"], "learning_rate=0.01")] {
        let kind = text.len();
        let [a, b, c] = ["a", "b", "c"].map(|name| format!("{name}{kind}"));
        train(&folder, &a, text);
        train(&folder, &b, text);
        train(&folder, &c, &[text, &["--set", other]].concat());
        assert_eq!(losses(&folder, &a), losses(&folder, &b));
        assert_ne!(losses(&folder, &a), losses(&folder, &c), "--set {other} changed nothing");
    }
}

#[test]
fn a_trained_model_is_evaluated_on_a_text() {
    let folder = with_run();
    for (at, words) in ["five dozen", "liquor jugs", "quick foxes", "lazy dogs"].iter().enumerate()
    {
        folder.write(&format!("texts/{at}.txt"), format!("{words} {TEXT}").repeat(12));
    }
    let evaluate = |more: &[&str]| -> serde_json::Value {
        let printed = folder.done(&[&["evaluate", "r", "--json", "--quiet"], more].concat());
        serde_json::from_str(&printed).unwrap()
    };
    for (vocabulary, symbols) in [("bpe:290", 290), ("byte", 257), ("characters", 0)] {
        let set = format!("vocabulary={vocabulary}");
        let more = ["--text", "texts", "--set", &set, "--set", "keep_checkpoints=[2]"];
        folder
            .done(&[&["train", "run.toml", "--out", "r", "--set", "steps=6"], &more[..]].concat());
        let manifest: toml::Table = folder.read("r/manifest.toml").parse().unwrap();
        let size = manifest["corpus"]["vocabulary_size"].as_integer();
        assert!(symbols == 0 || size == Some(symbols), "{vocabulary}: {size:?}");
        assert_eq!(folder.path("r/tokenizer.json").exists(), vocabulary == "bpe:290");

        let whole = evaluate(&["--text", "texts"]);
        let text: usize = (0..4).map(|at| folder.read(&format!("texts/{at}.txt")).len()).sum();
        let bytes = whole["bytes"].as_u64().unwrap() as usize;
        assert!(
            bytes < text && bytes + 4 * 8 > text,
            "{bytes} of {text}: all but the first tokens"
        );
        let number = |key: &str| whole[key].as_f64().unwrap();
        let nats = number("loss_nats") * number("tokens") / number("bytes");
        assert!((nats - number("loss_nats_per_byte")).abs() < 1e-12);
        assert!((nats.exp() - number("perplexity_per_byte")).abs() < 1e-9);
        // After six steps, one vocabulary knows as little as another: near a uniform guess.
        let uniform = (size.unwrap() as f64).ln();
        assert!((number("loss_nats") - uniform).abs() < 0.5, "{vocabulary}: {whole}");

        let valid = evaluate(&["--text", "texts", "--split", "valid"]);
        assert!(valid["bytes"].as_u64() < whole["bytes"].as_u64(), "{valid}");
        let early = evaluate(&["--text", "texts", "--step", "2"]);
        assert_ne!(early["loss_nats"], whole["loss_nats"]);
        std::fs::remove_dir_all(folder.path("r")).unwrap();
    }
    folder.write("foreign.txt", "\u{2603}".repeat(50));
    train(&folder, "c", &["--text", "text.txt"]);
    for (more, part) in [
        (["c", "--text", "foreign.txt"], "vocabulary"),
        (["c", "--text", "none.txt"], "none.txt"),
        (["texts", "--text", "text.txt"], "manifest.toml"),
    ] {
        let error = folder.refused(&[&["evaluate", "--quiet"], &more[..]].concat());
        assert!(error.contains(part), "{more:?}: {error}");
    }
    let error = folder.refused(&["evaluate", "c", "--quiet", "--text", "text.txt", "--step", "4"]);
    assert!(error.contains("step-000004"), "{error}");
}

#[test]
fn the_manifest_says_where_and_in_which_arithmetic_a_run_was_made() {
    let folder = with_run();
    train(&folder, "r", &["--set", "dtype=bfloat16"]);
    let manifest = std::fs::read_to_string(folder.path("r/manifest.toml")).unwrap();
    for line in ["dtype = \"bfloat16\"", "device = \"cpu\""] {
        assert!(manifest.contains(line), "{line} in {manifest}");
    }
    train(&folder, "f", &[]);
    assert_ne!(losses(&folder, "r"), losses(&folder, "f"));
}

#[test]
#[cfg(not(feature = "cuda"))]
fn a_build_for_the_cpu_says_how_to_make_one_for_a_gpu() {
    let folder = with_run();
    let error = folder.refused(&["train", "run.toml", "--device", "cuda", "--quiet", "--out", "r"]);
    assert!(error.contains("device cuda") && error.contains("--features cuda"), "{error}");
    assert!(!folder.path("r/steps.csv").exists());
}

#[test]
fn json_is_one_object() {
    let folder = with_run();
    let printed = train(&folder, "r", &["--json", "--quiet"]);
    let value: serde_json::Value = serde_json::from_str(&printed).unwrap();
    assert_eq!((&value["outcome"], &value["steps"]), (&"completed".into(), &6.into()), "{printed}");
    let (_, evals) = folder.csv("r/eval.csv");
    let last = evals.iter().rfind(|row| row["split"] == "valid").unwrap();
    assert_eq!(value["valid_loss_nats"].as_f64(), Some(number(last, "loss_nats")));
}

#[test]
fn bad_input_is_one_line_and_leaves_nothing() {
    let folder = with_run();
    folder.write("short.txt", "short");
    folder.write("file", "");
    for (more, part) in [
        (&["--set", "stpes=3", "--out", "r"][..], "did you mean \"steps\"?"),
        (&["--set", "corpus.recal=0.1", "--out", "r"], "did you mean \"corpus.recall\"?"),
        (&["--set", "steps=0", "--out", "r"], "--set steps=0: "),
        (&["--set", "steps=many", "--out", "r"], "--set steps=many: "),
        (&["--set", "arm=lsa", "--out", "r"], "--set arm=lsa: "),
        (&["--set", "heads=3", "--out", "r"], "must be a multiple of heads = 3"),
        (&["--set", "steps", "--out", "r"], "KEY=VALUE"),
        (&["--text", "short.txt", "--out", "r"], "--text short.txt: "),
        (&["--text", "none.txt", "--out", "r"], "none.txt"),
        (&["--out", "file"], "--out"),
        (&["--out", "file/below"], "--out"),
    ] {
        let error = folder.refused(&[&["train", "run.toml"], more].concat());
        assert!(error.contains(part), "{more:?}: {error}");
    }
    let error = folder.refused(&["train", "none.toml", "--out", "r"]);
    assert!(error.contains("none.toml"), "{error}");
    folder.write("typo.toml", "leyers = 2\n");
    let error = folder.refused(&["train", "typo.toml", "--out", "r"]);
    assert!(error.contains("typo.toml") && error.contains("\"layers\""), "{error}");
    folder.write("odd.toml", "layers = = 2\n");
    assert!(folder.refused(&["train", "odd.toml", "--out", "r"]).contains("odd.toml"));
}

#[test]
fn a_folder_that_holds_a_run_is_left_as_it_is() {
    let folder = with_run();
    train(&folder, "r", &[]);
    let before = folder.read("r/steps.csv");
    let error = folder.refused(&["train", "run.toml", "--out", "r"]);
    assert!(error.contains("--out r already has a run"), "{error}");
    assert_eq!(folder.read("r/steps.csv"), before);
}

#[test]
fn a_study_of_runs_is_measured_once() {
    let folder = Folder::new();
    folder.write("lm.toml", STUDY);
    let printed = folder.done(&["sweep", "lm.toml"]);
    assert!(printed.contains("2 configurations measured"), "{printed}");
    let (header, rows) = folder.csv("data/lm/rows.csv");
    let columns = rank_study::record::columns::<TrainingMeasurement>();
    assert_eq!(header, columns.iter().map(|column| column.name).collect::<Vec<_>>());
    for (row, (arm, global)) in rows.iter().zip([("mhsa", "2"), ("ls", "1")]) {
        assert_eq!((row["cell"].as_str(), row["arm"].as_str()), (&*format!("{arm}/s0"), arm));
        assert_eq!((row["outcome"].as_str(), row["err"].as_str()), ("completed", ""), "{row:?}");
        assert_eq!((row["global_heads"].as_str(), row["corpus"].as_str()), (global, "synthetic"));
        let (_, steps) = folder.csv(&format!("data/lm/{arm}/s0/steps.csv"));
        assert_eq!(steps.len(), 5);
        let mean = steps.iter().map(|step| number(step, "loss_nats")).sum::<f64>() / 5.0;
        let off = (mean - number(row, "train_loss_nats")).abs();
        assert!(off < 1e-12, "train_loss_nats off by {off}: {row:?}");
    }
    assert_eq!(rows.len(), 2);
    let before = folder.read("data/lm/rows.csv");
    assert!(
        folder.done(&["sweep", "lm.toml"]).contains("0 configurations measured, 2 done before")
    );
    assert_eq!(folder.read("data/lm/rows.csv"), before);

    folder.write("words.txt", TEXT.repeat(20));
    folder.done(&["sweep", "lm.toml", "--text", "words.txt", "--filter", "^ls"]);
    let (_, rows) = folder.csv("data/lm-words/rows.csv");
    assert_eq!(rows.len(), 1);
    assert_eq!((rows[0]["corpus"].as_str(), rows[0]["outcome"].as_str()), ("words", "completed"));
    folder.done(&["table", "lm", "--quiet"]);
}

#[test]
fn rows_on_a_text_are_listed_with_it() {
    let folder = Folder::new();
    folder.write("analysis/lm.toml", STUDY);
    // The time is checked and taken out, so that the rest can be held to what it is.
    let listed = || -> Vec<serde_json::Value> {
        let mut lines: Vec<serde_json::Value> =
            serde_json::from_str(&folder.done(&["list", "--json"])).unwrap();
        for line in &mut lines {
            let took = line.as_object_mut().unwrap().remove("wall_time_s").unwrap();
            let has_rows = ["done", "stopped", "of_other_settings"].iter().any(|of| line[of] != 0);
            let (_, rows) = match has_rows {
                true => folder.csv(&format!("data/{}/rows.csv", line["folder"].as_str().unwrap())),
                false => Default::default(),
            };
            let sum = rows.iter().map(|row| number(row, "wall_time_s")).reduce(|a, b| a + b);
            assert_eq!(took.as_f64(), sum, "{line}");
        }
        lines
    };
    let line = |folder: &str, text: serde_json::Value, done: u64, by_name: bool| {
        let text_name = text.as_str().map(|_| "words");
        serde_json::json!({
            "study": "lm", "title": "", "presets": [], "folder": folder, "text": text, "cells": 2, "done": done,
            "stopped": 0, "parts": 0, "of_other_settings": 0, "by_name": by_name, "text_name": text_name,
        })
    };
    let no_text = serde_json::Value::Null;
    assert_eq!(listed(), [line("lm", no_text.clone(), 0, false)]);

    folder.write("words.txt", TEXT.repeat(20));
    let sweep = ["sweep", "analysis/lm.toml", "--quiet", "--filter", "^ls"];
    folder.done(&[&sweep[..], &["--text", "words.txt"]].concat());
    assert_eq!(listed(), [line("lm-words", "words.txt".into(), 1, false)]);
    let said = folder.done(&["list"]);
    assert!(said.starts_with("lm    1 of    2 done on words "), "{said}");

    folder.done(&sweep);
    let of_none = line("lm", no_text, 1, false);
    assert_eq!(listed(), [of_none.clone(), line("lm-words", "words.txt".into(), 1, false)]);
    let said = folder.done(&["list"]);
    let [of_no_text, of_words] = said.lines().collect::<Vec<_>>()[..] else { panic!("{said}") };
    assert!(of_no_text.starts_with("lm    1 of    2 done  "), "{said}");
    assert!(of_words.starts_with("lm    1 of    2 done on words "), "{said}");
    let steps = STUDY.lines().find(|line| line.starts_with("steps = ")).unwrap();
    folder.write("analysis/lm.toml", STUDY.replace(steps, "steps = 7"));
    let others: Vec<u64> =
        listed().iter().map(|line| line["of_other_settings"].as_u64().unwrap()).collect();
    assert_eq!(others, [1, 1], "rows that were measured by another definition");
    folder.write("analysis/lm.toml", STUDY);

    // A training that a sweep had to leave has a row, and is not done.
    let rows = folder.read("data/lm-words/rows.csv");
    folder.write("data/lm-words/rows.csv", rows.replace(",completed,", ",stopped,"));
    let words = &listed()[1];
    assert_eq!((&words["done"], &words["stopped"]), (&0.into(), &1.into()), "{words}");
    assert_eq!(words["of_other_settings"], 0, "{words}");
    assert!(folder.done(&["list"]).contains("(1 stopped before the end)"));
    folder.write("data/lm-words/rows.csv", rows);

    // Without the text nobody knows whether rows are of these settings, but they are there.
    std::fs::remove_file(folder.path("words.txt")).unwrap();
    assert_eq!(listed(), [of_none, line("lm-words", "words.txt".into(), 1, true)]);
    assert!(folder.done(&["list"]).contains("1 of    2 there on words "));
}

#[test]
fn a_bad_training_study_names_the_run_and_the_nearest_key() {
    for (find, replace, part) in [
        ("[train]", "[trian]", "did you mean \"train\"?"),
        ("layers = ", "leyers = ", "did you mean \"layers\"?"),
        ("arm = \"ls\"", "amr = \"ls\"", "did you mean \"arm\"?"),
        ("arm = \"ls\"", "steps = 0", "run ls: "),
        ("name = \"ls\"", "name = \"mhsa\"", "two runs are called \"mhsa\""),
        ("name = \"ls\"", "", "needs a name"),
        ("name = \"ls\"", "name = \"ls\"\nseed = [-1]", "seed"),
    ] {
        assert!(STUDY.contains(find), "{find} is not in the definition");
        let folder = Folder::new();
        folder.write("lm.toml", STUDY.replacen(find, replace, 1));
        let error = folder.refused(&["sweep", "lm.toml"]);
        assert!(error.contains("lm.toml: ") && error.contains(part), "{replace:?}: {error}");
    }
    let folder = Folder::new();
    folder.write("lm.toml", STUDY);
    let error = folder.refused(&["sweep", "lm.toml", "--text", "none.txt"]);
    assert!(error.contains("none.txt"), "{error}");
}

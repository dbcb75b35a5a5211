//! `rank-study train`, and `sweep` of training runs, through the binary.

use std::fs::File;
use std::sync::LazyLock;

use crate::common::binary::{Folder, number};
use crate::common::tiny;
use polars::prelude::{DataType, ParquetReader, SerReader};
use rank_study::experiments::training::TrainingMeasurement;

static STUDY: LazyLock<String> = LazyLock::new(|| {
    tiny::trainings(
        "study = \"lm\"\ntrain = { steps = 5, eval_every = 5 }\n\
         run = [{ name = \"mhsa\", arm = \"mhsa\" }, { name = \"ls\", arm = \"ls\" }]",
    )
});

const TEXT: &str =
    "the quick brown fox jumps over the lazy dog; pack my box with five dozen jugs\n";

fn with_run() -> Folder {
    let folder = Folder::new();
    folder.write("run.toml", tiny::training("layers = 2\nsteps = 20\neval_every = 4"));
    folder.write("text.txt", TEXT.repeat(20));
    folder
}

/// Trains for six steps.
fn train(folder: &Folder, out: &str, more: &[&str]) -> String {
    let arguments = ["train", "run.toml", "--set", "steps=6", "--out", out];
    folder.done(&[&arguments[..], more].concat())
}

fn manifest(folder: &Folder, out: &str) -> toml::Table {
    folder.read(&format!("{out}/manifest.toml")).parse().unwrap()
}

/// The losses and gradients of every step, as they stand in the file.
fn losses(folder: &Folder, out: &str) -> Vec<(String, String)> {
    let (_, steps) = folder.csv(&format!("{out}/steps.csv"));
    steps.into_iter().map(|row| (row["loss_nats"].clone(), row["grad_norm"].clone())).collect()
}

#[test]
fn steps_and_evaluations_are_kept_and_the_last_is_told() {
    let folder = with_run();
    let printed = train(&folder, "r", &["--json", "--quiet"]);
    let told: serde_json::Value = serde_json::from_str(&printed).unwrap();
    assert_eq!((&told["outcome"], &told["steps"]), (&"completed".into(), &6.into()), "{printed}");
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
    let valid: Vec<_> = evals.iter().filter(|row| row["split"] == "valid").collect();
    let at: Vec<&str> = valid.iter().map(|row| row["step"].as_str()).collect();
    assert_eq!(at, ["4", "6"], "every fourth step and the last");
    assert_eq!(told["valid_loss_nats"].as_f64(), Some(number(valid[1], "loss_nats")));
    for row in &evals {
        let off = (number(row, "loss_nats").exp() - number(row, "perplexity")).abs();
        assert!(off < 1e-9 * number(row, "perplexity"), "perplexity off by {off}: {row:?}");
    }
}

#[test]
fn every_heads_logits_are_kept() {
    let folder = with_run();
    train(&folder, "r", &[]);
    let file = File::open(folder.path("r/heads.parquet")).unwrap();
    let heads = ParquetReader::new(file).finish().unwrap();
    assert_eq!(
        heads.get_column_names(),
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
    train(&folder, "rounded", &["--text", "text.txt", "--set", "dtype=bfloat16"]);
    train(&folder, "r", &["--text", "text.txt"]);
    assert_ne!(losses(&folder, "r"), losses(&folder, "rounded"));
    assert_eq!(manifest(&folder, "rounded")["dtype"].as_str(), Some("bfloat16"));
    let manifest = manifest(&folder, "r");
    for (key, value) in [("outcome", "completed"), ("dtype", "float32"), ("device", "cpu")] {
        assert_eq!(manifest[key].as_str(), Some(value));
    }
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
        let sets = ["--set", &set, "--set", "keep_checkpoints=[2]"];
        train(&folder, "r", &[&["--text", "texts"], &sets[..]].concat());
        let size = manifest(&folder, "r")["corpus"]["vocabulary_size"].as_integer();
        assert!(symbols == 0 || size == Some(symbols), "{vocabulary}: {size:?}");
        assert_eq!(folder.path("r/tokenizer.json").exists(), vocabulary == "bpe:290");

        let whole = evaluate(&["--text", "texts"]);
        let text: usize = (0..4).map(|at| folder.read(&format!("texts/{at}.txt")).len()).sum();
        let bytes = whole["bytes"].as_u64().unwrap() as usize;
        assert!(bytes < text && bytes + 4 * 8 > text, "{bytes} of {text}: all but the first");
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
        (&["c", "--text", "foreign.txt"][..], "vocabulary"),
        (&["c", "--text", "none.txt"], "none.txt"),
        (&["texts", "--text", "text.txt"], "manifest.toml"),
        (&["c", "--text", "text.txt", "--step", "4"], "step-000004"),
    ] {
        let error = folder.refused(&[&["evaluate", "--quiet"], more].concat());
        assert!(error.contains(part), "{more:?}: {error}");
    }
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
fn bad_input_is_one_line_and_leaves_nothing() {
    let folder = with_run();
    folder.write("short.txt", "short");
    folder.write("file", "");
    folder.write("typo.toml", "leyers = 2\n");
    folder.write("odd.toml", "layers = = 2\n");
    train(&folder, "there", &[]);
    let before = folder.read("there/steps.csv");
    for (definition, more, part) in [
        ("run", &["--set", "stpes=3", "--out", "r"][..], "did you mean \"steps\"?"),
        ("run", &["--set", "steps=0", "--out", "r"], "--set steps=0: "),
        ("run", &["--set", "steps=many", "--out", "r"], "--set steps=many: "),
        ("run", &["--set", "steps", "--out", "r"], "KEY=VALUE"),
        ("run", &["--text", "short.txt", "--out", "r"], "--text short.txt: "),
        ("run", &["--text", "none.txt", "--out", "r"], "none.txt"),
        ("run", &["--out", "file"], "--out"),
        ("run", &["--out", "file/below"], "--out"),
        ("run", &["--out", "there"], "--out there already has a run"),
        ("none", &["--out", "r"], "none.toml"),
        ("typo", &["--out", "r"], "typo.toml: unknown key \"leyers\""),
        ("odd", &["--out", "r"], "odd.toml"),
    ] {
        let definition = format!("{definition}.toml");
        let error = folder.refused(&[&["train", &definition], more].concat());
        assert!(error.contains(part), "{definition} {more:?}: {error}");
    }
    assert_eq!(folder.read("there/steps.csv"), before);
}

#[test]
fn a_study_of_runs_has_a_row_a_run() {
    let folder = Folder::new();
    folder.write("lm.toml", STUDY.as_str());
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
    folder.done(&["table", "lm", "--quiet"]);
}

#[test]
fn rows_on_a_text_say_so_and_are_listed_with_it() {
    let folder = Folder::new();
    folder.write("analysis/lm.toml", STUDY.as_str());
    // The time is checked and taken out, so that the rest can be held to what it is.
    let listed = || -> Vec<serde_json::Value> {
        let mut lines: Vec<serde_json::Value> =
            serde_json::from_str(&folder.done(&["list", "--json"])).unwrap();
        for line in &mut lines {
            let took = line.as_object_mut().unwrap().remove("wall_time_s").unwrap();
            let rows = format!("data/{}/rows.csv", line["folder"].as_str().unwrap());
            let rows = if folder.path(&rows).exists() { folder.csv(&rows).1 } else { Vec::new() };
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
    let (_, rows) = folder.csv("data/lm-words/rows.csv");
    assert_eq!((rows.len(), &*rows[0]["corpus"], &*rows[0]["outcome"]), (1, "words", "completed"));

    folder.done(&sweep);
    let of_none = line("lm", no_text, 1, false);
    assert_eq!(listed(), [of_none.clone(), line("lm-words", "words.txt".into(), 1, false)]);
    let said = folder.done(&["list"]);
    let [of_no_text, of_words] = said.lines().collect::<Vec<_>>()[..] else { panic!("{said}") };
    assert!(of_no_text.starts_with("lm    1 of    2 done  "), "{said}");
    assert!(of_words.starts_with("lm    1 of    2 done on words "), "{said}");
    folder.write("analysis/lm.toml", STUDY.replace("\nsteps = 5", "\nsteps = 7"));
    for line in listed() {
        assert_eq!(line["of_other_settings"], 1, "a row that was measured by another definition");
    }
    folder.write("analysis/lm.toml", STUDY.as_str());

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
fn a_bad_training_study_names_the_run_and_its_key() {
    for (replace, part) in [
        ("steps = 0\nname = \"ls\"", "run ls: "),
        ("name = \"mhsa\"", "two runs are called \"mhsa\""),
        ("", "needs a name"),
        ("name = \"ls\"\nseed = [-1]", "seed"),
    ] {
        let folder = Folder::new();
        folder.write("lm.toml", STUDY.replacen("name = \"ls\"", replace, 1));
        let error = folder.refused(&["sweep", "lm.toml"]);
        assert!(error.contains("lm.toml: ") && error.contains(part), "{replace:?}: {error}");
    }
    let folder = Folder::new();
    folder.write("lm.toml", STUDY.as_str());
    let error = folder.refused(&["sweep", "lm.toml", "--text", "none.txt"]);
    assert!(error.contains("none.txt"), "{error}");
}

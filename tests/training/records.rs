//! Data of fixed records through the binary: training, evaluation, heads, studies, resumption.

use crate::common::binary::Folder;
use serde_json::Value;

const RUN: &str = r#"
arm = "ls"
layers = 1
d_model = 8
heads = 2
window = 3
batch = 2
steps = 6
warmup_steps = 2
eval_every = 3
eval_batches = 2
"#;

const STUDY: &str = r#"
study = "lm"
kind = "train"
view = "variants"
[baseline]
of = "lm"
runs = ["mhsa"]
[train]
records = 12
layers = 1
d_model = 8
heads = 2
window = 3
batch = 2
steps = 5
eval_every = 5
eval_batches = 2
[[run]]
name = "mhsa"
arm = "mhsa"
seed = [1, 2]
[[run]]
name = "ls"
arm = "ls"
seed = [1, 2]
"#;

/// Forty records of 12 bytes that are no text.
fn with_records() -> Folder {
    let folder = Folder::new();
    folder.write("run.toml", RUN);
    let bytes: Vec<u8> = (0..480u32).map(|i| (i * i % 251) as u8 | 0x80).collect();
    assert!(std::str::from_utf8(&bytes).is_err());
    folder.write("images.bin", &bytes);
    folder.write("held.bin.zst", zstd::encode_all(&bytes[..120], 1).unwrap());
    folder
}

fn train(folder: &Folder, out: &str, more: &[&str]) -> String {
    let arguments = ["train", "run.toml", "--text", "images.bin", "--quiet", "--out", out];
    folder.done(&[&arguments[..], more].concat())
}

fn json(printed: &str) -> Value {
    serde_json::from_str(printed).unwrap()
}

#[test]
fn records_train_are_evaluated_and_their_heads_looked_at() {
    let folder = with_records();
    train(&folder, "r", &["--records", "12", "--valid-text", "held.bin.zst"]);
    let manifest: toml::Table = folder.read("r/manifest.toml").parse().unwrap();
    let (definition, corpus) = (&manifest["definition"], &manifest["corpus"]);
    assert_eq!(definition["records"].as_integer(), Some(12));
    assert_eq!(definition["context"].as_integer(), Some(12));
    assert_eq!(corpus["vocabulary_size"].as_integer(), Some(257));
    assert_eq!(corpus["train_tokens"].as_integer(), Some(40 * 13), "each begins with a symbol");
    assert_eq!(corpus["valid_tokens"].as_integer(), Some(10 * 13));

    let found =
        json(&folder.done(&["evaluate", "r", "--text", "held.bin.zst", "--json", "--quiet"]));
    assert_eq!((found["tokens"].as_u64(), found["bytes"].as_u64()), (Some(120), Some(120)));
    let number = |key: &str| found[key].as_f64().unwrap();
    assert!((number("bits_per_byte") * 2f64.ln() - number("loss_nats")).abs() < 1e-12, "{found}");
    // Six steps leave it near a uniform guess of 8 bits.
    assert!((number("bits_per_byte") - 8.0).abs() < 0.7, "{found}");

    let dump = ["dump", "r", "--text", "images.bin", "--quiet", "--out", "m", "--format", "csv"];
    folder.done(&[&dump[..], &["--first", "24"]].concat());
    assert_eq!(folder.read("m/layer-0-head-0.csv").lines().count(), 12);
    let error = folder.refused(&[&dump[..5], &["--first", "5", "--out", "n"]].concat());
    assert!(error.contains("multiple of 12"), "{error}");
    let predict = ["predict", "r", "--text", "images.bin", "--tolerance", "0.1", "--quiet"];
    folder.done(&[&predict[..], &["--out", "p", "--passages", "1"]].concat());
    assert_eq!(folder.csv("p/rows.csv").1.len(), 2, "a row a head");
}

#[test]
fn what_is_no_record_or_contradicts_them_is_refused_in_one_line() {
    let folder = with_records();
    for (more, part) in [
        (
            ["--records", "7", "--quiet"],
            "images.bin: 480 bytes are not a whole number of records of 7",
        ),
        (["--records", "0.5", "--quiet"], "--records must be a whole number"),
    ] {
        let arguments = ["train", "run.toml", "--text", "images.bin", "--out", "r"];
        let ended = folder.run(&[&arguments[..], &more[..]].concat());
        assert!(ended.code != Some(0) && ended.stderr.contains(part), "{more:?}: {}", ended.stderr);
    }
    let arguments = ["train", "run.toml", "--text", "images.bin", "--records", "12", "--out", "r"];
    let error = folder.refused(&[&arguments[..], &["--set", "context=8"]].concat());
    assert!(
        error.contains("context must equal records = 12: a sequence is one whole record (8 found)"),
        "{error}"
    );
    // Without records, the same bytes are one stream.
    train(&folder, "stream", &["--set", "vocabulary=byte", "--set", "context=8"]);
    let error = folder.refused(&[&arguments[..4], &["--out", "c", "--quiet"]].concat());
    assert!(error.contains("not UTF-8"), "{error}");
}

#[test]
fn a_run_older_than_a_key_goes_on_with_its_default_and_no_other() {
    let folder = with_records();
    train(&folder, "old", &["--set", "vocabulary=byte", "--set", "context=8"]);
    let manifest = folder.read("old/manifest.toml");
    let older: String =
        manifest.lines().filter(|l| *l != "records = 0").map(|l| format!("{l}\n")).collect();
    assert_ne!(older, manifest);
    folder.write("old/manifest.toml", older);
    let resumed =
        train(&folder, "old", &["--set", "vocabulary=byte", "--set", "context=8", "--resume"]);
    assert!(resumed.contains("6 of 6"), "{resumed}");
    let error = folder.refused(&[
        "train", "run.toml", "--text", "images.bin", "--out", "old", "--records", "8", "--resume",
    ]);
    assert!(error.contains("records"), "{error}");
}

#[test]
fn a_study_reads_records_and_its_rows_name_them() {
    let folder = with_records();
    folder.write("analysis/lm.toml", STUDY);
    let sweep =
        ["sweep", "analysis/lm.toml", "--text", "images.bin", "--valid-text", "held.bin.zst"];
    folder.done(&[&sweep[..], &["--threads", "1", "--quiet"]].concat());
    let (_, rows) = folder.csv("data/lm-images/rows.csv");
    assert_eq!(rows.len(), 4);
    assert!(rows.iter().all(|row| row["corpus"] == "images" && row["context"] == "12"), "{rows:?}");
    let listed = folder.done(&[&sweep[..], &["--list"]].concat());
    assert_eq!(listed.matches("done").count(), 4, "{listed}");
    folder.done(&["table", "lm-images"]);
    let (_, table) = folder.csv("data/lm-images/tables/variants.csv");
    assert_eq!(table.len(), 2, "{table:?}");
}

//! Masked tokens, what comes after a token, and two-dimensional windows, through the binary.

use crate::common::binary::Folder;
use crate::common::tiny;

const TEXT: &str =
    "the quick brown fox jumps over the lazy dog; pack my box with five dozen jugs\n";

const TRAIN: [&str; 3] = ["train", "run.toml", "--out"];

fn with_text() -> Folder {
    let folder = Folder::new();
    folder.write(
        "run.toml",
        tiny::training("layers = 2\nglobal_heads = 1\nsteps = 6\neval_every = 4"),
    );
    folder.write("text.txt", TEXT.repeat(20));
    folder
}

/// An encoder of masked tokens whose local heads have two-dimensional windows: trained, gone on with, evaluated and
/// written out; what it does not have is refused in one line.
#[test]
fn an_encoder_with_patches_is_trained_evaluated_and_dumped() {
    let folder = with_text();
    let patch = "patch={columns=4,rows=1,reach=1}";
    let masked = ["--set", patch, "--set", "objective=masked", "--set", "mask_share=0.25"];
    let both = ["--set", "visibility=bidirectional", "--text", "text.txt"];
    let more = [&masked[..], &both].concat();
    folder.done(&[&TRAIN[..], &["whole"], &more].concat());
    folder.done(&[&TRAIN[..], &["parts"], &more, &["--set", "steps=3"]].concat());
    let another = ["parts", "--resume", "--set", "mask_share=0.5"];
    let other = folder.refused(&[&TRAIN[..], &another, &more[..4], &both].concat());
    assert!(other.contains("mask_share"), "{other}");
    let manifest: toml::Table = folder.read("whole/manifest.toml").parse().unwrap();
    assert_eq!(manifest["definition"]["patch"]["rows"].as_integer(), Some(1));

    let evaluate = ["evaluate", "whole", "--text", "text.txt", "--json", "--quiet"];
    let found: serde_json::Value = serde_json::from_str(&folder.done(&evaluate)).unwrap();
    // Of every window of 8 tokens two are asked, and of the last one, of `left`, a quarter.
    let (whole, left) = ((TEXT.len() * 20 - 1) / 8, (TEXT.len() * 20 - 1) % 8);
    let asked = 2 * whole + (left as f64 / 4.0).round() as usize;
    assert!(left >= 2, "{left}: too few to round");
    assert_eq!(found["tokens"].as_u64(), Some(asked as u64));
    assert_eq!(folder.done(&evaluate), folder.done(&evaluate));

    folder
        .done(&["dump", "whole", "--text", "text.txt", "--format", "csv", "--out", "m", "--quiet"]);
    let rows: Vec<Vec<f64>> = folder
        .read("m/layer-0-head-1.csv")
        .lines()
        .map(|line| line.split(',').map(|p| p.parse().unwrap()).collect())
        .collect();
    assert_eq!(rows.len(), 8);
    for (i, row) in rows.iter().enumerate() {
        assert!((row.iter().sum::<f64>() - 1.0).abs() < 1e-9, "row {i}: {row:?}");
        for (j, p) in row.iter().enumerate() {
            assert_eq!(*p > 0.0, (i % 4).abs_diff(j % 4) <= 1, "{i}, {j}: {p}");
        }
    }
    let predict = ["predict", "whole", "--text", "text.txt", "--tolerance", "0.1", "--out", "p"];
    let error = folder.refused(&[&predict[..], &["--quiet"]].concat());
    assert!(error.contains("two-dimensional window"), "{error}");
    for (sets, said) in [
        (["--set", "visibility=bidirectional"], "set objective = masked"),
        (
            ["--set", "patch={columns=4,rows=1,reach=4}"],
            "patch.reach must be below patch.columns = 4 (4 found)",
        ),
    ] {
        let error = folder.refused(&[&TRAIN[..], &["wrong"], &sets].concat());
        assert!(error.contains(said), "{error}");
        assert!(!folder.path("wrong").exists());
    }
}

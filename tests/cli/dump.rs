//! `rank-study dump` through the binary: a trained model's attention as matrices.

use crate::common::binary::Folder;
use crate::common::tiny;
use ndarray::Array2;
use ndarray_npy::read_npy;

fn with_run() -> Folder {
    let folder = Folder::new();
    folder.write(
        "run.toml",
        tiny::training(
            "layers = 2\ncontext = 16\nsteps = 6\nstabilisers = [\"softcap\"]\nsoftcap = 0.5",
        ),
    );
    folder.write("text.txt", "pack my box with five dozen jugs\n".repeat(20));
    folder.done(&["train", "run.toml", "--text", "text.txt", "--out", "run"]);
    folder
}

fn dump(folder: &Folder, more: &[&str]) -> String {
    let arguments = ["dump", "run", "--text", "text.txt", "--tokens", "12"];
    folder.done(&[&arguments[..], more].concat())
}

#[test]
fn attention_is_the_softmax_of_the_capped_logits_and_a_target() {
    let folder = with_run();
    dump(&folder, &["--out", "attention", "--first", "5"]);
    dump(&folder, &["--out", "logits", "--first", "5", "--what", "logits"]);
    for layer in 0..2 {
        for head in 0..2 {
            let read = |what: &str| -> Array2<f64> {
                let name = format!("{what}/layer-{layer}-head-{head}.npy");
                read_npy(folder.path(&name)).unwrap()
            };
            let (p, z) = (read("attention"), read("logits"));
            assert_eq!((p.dim(), z.dim()), ((12, 12), (12, 12)));
            let window = if head == 0 { 12 } else { 3 };
            for row in 0..12 {
                let weight = |column: usize| {
                    let seen = column <= row && column + window > row;
                    assert_eq!(z[[row, column]].is_finite(), seen, "{row}, {column}");
                    if seen { (0.5 * (z[[row, column]] / 0.5).tanh()).exp() } else { 0.0 }
                };
                let weights: Vec<f64> = (0..12).map(weight).collect();
                let sum: f64 = weights.iter().sum();
                for (column, weight) in weights.iter().enumerate() {
                    let off = (p[[row, column]] - weight / sum).abs();
                    assert!(off < 1e-12, "layer {layer}, head {head}, ({row}, {column}): {off:e}");
                }
            }
        }
    }
    folder.done(&["target", "--target", "attention/layer-1-head-0.npy", "--stats"]);
    folder.done(&[
        "fit", "--target", "attention/layer-0-head-1.npy", "--layout", "local:3", "--rank", "2",
        "--max-logit", "4", "--starts", "1", "--out", "fit", "--quiet",
    ]);
}

#[test]
fn chosen_heads_come_in_the_format_asked_for_and_wrong_choices_are_refused() {
    let folder = with_run();
    dump(&folder, &["--layer", "1", "--head", "0", "--format", "csv", "--out", "one"]);
    let files: Vec<_> = std::fs::read_dir(folder.path("one")).unwrap().collect();
    assert_eq!(files.len(), 1);
    assert!(folder.path("one/layer-1-head-0.csv").exists());
    for (flag, value, part) in [
        ("--layer", "2", "--layer"),
        ("--head", "7", "--head"),
        ("--tokens", "0", "--tokens"),
        ("--tokens", "17", "17"),
        ("--first", "5000", "5016"),
        ("--format", "png", "png"),
    ] {
        let dump = ["dump", "run", "--text", "text.txt", "--out", "wrong", "--quiet", flag, value];
        let error = folder.refused(&dump);
        assert!(error.contains(part), "{flag} {value}: {error}");
    }
    assert!(!folder.path("wrong").exists());
}

//! Matrices in files that PyTorch wrote: tests/reference/torch/generate.py.

use std::path::{Path, PathBuf};

use ndarray::Array2;
use rank_study::targets::{StackIndex, TargetFile, TargetRead, Visibility};

fn reference(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference/torch").join(name)
}

fn read(name: &str, head: Option<usize>) -> Result<TargetRead, String> {
    let index = StackIndex { head, ..StackIndex::default() };
    let file = TargetFile { index, ..TargetFile::at(&reference(name)) };
    file.read(Visibility::Causal).map_err(|error| error.to_string())
}

/// The matrix of that number in generate.py.
fn attention(matrix: usize) -> Array2<f64> {
    let weight = |i: usize, j: usize| (1 + (3 * i + 5 * j + matrix) % 7) as f64;
    Array2::from_shape_fn((6, 6), |(i, j)| match j <= i {
        true => weight(i, j) / (0..=i).map(|k| weight(i, k)).sum::<f64>(),
        false => 0.0,
    })
}

#[test]
fn tensors_of_torch_have_the_values_that_were_saved() {
    for (name, head, matrix, precision) in [
        ("view.pt", None, 2, 1e-15),
        ("attentions.pt#0", Some(1), 1, 1e-3),
        ("attentions.pt#1", Some(0), 2, 1e-3),
        ("state.pth#transposed", None, 1, 1e-7),
        ("state.pth#parameter", None, 3, 1e-7),
        ("state.pth#layers.0.0", None, 0, 4e-3),
    ] {
        let read = read(name, head).unwrap().target.dense();
        let off = (read - attention(matrix)).iter().fold(0.0_f64, |off, d| off.max(d.abs()));
        assert!(off <= precision, "{name}: off by {off}");
    }
}

#[test]
fn what_a_file_of_torch_does_not_hold_is_said_in_a_line() {
    for (name, part) in [
        ("state.pth", "FILE#"),
        ("state.pth#layers.0.1", "layers.0.0"),
        ("state.pth#ids", "LongStorage"),
        ("attentions.pt#0", "--head 0 to --head 1"),
        ("none.pt", "no matrix"),
        ("old.pt", "PyTorch 1.6"),
    ] {
        let error = read(name, None).unwrap_err();
        assert!(error.contains(part) && error.contains(name.split('#').next().unwrap()), "{error}");
        assert!(!error.contains('\n'), "{error}");
    }
}

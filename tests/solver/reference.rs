//! The stored reference is what it says: its factors reach its kl_nats within its caps.

use std::path::{Path, PathBuf};

use ndarray::{Array2, Array5, Axis};
use ndarray_npy::read_npy;
use rank_study::targets::{HeadKind, Layout, Target, Visibility};

const CAUSAL: Visibility = Visibility::Causal;

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference").join(name)
}

/// One head's P, and the largest |logit| that it sees.
fn head(q: &Array2<f64>, k: &Array2<f64>, kind: HeadKind) -> (Array2<f64>, f64) {
    let (n, d) = q.dim();
    let logits = q.dot(&k.t()) / (d as f64).sqrt();
    let mut p = Array2::zeros((n, n));
    let mut largest = 0.0f64;
    for row in 0..n {
        let seen = kind.columns(row, n, CAUSAL);
        let sum: f64 = seen.clone().map(|column| logits[[row, column]].exp()).sum();
        for column in seen {
            p[[row, column]] = logits[[row, column]].exp() / sum;
            largest = largest.max(logits[[row, column]].abs());
        }
    }
    (p, largest)
}

fn kl_nats(target: &Target, p: &Array2<f64>) -> f64 {
    let row = |row: usize| -> f64 {
        let (columns, probabilities) = target.row(row);
        let terms = columns.iter().zip(probabilities);
        terms.map(|(&column, &a)| a * (a / p[[row, column as usize]]).ln()).sum()
    };
    (0..target.n()).map(row).sum::<f64>() / target.n() as f64
}

fn check(name: &str, layout: &str) {
    let target = Target::read(&file(&format!("{name}.npy")), CAUSAL).unwrap();
    let factors: Array5<f64> = read_npy(file(&format!("{name}-factors.npy"))).unwrap();
    let layout: Layout = layout.parse().unwrap();
    let mut rows = csv::Reader::from_path(file(&format!("{name}.csv"))).unwrap();
    let mut lowest = f64::INFINITY;
    for (at, row) in rows.records().enumerate() {
        let row = row.unwrap();
        let number = |field: usize| row[field].parse::<f64>().unwrap();
        let (cap, expected) = (number(0), number(1));
        let weights = row[7].split(' ').map(|weight| weight.parse::<f64>().unwrap());
        let mut p = Array2::zeros((target.n(), target.n()));
        for (h, (kind, weight)) in layout.heads().iter().zip(weights).enumerate() {
            let of = |which| {
                factors
                    .index_axis(Axis(0), at)
                    .index_axis_move(Axis(0), which)
                    .index_axis_move(Axis(0), h)
                    .to_owned()
            };
            let (of_head, largest) = head(&of(0), &of(1), *kind);
            assert!(largest <= cap * (1.0 + 1e-12), "{name}, cap {cap}: reaches {largest}");
            p += &(of_head * weight);
        }
        let found = kl_nats(&target, &p);
        assert!((found - expected).abs() < 1e-9, "{name}, cap {cap}: {found}, not {expected}");
        assert!(found < lowest, "{name}: a cap of {cap} allows more and reaches no less");
        lowest = found;
    }
    assert!(lowest.is_finite(), "{name} has no rows");
}

#[test]
fn the_dense_local_reference_certifies_itself() {
    check("dense-local-n96", "global");
}

#[test]
fn the_mixture_reference_certifies_itself() {
    check("mixture-n96", "local:24+global");
}

//! The figures of a study of singular values.

use crate::experiments::spectrum::tables::{Spectra, SpectrumGroup};
use crate::experiments::spectrum::{ATTENTION, LOGITS};
use crate::figure::ticks::{length, symbols};
use crate::figure::{Axis, Figure, Ink, Key, Panel, Series, Shape, Stroke};

/// Ratios below this are left out.
const LEAST: f64 = 1e-4;

/// σ/σ₁ against the index at the longest sequence (attention solid, logits dashed), and effective rank against n. Both
/// figures have one panel per target.
pub fn spectra(study: &Spectra) -> Vec<Figure> {
    let longest = study.cells.iter().map(|cell| cell.n).max().unwrap_or(0);
    vec![values(study, longest), ranks(study)]
}

const MATRICES: [&str; 2] = [ATTENTION, LOGITS];

fn ink(matrix: &str) -> Ink {
    match matrix {
        LOGITS => Ink { stroke: Stroke::Dashed, ..Ink::numbered(0) },
        _ => Ink { stroke: Stroke::Solid, ..Ink::numbered(1) },
    }
}

fn keys(shape: Shape) -> Vec<Key> {
    MATRICES.map(|name| Key::new(&format!("{name} matrix"), ink(name), shape)).to_vec()
}

fn labels(study: &Spectra) -> Vec<&str> {
    let mut labels: Vec<&str> = study.cells.iter().map(|cell| cell.label.as_str()).collect();
    labels.dedup();
    labels
}

fn values(study: &Spectra, n: usize) -> Figure {
    let panels = labels(study).into_iter().map(|label| {
        let here = study.cells.iter().filter(|cell| cell.label == label && cell.n == n);
        let line = |cell: &SpectrumGroup| {
            let points = cell.spectrum.iter().copied().filter(|(_, sigma)| *sigma >= LEAST);
            Series::new(&cell.matrix, ink(&cell.matrix), Shape::Line, points.collect())
        };
        let series: Vec<Series> = here.map(line).collect();
        let x = Axis::log("index of the singular value", [1.0, n as f64].into_iter());
        let y = Axis::log("singular value / largest", [LEAST, 1.0].into_iter());
        Panel::new(label, x, y, series)
    });
    Figure {
        name: "singular-values".to_owned(),
        caption: format!(
            "Singular values at {}, divided by the largest, medians over seeds: of each target's attention matrix and of logits of \
             any rank that reach it within the study's error. A line that falls early is low-rank.{}",
            length(n),
            symbols(labels(study).into_iter())
        ),
        keys: keys(Shape::Line),
        panels: panels.collect(),
    }
}

fn ranks(study: &Spectra) -> Figure {
    let all = || study.cells.iter().filter_map(|cell| Some(cell.effective_rank?.median));
    let y = Axis::log("effective rank", all().chain([1.0]));
    let panels = labels(study).into_iter().map(|label| {
        let of = |matrix: &str| {
            let points = study
                .cells
                .iter()
                .filter(|cell| cell.label == label && cell.matrix == matrix)
                .filter_map(|cell| Some((cell.n as f64, cell.effective_rank?.median)));
            Series::new(matrix, ink(matrix), Shape::LineMarkers, points.collect())
        };
        let lengths = study.cells.iter().map(|cell| cell.n as f64);
        let series = MATRICES.map(of).to_vec();
        Panel::new(label, Axis::log_at("sequence length n", lengths), y.clone(), series)
    });
    Figure {
        name: "effective-rank".to_owned(),
        caption: format!(
            "Effective rank (exp of the entropy of the normalised singular values) against sequence length, of the attention matrix \
             and of logits of any rank that reach it. A line that rises with n has no fixed rank.{}",
            symbols(labels(study).into_iter())
        ),
        keys: keys(Shape::LineMarkers),
        panels: panels.collect(),
    }
}

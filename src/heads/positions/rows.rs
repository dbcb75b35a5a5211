//! The logits and attention of a head on the allowed pairs of passages of equal length.

use std::ops::Range;

use crate::lm::HeadProbe;

/// The logits z = q·k/√d and the attention p of some rows of passages, over the allowed pairs, row by row.
pub(in super::super) struct SeenRows {
    /// Number of tokens of a passage.
    pub tokens: usize,
    rows: Vec<(usize, Range<usize>, usize)>,
    logits: Vec<f64>,
    attention: Vec<f64>,
}

/// One row: the query at `position` and the columns to which it may attend; the last is its own.
pub(in super::super) struct SeenRow<'a> {
    pub position: usize,
    pub columns: Range<usize>,
    start: usize,
    pub logits: &'a [f64],
    pub attention: &'a [f64],
}

/// The smallest and the largest of some numbers.
pub(in super::super) fn extremes(of: impl Iterator<Item = f64>) -> [f64; 2] {
    of.fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], z| [low.min(z), high.max(z)])
}

impl SeenRow<'_> {
    /// The range of this row's pairs among all pairs.
    pub fn pairs(&self) -> Range<usize> {
        self.start..self.start + self.columns.len()
    }

    /// The smallest and the largest logit.
    pub fn extremes(&self) -> [f64; 2] {
        extremes(self.logits.iter().copied())
    }

    /// −Σ p ln p.
    pub fn entropy(&self) -> f64 {
        -self.attention.iter().filter(|&&p| p > 0.0).map(|p| p * p.ln()).sum::<f64>()
    }

    /// The relative distances of its columns, in the opposite order of the columns.
    pub fn lags(&self) -> Range<usize> {
        self.position + 1 - self.columns.end..self.position + 1 - self.columns.start
    }
}

impl SeenRows {
    /// The rows at `positions` of every passage of one causal head; `probes` has one probe per passage.
    pub fn of(probes: &[&HeadProbe], positions: &[usize]) -> Self {
        let tokens = probes.first().map_or(0, |probe| probe.queries.nrows());
        let mut all = Self { tokens, rows: Vec::new(), logits: Vec::new(), attention: Vec::new() };
        for probe in probes {
            let (z, p) = (probe.logits_of(positions), probe.attention_of(positions));
            for ((&position, z), p) in positions.iter().zip(z.rows()).zip(p.rows()) {
                let columns = probe.kind.columns(position, tokens, probe.visibility);
                all.rows.push((position, columns.clone(), all.logits.len()));
                all.logits.extend(columns.clone().map(|column| z[column]));
                all.attention.extend(columns.map(|column| p[column]));
            }
        }
        all
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// The number of allowed pairs.
    pub fn pairs(&self) -> usize {
        self.logits.len()
    }

    /// The largest number of columns of a row.
    pub fn widest(&self) -> usize {
        self.rows.iter().map(|(_, columns, _)| columns.len()).max().unwrap_or(0)
    }

    /// Iterates over the rows.
    pub fn each(&self) -> impl Iterator<Item = SeenRow<'_>> {
        self.rows.iter().map(|(position, columns, start)| {
            let pairs = *start..start + columns.len();
            SeenRow {
                position: *position,
                columns: columns.clone(),
                start: *start,
                logits: &self.logits[pairs.clone()],
                attention: &self.attention[pairs],
            }
        })
    }
}

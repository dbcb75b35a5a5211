//! One cell of a study of singular values: a target at one length and seed.

use super::StudyError;
use super::cell::{Measure, Within};
use super::definition::{SpectrumStudy, StudyTarget};
use super::fit_cell::family_row;
use super::row::Row;
use crate::fit::{Floor, Problem};
use crate::pattern::{Layout, Spectrum, Statistics};

/// Beyond this index only every so-manieth singular value is kept: those 1.4 times apart at least.
const EVERY: usize = 4;
const APART: f64 = 1.4;

#[derive(Clone, Debug)]
pub(super) struct SpectrumCell {
    target: StudyTarget,
    n: usize,
    seed: u64,
    tolerance: f64,
}

impl SpectrumCell {
    /// Every cell of a study, in the order of its grid.
    pub fn all(study: &SpectrumStudy) -> Vec<(String, Self)> {
        let mut cells = Vec::new();
        for target in &study.targets {
            for &n in &study.n {
                for &seed in &study.seeds {
                    let cell = Self { target: target.clone(), n, seed, tolerance: study.tolerance };
                    cells.push((format!("{}/n{n}-s{seed}", target.name), cell));
                }
            }
        }
        cells
    }

    fn run(&self) -> Result<Vec<Row>, StudyError> {
        let target = self.target.family.build(self.n, self.seed, self.target.visibility)?;
        let statistics = Statistics::of(&target);
        let spectrum = Spectrum::of(&target)?;
        // The rank of the factors has no part in the floor.
        let problem = Problem::new(target, Layout::global(), 1)?;
        let floor = Floor::new(&problem);
        let max_logit = floor.max_abs_logit(self.tolerance);
        let logits = max_logit.and_then(|max_logit| floor.logits(max_logit));
        let mut identity = self.identity();
        identity.set("density", statistics.density);
        identity.set("mean_row_entropy_nats", statistics.mean_row_entropy_nats);
        identity.set_some("floor_max_abs_logit", max_logit);
        let mut rows = rows_of(&identity, "attention", &spectrum);
        if let Some(logits) = logits {
            let spectrum = Spectrum::of_matrix(&logits)?;
            rows.extend(rows_of(&identity, "logits", &spectrum));
        }
        Ok(rows)
    }
}

/// A row for each singular value that is kept.
fn rows_of(identity: &Row, matrix: &str, spectrum: &Spectrum) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut last = 0;
    for (at, sigma) in spectrum.singular_values.iter().enumerate() {
        let index = at + 1;
        let is_last = index == spectrum.singular_values.len();
        if index > EVERY && !is_last && (index as f64) < APART * last as f64 {
            continue;
        }
        last = index;
        let mut row = identity.clone();
        row.set("matrix", matrix);
        row.set("effective_rank", spectrum.effective_rank);
        row.set("numerical_rank", spectrum.numerical_rank);
        row.set("index", index);
        row.set("singular_value", sigma);
        rows.push(row);
    }
    rows
}

impl Measure for SpectrumCell {
    fn settings(&self) -> String {
        let Self { target, n, seed, tolerance } = self;
        format!("{} {} {n} {seed} {tolerance}", target.family, target.visibility)
    }

    /// Two decompositions, of n³ each.
    fn cost_s(&self) -> f64 {
        0.05 + 2.0 * (self.n as f64 / 1024.0).powi(3)
    }

    fn identity(&self) -> Row {
        let mut row = family_row(&self.target.family);
        row.set("n", self.n);
        row.set("seed", self.seed);
        row.set("visibility", self.target.visibility);
        row.set("tolerance", self.tolerance);
        row
    }

    fn measure(&self, within: &Within<'_>) -> Result<Option<Vec<Row>>, String> {
        let rows = self.run().map_err(|e| e.to_string())?;
        (within.advanced)(1.0);
        Ok(Some(rows))
    }
}

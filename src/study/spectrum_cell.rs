//! One cell of a study of singular values: a target at one length and seed.

use toml::Table;

use super::StudyError;
use super::cell::{Measure, Within};
use super::definition::{SpectrumStudy, StudyTarget};
use super::settings;
use crate::fit::{Floor, Problem};
use crate::pattern::{Layout, Spectrum, Statistics};
use crate::row::{ATTENTION, LOGITS, SpectrumFound, SpectrumOf, TargetColumns};

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

    fn run(&self) -> Result<Vec<SpectrumFound>, StudyError> {
        let target = self.target.family.build(self.n, self.seed, self.target.visibility)?;
        let statistics = Statistics::of(&target);
        let spectrum = Spectrum::of(&target)?;
        // The rank of the factors has no part in the floor.
        let problem = Problem::new(target, Layout::global(), 1)?;
        let floor = Floor::new(&problem);
        let floor_max_abs_logit = floor.max_abs_logit(self.tolerance);
        let logits = floor_max_abs_logit.and_then(|max_logit| floor.logits(max_logit));
        let mut rows = Vec::new();
        let mut push = |matrix: &str, spectrum: &Spectrum| {
            rows.extend(kept(&spectrum.singular_values).map(|(index, sigma)| SpectrumFound {
                density: statistics.density,
                mean_row_entropy_nats: statistics.mean_row_entropy_nats,
                floor_max_abs_logit,
                matrix: matrix.to_owned(),
                effective_rank: spectrum.effective_rank,
                numerical_rank: spectrum.numerical_rank,
                index,
                singular_value: sigma,
            }));
        };
        push(ATTENTION, &spectrum);
        if let Some(logits) = logits {
            push(LOGITS, &Spectrum::of_matrix(&logits)?);
        }
        Ok(rows)
    }
}

/// The singular values that are kept, each with its index from 1: the first ones, the last, and between those no
/// two nearer than [`APART`].
fn kept(singular_values: &[f64]) -> impl Iterator<Item = (usize, f64)> {
    let mut last = 0;
    let is_kept = move |&(index, _): &(usize, f64)| {
        let near = index > EVERY && (index as f64) < APART * last as f64;
        let kept = !near || index == singular_values.len();
        if kept {
            last = index;
        }
        kept
    };
    singular_values.iter().enumerate().map(|(at, &sigma)| (at + 1, sigma)).filter(is_kept)
}

impl Measure for SpectrumCell {
    type Kind = SpectrumFound;

    fn settings(&self) -> Table {
        let mut table = settings::target(&self.target.family, self.target.visibility);
        table.insert("n".to_owned(), (self.n as i64).into());
        table.insert("seed".to_owned(), (self.seed as i64).into());
        table.insert("tolerance".to_owned(), self.tolerance.into());
        table
    }

    fn defaults() -> Table {
        settings::causal()
    }

    /// Two decompositions, of n³ each.
    fn cost_s(&self) -> f64 {
        0.002 + 0.6 * (self.n as f64 / 1024.0).powi(3)
    }

    fn of(&self) -> SpectrumOf {
        SpectrumOf {
            of: TargetColumns::from(&self.target.family),
            target: self.target.family.label(),
            n: self.n,
            seed: self.seed,
            visibility: self.target.visibility,
            tolerance: self.tolerance,
        }
    }

    fn measure(&self, within: &Within<'_>) -> Result<Option<Vec<SpectrumFound>>, String> {
        let rows = self.run().map_err(|e| e.to_string())?;
        (within.advanced)(1.0);
        Ok(Some(rows))
    }
}

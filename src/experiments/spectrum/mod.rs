//! Singular values of targets, and of the smallest logits of any rank that reach them.

pub mod figures;
mod row;
pub mod tables;

use std::path::Path;

use schemars::JsonSchema;
use serde::Deserialize;
use toml::Table;

use super::target_columns::TargetColumns;
use crate::claims::Group;
use crate::experiment::{
    Analysed, CellContext, DefinitionTable, Experiment, Measure, RawDefinition, StudyError,
    StudyTarget, TargetKeys, TextSource, View, lengths, read_table, rows_of, seeds,
    target_defaults, target_settings, targets,
};
use crate::solver::{Floor, Problem};
use crate::targets::{Layout, Spectrum, Statistics};

pub use row::{ATTENTION, LOGITS, SpectrumKey, SpectrumMeasurement};

/// A study of the singular values of targets, and of the smallest logits of any rank that reach them.
#[derive(Clone, Debug)]
pub struct SpectrumStudy {
    /// The targets, each with a unique name.
    pub targets: Vec<StudyTarget>,
    /// Sequence lengths.
    pub n: Vec<usize>,
    /// Seeds of the targets.
    pub seeds: Vec<u64>,
    /// The error ε in nats that the logits reach.
    pub tolerance: f64,
}

#[derive(Deserialize, JsonSchema)]
struct Grid {
    /// Sequence lengths.
    n: Vec<usize>,
    /// Seeds of targets; default `[0]`.
    seed: Option<Vec<u64>>,
    /// Mask of all targets: `causal` (default) or `bidirectional`.
    visibility: Option<String>,
    /// Errors ε in nats at which effective ranks are measured.
    #[serde(default)]
    tolerance: Vec<f64>,
}

/// Up to this index every singular value is kept; beyond it, the indices kept are at least [`APART`] times apart.
const EVERY: usize = 4;
const APART: f64 = 1.4;

#[derive(Clone, Debug)]
pub(crate) struct SpectrumCell {
    target: StudyTarget,
    n: usize,
    seed: u64,
    tolerance: f64,
}

/// The singular values that are kept, each with its index from 1. These are the first [`EVERY`], the last, and between
/// them those whose indices are at least [`APART`] times apart.
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

impl Experiment for SpectrumStudy {
    type Cell = SpectrumCell;

    const TABLES: &'static [DefinitionTable] =
        &[DefinitionTable::one::<Grid>("grid"), DefinitionTable::list::<TargetKeys>("target")];
    const VIEWS: &'static [View] = &[View::new(
        "spectra",
        Group::SyntheticTargets,
        "Singular values and effective ranks of targets.",
        |studies| {
            let rows = tables::Spectra::of(&rows_of(studies)?)?;
            let figures = figures::spectra(&rows);
            Ok(Analysed { tables: rows.tables(), figures, verdicts: vec![] })
        },
    )];

    fn read(raw: &RawDefinition) -> Result<Self, String> {
        let grid = raw.table("grid")?.ok_or("a study of spectra needs a [grid]")?;
        let grid: Grid = read_table(grid, "grid")?;
        let &[tolerance] = grid.tolerance.as_slice() else {
            return Err(
                "a study of spectra needs one grid.tolerance, the error of the logits".to_owned()
            );
        };
        if !(tolerance.is_finite() && tolerance > 0.0) {
            return Err(format!(
                "grid.tolerance is {tolerance}; it must be a finite number above 0"
            ));
        }
        Ok(Self {
            targets: targets(&raw.tables("target")?, grid.visibility.as_deref())?,
            n: lengths(grid.n)?,
            seeds: seeds(grid.seed)?,
            tolerance,
        })
    }

    fn cells(
        &self,
        _: Option<&TextSource>,
        _: &Path,
    ) -> Result<Vec<(String, SpectrumCell)>, StudyError> {
        let mut cells = Vec::new();
        for target in &self.targets {
            for &n in &self.n {
                for &seed in &self.seeds {
                    let cell =
                        SpectrumCell { target: target.clone(), n, seed, tolerance: self.tolerance };
                    cells.push((format!("{}/n{n}-s{seed}", target.name), cell));
                }
            }
        }
        Ok(cells)
    }
}

impl Measure for SpectrumCell {
    type Row = SpectrumMeasurement;

    fn settings(&self) -> Table {
        let mut table = target_settings(&self.target.family, self.target.visibility);
        table.insert("n".to_owned(), (self.n as i64).into());
        table.insert("seed".to_owned(), (self.seed as i64).into());
        table.insert("tolerance".to_owned(), self.tolerance.into());
        table
    }

    fn defaults() -> Table {
        target_defaults()
    }

    fn key(&self) -> SpectrumKey {
        SpectrumKey {
            of: TargetColumns::from(&self.target.family),
            target: self.target.family.label(),
            n: self.n,
            seed: self.seed,
            visibility: self.target.visibility,
            tolerance: self.tolerance,
        }
    }

    fn measure(
        &self,
        context: &CellContext<'_>,
    ) -> Result<Option<Vec<SpectrumMeasurement>>, StudyError> {
        let target = self.target.family.build(self.n, self.seed, self.target.visibility)?;
        let statistics = Statistics::of(&target);
        let spectrum = Spectrum::of(&target)?;
        // The floor does not depend on the rank of the factors.
        let problem = Problem::new(target, Layout::global(), 1)?;
        let floor = Floor::new(&problem);
        let floor_max_abs_logit = floor.max_abs_logit(self.tolerance);
        let logits = floor_max_abs_logit.and_then(|max_logit| floor.logits(max_logit));
        let mut rows = Vec::new();
        let mut push = |matrix: &str, spectrum: &Spectrum| {
            rows.extend(kept(&spectrum.singular_values).map(|(index, sigma)| {
                SpectrumMeasurement {
                    density: statistics.density,
                    mean_row_entropy_nats: statistics.mean_row_entropy_nats,
                    floor_max_abs_logit,
                    matrix: matrix.to_owned(),
                    effective_rank: spectrum.effective_rank,
                    numerical_rank: spectrum.numerical_rank,
                    index,
                    singular_value: sigma,
                }
            }));
        };
        push(ATTENTION, &spectrum);
        if let Some(logits) = logits {
            push(LOGITS, &Spectrum::of_matrix(&logits)?);
        }
        (context.advanced)(1.0);
        Ok(Some(rows))
    }
}

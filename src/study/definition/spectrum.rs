//! A study of singular values: targets × n × seeds.

use serde::Deserialize;
use toml::Table;

use super::keys;
use super::targets::{StudyTarget, lengths, seeds, targets};

/// Targets whose singular values are asked for, and those of the logits that attention of any rank
/// would give them by.
#[derive(Clone, Debug)]
pub struct SpectrumStudy {
    /// The targets, each under a name of its own.
    pub targets: Vec<StudyTarget>,
    /// Sequence lengths.
    pub n: Vec<usize>,
    /// Seeds of the targets.
    pub seeds: Vec<u64>,
    /// The error ε, in nats, that the logits are given.
    pub tolerance: f64,
}

#[derive(Deserialize)]
struct Grid {
    n: Vec<usize>,
    seed: Option<Vec<u64>>,
    visibility: Option<String>,
    #[serde(default)]
    tolerance: Vec<f64>,
}

pub(super) fn read(grid: Option<&Table>, target: &[Table]) -> Result<SpectrumStudy, String> {
    let grid: Grid = keys::read(grid.ok_or("a study of spectra needs a [grid]")?, "grid")?;
    let &[tolerance] = grid.tolerance.as_slice() else {
        return Err(
            "a study of spectra needs one grid.tolerance, the error of the logits".to_owned()
        );
    };
    if !(tolerance.is_finite() && tolerance > 0.0) {
        return Err(format!("grid.tolerance is {tolerance}; it must be a finite number above 0"));
    }
    Ok(SpectrumStudy {
        targets: targets(target, grid.visibility.as_deref())?,
        n: lengths(grid.n)?,
        seeds: seeds(grid.seed)?,
        tolerance,
    })
}

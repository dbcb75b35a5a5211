//! A study of singular values: targets × n × seeds.

use super::Top;
use super::fit::{StudyTarget, grid_lengths, grid_seeds, targets};

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

pub(super) fn read(top: &Top) -> Result<SpectrumStudy, String> {
    let grid = top.grid.as_ref().ok_or("a study of spectra needs a [grid]")?;
    let &[tolerance] = grid.tolerance.as_slice() else {
        return Err(
            "a study of spectra needs one grid.tolerance, the error of the logits".to_owned()
        );
    };
    if !(tolerance.is_finite() && tolerance > 0.0) {
        return Err(format!("grid.tolerance is {tolerance}; it must be a finite number above 0"));
    }
    Ok(SpectrumStudy {
        targets: targets(top, grid)?,
        n: grid_lengths(grid)?,
        seeds: grid_seeds(grid)?,
        tolerance,
    })
}

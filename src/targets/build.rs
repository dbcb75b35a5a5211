//! Builds the target of a family, row by row.

use std::path::Path;

use super::draws::Row;
use super::parameters::Check;
use super::{Family, Target, TargetError, Visibility};
use crate::system::check_memory;

/// The most entries of a target; a larger one is refused before memory runs out.
const MOST_ENTRIES: u128 = 1 << 29;
/// What to do about a target that is too large.
const LOWER: &str = "lower n, window, k or m, or raise c";
/// Bytes per row, and per entry as it is stored in its row (16) and in the target (12). The factor 0.5 is there because the
/// first rows of a causal target have fewer entries, half of them in all at the least.
const BYTES: (f64, f64) = (24.0, 0.5 * (16.0 + 12.0));

impl Family {
    /// Builds the n × n target of this family at `seed`, under the mask `visibility`.
    ///
    /// A causal family has the same entries under both masks: `bidirectional` only lets a fitted P put weight on later columns
    /// as well. The target depends on the family, n and the seed, not on the number of threads.
    ///
    /// ```
    /// use rank_study::targets::{Family, Visibility};
    ///
    /// let target = Family::UniformBand { window: 2 }.build(3, 0, Visibility::Causal)?;
    /// assert_eq!(target.row(0), (&[0][..], &[1.0][..]));
    /// assert_eq!(target.row(2), (&[1, 2][..], &[0.5, 0.5][..]));
    /// # Ok::<(), rank_study::targets::TargetError>(())
    /// ```
    ///
    /// # Errors
    /// n is 0 or too large; `Mask` for `permuted` under a causal mask; `Parameter` for a value out of bounds, for more
    /// landmarks than columns, and for a file whose matrix is not n × n; every error of [`Target::read`] for a file.
    pub fn build(
        &self,
        n: usize,
        seed: u64,
        visibility: Visibility,
    ) -> Result<Target, TargetError> {
        self.check_parameters()?;
        self.check_size(n)?;
        match self {
            Self::Permuted { .. } if visibility == Visibility::Causal => {
                Err(TargetError::Mask(format!(
                    "family {}: a permuted matrix is not causal; use the bidirectional mask",
                    self.name()
                )))
            }
            _ => Target::from_rows(self.rows(n, seed)?, visibility),
        }
    }

    /// Reads the rows of a file. The mask is the widest here, because the caller checks the rows against its own mask.
    pub(super) fn file(&self, path: &Path, n: usize) -> Result<Vec<Row>, TargetError> {
        let target = Target::read(path, Visibility::Bidirectional)?;
        if target.n() != n {
            let found = target.n();
            return Err(self.wrong(format!(
                "{} is {found} × {found}, and n is {n}; give n = {found}",
                path.display()
            )));
        }
        let row = |row| {
            let (columns, probabilities) = target.row(row);
            columns.iter().map(|&c| c as usize).zip(probabilities.iter().copied()).collect()
        };
        Ok((0..n).map(row).collect())
    }

    /// Checks the parameters again, because a family can be constructed without [`Self::from_parameters`].
    fn check_parameters(&self) -> Result<(), TargetError> {
        match self {
            Self::Mixture { local, global, .. } => {
                Check { family: self.name(), parameters: &self.parameters() }.lambda()?;
                local.check_parameters()?;
                global.check_parameters()
            }
            Self::Permuted { family } => family.check_parameters(),
            _ => Self::from_parameters(self.name(), &self.parameters()).map(|_| ()),
        }
    }

    fn check_size(&self, n: usize) -> Result<(), TargetError> {
        if n == 0 {
            return Err(TargetError::empty());
        }
        let entries = n as u128 * self.longest_row(n) as u128;
        if entries > MOST_ENTRIES {
            return Err(TargetError::Other(format!(
                "n = {n} needs about {entries} nonzero entries (at most {MOST_ENTRIES}); {LOWER}"
            )));
        }
        check_memory(n as f64 * BYTES.0 + entries as f64 * BYTES.1)
            .map_err(|room| TargetError::Other(format!("n = {n} needs at least {room}; {LOWER}")))
    }

    pub(super) fn wrong(&self, why: String) -> TargetError {
        TargetError::Parameter { family: self.name(), why }
    }
}

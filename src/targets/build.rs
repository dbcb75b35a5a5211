//! Builds the target of a family, row by row.

use std::path::Path;

use rand::seq::SliceRandom;

use super::draws::{self, Purpose, Row, generator};
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

    /// The rows, each with distinct columns.
    fn rows(&self, n: usize, seed: u64) -> Result<Vec<Row>, TargetError> {
        Ok(match self {
            Self::UniformBand { window } => draws::uniform_band(n, *window),
            Self::DecayBand { window, tau } => draws::decay_band(n, *window, *tau),
            Self::DirichletBand { window, alpha } => {
                draws::dirichlet_band(n, *window, *alpha, seed)
                    .map_err(|error| self.wrong(format!("alpha is {alpha}: {error}")))?
            }
            Self::LognormalBand { window, sigma } => {
                draws::lognormal_band(n, *window, *sigma, seed)
            }
            Self::PreviousToken { k } => {
                (0..n).map(|row| vec![(row.saturating_sub(*k), 1.0)]).collect()
            }
            Self::Landmark { m } => self.landmark(n, *m, seed)?,
            Self::RandomSparse { k } => random_sparse(n, *k, seed),
            Self::Clustered { c } => {
                let mut rng = generator(seed, Purpose::Clusters, None);
                draws::clustered(&draws::classes(&mut rng, *c, n))
            }
            Self::Induction { vocabulary } => {
                let mut rng = generator(seed, Purpose::Tokens, None);
                draws::induction(&draws::classes(&mut rng, *vocabulary, n))
            }
            Self::Prefix => draws::uniform_band(n, n),
            Self::Mixture { lambda, local, global } => {
                let local = local.rows(n, seed)?;
                let global = global.rows(n, seed)?;
                local.into_iter().zip(global).map(|(l, g)| mix(*lambda, l, g)).collect()
            }
            Self::Permuted { family } => permuted(family.rows(n, seed)?, seed),
            Self::File { path } => self.file(path, n)?,
        })
    }

    fn landmark(&self, n: usize, m: usize, seed: u64) -> Result<Vec<Row>, TargetError> {
        if m > n {
            return Err(
                self.wrong(format!("m is {m}; it must be at most the number of columns, {n}"))
            );
        }
        let mut shared = generator(seed, Purpose::Landmark, None);
        let mut columns = vec![0];
        columns.extend(draws::distinct(&mut shared, 1, n, m - 1));
        let row = |row: usize| {
            let seen = columns.partition_point(|&column| column <= row);
            let mut rng = generator(seed, Purpose::Landmark, Some(row));
            let weights = draws::on_the_simplex(&mut rng, seen);
            columns[..seen].iter().copied().zip(weights).collect()
        };
        Ok((0..n).map(row).collect())
    }

    /// Reads the rows of a file. The mask is the widest here, because the caller checks the rows against its own mask.
    fn file(&self, path: &Path, n: usize) -> Result<Vec<Row>, TargetError> {
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

    /// The largest number of entries of a row, except that a cluster may be larger than the mean cluster.
    fn longest_row(&self, n: usize) -> usize {
        match self {
            Self::UniformBand { window }
            | Self::DecayBand { window, .. }
            | Self::DirichletBand { window, .. }
            | Self::LognormalBand { window, .. } => n.min(*window),
            // The entries of a file are already in memory when they are counted.
            Self::PreviousToken { .. } | Self::Induction { .. } | Self::File { .. } => 1,
            Self::Landmark { m } => n.min(*m),
            Self::RandomSparse { k } => n.min(*k),
            Self::Clustered { c } => n.div_ceil(*c),
            Self::Prefix => n,
            Self::Mixture { local, global, .. } => {
                n.min(local.longest_row(n).saturating_add(global.longest_row(n)))
            }
            Self::Permuted { family } => family.longest_row(n),
        }
    }

    pub(super) fn wrong(&self, why: String) -> TargetError {
        TargetError::Parameter { family: self.name(), why }
    }
}

fn random_sparse(n: usize, k: usize, seed: u64) -> Vec<Row> {
    (0..n)
        .map(|row| {
            let mut rng = generator(seed, Purpose::RandomSparse, Some(row));
            let columns = draws::distinct(&mut rng, 0, row + 1, k);
            let weights = draws::on_the_simplex(&mut rng, columns.len());
            columns.into_iter().zip(weights).collect()
        })
        .collect()
}

/// λ·local + (1 − λ)·global; weights of common columns are added.
fn mix(lambda: f64, local: Row, global: Row) -> Row {
    let mut row: Row = local.into_iter().map(|(column, p)| (column, lambda * p)).collect();
    row.extend(global.into_iter().map(|(column, p)| (column, (1.0 - lambda) * p)));
    row.sort_by_key(|&(column, _)| column);
    row.dedup_by(|later, kept| {
        let same = later.0 == kept.0;
        if same {
            kept.1 += later.1;
        }
        same
    });
    row
}

/// P A Pᵀ: row i of A becomes row π(i), and column j column π(j).
fn permuted(rows: Vec<Row>, seed: u64) -> Vec<Row> {
    let mut permutation: Vec<usize> = (0..rows.len()).collect();
    permutation.shuffle(&mut generator(seed, Purpose::Permutation, None));
    let mut shuffled = vec![Row::new(); rows.len()];
    for (row, entries) in rows.into_iter().enumerate() {
        shuffled[permutation[row]] =
            entries.into_iter().map(|(column, p)| (permutation[column], p)).collect();
    }
    shuffled
}

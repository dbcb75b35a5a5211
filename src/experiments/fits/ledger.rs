//! Saves the fits of a search to disk, so that an interrupted search can be resumed.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use ndarray::{Array, ArrayViewD, Dimension, aview1};
use safetensors::tensor::{Dtype, SafeTensors, TensorView};

use super::row::FitMeasurement;
use crate::experiment::{StudyError, search_settings};
use crate::record::Measurement as _;
use crate::solver::{
    Factors, FitState, Kept, Multipliers, Penalty, Problem, SearchOptions, Solution,
};
use crate::system::{FileError, disk, sha256, write_whole};

/// All settings that the fits of a search depend on: searches with equal settings make the same fits.
pub fn fit_search_settings(
    problem: &Problem,
    caps: &[f64],
    tolerance: Option<f64>,
    options: &SearchOptions,
) -> toml::Table {
    let target = problem.target();
    let bytes: Vec<u8> = (0..problem.n())
        .flat_map(|row| {
            let (columns, a) = target.row(row);
            columns.iter().zip(a).flat_map(move |(j, a)| {
                [row as u64, u64::from(*j), a.to_bits()].into_iter().flat_map(u64::to_le_bytes)
            })
        })
        .collect();
    let mut settings = search_settings(options);
    let mut set = |key: &str, value: String| settings.insert(key.to_owned(), value.into());
    set("rank", problem.rank().to_string());
    set("layout", problem.layout().to_string());
    set("visibility", target.visibility().to_string());
    set("caps", format!("{caps:?}"));
    set("tolerance", tolerance.map_or_else(String::new, |tolerance| tolerance.to_string()));
    set("seed", options.seed.to_string());
    set("n", problem.n().to_string());
    set("target_sha256", sha256(&bytes));
    set("measurement", FitMeasurement::VERSION.to_string());
    settings
}

/// The file of the search's settings.
const SETTINGS: &str = "search.toml";
/// The name of the folder of the fits.
const FITS: &str = "fits";

/// A folder with `search.toml`, the settings of the search, and `fits/NAME.safetensors`, the state or result of each
/// fit. Numbers are stored as float64, so nothing is rounded.
#[derive(Debug)]
pub struct CheckpointStore {
    folder: PathBuf,
}

impl CheckpointStore {
    /// Whether a folder holds one, which means that its search has not finished.
    pub fn is_begun(folder: &Path) -> bool {
        folder.join(SETTINGS).exists()
    }

    /// Opens the store in `folder`, or creates it with these settings.
    ///
    /// # Errors
    /// A folder that cannot be read or written, or that belongs to a search with other settings.
    pub fn open(folder: &Path, settings: &toml::Table) -> Result<Self, StudyError> {
        let path = folder.join(SETTINGS);
        if path.exists() {
            let text = std::fs::read_to_string(&path).map_err(|e| FileError::read(&path, e))?;
            let before: toml::Table = text.parse().map_err(|e: toml::de::Error| {
                StudyError::Rows { path: path.clone(), why: e.message().to_owned() }
            })?;
            let keys = settings.keys().chain(before.keys());
            if let Some(key) = keys.into_iter().find(|key| before.get(*key) != settings.get(*key)) {
                let shown = |table: &toml::Table| {
                    table.get(key).map_or_else(
                        || "unset".to_owned(),
                        |value| value.as_str().map_or_else(|| value.to_string(), str::to_owned),
                    )
                };
                let why = format!(
                    "an unfinished search has {key} {} ({} asked for)",
                    shown(&before),
                    shown(settings)
                );
                return Err(StudyError::Rows { path: folder.to_owned(), why });
            }
        } else {
            write_whole(&path, settings.to_string().as_bytes())
                .map_err(|e| FileError::write(&path, e))?;
        }
        Ok(Self { folder: folder.to_owned() })
    }

    fn path(&self, fit: &str) -> PathBuf {
        self.folder.join(FITS).join(format!("{fit}.safetensors"))
    }

    /// Reads the state or result of a fit; `None` if it was not saved.
    ///
    /// # Errors
    /// A file that cannot be read, or that holds no fit.
    pub fn read(&self, fit: &str) -> Result<Option<Kept>, StudyError> {
        let path = self.path(fit);
        match std::fs::read(&path) {
            Ok(bytes) => match kept(&bytes) {
                Some(kept) => Ok(Some(kept)),
                None => Err(StudyError::Rows { path, why: "does not hold a fit".to_owned() }),
            },
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(FileError::read(&path, e).into()),
        }
    }

    /// Saves the state of an unfinished fit.
    ///
    /// # Errors
    /// A file that cannot be written; then the previous state of the fit is kept.
    pub fn write_underway(&self, fit: &str, state: &FitState) -> Result<(), FileError> {
        let Penalty { cap, slope, multipliers } = &state.penalty;
        let rows = || multipliers.iter().flatten();
        let numbers = [
            *cap,
            *slope,
            state.violation,
            state.stage as f64,
            state.iterations as f64,
            state.evaluations as f64,
            multipliers.len() as f64,
        ];
        let counts: Vec<f64> = rows().map(|row| row.len() as f64).collect();
        let (columns, values): (Vec<f64>, Vec<f64>) =
            rows().flatten().map(|&(column, multiplier)| (f64::from(column), multiplier)).unzip();
        let mut arrays = vec![
            ("x", aview1(&state.x).into_dyn()),
            ("numbers", aview1(&numbers).into_dyn()),
            ("counts", aview1(&counts).into_dyn()),
            ("columns", aview1(&columns).into_dyn()),
            ("multipliers", aview1(&values).into_dyn()),
        ];
        arrays.extend(state.best.as_ref().map(|best| ("best", aview1(best).into_dyn())));
        self.write(fit, &arrays, "underway")
    }

    /// Saves the result of a fit.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn write_finished(&self, fit: &str, solution: &Solution) -> Result<(), FileError> {
        let factors = &solution.factors;
        let numbers = [
            solution.kl_nats,
            solution.max_abs_logit,
            solution.logit_spread,
            solution.gradient_norm,
            solution.iterations as f64,
            solution.evaluations as f64,
        ];
        let arrays = [
            ("queries", factors.queries().view().into_dyn()),
            ("keys", factors.keys().view().into_dyn()),
            ("weights", factors.weights().view().into_dyn()),
            ("numbers", aview1(&numbers).into_dyn()),
        ];
        self.write(fit, &arrays, solution.outcome.name())
    }

    fn write(
        &self,
        fit: &str,
        arrays: &[(&str, ArrayViewD<'_, f64>)],
        outcome: &str,
    ) -> Result<(), FileError> {
        let path = self.path(fit);
        let bytes = |array: &ArrayViewD<'_, f64>| -> Vec<u8> {
            array.iter().flat_map(|value| value.to_le_bytes()).collect()
        };
        let bytes: Vec<Vec<u8>> = arrays.iter().map(|(_, array)| bytes(array)).collect();
        let views = arrays.iter().zip(&bytes).map(|((name, array), bytes)| {
            Ok((*name, TensorView::new(Dtype::F64, array.shape().to_vec(), bytes)?))
        });
        let notes = HashMap::from([("outcome".to_owned(), outcome.to_owned())]);
        views
            .collect::<Result<Vec<_>, safetensors::SafeTensorError>>()
            .and_then(|views| safetensors::serialize(views, Some(notes)))
            .map_err(std::io::Error::other)
            .and_then(|bytes| write_whole(&path, &bytes))
            .map_err(|e| FileError::write(&path, e))
    }

    /// Removes all fits; called when the search has finished.
    ///
    /// # Errors
    /// Files that cannot be removed.
    pub fn remove(self) -> Result<(), FileError> {
        // The settings are removed last: fits without them would be taken for those of the next search.
        let fits = self.folder.join(FITS);
        let gone = if fits.exists() { disk::remove_all(&fits) } else { Ok(()) };
        gone.and_then(|()| disk::remove_all(&self.folder))
            .map_err(|e| FileError::write(&self.folder, e))
    }
}

/// Parses a fit from a file's bytes; `None` if they hold something else.
fn kept(bytes: &[u8]) -> Option<Kept> {
    let file = SafeTensors::deserialize(bytes).ok()?;
    let (_, metadata) = SafeTensors::read_metadata(bytes).ok()?;
    let outcome = metadata.metadata().as_ref()?.get("outcome")?.clone();
    let numbers = numbers(&file, "numbers")?;
    if outcome == "underway" {
        let &[cap, slope, violation, stage, iterations, evaluations, heads] = &numbers[..] else {
            return None;
        };
        return Some(Kept::Underway(FitState {
            x: self::numbers(&file, "x")?,
            penalty: Penalty { cap, slope, multipliers: multipliers(&file, heads as usize)? },
            violation,
            stage: stage as usize,
            iterations: iterations as usize,
            evaluations: evaluations as usize,
            best: self::numbers(&file, "best"),
        }));
    }
    let &[kl_nats, max_abs_logit, logit_spread, gradient_norm, iterations, evaluations] =
        &numbers[..]
    else {
        return None;
    };
    let factors =
        Factors::new(array(&file, "queries")?, array(&file, "keys")?, array(&file, "weights")?);
    Some(Kept::Finished(Solution {
        factors: factors.ok()?,
        kl_nats,
        max_abs_logit,
        logit_spread,
        outcome: outcome.parse().ok()?,
        gradient_norm,
        iterations: iterations as usize,
        evaluations: evaluations as usize,
    }))
}

fn multipliers(file: &SafeTensors<'_>, heads: usize) -> Option<Multipliers> {
    let columns = numbers(file, "columns")?.into_iter().map(|column| column as u32);
    let mut all = columns.zip(numbers(file, "multipliers")?);
    let counts = numbers(file, "counts")?;
    let rows = counts.len().checked_div(heads)?;
    let mut row = |&count: &f64| all.by_ref().take(count as usize).collect::<Vec<_>>();
    Some(counts.chunks(rows).map(|head| head.iter().map(&mut row).collect()).collect())
}

fn numbers(file: &SafeTensors<'_>, name: &str) -> Option<Vec<f64>> {
    let tensor = file.tensor(name).ok().filter(|tensor| tensor.dtype() == Dtype::F64)?;
    let (words, _) = tensor.data().as_chunks::<8>();
    Some(words.iter().map(|word| f64::from_le_bytes(*word)).collect())
}

fn array<D: Dimension>(file: &SafeTensors<'_>, name: &str) -> Option<Array<f64, D>> {
    let shape = file.tensor(name).ok()?.shape().to_vec();
    let values = Array::from_shape_vec(shape, numbers(file, name)?).ok()?;
    values.into_dimensionality().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::solver::{FitObserver, frontier};
    use crate::targets::{Family, Visibility};
    use std::sync::Mutex;

    /// Stops its search at the given iteration, counted over all fits, and saves the fits.
    struct Interrupt<'a> {
        ledger: &'a CheckpointStore,
        left: Mutex<usize>,
    }

    impl FitObserver for Interrupt<'_> {
        fn recall(&self, fit: &str, _limit: usize) -> Option<Kept> {
            self.ledger.read(fit).unwrap()
        }

        fn goes_on(
            &self,
            at: &crate::solver::FitProgress<'_>,
            state: &dyn Fn() -> FitState,
        ) -> bool {
            let mut left = self.left.lock().unwrap();
            *left = left.saturating_sub(1);
            if *left == 0 {
                self.ledger.write_underway(at.fit, &state()).unwrap();
                let Some(Kept::Underway(kept)) = self.ledger.read(at.fit).unwrap() else {
                    panic!("{} was not kept", at.fit);
                };
                assert_eq!(kept, state());
            }
            *left > 0
        }

        fn finished(&self, fit: &str, solution: &Solution) {
            self.ledger.write_finished(fit, solution).unwrap();
        }
    }

    #[test]
    fn a_search_ended_again_and_again_comes_to_an_end() {
        let target = Family::DirichletBand { window: 5, alpha: 1.0 }
            .build(24, 1, Visibility::Causal)
            .unwrap();
        let layout = "local:4+global".parse().unwrap();
        let problem = Problem::new(target, layout, 2).unwrap();
        let options = SearchOptions { starts: 3, ..SearchOptions::default() };
        let folder = tempfile::tempdir().unwrap();
        let ledger = CheckpointStore::open(folder.path(), &toml::Table::new()).unwrap();
        let alone = frontier(&problem, &[2.0, 6.0], options, &()).unwrap();
        let mut rounds = 0;
        let found = loop {
            let watch = Interrupt { ledger: &ledger, left: Mutex::new(400) };
            let found = frontier(&problem, &[2.0, 6.0], options, &watch).unwrap();
            rounds += 1;
            for point in &found {
                let solution = &point.best.as_ref().unwrap().solution;
                assert!(solution.max_abs_logit <= point.cap);
            }
            if *watch.left.lock().unwrap() > 0 {
                break found;
            }
            assert!(rounds < 200, "no end in sight");
        };
        assert!(rounds > 3, "it was never ended");
        // A resumed fit takes another path, because the optimiser's memory is rebuilt. With several minima this small,
        // it may find one that is slightly worse.
        for (found, alone) in found.iter().zip(&alone) {
            let kl = |point: &crate::solver::FrontierPoint| {
                point.best.as_ref().unwrap().solution.kl_nats
            };
            assert!(kl(found) <= 1.25 * kl(alone), "{} against {}", kl(found), kl(alone));
        }
    }

    #[test]
    fn another_search_is_refused_by_the_name_of_what_differs() {
        let folder = tempfile::tempdir().unwrap();
        let settings = |rank: i64| toml::Table::from_iter([("rank".to_owned(), rank.into())]);
        CheckpointStore::open(folder.path(), &settings(4)).unwrap();
        CheckpointStore::open(folder.path(), &settings(4)).unwrap();
        let error = CheckpointStore::open(folder.path(), &settings(8)).unwrap_err().to_string();
        assert!(error.contains("rank 4") && error.contains('8'), "{error}");
    }
}

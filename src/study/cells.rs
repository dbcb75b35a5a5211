//! What a study of each kind comes to: its cells.

use std::path::Path;

use super::StudyError;
use super::cell::{Cell, Measure};
use super::concentration_cell::ConcentrationCell;
use super::definition::StudyWork;
use super::fit_cell::FitCell;
use super::latency_cell::LatencyCell;
use super::lattice_cell::LatticeCell;
use super::predict_cell::PredictCell;
use super::ramp_cell::RampCell;
use super::spectrum_cell::SpectrumCell;
use super::surgery_cell::SurgeryCell;
use super::text_source::TextSource;
use super::train_cell::TrainCell;

/// Every cell of a study, in the order of its definition. Other studies' files are in `data`.
///
/// # Errors
/// A folder that holds no run, or lacks a step or layer that is asked for; a run to start from that is not there.
pub(super) fn cells_of(
    work: &StudyWork,
    text: Option<&TextSource>,
    data: &Path,
) -> Result<Vec<Cell>, StudyError> {
    Ok(match work {
        StudyWork::Fit(study) => all(FitCell::all(study)),
        StudyWork::Train(study) => all(TrainCell::all(study, text)?),
        StudyWork::Spectrum(study) => all(SpectrumCell::all(study)),
        StudyWork::Latency(study) => all(LatencyCell::all(study)),
        StudyWork::Predict(study) => all(PredictCell::all(study, text, data)?),
        StudyWork::Ramp(study) => all(RampCell::all(study, text, data)?),
        StudyWork::Concentration(study) => all(ConcentrationCell::all(study, text, data)?),
        StudyWork::Lattice(study) => all(LatticeCell::all(study, text, data)?),
        StudyWork::Surgery(study) => all(SurgeryCell::all(study, text, data)?),
    })
}

fn all<M: Measure>(cells: Vec<(String, M)>) -> Vec<Cell> {
    cells.into_iter().map(|(key, cell)| Cell::new(key, cell)).collect()
}

#[cfg(test)]
mod tests {
    use toml::{Table, Value};

    use super::*;
    use crate::row::Kind as _;
    use crate::run::Manifest;
    use crate::study::definition::{Preset, StudyDefinition};
    use crate::study::settings::identity;
    use crate::study::store::Store;

    /// Adds a key with its default to a definition of everything, wherever keys have defaults.
    fn add_a_key(settings: &mut Table, defaults: &mut Table) {
        for (key, inner) in defaults.iter_mut() {
            if let (Some(Value::Table(settings)), Value::Table(defaults)) =
                (settings.get_mut(key), inner)
            {
                add_a_key(settings, defaults);
            }
        }
        for table in [settings, defaults] {
            table.insert("a_key_of_tomorrow".to_owned(), 1.into());
        }
    }

    fn none_is_stale<M: Measure>(cells: Vec<(String, M)>, store: &Store) {
        for (key, cell) in cells {
            let (mut settings, mut defaults) = (cell.settings(), M::defaults());
            add_a_key(&mut settings, &mut defaults);
            let hash = identity::<M::Kind>(&settings, &defaults);
            let is_there = |hash: &str| {
                store.finished(&key, hash).is_some() || store.stopped(&key, hash).is_some()
            };
            assert!(is_there(&hash), "{key} of {} is stale", M::Kind::NAME);
            settings.insert("a_key_of_tomorrow".to_owned(), 2.into());
            let other = identity::<M::Kind>(&settings, &defaults);
            assert!(!is_there(&other), "{key} is not told from another");
        }
    }

    #[test]
    fn a_key_that_is_added_with_a_default_makes_no_committed_row_stale() {
        let home = Path::new(env!("CARGO_MANIFEST_DIR"));
        let data = home.join("data");
        let mut studies = 0;
        for folder in std::fs::read_dir(&data).unwrap() {
            let folder = folder.unwrap().path();
            let Ok(manifest) = Manifest::read(&folder.join("manifest.toml")) else { continue };
            if manifest.text("definition_file").is_empty() {
                continue;
            }
            let path = home.join(manifest.text("definition_file"));
            let definition = StudyDefinition::read(&path, Preset::Paper).unwrap();
            let text = TextSource::of_rows(&folder, &definition.study, &manifest);
            let text = text.as_ref();
            let store = Store::read(&folder, &definition.work.kind().columns()).unwrap();
            // A model that was not fetched has no settings here.
            let cells = super::cells_of(&definition.work, text, &data);
            if matches!(cells, Err(StudyError::NotFetched { .. })) {
                continue;
            }
            match &definition.work {
                StudyWork::Fit(study) => none_is_stale(FitCell::all(study), &store),
                StudyWork::Train(study) => {
                    none_is_stale(TrainCell::all(study, text).unwrap(), &store);
                }
                StudyWork::Spectrum(study) => none_is_stale(SpectrumCell::all(study), &store),
                StudyWork::Latency(study) => none_is_stale(LatencyCell::all(study), &store),
                StudyWork::Lattice(study) => {
                    none_is_stale(LatticeCell::all(study, text, &data).unwrap(), &store);
                }
                StudyWork::Predict(study) => {
                    none_is_stale(PredictCell::all(study, text, &data).unwrap(), &store);
                }
                StudyWork::Ramp(study) => {
                    none_is_stale(RampCell::all(study, text, &data).unwrap(), &store);
                }
                StudyWork::Concentration(study) => {
                    none_is_stale(ConcentrationCell::all(study, text, &data).unwrap(), &store);
                }
                StudyWork::Surgery(study) => {
                    none_is_stale(SurgeryCell::all(study, text, &data).unwrap(), &store);
                }
            }
            studies += 1;
        }
        assert!(studies >= 16, "only {studies} studies have rows");
    }
}

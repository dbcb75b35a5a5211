//! Tests that a key added to definitions with a default does not invalidate committed rows.

use std::path::Path;

use toml::{Table, Value};

use super::store::Store;
use crate::experiment::{Preset, StudyError, TextSource, identity_of};
use crate::run::Manifest;
use crate::study::StudyDefinition;

/// Adds a key with its default to all tables of the settings that have defaults.
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
        let store = Store::read(&folder, &definition.work.kind().columns()).unwrap();
        let cells = match definition.work.experiment.any_cells(text.as_ref(), &data) {
            // A model that was not fetched has no settings here.
            Err(StudyError::NotFetched { .. }) => continue,
            cells => cells.unwrap(),
        };
        for cell in cells {
            let (measurement, mut settings, mut defaults) = cell.settings_and_defaults();
            add_a_key(&mut settings, &mut defaults);
            let is_there = |settings: &Table| {
                let hash = identity_of(measurement, settings, &defaults);
                store.has_finished(&cell.key, &hash) || store.stopped(&cell.key, &hash).is_some()
            };
            assert!(is_there(&settings), "{} of {} is stale", cell.key, measurement.0);
            settings.insert("a_key_of_tomorrow".to_owned(), 2.into());
            assert!(!is_there(&settings), "{} is not told from another", cell.key);
        }
        studies += 1;
    }
    assert!(studies >= 16, "only {studies} studies have rows");
}

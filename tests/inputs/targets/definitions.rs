//! Definitions of studies and of trainings, and manifests.

use std::fs;
use std::hint::black_box;
use std::path::Path;

use rank_study::lm::{Corpus, TrainDefinition};
use rank_study::report::measured_study;
use rank_study::run::{Manifest, ModelSource, TrainedRun};
use rank_study::study::{Plan, Preset, StudyDefinition};

use super::super::forms::Form;
use super::super::target::Target;
use super::{all, files_below, here};

/// Every file of this repository under `folder` whose name ends so, in order.
fn files(folder: &str, ending: &str) -> Vec<Vec<u8>> {
    let mut found = files_below(&here(folder));
    found.retain(|path| path.to_string_lossy().ends_with(ending));
    found.iter().map(|path| fs::read(path).unwrap()).collect()
}

/// As a file that is no text is read.
fn text(bytes: &[u8]) -> Option<String> {
    String::from_utf8(bytes.to_vec()).ok()
}

pub fn definitions(place: &Path) -> Target {
    let data = place.to_owned();
    let read = move |_, bytes: &[u8]| {
        let Some(text) = text(bytes) else { return false };
        let mut is_one = false;
        for preset in [Preset::Paper, Preset::Quick] {
            let parsed = StudyDefinition::parse(Path::new("a.toml"), text.clone(), preset);
            let Ok(definition) = parsed else { continue };
            is_one = true;
            if let Ok(plan) = Plan::new(&definition, &data, None, None, None) {
                assert!(plan.left() > 0);
            }
        }
        is_one
    };
    Target { files: all(Form::Text, files("analysis", ".toml")), read: Box::new(read) }
}

/// Whether a corpus as small is made at once.
fn is_small(definition: &TrainDefinition) -> bool {
    let corpus = &definition.corpus;
    let sizes = [corpus.tokens, corpus.vocabulary_size(), corpus.window, corpus.segment];
    sizes.iter().all(|size| *size <= 5000) && definition.layers <= 100
}

pub fn training_definitions(_: &Path) -> Target {
    let mut written = files("analysis", "paper-size.toml");
    written.extend(files("analysis", "nanogpt-small.toml"));
    let small = TrainDefinition::from_toml("steps = 3\ncorpus = { tokens = 4000 }\n").unwrap();
    written.push(small.to_table().unwrap().to_string().into_bytes());
    let read = |_, bytes: &[u8]| {
        let Some(text) = text(bytes) else { return false };
        let Ok(definition) = TrainDefinition::from_toml(&text) else { return false };
        TrainDefinition::from_table(&definition.to_table().unwrap()).unwrap();
        if is_small(&definition) {
            definition.head_kinds();
            let _ = Corpus::synthetic(&definition);
        }
        true
    };
    Target { files: all(Form::Text, written), read: Box::new(read) }
}

pub fn manifests(place: &Path) -> Target {
    let folder = place.join("study");
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join("manifest.toml");
    let read = move |_, bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        let Ok(manifest) = Manifest::read(&path) else { return false };
        black_box((manifest.notes(), manifest.sweep_command(), manifest.about_machine()));
        let _ = measured_study(&folder, &manifest);
        let _ = TrainedRun::definition_in(&folder);
        let _ = ModelSource::in_folder(&folder);
        true
    };
    Target { files: all(Form::Text, files("data", "manifest.toml")), read: Box::new(read) }
}

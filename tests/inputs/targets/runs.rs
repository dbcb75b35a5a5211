//! Files of training runs and of fits: as `train --resume`, `evaluate`, `show` and studies of models read them.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use rank_study::lm::{Alone, Corpus, Device, Probed as _, StepRow, TrainDefinition, TrainSummary};
use rank_study::report::{show, shown_page};
use rank_study::run::{Begin, ModelSource, RunError, TrainedRun, Training, train};
use safetensors::SafeTensors;
use safetensors::tensor::serialize;
use sha2::{Digest as _, Sha256};

use super::super::forms::{Form, Headed};
use super::super::target::{Target, Whole};
use super::{Kept, program};

const RUN: &str = r#"
arm = "ls"
layers = 1
d_model = 8
heads = 2
window = 3
context = 8
batch = 2
steps = 6
warmup_steps = 2
eval_every = 2
eval_batches = 2
checkpoint_every = 2
keep_checkpoints = [2]
corpus = { tokens = 4000 }
"#;

fn definition(steps: usize) -> TrainDefinition {
    TrainDefinition::from_toml(&RUN.replace("steps = 6", &format!("steps = {steps}"))).unwrap()
}

/// A run on its synthetic corpus, stopped after a step, where one is given.
fn trained(
    definition: &TrainDefinition,
    corpus: &Corpus,
    folder: &Path,
    stopped_at: Option<usize>,
) -> Result<TrainSummary, RunError> {
    let stop = AtomicBool::new(false);
    let observer = |record: &StepRow| {
        if Some(record.step) == stopped_at {
            stop.store(true, Ordering::Relaxed);
        }
    };
    let training =
        Training { definition, corpus, source: "synthetic", device: Device::Cpu, workers: &Alone };
    train(&training, folder, Begin::Resume, &stop, &observer)
}

/// What a file of a run looks like.
fn form(path: &Path) -> Form {
    let ending = path.extension().and_then(|ending| ending.to_str());
    match ending {
        Some("csv" | "toml" | "json") => Form::Text,
        Some("safetensors") => Form::Headed(Headed::Safetensors),
        _ => Form::Bytes,
    }
}

fn whole(kept: &Kept, at: usize) -> Whole {
    let (path, bytes) = &kept.files[at];
    Whole { bytes: bytes.clone(), form: form(path) }
}

/// A run that was stopped goes on, and one that has ended goes on to more steps.
pub fn run_logs(place: &Path) -> Target {
    let (six, seven) = (definition(6), definition(7));
    let corpus = Corpus::synthetic(&six).unwrap();
    let [stopped, ended] = ["stopped", "ended"].map(|name| place.join(name));
    trained(&six, &corpus, &stopped, Some(4)).unwrap();
    trained(&six, &corpus, &ended, None).unwrap();
    let kept = [stopped, ended].map(|folder| Kept::of(&folder));
    let of_stopped =
        ["steps.csv", "eval.csv", "heads.log", "manifest.toml", "training.safetensors"];
    let of_ended = ["heads.parquet", "manifest.toml", "steps.csv"];
    let mut places: Vec<(usize, usize)> = of_stopped.map(|name| (0, kept[0].place(name))).into();
    places.extend(of_ended.map(|name| (1, kept[1].place(name))));
    let files = places.iter().map(|&(run, at)| whole(&kept[run], at)).collect();
    let read = move |of: usize, bytes: &[u8]| {
        let (run, at) = places[of];
        kept[run].put_back(at, bytes);
        let definition = [&six, &seven][run];
        trained(definition, &corpus, &kept[run].folder, None).is_ok()
    };
    Target { files, read: Box::new(read) }
}

/// Folders of a run and of a fit on a page.
pub fn shown_runs(place: &Path) -> Target {
    fs::write(place.join("run.toml"), RUN).unwrap();
    program(place, &["train", "run.toml", "--out", "run", "--quiet"]);
    let fit = [
        "fit", "--family", "dirichlet-band", "--window", "3", "--n", "8", "--rank", "2",
        "--max-logit", "1,2", "--out", "fit", "--quiet",
    ];
    program(place, &fit);
    let kept = ["run", "fit"].map(|name| Kept::of(&place.join(name)));
    let mut places = Vec::new();
    for (folder, kept) in kept.iter().enumerate() {
        let is_read = |path: &PathBuf| !path.ends_with("claim") && !path.ends_with(".lock");
        let read = (0..kept.files.len()).filter(|&at| is_read(&kept.files[at].0));
        places.extend(read.map(|at| (folder, at)));
    }
    let files = places.iter().map(|&(folder, at)| whole(&kept[folder], at)).collect();
    let read = move |of: usize, bytes: &[u8]| {
        let (folder, at) = places[of];
        kept[folder].put_back(at, bytes);
        let Ok(shown) = show(std::slice::from_ref(&kept[folder].folder)) else { return false };
        shown_page(&shown, "rank-study").is_ok()
    };
    Target { files, read: Box::new(read) }
}

/// The file with the checksum of what is in it now, where it is one.
fn with_checksum(bytes: &[u8]) -> Option<Vec<u8>> {
    let (_, header) = SafeTensors::read_metadata(bytes).ok()?;
    let mut notes = header.metadata().clone().unwrap_or_default();
    notes.remove("sha256");
    let file = SafeTensors::deserialize(bytes).ok()?;
    let mut tensors = file.tensors();
    tensors.sort_by(|a, b| a.0.cmp(&b.0));
    let mut hash = Sha256::new();
    let mut add = |bytes: &[u8]| {
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    };
    for (name, view) in &tensors {
        add(name.as_bytes());
        add(format!("{:?}", view.shape()).as_bytes());
        add(view.data());
    }
    let mut sorted: Vec<_> = notes.iter().collect();
    sorted.sort();
    for (key, note) in sorted {
        add(key.as_bytes());
        add(note.as_bytes());
    }
    let digest = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    notes.insert("sha256".to_owned(), digest);
    serialize(tensors, Some(notes)).ok()
}

/// Weights as they are, and with the checksum made right.
pub fn checkpoints(place: &Path) -> Target {
    let definition = definition(6);
    let corpus = Corpus::synthetic(&definition).unwrap();
    let folder = place.join("run");
    trained(&definition, &corpus, &folder, None).unwrap();
    let kept = Kept::of(&folder);
    let places = [kept.place("step-000002.safetensors"), kept.place("training.safetensors")];
    let files = places.map(|at| whole(&kept, at)).into();
    let first = &kept.files[places[0]].1;
    assert_eq!(with_checksum(first).unwrap().len(), first.len());
    let paths = places.map(|at| kept.files[at].0.clone());
    let read = move |of: usize, bytes: &[u8]| {
        let put_right = with_checksum(bytes);
        let mut is_read = false;
        for bytes in [Some(bytes), put_right.as_deref()].into_iter().flatten() {
            fs::write(&paths[of], bytes).unwrap();
            let run = TrainedRun::read(&folder, [Some(2), None][of]);
            if let Ok(run) = &run {
                run.probe(&[0, 1, 2, 0]).unwrap();
            }
            is_read |= run.is_ok();
            let _ = ModelSource::in_folder(&folder);
        }
        fs::write(&paths[of], &kept.files[places[of]].1).unwrap();
        is_read
    };
    Target { files, read: Box::new(read) }
}

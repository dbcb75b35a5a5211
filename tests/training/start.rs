//! Runs of a study that begin with the weights of another study's runs: which weights these are, what is
//! trained first, what is gone on with, and what is measured again.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::binary::Folder;
use rank_study::lm::Alone;
use rank_study::lm::{
    Corpus, Device, Model, ModelShape, Slopes, StepRecord, SyntheticCorpus, TrainDefinition,
};
use rank_study::run::{Begin, RunError, TrainResult, Training, train};
use safetensors::SafeTensors;

const MODELS: &str = r#"
kind = "train"
view = "training"
presets = ["paper"]
[train]
layers = 2
d_model = 16
heads = 2
global_heads = 1
window = 4
context = 32
batch = 4
warmup_steps = 1
eval_every = 30
eval_batches = 2
"#;

/// Trained for real.
const RUNS: &str = r#"
steps = 30
learning_rate = 1e-2
keep_checkpoints = [10, 30]
[[run]]
name = "mhsa"
arm = "mhsa"
seed = [0, 1]
[[run]]
name = "ls"
arm = "ls"
seed = [0, 1]
"#;

/// At a rate that is zero in float32, so that the last weights are the first.
const ON: &str = r#"
steps = 2
learning_rate = 1e-60
[[run]]
name = "as-it-was"
seed = [0, 1]
start = { study = "runs", run = "mhsa", step = 10 }
[[run]]
name = "last"
arm = "ls"
seed = 1
start = { study = "runs", run = "ls" }
"#;

const PARTS: &str = r#"
study = "parts"
kind = "surgery"
view = "surgery"
presets = ["paper"]
[surgery]
of = ["on"]
runs = ["as-it-was"]
functions = ["uniform"]
"#;

fn study(name: &str, runs: &str) -> String {
    format!("study = \"{name}\"\n{MODELS}{runs}")
}

fn studies() -> Folder {
    let folder = Folder::new();
    folder.write("analysis/runs.toml", study("runs", RUNS));
    folder.write("analysis/on.toml", study("on", ON));
    folder.write("analysis/parts.toml", PARTS);
    folder.write("book.txt", "the cat sat on the mat and the dog sat on the log. ".repeat(60));
    folder
}

fn sweep(folder: &Folder, study: &str) -> String {
    folder.done(&["sweep", &format!("analysis/{study}.toml"), "--text", "book.txt"])
}

/// Every tensor of a file, in bytes.
fn tensors(path: &Path) -> BTreeMap<String, Vec<u8>> {
    let bytes = std::fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let file = SafeTensors::deserialize(&bytes).unwrap();
    file.tensors().into_iter().map(|(name, view)| (name, view.data().to_vec())).collect()
}

/// The weights of a file, without what the optimiser keeps.
fn weights(path: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut all = tensors(path);
    all.retain(|name, _| !name.ends_with("_moment"));
    all
}

const LAST: &str = "checkpoint/training.safetensors";

#[test]
fn runs_begin_with_the_weights_that_they_name() {
    let folder = studies();
    let said = sweep(&folder, "on");
    assert!(said.contains("3 configurations measured; rows in data/on-book/rows.csv"), "{said}");
    // What they start from is trained first, and no more than that.
    assert!(!folder.path("data/runs-book/ls/s0").exists());
    folder.done(&["verify", "on-book"]);
    assert!(sweep(&folder, "on").contains("on-book: 0 configurations measured"));

    let there = |name: &str| folder.path("data/runs-book").join(name);
    let begun = |run: &str| weights(&folder.path("data/on-book").join(run).join(LAST));
    for seed in 0..2 {
        let source = there(&format!("mhsa/s{seed}/checkpoint/step-000010.safetensors"));
        assert!(begun(&format!("as-it-was/s{seed}")) == weights(&source), "seed {seed}");
    }
    assert!(begun("last/s1") == weights(&there("ls/s1").join(LAST)));
    assert!(begun("as-it-was/s0") != weights(&there("mhsa/s0").join(LAST)));

    // The gradient of the first step is that of these weights: the optimiser begins anew.
    let record = &folder.csv("data/on-book/as-it-was/s0/steps.csv").1[0];
    assert_eq!((record["step"].as_str(), record["tokens"].as_str()), ("1", "128"));

    let manifest = folder.read("data/on-book/as-it-was/s0/manifest.toml");
    let rows = folder.csv("data/runs-book/rows.csv").1;
    let source = rows.iter().find(|row| row["cell"] == "mhsa/s0").unwrap();
    let told = format!("start = \"runs/mhsa of settings {}, step 10\"", source["settings"]);
    assert!(manifest.contains(&told), "{told} is not in {manifest}");
    let settings = |study: &str| -> BTreeMap<String, String> {
        let rows = folder.csv(&format!("data/{study}/rows.csv")).1;
        rows.into_iter().map(|row| (row["cell"].clone(), row["settings"].clone())).collect()
    };
    let before = settings("on-book");

    // Another study looks at them as at any run.
    let said = sweep(&folder, "parts");
    assert!(
        said.contains("2 configurations measured; rows in data/parts-book")
            && !said.contains("on-book:"),
        "{said}"
    );
    folder.done(&["verify", "parts-book"]);

    // Weights of another step are another run; so are weights of another definition.
    folder.write(
        "analysis/on.toml",
        study("on", &ON.replace("run = \"ls\"", "run = \"ls\", step = 10")),
    );
    let ended = folder.run(&["sweep", "analysis/on.toml", "--text", "book.txt"]);
    assert!(ended.stdout.contains("1 configuration measured, 2 done before"), "{}", ended.stdout);
    assert!(
        ended.stderr.contains("data/on-book/last/s1 held a run with other settings"),
        "{}",
        ended.stderr
    );
    let after = settings("on-book");
    assert_ne!(after["last/s1"], before["last/s1"]);
    assert_eq!(after["as-it-was/s0"], before["as-it-was/s0"]);
    let old = begun("as-it-was/s0");
    folder.write("analysis/runs.toml", study("runs", &RUNS.replace("1e-2", "2e-2")));
    let ended = folder.run(&["verify", "on-book"]);
    assert_eq!(ended.code, Some(3), "{}", ended.stdout);
    assert!(sweep(&folder, "on").contains("on-book: 3 configurations measured"));
    assert!(begun("as-it-was/s0") != old);
    let source = there("mhsa/s0/checkpoint/step-000010.safetensors");
    assert!(begun("as-it-was/s0") == weights(&source));
    folder.done(&["verify", "on-book"]);
}

#[test]
fn what_cannot_start_is_told_in_one_line() {
    let folder = studies();
    let said = folder.refused(&["train", "analysis/on.toml", "--run", "last", "--out", "r"]);
    assert!(
        said.contains("--run last starts from another run") && said.contains("sweep"),
        "{said}"
    );
    folder.write("one.toml", "steps = 2\nstart = { study = \"runs\", run = \"mhsa\" }\n");
    let said = folder.refused(&["train", "one.toml", "--out", "r"]);
    assert!(said.contains("unknown key \"start\""), "{said}");
    let narrow = ON.replace("name = \"last\"", "name = \"last\"\nd_model = 8");
    folder.write("analysis/on.toml", study("on", &narrow));
    let said = folder.refused(&["sweep", "analysis/on.toml", "--text", "book.txt"]);
    assert!(said.contains("run last: start: d_model is 8, but "), "{said}");

    // Byte pairs of another part of a text are other symbols, as many as they are.
    let text = "the cat sat on the mat. ".repeat(100) + &"no dog dug in my big bog. ".repeat(100);
    folder.write("book.txt", text);
    let pairs = |runs: &str, more: &str| {
        runs.replacen("[[run]]", &format!("vocabulary = \"bpe:270\"\n{more}[[run]]"), 1)
    };
    folder.write("analysis/runs.toml", study("runs", &pairs(RUNS, "")));
    folder.write("analysis/on.toml", study("on", &pairs(ON, "valid_fraction = 0.5\n")));
    let arguments = ["sweep", "analysis/on.toml", "--text", "book.txt", "--filter", "last"];
    assert_eq!(folder.run(&arguments).code, Some(1));
    let row = &folder.csv("data/on-book/rows.csv").1[0];
    assert!(row["err"].starts_with("vocabulary is 270 symbols, but "), "{row:?}");
}

/// What a run is trained on, and a model that has the run's weights in another order: its slopes were added last.
fn start() -> (TrainDefinition, Model) {
    let definition = TrainDefinition {
        layers: 2,
        d_model: 16,
        heads: 2,
        context: 16,
        batch: 2,
        steps: 20,
        warmup_steps: 2,
        learning_rate: 1e-2,
        eval_every: 5,
        eval_batches: 2,
        corpus: SyntheticCorpus { tokens: 4000, ..SyntheticCorpus::default() },
        ..TrainDefinition::default()
    };
    let size = Corpus::synthetic(&definition).unwrap().vocabulary.size();
    let model = Model::new(ModelShape::new(&definition, size), 0.3, 99).unwrap();
    let model = model.with_slopes_added(&[vec![0.5, 0.25], vec![0.125, 2.0]]).unwrap();
    (TrainDefinition { slopes: Slopes::Learned, ..definition }, model)
}

#[test]
fn a_run_that_was_stopped_goes_on_from_its_own_checkpoint() {
    let (definition, model) = start();
    let corpus = Corpus::synthetic(&definition).unwrap();
    let folder = Folder::new();
    let run = |out: &str, begin, start, last: usize| -> Result<TrainResult, RunError> {
        let device = Device::Cpu;
        let training = Training {
            definition: &definition,
            corpus: &corpus,
            source: "synthetic",
            device,
            teacher: None,
            start,
            workers: &Alone,
        };
        let stop = AtomicBool::new(false);
        let on_step = |record: &StepRecord| stop.store(record.step == last, Ordering::Relaxed);
        train(&training, &folder.path(out), begin, &stop, &on_step)
    };
    let started = Some((&model, "a model, step 3"));
    run("whole", Begin::Anew, started, 20).unwrap();
    run("stopped", Begin::Anew, started, 7).unwrap();
    run("drawn", Begin::Anew, None, 20).unwrap();
    let Err(error) = run("stopped", Begin::Resume, Some((&model, "a model, step 4")), 20) else {
        panic!("a run from other weights was gone on with")
    };
    assert!(error.to_string().contains("a model, step 3"), "{error}");
    let Err(error) = run("stopped", Begin::Resume, None, 20) else {
        panic!("the start was forgotten")
    };
    assert!(error.to_string().contains("a model, step 3"), "{error}");
    run("stopped", Begin::Continue, started, 20).unwrap();
    let manifest = folder.read("stopped/manifest.toml");
    assert!(manifest.contains("resumed_at_steps = [7]"), "{manifest}");

    let steps = |out: &str| {
        let mut rows = folder.csv(&format!("{out}/steps.csv")).1;
        rows.iter_mut().for_each(|row| drop(row.remove("wall_time_s")));
        rows
    };
    assert_eq!(steps("stopped"), steps("whole"));
    assert!(
        steps("drawn")[0]["loss_nats"] != steps("whole")[0]["loss_nats"],
        "the start was passed over"
    );
    let last = |out: &str| tensors(&folder.path(out).join(LAST));
    assert!(last("stopped") == last("whole"), "weights or moments differ");
}

//! Definitions of work so small that a test can afford much of it.

// Each test crate uses its own part of this.
#![allow(dead_code)]

use toml::{Table, Value};

const FITS: &str = r#"
study = "tiny"
kind = "fit"
view = "logit-growth"
presets = ["quick", "paper"]
[grid]
n = [16]
rank = [2, 4]
seed = [0, 1]
tolerance = [0.3]
[search]
starts = 1
polished = 1
rough_iterations = 60
iterations = 120
relative_decrease = 1e-3
[[target]]
family = "dirichlet-band"
window = 4
"#;

const TRAINING: &str = r#"
layers = 1
d_model = 8
heads = 2
window = 3
context = 8
batch = 2
steps = 4
warmup_steps = 2
eval_every = 2
eval_batches = 2
corpus = { tokens = 4000 }
"#;

const TRAININGS: &str = r#"
study = "runs"
kind = "train"
view = "training"
[[run]]
name = "ls"
arm = "ls"
seed = [0, 1]
[[run]]
name = "mhsa"
arm = "mhsa"
seed = [0, 1]
"#;

/// A study of fits with these keys instead, such as `grid.n = [12]`.
pub fn fits(changes: &str) -> String {
    changed(FITS, changes).to_string()
}

/// A training of LS-attention with these keys instead.
pub fn training(changes: &str) -> String {
    changed(&format!("arm = \"ls\"\n{TRAINING}"), changes).to_string()
}

/// A study of trainings with these keys instead, such as `train.steps = 20`.
pub fn trainings(changes: &str) -> String {
    let mut study: Table = TRAININGS.parse().unwrap();
    study.insert("train".to_owned(), changed(TRAINING, "").into());
    merge(&mut study, changes.parse().unwrap());
    study.to_string()
}

fn changed(definition: &str, changes: &str) -> Table {
    let mut table = definition.parse().unwrap();
    merge(&mut table, changes.parse().unwrap());
    table
}

fn merge(into: &mut Table, changes: Table) {
    for (key, value) in changes {
        match (into.get_mut(&key), value) {
            (Some(Value::Table(into)), Value::Table(changes)) => merge(into, changes),
            (_, value) => drop(into.insert(key, value)),
        }
    }
}

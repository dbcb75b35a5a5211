//! A study of trained models whose heads attend otherwise: runs × checkpoints, each after every edit.

use std::path::Path;

use serde::Deserialize;
use toml::Table;

use super::preset::Preset;
use super::search;
use super::trained_models::{self, TrainedModels};
use crate::fit::SearchOptions;
use crate::pattern::nearest::nearest;
use crate::predict::Edit;

/// Trained models to be told what their heads attend to.
#[derive(Clone, Debug)]
pub struct SurgeryStudy {
    /// Which models, and the passages that the loss is of.
    pub(crate) models: TrainedModels,
    /// What is made of positions alone, in the order in which it is done.
    pub(crate) functions: Vec<Edit>,
    /// The errors ε of fits, in nats.
    pub(crate) epsilons: Vec<f64>,
    /// Ranks of fits beside the heads' own; those that are not below it are passed over.
    pub(crate) ranks: Vec<usize>,
    /// Groups of passages that fits are made on.
    pub(crate) fit_groups: usize,
    /// Groups of passages that edits learn on; they come after those of the loss.
    pub(crate) learned_on: usize,
    /// How many of a row's largest entries are left.
    pub(crate) largest: Vec<usize>,
    /// How many of a row's last columns are left.
    pub(crate) windows: Vec<usize>,
    /// How many powers of the position are taken from keys, and no longer read by them.
    pub(crate) degrees: Vec<usize>,
    /// How the fits search.
    pub(crate) search: SearchOptions,
}

#[derive(Deserialize)]
struct Surgery {
    #[serde(default)]
    functions: Vec<String>,
    #[serde(default)]
    epsilon: Vec<f64>,
    #[serde(default)]
    ranks: Vec<usize>,
    #[serde(default = "two")]
    fit_groups: usize,
    #[serde(default = "two")]
    learned_on: usize,
    #[serde(default)]
    largest: Vec<usize>,
    #[serde(default)]
    windows: Vec<usize>,
    #[serde(default)]
    degrees: Vec<usize>,
}

fn two() -> usize {
    2
}

const FUNCTIONS: [Edit; 5] =
    [Edit::Uniform, Edit::Ramp, Edit::Position, Edit::Lag, Edit::PositionAndLag];

/// `path` is the definition's own: other studies are defined beside it.
pub(super) fn read(
    surgery: Option<&Table>,
    search: &Table,
    path: &Path,
    preset: Preset,
) -> Result<SurgeryStudy, String> {
    let (models, keys): (_, Surgery) = trained_models::read(surgery, "surgery", path, preset)?;
    if !models.layers.is_empty() {
        return Err("surgery.layers: the heads of all layers are edited; leave it out".to_owned());
    }
    let names = FUNCTIONS.map(Edit::name);
    let function = |name: &String| {
        FUNCTIONS.into_iter().find(|edit| edit.name() == name).ok_or_else(|| {
            let near = nearest(name, &names);
            format!("surgery.functions has {name:?}; did you mean {near:?}?")
        })
    };
    let functions = keys.functions.iter().map(function).collect::<Result<_, _>>()?;
    if keys.epsilon.iter().any(|e| !(e.is_finite() && *e > 0.0)) {
        return Err(format!(
            "surgery.epsilon is {:?}; it needs errors in nats, finite and above 0",
            keys.epsilon
        ));
    }
    for (key, sizes) in [
        ("ranks", &keys.ranks),
        ("largest", &keys.largest),
        ("windows", &keys.windows),
        ("degrees", &keys.degrees),
        ("fit_groups", &vec![keys.fit_groups]),
        ("learned_on", &vec![keys.learned_on]),
    ] {
        if sizes.contains(&0) {
            return Err(format!("surgery.{key} has 0; it needs numbers from 1 on"));
        }
    }
    Ok(SurgeryStudy {
        models,
        functions,
        epsilons: keys.epsilon,
        ranks: keys.ranks,
        fit_groups: keys.fit_groups,
        learned_on: keys.learned_on,
        largest: keys.largest,
        windows: keys.windows,
        degrees: keys.degrees,
        search: search::of_heads(search)?,
    })
}

impl SurgeryStudy {
    /// Every edit of a model whose heads have `d_head` channels, in the order in which they are done.
    pub(crate) fn edits(&self, d_head: usize) -> Vec<Edit> {
        let mut edits = self.functions.clone();
        edits.extend(self.largest.iter().map(|&count| Edit::Largest { count }));
        edits.extend(self.windows.iter().map(|&window| Edit::Last { window }));
        for &degree in &self.degrees {
            edits.extend([Edit::Detrended { degree }, Edit::DetrendedSlope { degree }]);
            edits.extend([Edit::Flat { degree }, Edit::FlatSlope { degree }]);
        }
        let lower = self.ranks.iter().copied().filter(|&rank| rank < d_head);
        for rank in [d_head].into_iter().chain(lower) {
            edits.extend(self.epsilons.iter().map(|&epsilon| Edit::Fit { epsilon, rank }));
        }
        edits
    }
}

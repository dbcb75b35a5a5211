//! A study of trained models whose heads attend otherwise: runs × checkpoints, each after every edit.

use std::path::Path;

use serde::Deserialize;
use toml::Table;

use super::preset::Preset;
use super::search;
use super::trained_models::{self, TrainedModels};
use crate::fit::SearchOptions;
use crate::pattern::HeadKind;
use crate::predict::{Edit, EditedHeads};
use crate::system::nearest::nearest;

/// Trained models to be told what their heads attend to.
#[derive(Clone, Debug)]
pub struct SurgeryStudy {
    /// Which models, and the passages that the loss is of.
    pub(crate) models: TrainedModels,
    /// Which heads are edited: each edit is done to each of these choices.
    pub(crate) heads: Vec<EditedHeads>,
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
    /// Ranks that attention is cut to.
    pub(crate) truncated: Vec<usize>,
    /// What is done to the far part alone.
    pub(crate) far: Far,
    /// How many powers of the position are taken from keys, and no longer read by them.
    pub(crate) degrees: Vec<usize>,
    /// How the fits search.
    pub(crate) search: SearchOptions,
}

/// Edits of the far part.
#[derive(Clone, Debug)]
pub(crate) struct Far {
    /// The least lag that is far; the model's window where none is named.
    pub from: Option<usize>,
    /// Whether it is spread evenly.
    pub uniform: bool,
    /// Whether it is the mean of other passages.
    pub mean: bool,
    /// How many of its largest entries are left.
    pub largest: Vec<usize>,
    /// Ranks that it is cut to.
    pub truncated: Vec<usize>,
}

#[derive(Deserialize)]
struct Surgery {
    #[serde(default = "all")]
    heads: Vec<String>,
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
    truncated: Vec<usize>,
    far_from: Option<usize>,
    #[serde(default)]
    far_functions: Vec<String>,
    #[serde(default)]
    far_largest: Vec<usize>,
    #[serde(default)]
    far_truncated: Vec<usize>,
    #[serde(default)]
    degrees: Vec<usize>,
}

fn all() -> Vec<String> {
    vec![EditedHeads::All.name().to_owned()]
}

fn two() -> usize {
    2
}

const FUNCTIONS: [Edit; 5] =
    [Edit::Uniform, Edit::Ramp, Edit::Position, Edit::Lag, Edit::PositionAndLag];
const FAR_FUNCTIONS: [&str; 2] = ["uniform", "mean"];

/// `path` is the definition's own: other studies are defined beside it.
pub(super) fn read(
    surgery: Option<&Table>,
    search: &Table,
    path: &Path,
    preset: Preset,
) -> Result<SurgeryStudy, String> {
    let (models, keys): (_, Surgery) = trained_models::read(surgery, "surgery", path, preset)?;
    if !models.layers.is_empty() {
        return Err("surgery.layers: this edit applies to all layers; leave it out".to_owned());
    }
    let functions = named("functions", &keys.functions, &FUNCTIONS.map(|e| (e.name(), e)))?;
    let heads = named("heads", &keys.heads, &EditedHeads::ALL.map(|h| (h.name(), h)))?;
    let far_functions =
        named("far_functions", &keys.far_functions, &FAR_FUNCTIONS.map(|name| (name, name)))?;
    if heads.is_empty() {
        return Err("surgery.heads is empty; give all, global or local, or leave it out".to_owned());
    }
    if heads.iter().any(|heads| *heads != EditedHeads::All) {
        let of_all = [("epsilon", keys.epsilon.len()), ("degrees", keys.degrees.len())];
        if let Some((key, _)) = of_all.iter().find(|(_, count)| *count > 0) {
            return Err(format!(
                "surgery.{key} is an edit of all heads; leave it out, or leave surgery.heads out"
            ));
        }
    }
    if keys.epsilon.iter().any(|e| !(e.is_finite() && *e > 0.0)) {
        return Err(format!(
            "surgery.epsilon is {:?}; it needs finite errors above 0, in nats",
            keys.epsilon
        ));
    }
    for (key, sizes) in [
        ("ranks", &keys.ranks),
        ("largest", &keys.largest),
        ("windows", &keys.windows),
        ("truncated", &keys.truncated),
        ("far_from", &keys.far_from.into_iter().collect()),
        ("far_largest", &keys.far_largest),
        ("far_truncated", &keys.far_truncated),
        ("degrees", &keys.degrees),
        ("fit_groups", &vec![keys.fit_groups]),
        ("learned_on", &vec![keys.learned_on]),
    ] {
        if sizes.contains(&0) {
            return Err(format!("surgery.{key} must be at least 1"));
        }
    }
    let far = Far {
        from: keys.far_from,
        uniform: far_functions.contains(&"uniform"),
        mean: far_functions.contains(&"mean"),
        largest: keys.far_largest,
        truncated: keys.far_truncated,
    };
    Ok(SurgeryStudy {
        models,
        heads,
        functions,
        epsilons: keys.epsilon,
        ranks: keys.ranks,
        fit_groups: keys.fit_groups,
        learned_on: keys.learned_on,
        largest: keys.largest,
        windows: keys.windows,
        truncated: keys.truncated,
        far,
        degrees: keys.degrees,
        search: search::of_heads(search)?,
    })
}

/// What each of the names in `surgery.key` is one of.
fn named<T: Copy, const N: usize>(
    key: &str,
    names: &[String],
    known: &[(&str, T); N],
) -> Result<Vec<T>, String> {
    let one = |name: &String| {
        known.iter().find(|(known, _)| known == name).map(|(_, value)| *value).ok_or_else(|| {
            let near = nearest(name, &known.each_ref().map(|(known, _)| *known));
            format!("surgery.{key} has {name:?}; did you mean {near:?}?")
        })
    };
    names.iter().map(one).collect()
}

impl SurgeryStudy {
    /// Every edit of a model whose heads are of `kinds`, have `d_head` channels and see `window` tokens where they are local, with
    /// the heads that it is done to, in the order in which they are done. Those of heads that the model has none of, and of
    /// the far part of local ones, are passed over.
    pub(crate) fn edits(
        &self,
        kinds: &[HeadKind],
        d_head: usize,
        window: usize,
    ) -> Vec<(Edit, EditedHeads)> {
        let edits = self.edits_of_all(d_head, self.far.from.unwrap_or(window));
        let mut all = Vec::new();
        for &heads in &self.heads {
            if kinds.iter().any(|kind| heads.hold(*kind)) {
                let done = edits
                    .iter()
                    .copied()
                    .filter(|edit| heads != EditedHeads::Local || edit.far_from().is_none());
                all.extend(done.map(|edit| (edit, heads)));
            }
        }
        all
    }

    fn edits_of_all(&self, d_head: usize, from: usize) -> Vec<Edit> {
        let mut edits = self.functions.clone();
        edits.extend(self.largest.iter().map(|&count| Edit::Largest { count }));
        edits.extend(self.windows.iter().map(|&window| Edit::Last { window }));
        edits.extend(self.truncated.iter().map(|&rank| Edit::Truncated { rank }));
        let Far { from: _, uniform, mean, largest, truncated } = &self.far;
        edits.extend(uniform.then_some(Edit::FarUniform { from }));
        edits.extend(mean.then_some(Edit::FarMean { from }));
        edits.extend(largest.iter().map(|&count| Edit::FarLargest { count, from }));
        edits.extend(truncated.iter().map(|&rank| Edit::FarTruncated { rank, from }));
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

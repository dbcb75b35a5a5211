//! A study of trained heads' lattices: runs × checkpoints × ε × inputs × ranks.

use std::path::Path;

use serde::Deserialize;
use toml::Table;

use super::preset::Preset;
use super::search;
use super::trained_models::{self, TrainedModels};
use crate::fit::SearchOptions;
use crate::predict::InputSet;

/// What the attention of trained heads needs by the inputs and the rank that are allowed.
#[derive(Clone, Debug)]
pub struct LatticeStudy {
    /// Whose heads; a head's queries and keys are fitted to the passages of a group at once.
    pub(crate) models: TrainedModels,
    /// The errors ε, in nats.
    pub(crate) epsilons: Vec<f64>,
    /// What queries and keys may be made of.
    pub(crate) inputs: Vec<InputSet>,
    /// Ranks that they may have, beside the head's own and any.
    pub(crate) ranks: Vec<usize>,
    /// Only so many heads of a model, those of the largest logits.
    pub(crate) largest: Option<usize>,
    /// Rows of a passage that are fitted at most.
    pub(crate) rows: Option<usize>,
    /// How the fits search.
    pub(crate) search: SearchOptions,
}

#[derive(Deserialize)]
struct Lattice {
    epsilon: Vec<f64>,
    inputs: Option<Vec<String>>,
    #[serde(default)]
    ranks: Vec<usize>,
    largest: Option<usize>,
    rows: Option<usize>,
}

/// `path` is the definition's own: other studies are defined beside it.
pub(super) fn read(
    lattice: Option<&Table>,
    search: &Table,
    path: &Path,
    preset: Preset,
) -> Result<LatticeStudy, String> {
    let (models, keys): (_, Lattice) = trained_models::read(lattice, "lattice", path, preset)?;
    let is_error = |e: &f64| e.is_finite() && *e > 0.0;
    if keys.epsilon.is_empty() || !keys.epsilon.iter().all(is_error) {
        return Err(format!(
            "lattice.epsilon is {:?}; it needs finite errors above 0, in nats",
            keys.epsilon
        ));
    }
    if [keys.rows, keys.largest].contains(&Some(0)) {
        return Err("lattice.rows and largest must be at least 1".to_owned());
    }
    if keys.ranks.contains(&0) || !keys.ranks.is_sorted_by(|a, b| a < b) {
        return Err(format!("lattice.ranks is {:?}; it needs ascending ranks", keys.ranks));
    }
    let inputs: Vec<InputSet> = match keys.inputs {
        None => InputSet::ALL.to_vec(),
        Some(names) => {
            let sets: Result<Vec<InputSet>, String> =
                names.iter().map(|name| name.parse()).collect();
            sets.map_err(|why| format!("lattice.inputs: {why}"))?
        }
    };
    // What all others are held against.
    for needed in [InputSet::Own, InputSet::Free] {
        if !inputs.contains(&needed) {
            return Err(format!("lattice.inputs lacks {needed}; name it among them"));
        }
    }
    Ok(LatticeStudy {
        models,
        epsilons: keys.epsilon,
        inputs,
        ranks: keys.ranks,
        largest: keys.largest,
        rows: keys.rows,
        search: search::of_heads(search)?,
    })
}

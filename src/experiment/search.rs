//! The table `[search]`: how fits search for their factors.

use schemars::JsonSchema;
use serde::Deserialize;
use toml::Table;

use super::keys::read_table;
use crate::solver::{FitError, SearchOptions, SolverBudget};

#[derive(Deserialize, Default, JsonSchema)]
pub(crate) struct SearchKeys {
    /// Random starts per fit.
    starts: Option<usize>,
    /// Best starts that are finished.
    polished: Option<usize>,
    /// Passes over the bounds from large to small.
    passes: Option<usize>,
    /// Iterations of each start.
    rough_iterations: Option<usize>,
    /// Iterations of each finished start.
    iterations: Option<usize>,
    /// Relative decrease of the error below which a fit stops.
    relative_decrease: Option<f64>,
    /// Precision: `float32` or `float64`.
    dtype: Option<String>,
}

/// The search options of fits of targets.
pub(crate) fn search_of_targets(table: &Table) -> Result<SearchOptions, String> {
    let options = over(table, SearchOptions::default())?;
    if options.starts == 0 {
        return Err("search needs starts ≥ 1".to_owned());
    }
    Ok(options)
}

/// The search options of trained heads: their own factors are the only start.
pub(crate) fn search_of_heads(table: &Table) -> Result<SearchOptions, String> {
    let effort =
        SolverBudget { iterations: 1500, relative_decrease: 1e-4, ..SolverBudget::default() };
    let standard = SearchOptions {
        starts: 0,
        polished: 1,
        passes: 0,
        rough: SolverBudget { iterations: 600, relative_decrease: 3e-4, ..effort },
        fine: effort,
        ..SearchOptions::default()
    };
    over(table, standard)
}

/// Replaces the values of `standard` by those of the keys that are present.
fn over(table: &Table, standard: SearchOptions) -> Result<SearchOptions, String> {
    let keys: SearchKeys = read_table(table, "search")?;
    let options = SearchOptions {
        starts: keys.starts.unwrap_or(standard.starts),
        polished: keys.polished.unwrap_or(standard.polished),
        passes: keys.passes.unwrap_or(standard.passes),
        rough: SolverBudget {
            iterations: keys.rough_iterations.unwrap_or(standard.rough.iterations),
            ..standard.rough
        },
        fine: SolverBudget {
            iterations: keys.iterations.unwrap_or(standard.fine.iterations),
            relative_decrease: keys.relative_decrease.unwrap_or(standard.fine.relative_decrease),
            ..standard.fine
        },
        precision: match keys.dtype.as_deref() {
            None => standard.precision,
            Some(name) => name.parse().map_err(|e: FitError| format!("search.dtype: {e}"))?,
        },
        ..standard
    };
    let decrease = options.fine.relative_decrease;
    if options.polished == 0 || !(0.0..1.0).contains(&decrease) {
        return Err("search needs polished ≥ 1 and 0 ≤ relative_decrease < 1".to_owned());
    }
    Ok(options)
}

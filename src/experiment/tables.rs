//! Tables that definitions of several kinds share: `[search]`, `[[target]]`, and the grid's lengths and seeds.

use schemars::JsonSchema;
use serde::Deserialize;
use toml::Table;

use super::keys;
use super::keys::read_table;
use super::names::{check_names_differ, check_target_name};
use super::schema::Both;
use crate::solver::{FitError, SearchOptions, SolverBudget};
use crate::targets::{Family, Parameters, TargetError, Visibility};

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

/// One target of a study.
#[derive(Clone, Debug)]
pub struct StudyTarget {
    /// The first part of its cells' keys: its name, or the family's.
    pub name: String,
    /// The family, with its parameters.
    pub family: Family,
    /// The pairs that may have weight.
    pub visibility: Visibility,
}

/// The keys of a `[[target]]`.
pub(crate) type TargetKeys = Both<OwnKeys, Parameters>;

/// The keys of a target beside its family's parameters.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct OwnKeys {
    /// Name of the target in rows; default the family.
    name: Option<String>,
    /// Family of the attention matrix.
    #[schemars(extend("enum" = Family::NAMES))]
    family: String,
    /// Mask: `causal` or `bidirectional`; default that of the grid.
    visibility: Option<Visibility>,
}

/// The targets of a study, whose pairs are those of the grid's `visibility` unless they say which.
pub(crate) fn targets(
    tables: &[Table],
    visibility: Option<&str>,
) -> Result<Vec<StudyTarget>, String> {
    if tables.is_empty() {
        return Err("this study needs at least one [[target]] with a family".to_owned());
    }
    let parse = |name: &str| name.parse().map_err(|e: TargetError| e.to_string());
    let of_grid = visibility.map_or(Ok(Visibility::Causal), parse);
    let of_grid = of_grid.map_err(|why| format!("grid.visibility: {why}"))?;
    let mut there: Vec<String> = Vec::new();
    keys::read_each(tables, "target", |table| {
        let target = target(table, of_grid)?;
        check_target_name(&target.name)?;
        check_names_differ("target", &target.name, &there)
            .map_err(|why| format!("{why}; give one of them a name = \"…\""))?;
        there.push(target.name.clone());
        Ok(target)
    })
}

fn target(table: &Table, of_grid: Visibility) -> Result<StudyTarget, String> {
    let (OwnKeys { name, family, visibility }, parameters) = keys::read_both(table, "target")?;
    let built = Family::from_parameters(&family, &parameters).map_err(|e| e.to_string())?;
    let visibility = visibility.unwrap_or(of_grid);
    Ok(StudyTarget { name: name.unwrap_or(family), family: built, visibility })
}

/// The sequence lengths of a grid.
pub(crate) fn lengths(n: Vec<usize>) -> Result<Vec<usize>, String> {
    if n.is_empty() || n.contains(&0) {
        return Err("grid.n must be at least 1".to_owned());
    }
    Ok(n)
}

/// The seeds of a grid, one where it has none.
pub(crate) fn seeds(seed: Option<Vec<u64>>) -> Result<Vec<u64>, String> {
    match seed {
        None => Ok(vec![0]),
        Some(seeds) if seeds.is_empty() => {
            Err("grid.seed is empty; name at least one seed".to_owned())
        }
        Some(seeds) => Ok(seeds),
    }
}

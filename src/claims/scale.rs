//! The scale that a verdict is about.

use std::collections::BTreeSet;

use crate::table::{GrowthCell, Spread, TrainingRun};

/// Of trainings: `n = 256, 512; 0.23–0.28 M parameters; 6000 steps`, as far as the runs have it.
pub(super) fn of_runs<'r>(runs: impl IntoIterator<Item = &'r TrainingRun>) -> String {
    let runs: Vec<&TrainingRun> = runs.into_iter().collect();
    let millions = runs.iter().filter_map(|run| run.parameters).map(|p| p as f64 / 1e6);
    let parameters = Spread::of(millions).map(|spread| spread.range(2));
    let contexts = listed(runs.iter().filter_map(|run| run.context));
    let steps = listed(runs.iter().filter_map(|run| run.steps));
    let parts = [
        contexts.map(|contexts| format!("n = {contexts}")),
        parameters.map(|parameters| format!("{parameters} M parameters")),
        steps.map(|steps| format!("{steps} steps")),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// Of fits: `n = 48–384, d = 4–32`.
pub(super) fn of_cells<'c>(cells: impl IntoIterator<Item = &'c GrowthCell>) -> String {
    let cells: Vec<&GrowthCell> = cells.into_iter().collect();
    let range = |value: fn(&GrowthCell) -> usize| {
        let values = || cells.iter().map(|cell| value(cell));
        match (values().min(), values().max()) {
            (Some(least), Some(most)) if least < most => format!("{least}–{most}"),
            (Some(one), _) => one.to_string(),
            _ => "–".to_owned(),
        }
    };
    format!("n = {}, d = {}", range(|cell| cell.n), range(|cell| cell.rank))
}

/// The different values in order, none where there is none.
pub(super) fn listed<T: Ord + ToString>(values: impl Iterator<Item = T>) -> Option<String> {
    let values: BTreeSet<T> = values.collect();
    let shown: Vec<String> = values.iter().map(ToString::to_string).collect();
    (!shown.is_empty()).then(|| shown.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scale_names_what_the_runs_differ_in() {
        let run = |context, parameters| TrainingRun {
            context: Some(context),
            parameters: Some(parameters),
            steps: Some(100),
            corpus: "books".to_owned(),
            ..TrainingRun::default()
        };
        let told = of_runs(&[run(512, 279_400), run(256, 230_300), run(256, 230_300)]);
        assert_eq!(told, "n = 256, 512; 0.23–0.28 M parameters; 100 steps");
        assert_eq!(of_runs(&[TrainingRun::default()]), "");
    }
}

//! The scale that a verdict is about.

use crate::table::{GrowthCell, TrainingRun, significant};

/// Of trainings: `n = 256, 512, 279000 parameters, 6000 steps, text: synthetic`, as far as the runs tell.
pub(super) fn of_runs<'r>(runs: impl IntoIterator<Item = &'r TrainingRun>) -> String {
    let runs: Vec<&TrainingRun> = runs.into_iter().collect();
    let counts = |value: fn(&TrainingRun) -> Option<usize>| {
        listed(runs.iter().filter_map(|run| value(run)), |count| significant(count as f64, 3))
    };
    let contexts = listed(runs.iter().filter_map(|run| run.context), |n| n.to_string());
    let steps = listed(runs.iter().filter_map(|run| run.steps), |steps| steps.to_string());
    let mut texts: Vec<&str> =
        runs.iter().map(|run| &*run.corpus).filter(|text| !text.is_empty()).collect();
    texts.sort_unstable();
    texts.dedup();
    let text = (!texts.is_empty()).then(|| format!("text: {}", texts.join(", ")));
    let parts = [
        contexts.map(|contexts| format!("n = {contexts}")),
        counts(|run| run.parameters).map(|parameters| format!("{parameters} parameters")),
        steps.map(|steps| format!("{steps} steps")),
        text,
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Of fits: `n = 48 to 384, d = 4 to 32`.
pub(super) fn of_cells<'c>(cells: impl IntoIterator<Item = &'c GrowthCell>) -> String {
    let cells: Vec<&GrowthCell> = cells.into_iter().collect();
    let range = |value: fn(&GrowthCell) -> usize| {
        let values = || cells.iter().map(|cell| value(cell));
        match (values().min(), values().max()) {
            (Some(least), Some(most)) if least < most => format!("{least} to {most}"),
            (Some(one), _) => one.to_string(),
            _ => "–".to_owned(),
        }
    };
    format!("n = {}, d = {}", range(|cell| cell.n), range(|cell| cell.rank))
}

/// The different values in order, none where there is none.
fn listed(values: impl Iterator<Item = usize>, shown: impl Fn(usize) -> String) -> Option<String> {
    let mut values: Vec<usize> = values.collect();
    values.sort_unstable();
    let mut shown: Vec<String> = values.into_iter().map(shown).collect();
    shown.dedup();
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
        let told = of_runs(&[run(512, 250_400), run(256, 250_300), run(256, 250_300)]);
        assert_eq!(told, "n = 256, 512, 250000 parameters, 100 steps, text: books");
        assert_eq!(of_runs(&[TrainingRun::default()]), "");
    }
}

//! Words that several claims share: ranges, lists, and the scale of the rows.

use std::collections::BTreeSet;

use crate::experiments::fits::tables::growth_cell::GrowthCell;
use crate::experiments::training::tables::training::TrainingRun;
use crate::table::Spread;

/// `0.45–0.46`, or one number where both are the same.
pub(crate) fn from_to(values: impl IntoIterator<Item = f64>, digits: usize) -> String {
    let (low, high) = values
        .into_iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)));
    match low > high {
        true => "–".to_owned(),
        false => Spread { median: low, low, high }.range(digits),
    }
}

/// The different values in order, none where there is none.
pub(crate) fn listed<T: Ord + ToString>(values: impl Iterator<Item = T>) -> Option<String> {
    let values: BTreeSet<T> = values.collect();
    (!values.is_empty()).then(|| joined(values.iter().map(ToString::to_string), ", "))
}

/// Texts with `between` between them.
pub(crate) fn joined(texts: impl IntoIterator<Item = String>, between: &str) -> String {
    texts.into_iter().collect::<Vec<_>>().join(between)
}

/// The scale of trainings: `n = 256, 512; 0.23–0.28 M parameters; 6000 steps`, as far as the runs have it.
pub(crate) fn scale_of_runs<'r>(runs: impl IntoIterator<Item = &'r TrainingRun>) -> String {
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
    joined(parts.into_iter().flatten(), "; ")
}

/// The scale of fits: `n = 48–384, d = 4–32`.
pub(crate) fn scale_of_cells<'c>(cells: impl IntoIterator<Item = &'c GrowthCell>) -> String {
    let (lengths, ranks): (Vec<usize>, Vec<usize>) =
        cells.into_iter().map(|cell| (cell.n, cell.rank)).unzip();
    let range = |values: Vec<usize>| match (values.iter().min(), values.iter().max()) {
        (Some(least), Some(most)) if least < most => format!("{least}–{most}"),
        (Some(one), _) => one.to_string(),
        _ => "–".to_owned(),
    };
    format!("n = {}, d = {}", range(lengths), range(ranks))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_have_their_ends() {
        assert_eq!(from_to([3.0, 1.0], 2), "1.0–3.0");
        assert_eq!(from_to([1.0], 2), "1.0");
        assert_eq!(from_to([-1.0, 1.0], 1), "-1 to 1");
        assert_eq!(from_to([], 1), "–");
    }

    #[test]
    fn a_scale_names_what_the_runs_differ_in() {
        let run = |context, parameters| TrainingRun {
            context: Some(context),
            parameters: Some(parameters),
            steps: Some(100),
            corpus: "books".to_owned(),
            ..TrainingRun::default()
        };
        let scale = scale_of_runs(&[run(512, 279_400), run(256, 230_300), run(256, 230_300)]);
        assert_eq!(scale, "n = 256, 512; 0.23–0.28 M parameters; 100 steps");
        assert_eq!(scale_of_runs(&[TrainingRun::default()]), "");
    }
}

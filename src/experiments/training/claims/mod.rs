//! Claims decided by this experiment.

pub mod head_size;
pub mod long_range;
pub mod pairs;
pub mod position_bias;
pub mod stabilisers;
pub mod training;
pub mod tuning;

use super::tables::training::TrainingRun;
use crate::claims::words::{joined, listed};
use crate::table::Spread;

/// The scale of training runs: `n = 256, 512; 0.23–0.28 M parameters; 6000 steps`, as far as the runs record it.
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
        let scale = scale_of_runs(&[run(512, 279_400), run(256, 230_300), run(256, 230_300)]);
        assert_eq!(scale, "n = 256, 512; 0.23–0.28 M parameters; 100 steps");
        assert_eq!(scale_of_runs(&[TrainingRun::default()]), "");
    }
}

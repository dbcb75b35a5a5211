//! Claims decided by this experiment.

pub mod head_size;
pub mod long_range;
pub mod pairs;
pub mod position_bias;
pub mod single_key;
pub mod stabilisers;
pub mod training;
pub mod tuning;

use super::tables::training::TrainingRun;
use crate::claims::words::{from_to, listed};

/// The scale of training runs: `n = 256, 512; 0.23–0.28 M parameters; 6000 steps`.
pub(crate) fn scale_of_runs<'r>(
    runs: impl IntoIterator<Item = &'r TrainingRun, IntoIter: Clone>,
) -> String {
    let runs = runs.into_iter();
    format!("n = {}; {}", listed(runs.clone().map(|run| run.of.context)), size_of_runs(runs))
}

/// The scale without the lengths.
pub(crate) fn size_of_runs<'r>(runs: impl Iterator<Item = &'r TrainingRun> + Clone) -> String {
    let millions = from_to(runs.clone().map(|run| run.found.parameters as f64 / 1e6), 2);
    format!("{millions} M parameters; {} steps", listed(runs.map(|run| run.of.steps)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scale_names_what_the_runs_differ_in() {
        let run = |context, parameters| {
            let mut run = TrainingRun::default();
            (run.of.context, run.of.steps, run.found.parameters) = (context, 100, parameters);
            run
        };
        let scale = scale_of_runs(&[run(512, 279_400), run(256, 230_300), run(256, 230_300)]);
        assert_eq!(scale, "n = 256, 512; 0.23–0.28 M parameters; 100 steps");
    }
}

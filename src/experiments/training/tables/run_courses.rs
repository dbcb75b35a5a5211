//! Compares training runs: their differing settings, their results, and differences by seed.

use std::collections::BTreeMap;

use crate::experiments::training::Settings;
use crate::experiments::training::tables::run_course::RunCourse;
use crate::table::{Spread, Table};

/// The setting that pairs runs.
const SEED: &str = "seed";

/// Training runs to compare.
#[derive(Clone, Debug, PartialEq)]
pub struct RunCourses {
    /// The runs, in the order of the arguments.
    pub runs: Vec<RunCourse>,
}

/// Runs of one setting compared with those of another, seed by seed.
#[derive(Clone, Debug, PartialEq)]
pub struct PairedRuns {
    /// The values of the first setting for the keys that differ: `arm = ls`.
    pub one: String,
    /// The same of the other setting.
    pub other: String,
    /// The number of seeds that both have.
    pub seeds: usize,
    /// Validation loss of the first minus that of the other, in nats per token, over seeds.
    pub loss_nats: Option<Spread>,
    /// Peak max |logit| of the first over that of the other.
    pub logits: Option<Spread>,
}

impl RunCourses {
    /// The keys in which the runs differ, in order.
    pub fn differing(&self) -> Vec<&str> {
        Settings::differing(self.runs.iter().map(|run| &run.settings))
    }

    /// The values of a run for the keys that differ, without the seed: `arm = ls, context = 512`.
    pub fn label(&self, run: &RunCourse) -> String {
        let keys = self.differing().into_iter().filter(|key| *key != SEED);
        let value = |key: &str| run.settings.get(key).unwrap_or("none");
        keys.map(|key| format!("{key} = {}", value(key))).collect::<Vec<_>>().join(", ")
    }

    /// Pairs every setting with the first, over the seeds that both have.
    pub fn pairs(&self) -> Vec<PairedRuns> {
        let mut groups: Vec<(String, BTreeMap<&str, &RunCourse>)> = Vec::new();
        for run in &self.runs {
            let label = self.label(run);
            let seed = run.settings.get(SEED).unwrap_or_default();
            match groups.iter_mut().find(|(other, _)| *other == label) {
                Some((_, seeds)) => drop(seeds.entry(seed).or_insert(run)),
                None => groups.push((label, BTreeMap::from([(seed, run)]))),
            }
        }
        let Some(((other, others), rest)) = groups.split_first() else { return Vec::new() };
        let pair = |(one, ones): &(String, BTreeMap<&str, &RunCourse>)| {
            let both: Vec<(&RunCourse, &RunCourse)> =
                ones.iter().filter_map(|(seed, run)| Some((*run, *others.get(seed)?))).collect();
            let loss = |(one, other): &(&RunCourse, &RunCourse)| {
                Some(one.valid_loss_nats()? - other.valid_loss_nats()?)
            };
            let logits =
                |(one, other): &(&RunCourse, &RunCourse)| Some(one.peak()?.1 / other.peak()?.1);
            (!both.is_empty()).then(|| PairedRuns {
                one: one.clone(),
                other: other.clone(),
                seeds: both.len(),
                loss_nats: Spread::of(both.iter().filter_map(loss)),
                logits: Spread::of(both.iter().filter_map(logits)),
            })
        };
        rest.iter().filter_map(pair).collect()
    }

    /// The table of each run's results, with the settings that differ.
    pub fn table(&self) -> Table {
        let last = |curve: &[(f64, f64)]| curve.last().map(|point| point.1);
        let mut table =
            Table::from_items("runs", "Training runs", &self.runs).words("run", "run", |r| &r.name);
        for key in self.differing() {
            table = table.words(key, key, |run| run.settings.get(key));
        }
        table
            .numbers("steps_taken", "steps taken", |run| run.steps)
            .numbers("train_loss_nats", ("training loss, last 100 steps", "nats"), |run| {
                run.train_loss_nats
            })
            .numbers("valid_loss_nats", ("validation loss", "nats"), RunCourse::valid_loss_nats)
            .numbers("perplexity", "perplexity", |run| run.valid_loss_nats().map(f64::exp))
            .numbers("peak_max_abs_logit", "peak max |logit|", |run| run.peak().map(|peak| peak.1))
            .numbers("max_abs_logit", "max |logit| at the end", |run| last(&run.max_logit))
            .numbers("loss_spikes", "loss spikes", |run| {
                // The curve alone does not have them.
                (!run.learning_rate.is_empty()).then_some(run.spikes.len())
            })
            .words("outcome", "outcome", |run| &run.outcome)
            .note(
                "Max |logit| at the end is that of the last stretch of steps, 1/200 of the run. \
                 Training losses exist for runs that ended or were stopped. A spike is a loss more \
                 than 7 standard deviations above the median around it.",
            )
            .build()
    }

    /// The table of differences by seed; `None` if no seed is shared.
    pub fn pairs_table(&self) -> Option<Table> {
        let pairs = self.pairs();
        let table = Table::from_items("pairs", "Comparison by seed", &pairs)
            .words("one", "runs with", |pair| &pair.one)
            .words("other", "compared with runs with", |pair| &pair.other)
            .numbers("seeds", "shared seeds", |pair| pair.seeds)
            .numbers("loss_nats", ("difference of validation loss", "nats"), |pair| pair.loss_nats)
            .numbers("logits", "ratio of peak max |logit|", |pair| pair.logits)
            .note("Medians over seeds, with (least–greatest).");
        (!pairs.is_empty()).then(|| table.build())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(arm: &str, seed: &str, loss: f64, peak: f64) -> RunCourse {
        let settings = [("arm", arm), ("seed", seed), ("heads", "4")];
        RunCourse {
            name: format!("{arm}-{seed}"),
            settings: Settings::from_table(
                &settings.map(|(key, value)| (key.to_owned(), value.into())).into_iter().collect(),
            ),
            valid: vec![(10.0, 9.0), (20.0, loss)],
            max_logit: vec![(10.0, peak), (20.0, 1.0)],
            ..RunCourse::default()
        }
    }

    #[test]
    fn runs_are_paired_by_seed_and_only_shared_seeds_count() {
        let runs = vec![
            run("mhsa", "1", 2.0, 40.0),
            run("ls", "1", 1.5, 10.0),
            run("mhsa", "2", 2.5, 60.0),
            run("ls", "2", 1.75, 20.0),
            run("ls", "3", 0.5, 1.0),
        ];
        let courses = RunCourses { runs };
        assert_eq!(courses.differing(), ["arm", "seed"]);
        let [pair] = &courses.pairs()[..] else { panic!("{:?}", courses.pairs()) };
        assert_eq!(
            (pair.one.as_str(), pair.other.as_str(), pair.seeds),
            ("arm = ls", "arm = mhsa", 2)
        );
        let loss = pair.loss_nats.as_ref().unwrap();
        assert_eq!((loss.low, loss.high), (-0.75, -0.5));
        let logits = pair.logits.as_ref().unwrap();
        assert_eq!((logits.low, logits.high), (0.25, 1.0 / 3.0));
    }
}

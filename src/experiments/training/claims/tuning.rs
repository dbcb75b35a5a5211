//! Selects the best learning rate of each variant; runs at one shared rate do not decide between variants.

use crate::claims::claim::RATES;
use std::collections::BTreeMap;

use crate::experiments::training::Settings;
use crate::experiments::training::tables::training::{TrainingRun, Trainings};
use crate::table::groups::by_key;

/// Runs in which each tuned variant has only those at its best learning rate.
pub(crate) struct Tuned {
    /// The runs; those of tuned variants have no learning rate, because it is no longer a part of the setting.
    pub study: Trainings,
    /// Whether all compared runs belong to tuned variants.
    pub is_tuned: bool,
}

/// Identifies a configuration, without the learning rate and the seed.
type Configuration = ([String; 4], [usize; 4], Option<usize>, Option<u64>, Settings);

fn configuration(run: &TrainingRun) -> Configuration {
    let (of, model) = (&run.of, &run.of.model);
    let words = [&model.arm, &model.positions, &model.slopes, &of.corpus].map(Clone::clone);
    let sizes = [of.context, of.steps, model.heads, model.global_heads];
    (words, sizes, model.window, of.recall.map(f64::to_bits), without_rate(run))
}

fn without_rate(run: &TrainingRun) -> Settings {
    let mut settings = run.settings.clone();
    settings.remove("learning_rate");
    settings
}

impl Tuned {
    /// Keeps the best learning rate of every tuned variant, under the name of its run in `baselines`, or else of the run
    /// at that rate. Checks whether every run for which `is_compared` is true belongs to such a variant.
    pub fn of(
        study: &Trainings,
        baselines: &[String],
        is_compared: impl Fn(&TrainingRun) -> bool,
    ) -> Self {
        let mut all: BTreeMap<Configuration, Vec<&TrainingRun>> = BTreeMap::new();
        for run in &study.runs {
            all.entry(configuration(run)).or_default().push(run);
        }
        let best: BTreeMap<Configuration, (f64, String)> = all
            .into_iter()
            .filter_map(|(key, runs)| {
                let rate = best_rate(&runs)?;
                let unchanged = runs.iter().find(|run| baselines.contains(&run.of.model.run));
                let best = runs.iter().find(|run| run.learning_rate() == Some(rate))?;
                Some((key, (rate, unchanged.unwrap_or(best).name().to_owned())))
            })
            .collect();
        let kept = study.runs.iter().filter_map(|run| match best.get(&configuration(run)) {
            None => Some(run.clone()),
            Some((rate, name)) if run.learning_rate() == Some(*rate) => {
                let settings = without_rate(run);
                let mut tuned = TrainingRun { is_tuned: true, settings, ..run.clone() };
                tuned.of.model.run.clone_from(name);
                Some(tuned)
            }
            Some(_) => None,
        });
        let study = Trainings { runs: kept.collect(), failed: study.failed };
        let mut compared = study.runs.iter().filter(|run| is_compared(run));
        let is_tuned = compared.all(|run| best.contains_key(&configuration(run)));
        Self { study, is_tuned }
    }

    /// Compares all runs of the variants `arms`.
    pub fn of_arms(study: &Trainings, arms: &[&str]) -> Self {
        Self::of(study, &[], |run| arms.contains(&run.arm()))
    }

    /// The tuned variants alone.
    pub fn tuned(self) -> Trainings {
        let runs = self.study.runs.into_iter().filter(|run| run.is_tuned).collect();
        Trainings { runs, failed: self.study.failed }
    }

    /// A note for verdicts if the runs are not tuned; empty if they are.
    pub fn note(&self) -> &'static str {
        if self.is_tuned { "" } else { "One learning rate" }
    }
}

/// The learning rate with the lowest mean validation loss; `None` if fewer than [`RATES`] were tried, or if the best is
/// the lowest or the highest.
fn best_rate(runs: &[&TrainingRun]) -> Option<f64> {
    let of_run = |run: &&TrainingRun| Some((run.learning_rate()?, run.loss()?));
    let mut losses = by_key(runs.iter().filter_map(of_run));
    losses.sort_by(|a, b| a.0.total_cmp(&b.0));
    let means = losses.iter().map(|(_, of)| of.iter().sum::<f64>() / of.len() as f64);
    let (best, _) = means.enumerate().min_by(|a, b| a.1.total_cmp(&b.1))?;
    let is_inside = best > 0 && best + 1 < losses.len();
    (losses.len() >= RATES && is_inside).then(|| losses[best].0)
}

/// Runs of variants with these validation losses, one per seed.
#[cfg(test)]
pub(crate) fn with_losses(arms: &[(&str, &[f64])]) -> Trainings {
    let of_arm = |&(arm, losses): &(&str, &[f64])| {
        let one = |(seed, &loss)| TrainingRun::made_up(arm, arm, seed, 10.0, loss);
        (0..).zip(losses).map(one).collect::<Vec<_>>()
    };
    Trainings::made_up(arms.iter().flat_map(of_arm))
}

/// The same runs at three learning rates; the loss at the middle one is lower by a nat.
#[cfg(test)]
pub(crate) fn at_three_rates(study: &Trainings) -> Trainings {
    let rates = [(1e-3, 1.0), (3e-3, 0.0), (1e-2, 1.0)];
    let runs = study.runs.iter().flat_map(|run| {
        rates.map(|(rate, worse)| {
            let mut run = run.clone();
            run.of.learning_rate = rate;
            run.found.valid_loss_nats = run.loss().map(|loss| loss + worse);
            run.found.course.peak_max_abs_logit = run.peak().map(|peak| peak * (1.0 + worse));
            run
        })
    });
    Trainings { runs: runs.collect(), failed: study.failed }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(arm: &str, rate: f64, loss: f64) -> TrainingRun {
        let mut run = TrainingRun::made_up(&format!("{arm}-{rate}"), arm, 0, 10.0, loss);
        run.of.learning_rate = rate;
        run
    }

    #[test]
    fn the_best_of_three_rates_is_kept() {
        let runs = [run("ls", 1e-3, 2.0), run("ls", 3e-3, 1.0), run("ls", 1e-2, 1.5)];
        let tuned = Tuned::of(&Trainings::made_up(runs), &[], |_| true);
        let [one] = &tuned.study.runs[..] else { panic!("{:?}", tuned.study) };
        assert_eq!((one.loss(), one.name()), (Some(1.0), "ls-0.003"));
        assert!(tuned.is_tuned);
    }

    #[test]
    fn a_best_rate_at_an_end_or_of_two_is_not_tuned() {
        for rates in
            [[(1e-3, 1.0), (3e-3, 2.0), (1e-2, 3.0)], [(1e-3, 2.0), (3e-3, 1.0), (3e-3, 1.0)]]
        {
            let study = Trainings::made_up(rates.map(|(rate, loss)| run("ls", rate, loss)));
            let tuned = Tuned::of_arms(&study, &["ls"]);
            assert_eq!((tuned.study.runs.len(), tuned.is_tuned), (3, false));
            assert!(Tuned::of_arms(&study, &["mhsa"]).is_tuned, "nothing of it is compared");
        }
    }
}

//! Compares two variants seed by seed.
//!
//! Runs of one seed and setting start from the same weights and read the same windows of text. Each run is paired with
//! the one that shares them, so three seeds make three pairs, not nine.

use crate::claims::ruling::Ruling;
use crate::claims::verdict::Seeds;
use crate::claims::words::joined;
use crate::experiments::training::tables::training::{TrainingRun, Trainings};
use crate::table::Estimate;
use crate::table::groups::by_key;

/// The pairs of two variants.
pub(crate) struct Pairs {
    pub settings: Vec<PairsOfSetting>,
}

/// The pairs of one setting, one per seed.
pub(crate) struct PairsOfSetting {
    /// The name of the first run, "ours".
    pub ours: String,
    /// The name of the second run, "theirs".
    pub theirs: String,
    /// The context length in tokens.
    pub context: usize,
    /// The seed with the values of ours and theirs.
    pub seeds: Vec<(u64, f64, f64)>,
}

impl Pairs {
    /// Pairs a value of every run of variant `ours` with that of the run of `theirs` with the same seed and setting.
    /// Returns `None` if there is no such pair.
    pub fn of_arms(
        study: &Trainings,
        [ours, theirs]: [&str; 2],
        value: impl Fn(&TrainingRun) -> Option<f64>,
    ) -> Option<Self> {
        let is_pair = |our: &TrainingRun, their: &TrainingRun| {
            our.arm() == ours && their.arm() == theirs && are_alike(our, their)
        };
        Self::matching(study, is_pair, value)
    }

    /// Pairs a value of all runs for which `is_pair` is true; `None` if there are none.
    pub fn matching<'s>(
        study: &'s Trainings,
        is_pair: impl Fn(&TrainingRun, &TrainingRun) -> bool,
        value: impl Fn(&TrainingRun) -> Option<f64>,
    ) -> Option<Self> {
        let is_pair = &is_pair;
        let pairs = study.runs.iter().flat_map(|our| {
            let theirs = study.runs.iter().filter(move |their| is_pair(our, their));
            theirs.map(move |their| (our, their))
        });
        // A setting is everything but the seed.
        let of_pair = |(our, their): (&'s TrainingRun, &'s TrainingRun)| {
            let names = (our.name(), their.name(), &our.of.corpus);
            let setting = (names, our.of.context, our.learning_rate(), our.of.recall);
            Some((setting, (our.of.seed, value(our)?, value(their)?)))
        };
        let settings = by_key(pairs.filter_map(of_pair)).into_iter();
        let mut settings: Vec<PairsOfSetting> = settings
            .map(|(((ours, theirs, _), context, ..), seeds)| PairsOfSetting {
                ours: ours.to_owned(),
                theirs: theirs.to_owned(),
                context,
                seeds,
            })
            .collect();
        settings.sort_by_key(|setting| setting.context);
        (!settings.is_empty()).then_some(Self { settings })
    }

    /// Formats each setting with `words` and what distinguishes it: its length, the name of our run, or the names of both.
    pub fn by_setting(&self, words: impl Fn(&PairsOfSetting) -> String) -> String {
        let is_one = |alike: &dyn Fn(&PairsOfSetting) -> bool| {
            self.settings.iter().filter(|other| alike(other)).count() == 1
        };
        let one = |setting: &PairsOfSetting| {
            let (PairsOfSetting { context, ours, theirs, .. }, words) = (setting, words(setting));
            if is_one(&|other| other.context == *context) {
                format!("{words} at n = {context}")
            } else if is_one(&|other| other.ours == *ours) {
                format!("{words} ({ours})")
            } else {
                format!("{words} ({ours}, {theirs})")
            }
        };
        joined(self.settings.iter().map(one), ", ")
    }

    /// The number of seeds of each setting.
    pub fn seeds(&self) -> Seeds {
        Seeds::of_settings(self.settings.iter().map(|setting| setting.seeds.len()))
    }

    /// All pairs of values, ours and theirs.
    pub fn all(&self) -> impl Iterator<Item = (f64, f64)> {
        let seeds = self.settings.iter().flat_map(|setting| &setting.seeds);
        seeds.map(|&(_, ours, theirs)| (ours, theirs))
    }

    /// The number of pairs.
    pub fn len(&self) -> usize {
        self.all().count()
    }

    /// The number of pairs for which `holds` is true of ours and theirs.
    pub fn count(&self, holds: impl Fn(f64, f64) -> bool) -> usize {
        self.all().filter(|&(ours, theirs)| holds(ours, theirs)).count()
    }

    /// The estimate of `compare` in each setting.
    pub fn estimates(&self, compare: Compare) -> impl Iterator<Item = Estimate> + Clone {
        self.settings.iter().map(move |setting| setting.estimate(compare))
    }

    /// Combines the rulings on the estimate of `compare` in each setting.
    pub fn every(&self, compare: Compare, ruling: impl Fn(Estimate) -> Ruling) -> Ruling {
        Ruling::every(self.estimates(compare).map(ruling))
    }

    /// For one setting, its estimate. For several, the mean over those with the most seeds, with Student's interval over
    /// the seeds that have all of these; `None` if fewer than two do. Settings with fewer seeds would leave the others'
    /// seeds out.
    pub fn overall(&self, compare: Compare) -> Option<Estimate> {
        if let [one] = &self.settings[..] {
            return Some(one.estimate(compare));
        }
        let most = self.settings.iter().map(|setting| setting.seeds.len()).max()?;
        let full = || self.settings.iter().filter(|setting| setting.seeds.len() == most);
        let seeds = full().next()?.seeds.iter().map(|pair| pair.0);
        let of_seed = |seed: u64| {
            let one = |setting: &PairsOfSetting| {
                let (_, ours, theirs) = setting.seeds.iter().find(|pair| pair.0 == seed)?;
                Some(compare(*ours, *theirs))
            };
            let values: Option<Vec<f64>> = full().map(one).collect();
            values.map(|values| values.iter().sum::<f64>() / values.len() as f64)
        };
        Estimate::interval(seeds.filter_map(of_seed))
    }
}

impl PairsOfSetting {
    /// The mean of `compare` over seeds.
    pub fn estimate(&self, compare: Compare) -> Estimate {
        let values = self.seeds.iter().map(|&(_, ours, theirs)| compare(ours, theirs));
        Estimate::mean(values).expect("a setting has a pair")
    }
}

/// Compares the value of ours with that of theirs.
pub(crate) type Compare = fn(f64, f64) -> f64;

/// Ours minus theirs.
pub(crate) fn difference(ours: f64, theirs: f64) -> f64 {
    ours - theirs
}

/// log(ours / theirs).
pub(crate) fn log_ratio(ours: f64, theirs: f64) -> f64 {
    (ours / theirs).ln()
}

/// Whether two runs differ only in the keys that define a variant, by their definitions and by their rows.
pub(crate) fn are_alike(ours: &TrainingRun, theirs: &TrainingRun) -> bool {
    let numbers =
        |run: &TrainingRun| (run.of.seed, run.of.context, run.learning_rate(), run.of.recall);
    let sizes = |run: &TrainingRun| (run.of.steps, run.of.model.d_model, run.of.model.heads);
    numbers(ours) == numbers(theirs)
        && sizes(ours) == sizes(theirs)
        && ours.of.corpus == theirs.of.corpus
        && ours.of.model.positions == theirs.of.model.positions
        && ours.of.model.slopes == theirs.of.model.slopes
        && ours.settings.agree_but_for_variant(&theirs.settings)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(arm: &str, seed: u64, context: usize, loss: f64) -> TrainingRun {
        let mut run = TrainingRun::made_up(arm, arm, seed, 10.0, loss);
        run.of.context = context;
        run
    }

    fn pairs(runs: impl IntoIterator<Item = TrainingRun>) -> Option<Pairs> {
        Pairs::of_arms(&Trainings::made_up(runs), ["ls", "mhsa"], TrainingRun::loss)
    }

    #[test]
    fn runs_whose_definitions_differ_beyond_the_variant_are_no_pair() {
        let is_pair = |alter: fn(&mut TrainingRun)| {
            let mut ls = run("ls", 1, 256, 1.9);
            alter(&mut ls);
            pairs([ls, run("mhsa", 1, 256, 2.0)]).is_some()
        };
        assert!(is_pair(|_| ()));
        assert!(is_pair(|run| run.settings.insert("window", &16.0.into())));
        assert!(!is_pair(|run| run.settings.insert("weight_decay", &0.5.into())));
        assert!(!is_pair(|run| run.settings.insert("initial_deviation", &0.02.into())));
        assert!(!is_pair(|run| run.of.model.slopes = "alibi".to_owned()));
        assert!(!is_pair(|run| run.of.model.positions = "rope".to_owned()));
        assert!(!is_pair(|run| run.of.context = 512));
        assert!(!is_pair(|run| run.of.seed = 2));
    }

    #[test]
    fn a_run_is_compared_with_the_one_of_its_seed_and_setting() {
        let mut runs = Vec::new();
        for (context, gain) in [(256, 0.1), (512, 0.3)] {
            for seed in 0..3 {
                let loss = 3.0 + seed as f64;
                let ls = run("ls", seed, context, loss - gain);
                runs.extend([run("mhsa", seed, context, loss), ls]);
            }
        }
        runs.push(run("ls", 7, 256, 1.0));
        let fewer = [run("mhsa", 0, 1024, 3.0), run("ls", 0, 1024, 1.0)];
        let with_fewer = pairs(runs.iter().cloned().chain(fewer)).unwrap();
        let pairs = pairs(runs).unwrap();
        assert_eq!((pairs.settings.len(), pairs.len(), pairs.seeds()), (2, 6, Seeds::all(3)));
        assert_eq!(pairs.count(|ls, mhsa| ls < mhsa), 6);
        // Losses of different seeds differ by a nat; within a seed they differ only by the gain.
        let first = pairs.settings[0].estimate(difference);
        let [low, high] = first.ends().unwrap();
        assert!((first.value + 0.1).abs() < 1e-12 && high - low < 1e-9, "{first:?}");
        let overall = pairs.overall(difference).unwrap();
        assert!((overall.value + 0.2).abs() < 1e-12, "{overall:?}");
        assert_eq!(with_fewer.overall(difference), Some(overall), "a setting of one seed");
        assert_eq!(pairs.every(difference, |one| one.at_most(0.0)), Ruling::Holds);
        assert_ne!(pairs.every(difference, |one| one.at_most(-0.2)), Ruling::Holds);
    }

    #[test]
    fn one_seed_has_no_interval() {
        let one = pairs([run("mhsa", 0, 256, 3.0), run("ls", 0, 256, 2.0)]).unwrap();
        let estimate = one.overall(difference).unwrap();
        assert_eq!((estimate.value, estimate.ends()), (-1.0, None));
    }
}

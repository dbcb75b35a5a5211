//! Two variants compared seed by seed.
//!
//! Runs of one seed and setting start from the same weights and read the same windows of text, so each is compared
//! with the one that shares them: three seeds are three pairs, not nine.

use crate::table::{Interval, Spread, TrainingRun, Trainings, significant};

/// The pairs of two variants.
pub(super) struct Pairs {
    pub settings: Vec<PairsOfSetting>,
}

/// A pair for each seed of a setting.
pub(super) struct PairsOfSetting {
    /// The name of our run.
    pub ours: String,
    /// The name of their run.
    pub theirs: String,
    /// Tokens of context.
    pub context: Option<usize>,
    /// The seed, our value and theirs.
    pub seeds: Vec<(usize, f64, f64)>,
}

/// What distinguishes settings: everything but the seed.
type Setting<'r> = (&'r str, &'r str, &'r str, Option<usize>, Option<f64>, Option<f64>);

impl Pairs {
    /// A value of every run of the arm `ours` beside that of the run of `theirs` with its seed and setting; none where
    /// there is no such pair.
    pub fn of(
        study: &Trainings,
        [ours, theirs]: [&str; 2],
        value: impl Fn(&TrainingRun) -> Option<f64>,
    ) -> Option<Self> {
        Self::by(study, [ours, theirs], |ours, theirs| Some((value(ours)?, value(theirs)?)))
    }

    /// The same for values that need both runs.
    pub fn by(
        study: &Trainings,
        [ours, theirs]: [&str; 2],
        values: impl Fn(&TrainingRun, &TrainingRun) -> Option<(f64, f64)>,
    ) -> Option<Self> {
        let mut found: Vec<(Setting<'_>, PairsOfSetting)> = Vec::new();
        for our in study.arm(ours) {
            for their in study.arm(theirs).filter(|their| are_alike(our, their)) {
                let Some((a, b)) = values(our, their) else { continue };
                let key = (
                    &*our.run,
                    &*their.run,
                    &*our.corpus,
                    our.context,
                    our.learning_rate,
                    our.recall,
                );
                let pair = (our.seed, a, b);
                match found.iter_mut().find(|(other, _)| *other == key) {
                    Some((_, setting)) => setting.seeds.push(pair),
                    None => {
                        let setting = PairsOfSetting {
                            ours: our.run.clone(),
                            theirs: their.run.clone(),
                            context: our.context,
                            seeds: vec![pair],
                        };
                        found.push((key, setting));
                    }
                }
            }
        }
        let mut settings: Vec<PairsOfSetting> =
            found.into_iter().map(|(_, setting)| setting).collect();
        settings.sort_by_key(|setting| setting.context);
        (!settings.is_empty()).then_some(Self { settings })
    }

    /// Each setting as `told` with what distinguishes it: its length, or the names of its runs where lengths are equal.
    pub fn by_setting(&self, told: impl Fn(&PairsOfSetting) -> String) -> String {
        let is_told_by_length = |setting: &PairsOfSetting| {
            let alike = self.settings.iter().filter(|other| other.context == setting.context);
            alike.count() == 1
        };
        let one = |setting: &PairsOfSetting| match setting.context {
            Some(n) if is_told_by_length(setting) => format!("{} at n = {n}", told(setting)),
            None if is_told_by_length(setting) => told(setting),
            _ => format!("{} ({}, {})", told(setting), setting.ours, setting.theirs),
        };
        self.settings.iter().map(one).collect::<Vec<_>>().join(", ")
    }

    /// How many seeds each setting has.
    pub fn seeds_each(&self) -> impl Iterator<Item = usize> {
        self.settings.iter().map(|setting| setting.seeds.len())
    }

    /// The fewest seeds of any setting.
    pub fn seeds(&self) -> usize {
        self.seeds_each().min().unwrap_or(0)
    }

    /// How many pairs.
    pub fn len(&self) -> usize {
        self.settings.iter().map(|setting| setting.seeds.len()).sum()
    }

    /// In how many pairs it holds of our value and theirs.
    pub fn count(&self, holds: impl Fn(f64, f64) -> bool) -> usize {
        self.all().filter(|&(_, ours, theirs)| holds(ours, theirs)).count()
    }

    /// Ours, from the least to the greatest.
    pub fn ours(&self) -> Option<Spread> {
        Spread::of(self.all().map(|pair| pair.1))
    }

    /// Theirs.
    pub fn theirs(&self) -> Option<Spread> {
        Spread::of(self.all().map(|pair| pair.2))
    }

    fn all(&self) -> impl Iterator<Item = (usize, f64, f64)> {
        self.settings.iter().flat_map(|setting| setting.seeds.iter().copied())
    }

    /// Whether a setting has an interval of `of` and it `holds`, in every one.
    pub fn every(&self, of: fn(f64, f64) -> f64, holds: impl Fn(Interval) -> bool) -> bool {
        self.settings.iter().all(|setting| setting.interval(of).is_some_and(&holds))
    }

    /// Student's interval over seeds of the mean of `of` over settings; none where fewer than two seeds have them all.
    pub fn overall(&self, of: fn(f64, f64) -> f64) -> Option<Interval> {
        let seeds = self.settings.first()?.seeds.iter().map(|pair| pair.0);
        let of_seed = |seed: usize| {
            let one = |setting: &PairsOfSetting| {
                let (_, ours, theirs) = setting.seeds.iter().find(|pair| pair.0 == seed)?;
                Some(of(*ours, *theirs))
            };
            let values: Option<Vec<f64>> = self.settings.iter().map(one).collect();
            values.map(|values| values.iter().sum::<f64>() / values.len() as f64)
        };
        Interval::of(seeds.filter_map(of_seed))
    }
}

impl PairsOfSetting {
    /// Student's interval over seeds of the mean of `of`; none for fewer than two.
    pub fn interval(&self, of: fn(f64, f64) -> f64) -> Option<Interval> {
        Interval::of(self.values(of))
    }

    /// The mean of `of` over seeds.
    pub fn mean(&self, of: fn(f64, f64) -> f64) -> f64 {
        self.values(of).sum::<f64>() / self.seeds.len() as f64
    }

    /// The mean of `of` over seeds with its interval, each as `told`; of one seed, its value and that it is one's.
    pub fn shown(
        &self,
        of: fn(f64, f64) -> f64,
        told: impl Fn(f64) -> f64,
        digits: usize,
    ) -> String {
        match self.interval(of) {
            Some(Interval { mean, low, high, count }) => {
                Interval { mean: told(mean), low: told(low), high: told(high), count }.shown(digits)
            }
            None => {
                format!("{} (1 seed)", significant(told(self.mean(of)), digits))
            }
        }
    }

    fn values(&self, of: fn(f64, f64) -> f64) -> impl Iterator<Item = f64> {
        self.seeds.iter().map(move |&(_, ours, theirs)| of(ours, theirs))
    }
}

/// Ours less theirs.
pub(super) fn difference(ours: f64, theirs: f64) -> f64 {
    ours - theirs
}

/// log(ours / theirs).
pub(super) fn log_ratio(ours: f64, theirs: f64) -> f64 {
    (ours / theirs).ln()
}

/// Whether they differ in nothing but the arm, as far as rows tell.
fn are_alike(ours: &TrainingRun, theirs: &TrainingRun) -> bool {
    let numbers = |run: &TrainingRun| (run.seed, run.context, run.learning_rate, run.recall);
    let sizes = |run: &TrainingRun| (run.steps, run.d_model, run.heads);
    numbers(ours) == numbers(theirs)
        && sizes(ours) == sizes(theirs)
        && ours.corpus == theirs.corpus
        && ours.positions == theirs.positions
        && ours.slopes == theirs.slopes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(arm: &str, seed: usize, context: usize, loss: f64) -> TrainingRun {
        TrainingRun {
            run: arm.to_owned(),
            arm: arm.to_owned(),
            seed,
            context: Some(context),
            valid_loss_nats: Some(loss),
            ..TrainingRun::default()
        }
    }

    fn pairs(runs: Vec<TrainingRun>) -> Option<Pairs> {
        Pairs::of(&Trainings { runs, failed: 0 }, ["ls", "mhsa"], |run| run.valid_loss_nats)
    }

    #[test]
    fn runs_with_different_positions_are_no_pair() {
        let given = |slopes: &str, positions: &str| TrainingRun {
            slopes: slopes.to_owned(),
            positions: positions.to_owned(),
            ..run("mhsa", 1, 256, 2.0)
        };
        let with = |mhsa: TrainingRun| {
            let ours = TrainingRun { slopes: "none".to_owned(), ..run("ls", 1, 256, 1.9) };
            pairs(vec![TrainingRun { positions: "learned".to_owned(), ..ours }, mhsa])
        };
        assert!(with(given("none", "learned")).is_some());
        assert!(with(given("alibi", "learned")).is_none());
        assert!(with(given("none", "rope")).is_none());
    }

    #[test]
    fn a_run_is_compared_with_the_one_of_its_seed_and_setting() {
        let mut runs = Vec::new();
        for (context, gain) in [(256, 0.1), (512, 0.3)] {
            for seed in 0..3 {
                let loss = 3.0 + seed as f64;
                runs.extend([
                    run("mhsa", seed, context, loss),
                    run("ls", seed, context, loss - gain),
                ]);
            }
        }
        runs.push(run("ls", 7, 256, 1.0));
        let pairs = pairs(runs).unwrap();
        assert_eq!((pairs.settings.len(), pairs.len(), pairs.seeds()), (2, 6, 3));
        assert_eq!(pairs.count(|ls, mhsa| ls < mhsa), 6);
        // Between seeds losses differ by a nat, within them by the gain alone.
        let first = pairs.settings[0].interval(difference).unwrap();
        assert!((first.mean + 0.1).abs() < 1e-12 && first.high - first.low < 1e-9, "{first:?}");
        let overall = pairs.overall(difference).unwrap();
        assert!((overall.mean + 0.2).abs() < 1e-12 && overall.count == 3, "{overall:?}");
        assert!(pairs.every(difference, |interval| interval.is_at_most(0.0)));
        assert!(!pairs.every(difference, |interval| interval.is_at_most(-0.2)));
    }

    #[test]
    fn one_seed_has_no_interval_and_other_settings_no_pair() {
        let one = pairs(vec![run("mhsa", 0, 256, 3.0), run("ls", 0, 256, 2.0)]).unwrap();
        assert!(!one.every(difference, |_| true));
        assert!((one.settings[0].mean(difference) + 1.0).abs() < 1e-12);
        assert_eq!(one.overall(difference), None);
        assert!(pairs(vec![run("mhsa", 0, 256, 3.0), run("ls", 0, 512, 2.0)]).is_none());
        assert!(pairs(vec![run("mhsa", 0, 256, 3.0), run("ls", 1, 256, 2.0)]).is_none());
    }
}

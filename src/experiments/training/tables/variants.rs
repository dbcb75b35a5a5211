//! Compares runs with others that differ in one or two settings, seed by seed.

use crate::experiments::training::Settings;
use crate::experiments::training::tables::training::{TrainingRun, Trainings};
use crate::table::{Cell, Estimate, Spread, Table};

/// The seeds of one run, compared with other runs of the same length, steps and seed.
#[derive(Clone, Debug)]
pub struct Variant<'r> {
    /// Its seeds.
    pub seeds: &'r [TrainingRun],
    /// For each seed with a counterpart: log of its peak over that of the run compared with.
    pub log_peaks: Vec<f64>,
    /// For each seed with a counterpart: its validation loss minus that of the run compared with, in nats.
    pub losses: Vec<f64>,
}

/// Keys that always have a column in the tables.
const SHOWN: [&str; 9] = [
    "arm",
    "context",
    "d_model",
    "global_heads",
    "heads",
    "positions",
    "slopes",
    "steps",
    "window",
];

impl Variant<'_> {
    /// The first of its seeds, which share its settings.
    pub(crate) fn first(&self) -> &TrainingRun {
        &self.seeds[0]
    }

    /// The median and range of a quantity over its seeds.
    pub(crate) fn over(&self, value: impl Fn(&TrainingRun) -> Option<f64>) -> Option<Spread> {
        Spread::of(self.seeds.iter().filter_map(value))
    }

    /// The difference of the losses, in nats: the mean and its 95 % interval over seeds.
    pub fn loss_difference(&self) -> Option<Estimate> {
        Estimate::interval(self.losses.iter().copied())
    }
}

impl Trainings {
    /// Compares every run with the unchanged runs, which `baselines` names: its peak with that of the same variant, its
    /// loss with that of `ls`. The unchanged runs are included.
    pub fn variants<'r>(&'r self, baselines: &[String]) -> Vec<Variant<'r>> {
        let unchanged = |arm: &str, of: &TrainingRun| self.baseline_of(of, baselines, arm);
        let log_peak = |run: &TrainingRun| {
            let base = unchanged(run.arm(), run)?;
            Some((run.peak()? / base.peak()?).ln())
        };
        let loss = |run: &TrainingRun| Some(run.loss()? - unchanged("ls", run)?.loss()?);
        let variant = |seeds: &'r [TrainingRun]| Variant {
            seeds,
            log_peaks: seeds.iter().filter_map(log_peak).collect(),
            losses: seeds.iter().filter_map(loss).collect(),
        };
        self.by_run().map(variant).collect()
    }

    /// The run of a variant in `baselines` that `run` is compared with. It has the same seed, length and steps. It also
    /// has the same value of every key in which the candidates differ, such as the learning rate.
    fn baseline_of(
        &self,
        run: &TrainingRun,
        baselines: &[String],
        arm: &str,
    ) -> Option<&TrainingRun> {
        let is_alike = |base: &&TrainingRun| {
            baselines.contains(&base.of.model.run)
                && base.setting() == run.setting()
                && base.arm() == arm
        };
        let meant: Vec<&TrainingRun> = self.runs.iter().filter(is_alike).collect();
        let keys = Settings::differing(meant.iter().map(|base| &base.settings));
        let agrees = |base: &TrainingRun| {
            keys.iter().all(|key| base.settings.get(key) == run.settings.get(key))
        };
        meant.iter().copied().find(|base| agrees(base))
    }

    /// The table of each run's differing settings, and of its peak logits and loss compared with the unchanged runs.
    pub fn variants_table(&self, baselines: &[String]) -> Table {
        let title = "Peak logits and loss of each run, compared with the unchanged runs";
        let variants = self.variants(baselines);
        let table = Table::from_items("variants", title, &variants)
            .words("run", "run", |v| v.first().name())
            .words("arm", "variant", |v| v.first().arm())
            .words("positions", "positions", |v| &v.first().of.model.positions)
            .words("slopes", "position bias", |v| &v.first().of.model.slopes)
            .numbers("context", "n", |v| v.first().of.context)
            .numbers("heads", "heads", |v| v.first().of.model.heads)
            .numbers("d_head", "d_head", |v| v.first().d_head())
            .numbers("window", "window", |v| v.first().of.model.window);
        let shown = |interval: Option<Estimate>| interval.map(|interval| interval.shown(2));
        self.differing_columns(table, Variant::first, &SHOWN)
            .numbers("steps", "steps", |v| v.first().of.steps)
            .numbers("peak_max_abs_logit", "peak max |logit| of QKᵀ", |v| {
                v.over(TrainingRun::peak)
            })
            .words("peak_ratio", "ratio to the unchanged run", |v| {
                shown(Estimate::interval(v.log_peaks.iter().copied()).map(Estimate::exp))
            })
            .numbers("valid_loss_nats", "validation loss (nats)", |v| {
                Cell::over(v.over(TrainingRun::loss), 4)
            })
            .words("loss_difference", "difference from LS-attention (nats)", |v| {
                shown(v.loss_difference())
            })
            .numbers("seeds", "seeds", |v| v.seeds.len())
            .note(
                "The peak is of QKᵀ/√d, without a position bias. Peaks are compared with the \
                 unchanged run of the same variant, losses with unchanged LS-attention, at the \
                 same length, steps and seed: geometric mean ratio and mean difference over seeds, \
                 with 95 % Student's t intervals.",
            )
            .note_failed(self.failed)
            .build()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_has_the_baseline_of_its_own_learning_rate() {
        let runs = [
            ("wide-slow", 0.001, 30.0),
            ("wide-fast", 0.01, 30.0),
            ("wide-faster", 0.1, 30.0),
            ("base-slow", 0.001, 10.0),
            ("base-fast", 0.01, 60.0),
        ];
        let runs = runs.map(|(name, rate, peak)| {
            let mut run = TrainingRun::made_up(name, "mhsa", 1, peak, 2.0);
            run.settings.insert("learning_rate", &rate.into());
            run
        });
        let study = Trainings::made_up(runs);
        let beside = study.variants(&["base-slow".to_owned(), "base-fast".to_owned()]);
        let ratio = |log: &f64| (10.0 * log.exp()).round() / 10.0;
        let ratios: Vec<_> = beside.iter().map(|one| one.log_peaks.first().map(ratio)).collect();
        assert_eq!(ratios, [Some(3.0), Some(0.5), None, Some(1.0), Some(1.0)]);
    }
}

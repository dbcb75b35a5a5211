//! Runs that differ from others in one thing or two, seed by seed.

use super::grid::{Cell, Table};
use super::interval::Interval;
use super::spread::Spread;
use super::training::{TrainingRun, Trainings};

/// The seeds of one run, held against other runs of their length, steps and seed.
#[derive(Clone, Debug)]
pub struct Variant<'r> {
    /// Its seeds.
    pub seeds: &'r [TrainingRun],
    /// Of each seed that has one: log of its peak over that of the run it is held against.
    pub log_peaks: Vec<f64>,
    /// Of each seed that has one: its validation loss less that of the run it is held against, in nats.
    pub losses: Vec<f64>,
}

impl Variant<'_> {
    /// The first of its seeds, which share its settings.
    pub(super) fn first(&self) -> &TrainingRun {
        &self.seeds[0]
    }

    /// A quantity over its seeds.
    pub(super) fn over(&self, value: impl Fn(&TrainingRun) -> Option<f64>) -> Option<Spread> {
        Spread::of(self.seeds.iter().filter_map(value))
    }

    /// The peak max |logit| over its seeds.
    pub(super) fn peak(&self) -> Option<Spread> {
        self.over(|run| run.peak_max_abs_logit)
    }

    /// The peak over the other's: the geometric mean and its 95 % interval over seeds.
    pub fn peak_ratio(&self) -> Option<Interval> {
        Interval::of(self.log_peaks.iter().copied()).map(Interval::exp)
    }

    /// The loss less the other's, in nats: the mean and its 95 % interval over seeds.
    pub fn loss_difference(&self) -> Option<Interval> {
        Interval::of(self.losses.iter().copied())
    }
}

impl Trainings {
    /// Every run beside the unchanged ones, those called one of `baselines`, its peak beside that of its arm's, its loss
    /// beside that of `ls`; the unchanged are there too.
    pub fn variants<'r>(&'r self, baselines: &[String]) -> Vec<Variant<'r>> {
        let unchanged = |arm: &str, of: &TrainingRun| {
            self.runs.iter().find(|base| {
                baselines.contains(&base.run) && base.arm == arm && base.setting() == of.setting()
            })
        };
        self.held_against(|run| unchanged(&run.arm, run), |run| unchanged("ls", run))
    }

    /// Every run, its peak held against that of the one run and its loss against that of the other, where there are such.
    pub(super) fn held_against<'r>(
        &'r self,
        peak_of: impl Fn(&TrainingRun) -> Option<&'r TrainingRun>,
        loss_of: impl Fn(&TrainingRun) -> Option<&'r TrainingRun>,
    ) -> Vec<Variant<'r>> {
        let log_peak = |run: &TrainingRun| {
            Some((run.peak_max_abs_logit? / peak_of(run)?.peak_max_abs_logit?).ln())
        };
        let loss = |run: &TrainingRun| Some(run.valid_loss_nats? - loss_of(run)?.valid_loss_nats?);
        let variant = |seeds: &'r [TrainingRun]| Variant {
            seeds,
            log_peaks: seeds.iter().filter_map(log_peak).collect(),
            losses: seeds.iter().filter_map(loss).collect(),
        };
        self.by_run().map(variant).collect()
    }

    /// What each run differs in, its peak logits and its loss beside those of the unchanged runs.
    pub fn variants_table(&self, baselines: &[String]) -> Table {
        let shown = |interval: Option<Interval>| interval.map(|interval| interval.shown(2));
        let title = "Peak logits and loss of each run, compared with the unchanged runs";
        Table::from_items("variants", title, &self.variants(baselines))
            .words("run", "run", |v| &v.first().run)
            .words("arm", "variant", |v| &v.first().arm)
            .words("positions", "positions", |v| &v.first().positions)
            .words("slopes", "position bias", |v| &v.first().slopes)
            .numbers("context", "n", |v| v.first().context)
            .numbers("heads", "heads", |v| v.first().heads)
            .numbers("d_head", "d_head", |v| v.first().d_head())
            .numbers("window", "window", |v| v.first().local_window())
            .numbers("steps", "steps", |v| v.first().steps)
            .numbers("peak_max_abs_logit", "peak max |logit| of QKᵀ", Variant::peak)
            .words("peak_ratio", "ratio to the unchanged run", |v| shown(v.peak_ratio()))
            .numbers("valid_loss_nats", ("validation loss", "nats"), |v| {
                Cell::over(v.over(|run| run.valid_loss_nats), 4)
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

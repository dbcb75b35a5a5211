//! Runs that differ from others in one thing or two, seed by seed.

use super::grid::{Cell, Column, Table};
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
        let mut table = Table::new(
            "variants",
            "Peak logits and loss of each run, compared with the unchanged runs",
            vec![
                Column::words("run", "run"),
                Column::words("arm", "variant"),
                Column::words("positions", "positions"),
                Column::words("slopes", "position bias"),
                Column::numbers("context", "n", None),
                Column::numbers("heads", "heads", None),
                Column::numbers("d_head", "d_head", None),
                Column::numbers("window", "window", None),
                Column::numbers("steps", "steps", None),
                Column::numbers("peak_max_abs_logit", "peak max |logit| of QKᵀ", None),
                Column::words("peak_ratio", "ratio to the unchanged run"),
                Column::numbers("valid_loss_nats", "validation loss", Some("nats")),
                Column::words("loss_difference", "difference from LS-attention (nats)"),
                Column::numbers("seeds", "seeds", None),
            ],
        );
        let shown = |interval: Option<Interval>| {
            interval.map_or(Cell::Missing, |interval| Cell::text(interval.shown(2)))
        };
        for variant in self.variants(baselines) {
            let seeds = variant.seeds;
            let first = &seeds[0];
            let count = |value: Option<usize>| value.map_or(Cell::Missing, Cell::count);
            let over =
                |value: fn(&TrainingRun) -> Option<f64>| Spread::of(seeds.iter().filter_map(value));
            let has_window = first.global_heads < first.heads;
            table.push(vec![
                Cell::text(&first.run),
                Cell::text(&first.arm),
                Cell::text(&first.positions),
                Cell::text(&first.slopes),
                count(first.context),
                count(first.heads),
                count(first.d_model.zip(first.heads).map(|(width, heads)| width / heads)),
                count(first.window.filter(|_| has_window)),
                count(first.steps),
                Cell::over(over(|run| run.peak_max_abs_logit)),
                shown(variant.peak_ratio()),
                over(|run| run.valid_loss_nats)
                    .map_or(Cell::Missing, |spread| Cell::Over { spread, digits: 4 }),
                shown(variant.loss_difference()),
                Cell::count(seeds.len()),
            ]);
        }
        table.notes.push(
            "The peak is of QKᵀ/√d, without a position bias. Peaks are compared with the unchanged run of the same variant, losses with \
             unchanged LS-attention, at the same length, steps and seed: geometric mean ratio and mean difference over seeds, with \
             95 % Student's t intervals."
                .to_owned(),
        );
        table.note_failed(self.failed);
        table
    }
}

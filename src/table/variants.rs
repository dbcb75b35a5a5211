//! Runs that differ from others in one thing or two, seed by seed.

use super::grid::{Cell, Column, Table};
use super::interval::Interval;
use super::spread::Spread;
use super::training::{TrainingRun, Trainings};

/// The seeds of one run beside the unchanged runs of their length and seed.
#[derive(Clone, Debug)]
pub struct Variant<'r> {
    /// Its seeds.
    pub seeds: &'r [TrainingRun],
    /// Of each seed that has one: log of its peak over that of the unchanged run of its arm.
    pub log_peaks: Vec<f64>,
    /// Of each seed that has one: its validation loss less that of the unchanged `ls`, in nats.
    pub losses: Vec<f64>,
}

impl Variant<'_> {
    /// The peak over that of the unchanged run: the geometric mean and its 95 % interval over seeds.
    pub fn peak_ratio(&self) -> Option<Interval> {
        Interval::of(self.log_peaks.iter().copied()).map(Interval::exp)
    }

    /// The loss less that of the unchanged `ls`, in nats: the mean and its 95 % interval over seeds.
    pub fn loss_difference(&self) -> Option<Interval> {
        Interval::of(self.losses.iter().copied())
    }
}

impl Trainings {
    /// Every run beside the unchanged ones, those called one of `baselines`; these are there too.
    pub fn variants<'r>(&'r self, baselines: &[String]) -> Vec<Variant<'r>> {
        let unchanged = |arm: &str, of: &TrainingRun| {
            let setting = |run: &TrainingRun| (run.seed, run.context, run.steps);
            self.runs.iter().find(|base| {
                baselines.contains(&base.run) && base.arm == arm && setting(base) == setting(of)
            })
        };
        let variant = |seeds: &'r [TrainingRun]| {
            let log_peak = |run: &TrainingRun| {
                let base = unchanged(&run.arm, run)?.peak_max_abs_logit?;
                Some((run.peak_max_abs_logit? / base).ln())
            };
            let loss = |run: &TrainingRun| {
                Some(run.valid_loss_nats? - unchanged("ls", run)?.valid_loss_nats?)
            };
            Variant {
                seeds,
                log_peaks: seeds.iter().filter_map(log_peak).collect(),
                losses: seeds.iter().filter_map(loss).collect(),
            }
        };
        self.by_run().map(variant).collect()
    }

    /// What each run differs in, its peak logits and its loss beside those of the unchanged runs.
    pub fn variants_table(&self, baselines: &[String]) -> Table {
        let mut table = Table::new(
            "variants",
            "Peak logits and loss of each run beside the unchanged ones",
            vec![
                Column::words("run", "run"),
                Column::words("arm", "arm"),
                Column::words("positions", "positions"),
                Column::words("slopes", "slope over the lag"),
                Column::numbers("context", "n", None),
                Column::numbers("heads", "heads", None),
                Column::numbers("d_head", "d", None),
                Column::numbers("window", "window", None),
                Column::numbers("steps", "steps", None),
                Column::numbers("peak_max_abs_logit", "max |QKᵀ/√d| of the run", Some("nats")),
                Column::words("peak_ratio", "over the unchanged arm's"),
                Column::numbers("valid_loss_nats", "validation loss", Some("nats")),
                Column::words("loss_difference", "less the unchanged ls's (nats)"),
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
            "The peak is of QKᵀ/√d, without what a slope over the lag adds. It is held against that of the unchanged run of \
             its arm, and the loss against that of the unchanged ls, at the same length, steps and seed: geometric mean and \
             mean over seeds, with 95 % intervals by Student's t."
                .to_owned(),
        );
        table.note_failed(self.failed);
        table
    }
}

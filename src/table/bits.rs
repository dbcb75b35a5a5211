//! Runs beside a baseline, seed by seed, with losses in bits.

use std::f64::consts::LN_2;

use super::grid::{Cell, Column, Table};
use super::interval::Interval;
use super::spread::Spread;
use super::training::{TrainingRun, Trainings};
use super::variants::Variant;

impl Trainings {
    /// Every run beside the first of `baselines` that has its length, steps and seed; these beside nothing.
    pub fn beside<'r>(&'r self, baselines: &[String]) -> Vec<Variant<'r>> {
        let baseline = |of: &TrainingRun| {
            let is_other = !baselines.contains(&of.run);
            let mut named = baselines.iter().filter(|_| is_other).flat_map(|name| {
                self.runs
                    .iter()
                    .filter(move |run| run.run == *name && run.setting() == of.setting())
            });
            named.next()
        };
        self.held_against(baseline, baseline)
    }

    /// The loss in bits a token and the peak logits of each run, beside the baseline's.
    pub fn bits_table(&self, baselines: &[String]) -> Table {
        let mut table = Table::new(
            "bits",
            "Loss in bits and peak logits of each run, compared with the baseline",
            vec![
                Column::words("run", "run"),
                Column::words("arm", "variant"),
                Column::numbers("window", "window", None),
                Column::words("positions", "positions"),
                Column::words("slopes", "position bias"),
                Column::numbers("context", "n", None),
                Column::numbers("bits_per_token", "validation loss", Some("bits")),
                Column::words("bits_less_baseline", "difference from the baseline (bits)"),
                Column::numbers("peak_max_abs_logit", "peak max |logit| of QKᵀ", None),
                Column::words("peak_over_baseline", "ratio to the baseline"),
                Column::numbers("seeds", "seeds", None),
            ],
        );
        for run in self.beside(baselines) {
            let seeds = run.seeds;
            let first = &seeds[0];
            let count = |value: Option<usize>| value.map_or(Cell::Missing, Cell::count);
            let over =
                |value: fn(&TrainingRun) -> Option<f64>| Spread::of(seeds.iter().filter_map(value));
            let bits = over(|run| run.valid_loss_nats.map(|nats| nats / LN_2));
            let losses: Vec<f64> = run.losses.iter().map(|nats| nats / LN_2).collect();
            let peaks: Vec<f64> = run.log_peaks.iter().map(|log| log.exp()).collect();
            table.push(vec![
                Cell::text(&first.run),
                Cell::text(&first.arm),
                count(first.window.filter(|_| first.global_heads < first.heads)),
                Cell::text(&first.positions),
                Cell::text(&first.slopes),
                count(first.context),
                bits.map_or(Cell::Missing, |spread| Cell::Over { spread, digits: 4 }),
                told(Interval::of(losses.iter().copied()), &losses),
                Cell::over(over(|run| run.peak_max_abs_logit)),
                told(run.peak_ratio(), &peaks),
                Cell::count(seeds.len()),
            ]);
        }
        table.notes.push(format!(
            "Bits are nats per token / ln 2: bits per byte of bytes, bits per dimension of images. Each run is compared with the run \
             {} of the same length, steps and seed: mean difference and geometric mean ratio over seeds, with 95 % Student's t \
             intervals from two seeds on.",
            baselines.join(" or ")
        ));
        table.note_failed(self.failed);
        table
    }
}

/// The interval of a few values, or the one value.
fn told(interval: Option<Interval>, values: &[f64]) -> Cell {
    match (interval, values) {
        (Some(interval), _) => Cell::text(interval.shown(2)),
        (None, [value]) => Cell::text(super::significant(*value, 2)),
        (None, _) => Cell::Missing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(name: &str, seed: usize, loss: f64, peak: f64) -> TrainingRun {
        TrainingRun {
            run: name.to_owned(),
            arm: "mhsa".to_owned(),
            seed,
            context: Some(784),
            valid_loss_nats: Some(loss),
            peak_max_abs_logit: Some(peak),
            ..TrainingRun::default()
        }
    }

    #[test]
    fn runs_are_held_against_the_baseline_of_their_seed_in_bits() {
        let runs = vec![
            run("far", 1, 3.0 * LN_2, 20.0),
            run("far", 2, 5.5 * LN_2, 10.0),
            run("far", 3, 1.0, 1.0),
            run("mhsa", 1, 2.0 * LN_2, 10.0),
            run("mhsa", 2, 4.0 * LN_2, 20.0),
        ];
        let study = Trainings { runs, failed: 0 };
        let baselines = ["mhsa".to_owned()];
        let beside = study.beside(&baselines);
        let close = |found: &[f64], wanted: [f64; 2]| {
            found.len() == 2 && found.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-12)
        };
        let bits: Vec<f64> = beside[0].losses.iter().map(|nats| nats / LN_2).collect();
        assert!(close(&bits, [1.0, 1.5]), "{bits:?}");
        assert!(close(&beside[0].log_peaks, [2f64.ln(), 0.5f64.ln()]), "{:?}", beside[0].log_peaks);
        assert!((beside[0].peak_ratio().unwrap().mean - 1.0).abs() < 1e-12);
        assert!(beside[1].losses.is_empty(), "the baseline beside itself");
        let table = study.bits_table(&baselines);
        let shown: Vec<String> = table.rows()[1].iter().map(Cell::shown).collect();
        assert_eq!(shown[6..], ["3.000 (2.000–4.000)", "–", "15.0 (10.0–20.0)", "–", "2"]);
    }
}

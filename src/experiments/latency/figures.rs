//! The figure of a study of inference latency.

use crate::experiments::latency::LatencyMeasurement;
use crate::experiments::latency::tables::{Latencies, LatencyGroup};
use crate::experiments::training::figures::variant::Variant;
use crate::experiments::training::tables::training::arm_name;
use crate::figure::model::heights;
use crate::figure::{Axis, Figure, Ink, Key, Panel, Series, Shape, Stroke};

/// Prefill, next token and cached bytes against n: one line per model through the medians, and a point per round.
pub fn latency(study: &Latencies) -> Vec<Figure> {
    let of_arm =
        |cell: &LatencyGroup| (arm_name(&cell.arm).to_owned(), Variant::plain(&cell.arm).ink());
    let panel = |title: &str, label: &str, of: Quantity| {
        let lengths = study.cells.iter().map(|cell| cell.n as f64);
        let lines = study.cells.chunk_by(|a, b| a.run == b.run).flat_map(|same| {
            let rounds = same
                .iter()
                .flat_map(|cell| cell.rounds.iter().map(move |round| (cell.n as f64, of(round))));
            let (name, ink) = of_arm(&same[0]);
            Series::over_seeds(&name, ink, rounds.collect())
        });
        let series: Vec<Series> = lines.collect();
        let y = Axis::log(label, heights(&series));
        Panel::new(title, Axis::log_at("tokens read n", lengths), y, series)
    };
    let panels = vec![
        panel("Reading n tokens", "time (s)", |round| round.prefill_s),
        panel("One more token", "time (ms)", |round| 1e3 * round.decode_s),
        panel("Cached keys and values", "size (MiB)", mebibytes),
    ];
    let mut keys = Key::of_series(&panels[0].series, Shape::LineMarkers);
    keys.push(Key::new("one round", Ink::grey(Stroke::Solid), Shape::Seeds));
    vec![Figure {
        name: "latency".to_owned(),
        caption: "Inference with the paper's model on this machine: time to read n tokens at once, time of one more token, and the \
                  size of the cached keys and values. Lines are medians, ticks single rounds. Lower is better."
            .to_owned(),
        keys,
        panels,
    }]
}

type Quantity = fn(&LatencyMeasurement) -> f64;

fn mebibytes(round: &LatencyMeasurement) -> f64 {
    round.cache_bytes as f64 / f64::from(1 << 20)
}

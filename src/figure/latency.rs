//! The figure of a study of inference.

use super::model::{Axis, Figure, Key, Panel, Series, Shape};
use super::style::{Ink, Stroke};
use super::ticks::length;
use crate::table::{Latencies, LatencyCell, LatencyRound, Spread};

/// Prefill, one token more, and bytes kept, against n: a line a model through the medians, and every round.
pub fn latency(study: &Latencies) -> Figure {
    let panel = |title: &str, label: &str, of: Quantity| {
        let lengths = study.cells.iter().map(|cell| cell.n as f64);
        let mut series = Vec::new();
        for same in study.cells.chunk_by(|a, b| a.run == b.run) {
            let (run, ink) = (&same[0].run, Ink::of_arm(&same[0].arm));
            let at = |cell: &LatencyCell| cell.n as f64;
            let rounds = same
                .iter()
                .flat_map(|cell| cell.rounds.iter().map(move |round| (at(cell), of(round))));
            series.push(Series::new(run, ink, Shape::Seeds, rounds.collect()));
            let medians =
                same.iter().filter_map(|cell| Some((at(cell), cell.over(of)?.median))).collect();
            series.push(Series::new(run, ink, Shape::LineMarkers, medians));
        }
        let values = series.iter().flat_map(|line| &line.points).map(|&(_, y)| y);
        let y = Axis::log(label, values);
        Panel::new(title, Axis::log_at("tokens read, n", lengths), y, series)
    };
    let mut keys: Vec<Key> = Vec::new();
    for cell in &study.cells {
        if keys.iter().all(|key| key.label != cell.run) {
            keys.push(Key::new(&cell.run, Ink::of_arm(&cell.arm), Shape::LineMarkers));
        }
    }
    keys.push(Key::new("round", Ink::grey(Stroke::Solid), Shape::Seeds));
    Figure {
        name: "latency".to_owned(),
        caption: "Inference with the paper's model: reading n tokens at once, one token more, and the keys and \
                  values kept for it. Strokes are rounds, lines medians."
            .to_owned(),
        alt: alt(study),
        keys,
        panels: vec![
            panel("Reading n tokens", "seconds", |round| round.prefill_s),
            panel("One token more", "milliseconds", |round| 1e3 * round.decode_s),
            panel("Keys and values", "MiB", mebibytes),
        ],
    }
}

type Quantity = fn(&LatencyRound) -> f64;

fn mebibytes(round: &LatencyRound) -> f64 {
    round.cache_bytes / f64::from(1 << 20)
}

fn alt(study: &Latencies) -> String {
    let lines = study.cells.iter().filter_map(|cell| {
        let seconds = |of: Quantity, digits: usize| {
            let Spread { median, low, high } = cell.over(of)?;
            Some(format!("{median:.digits$} ({low:.digits$}–{high:.digits$})"))
        };
        Some(format!(
            "{}, {}: {} s, {} ms a token, {:.2} MiB.",
            cell.run,
            length(cell.n),
            seconds(|round| round.prefill_s, 3)?,
            seconds(|round| 1e3 * round.decode_s, 2)?,
            cell.over(mebibytes)?.median,
        ))
    });
    lines.collect::<Vec<_>>().join(" ")
}

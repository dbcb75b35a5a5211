//! The figure of a study of inference.

use super::model::{Axis, Figure, Key, Panel, Series, Shape};
use super::style::Ink;
use crate::table::{Latencies, LatencyCell, Spread};

/// Prefill, one token more, and bytes kept, against n: a line a model.
pub fn latency(study: &Latencies) -> Figure {
    let panel = |title: &str, label: &str, of: Quantity| {
        let lengths = study.cells.iter().map(|cell| cell.n as f64);
        let mut series = Vec::new();
        for same in study.cells.chunk_by(|a, b| a.run == b.run) {
            let points = same.iter().filter_map(|cell| Some((cell.n as f64, of(cell)?.median)));
            let ink = Ink::of_arm(&same[0].arm);
            series.push(Series::new(&same[0].run, ink, Shape::LineMarkers, points.collect()));
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
    Figure {
        name: "latency".to_owned(),
        caption: "Inference with the paper's model: reading n tokens at once, one token more, and the keys and \
                  values kept for it. Medians over rounds."
            .to_owned(),
        alt: alt(study),
        keys,
        panels: vec![
            panel("Reading n tokens", "seconds", |cell| cell.prefill_s),
            panel("One token more", "milliseconds", |cell| {
                let milli = |seconds: f64| 1e3 * seconds;
                cell.decode_s.map(|s| Spread {
                    median: milli(s.median),
                    low: milli(s.low),
                    high: milli(s.high),
                })
            }),
            panel("Keys and values", "MiB", |cell| {
                let mebi = |bytes: f64| bytes / f64::from(1 << 20);
                cell.cache_bytes.map(|b| Spread {
                    median: mebi(b.median),
                    low: mebi(b.low),
                    high: mebi(b.high),
                })
            }),
        ],
    }
}

type Quantity = fn(&LatencyCell) -> Option<Spread>;

fn alt(study: &Latencies) -> String {
    let lines = study.cells.iter().filter_map(|cell| {
        Some(format!(
            "{}, n = {}: {:.3} s, {:.2} ms a token, {:.2} MiB.",
            cell.run,
            cell.n,
            cell.prefill_s?.median,
            1e3 * cell.decode_s?.median,
            cell.cache_bytes?.median / f64::from(1 << 20),
        ))
    });
    lines.collect::<Vec<_>>().join(" ")
}

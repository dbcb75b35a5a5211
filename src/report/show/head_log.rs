//! Shows heads over the steps of a training: a log as `rank_study.Monitor` writes it, or heads that were only screened.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use super::shown::{HeadGrid, Shown};
use crate::experiments::heads::tables::heads::HeadRow;
use crate::experiments::training::figures::courses::{HeadCurve, by_head};
use crate::record::{read_records, record};
use crate::report::error::ReportError;
use crate::table::{Table, TableError, significant};

record! {
    /// One head at one step.
    pub struct HeadLogRow {
        /// the step
        step: usize,
        /// the layer, from 0
        layer: usize,
        /// the head within it, from 0
        head: usize,
        /// largest |logit| of the visible pairs
        #[range = Any]
        max_abs_logit: f64,
        /// half the largest logit range of a row
        #[range = Any]
        half_range: Option<f64>,
        /// least max |logit| at unlimited rank for the same attention, within an error
        #[range = Any]
        floor: Option<f64>,
        /// mean entropy of a row
        #[unit = "nats"]
        #[range = Any]
        entropy_nats: Option<f64>,
        /// mean weight on the first visible token
        #[range = Any]
        first_token: Option<f64>,
        /// KL divergence from the attention to that of logits in bfloat16
        #[unit = "nats"]
        #[range = Any]
        kl_bf16: Option<f64>,
    }
}

/// A quantity of a head: name of its figure, label, caption, value.
type Quantity = (&'static str, &'static str, &'static str, fn(&HeadLogRow) -> Option<f64>);

const QUANTITIES: [Quantity; 6] = [
    ("logits", "max |logit|", "The largest |logit| of each head.", |row| Some(row.max_abs_logit)),
    (
        "half-range",
        "half the logit range",
        "Half the largest logit range of a row, on which softmax depends.",
        |row| row.half_range,
    ),
    (
        "floor",
        "floor",
        "The least max |logit| at unlimited rank for each head's attention.",
        |row| row.floor,
    ),
    (
        "entropy",
        "row entropy (nats)",
        "The mean entropy of a row of attention. Near 0, a query attends to one token.",
        |row| row.entropy_nats,
    ),
    (
        "first-token",
        "attention to the first token",
        "The mean attention to the first visible token.",
        |row| row.first_token,
    ),
    (
        "bfloat16",
        "KL in bfloat16 (nats)",
        "How far rounding the logits to bfloat16 moves the attention.",
        |row| row.kl_bf16,
    ),
];

/// The value, where it can be drawn: a diverged model has logits that are not finite.
fn value((.., of): &Quantity, row: &HeadLogRow) -> Option<f64> {
    of(row).filter(|value| value.is_finite())
}

/// The row with the largest finite |logit|.
fn peak<'r>(rows: impl Iterator<Item = &'r HeadLogRow>) -> Option<&'r HeadLogRow> {
    let finite = rows.filter(|row| row.max_abs_logit.is_finite());
    finite.max_by(|a, b| a.max_abs_logit.total_cmp(&b.max_abs_logit))
}

/// Whether the file's first line names step, layer, head and max |logit|.
pub(super) fn is_at(path: &Path) -> bool {
    let mut line = String::new();
    let first = File::open(path).and_then(|file| BufReader::new(file).read_line(&mut line));
    let names: Vec<&str> = line.trim().split(',').collect();
    first.is_ok()
        && ["step", "layer", "head", "max_abs_logit"].iter().all(|name| names.contains(name))
}

/// Shows the log at `path`.
///
/// # Errors
/// The file is damaged.
pub(super) fn show(path: &Path) -> Result<Shown, ReportError> {
    let rows = read_records(path, "log the training again").map_err(TableError::from)?;
    Ok(shown(path.file_stem().unwrap_or_default().to_string_lossy().into_owned(), rows))
}

/// Shows the heads of one model that were screened. Of several passages, the one with the larger logit.
pub(super) fn screened(name: String, rows: &[HeadRow]) -> Shown {
    let mut heads: BTreeMap<(usize, usize, usize), HeadLogRow> = BTreeMap::new();
    for head in rows {
        let HeadRow { of, found, .. } = head;
        let row = HeadLogRow {
            step: head.step(),
            layer: of.layer,
            head: found.head,
            max_abs_logit: found.actual,
            half_range: Some(0.5 * found.spread),
            floor: found.floor,
            entropy_nats: Some(found.entropy_nats),
            first_token: found.first_mass,
            kl_bf16: found.precision.as_ref().map(|risk| risk.kl_bf16),
        };
        match heads.entry((row.step, row.layer, row.head)) {
            Entry::Occupied(mut held) if held.get().max_abs_logit < row.max_abs_logit => {
                held.insert(row);
            }
            Entry::Occupied(_) => {}
            Entry::Vacant(place) => drop(place.insert(row)),
        }
    }
    shown(name, heads.into_values().collect())
}

/// A figure per quantity, a grid of heads, a table by head.
fn shown(name: String, rows: Vec<HeadLogRow>) -> Shown {
    let mut heads: BTreeMap<(usize, usize), Vec<&HeadLogRow>> = BTreeMap::new();
    for row in &rows {
        heads.entry((row.layer, row.head)).or_default().push(row);
    }
    for rows in heads.values_mut() {
        rows.sort_by_key(|row| row.step);
    }
    let logged = QUANTITIES.iter().filter(|of| rows.iter().any(|row| value(of, row).is_some()));
    let figures = logged.map(|of| {
        let (name, label, caption, _) = of;
        let curve = |(&(layer, head), rows): (&(usize, usize), &Vec<&HeadLogRow>)| HeadCurve {
            layer,
            head,
            name: format!("head {head}"),
            points: rows
                .iter()
                .filter_map(|row| Some((row.step as f64, value(of, row)?)))
                .collect(),
        };
        let caption = format!("{caption} Each panel is one layer.");
        by_head(
            &heads.iter().map(curve).collect::<Vec<_>>(),
            &format!("{name}-by-head"),
            label,
            &caption,
        )
    });
    // Of several rows of a head at one step, the last counts.
    let entries = rows.iter().rev().map(|row| ((row.layer, row.head), row.step, row.max_abs_logit));
    let conclusion = peak(rows.iter()).into_iter().map(|peak| {
        let last = heads[&(peak.layer, peak.head)]
            .last()
            .map_or(peak.max_abs_logit, |row| row.max_abs_logit);
        format!(
            "Peak max |logit| {} in layer {}, head {}, at step {}; {} at the last step logged.",
            significant(peak.max_abs_logit, 3),
            peak.layer,
            peak.head,
            peak.step,
            significant(last, 3)
        )
    });
    Shown {
        title: format!("Heads over steps: {name}"),
        conclusion: conclusion.collect(),
        notes: rows.is_empty().then(|| "The log has no rows yet.".to_owned()).into_iter().collect(),
        figures: figures.collect(),
        grids: HeadGrid::of(name, entries).into_iter().collect(),
        tables: vec![table(&heads)],
    }
}

fn table(heads: &BTreeMap<(usize, usize), Vec<&HeadLogRow>>) -> Table {
    let heads = heads.values().filter_map(|rows| Some((*rows.last()?, peak(rows.iter().copied()))));
    let heads: Vec<(&HeadLogRow, Option<&HeadLogRow>)> = heads.collect();
    Table::from_items("heads", "Heads", &heads)
        .numbers("layer", "layer", |(last, _)| last.layer)
        .numbers("head", "head", |(last, _)| last.head)
        .numbers("peak_max_abs_logit", "peak max |logit|", |(_, peak)| {
            peak.map(|row| row.max_abs_logit)
        })
        .numbers("peak_step", "step of the peak", |(_, peak)| peak.map(|row| row.step))
        .numbers("max_abs_logit", "last max |logit|", |(last, _)| last.max_abs_logit)
        .numbers("half_range", "last half-range", |(last, _)| last.half_range)
        .numbers("floor", "last floor", |(last, _)| last.floor)
        .numbers("entropy_nats", "last row entropy (nats)", |(last, _)| last.entropy_nats)
        .build()
}

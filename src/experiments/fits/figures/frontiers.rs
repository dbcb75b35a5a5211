//! The figure of the smallest error within a logit bound, one panel per target.

use crate::experiments::fits::figures::layouts::{errors, floor_line, readable_errors};
use crate::experiments::fits::tables::layouts::{LayoutCell, Layouts};
use crate::figure::ticks::{length, symbols};
use crate::figure::{Axis, Figure, Key, Panel, Series};
use crate::figure::{Ink, Stroke};

/// E*(L) against L with the floor E⁰(L) dashed; one panel per target, one line per rank.
pub fn frontiers(study: &Layouts) -> Figure {
    let y = readable_errors(study);
    let drawn = |cells: &&[LayoutCell]| {
        cells.iter().flat_map(|cell| &cell.seeds).any(|seed| seed.kl_nats >= y.range.0)
    };
    let targets = || study.cells.chunk_by(|a, b| a.target == b.target && a.n == b.n);
    let free: Vec<&str> =
        targets().filter(|cells| !drawn(cells)).map(|cells| cells[0].target.as_str()).collect();
    let mut caption = "The smallest error found within a logit bound, by target and rank. Lines are medians, ticks single \
                       seeds. A larger marker or broader line lies under another. On the dashed floor, which has no rank limit, low \
                       rank costs nothing. Where a line levels off above it, larger logits did not help."
        .to_owned();
    caption.push_str(&symbols(targets().filter(drawn).map(|cells| cells[0].target.as_str())));
    if !free.is_empty() {
        caption.push_str(&format!(
            " Not drawn, because no bound leaves an error: {}.",
            free.join(", ")
        ));
    }
    let panels = targets().filter(drawn).map(|cells| {
        Panel::new(
            &format!("{}, {}", cells[0].target, length(cells[0].n)),
            Axis::log_at("logit bound L", cells.iter().map(|cell| cell.cap)),
            y.clone(),
            series(cells, &y),
        )
    });
    let mut keys = Key::of_ranks(study.cells.iter().map(|cell| cell.rank));
    keys.push(Key::seed());
    keys.push(Key::grey("floor: no rank limit", Stroke::Dashed));
    Figure {
        name: "frontiers".to_owned(),
        caption,
        alt: alt(study),
        keys,
        panels: panels.collect(),
    }
}

fn series(cells: &[LayoutCell], y: &Axis) -> Vec<Series> {
    let mut series = vec![floor_line(cells, y)];
    for same in cells.chunk_by(|a, b| a.rank == b.rank) {
        let (name, ink) = (format!("rank {}", same[0].rank), Ink::of_rank(same[0].rank));
        series.extend(errors(&name, ink, same, |cell| cell.cap, y.range.0));
    }
    series
}

fn alt(study: &Layouts) -> String {
    let same = |a: &LayoutCell, b: &LayoutCell| a.target == b.target && a.rank == b.rank;
    let lines = study.cells.chunk_by(same).filter_map(|same| {
        let (first, last) = (same.first()?, same.last()?);
        Some(format!(
            "{}, rank {}: error {:.2e} at logit bound {}, {:.2e} at {}, where the floor is {:.2e}.",
            first.target,
            first.rank,
            first.kl_nats()?.median,
            first.cap,
            last.kl_nats()?.median,
            last.cap,
            last.floor?.median,
        ))
    });
    lines.collect::<Vec<_>>().join(" ")
}

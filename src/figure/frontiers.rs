//! The least error under a cap on the logits, family by family.

use super::layouts::{cut_below, floor_line, readable_errors};
use super::model::{Axis, Figure, Key, Panel, Series, Shape};
use super::style::{Ink, Stroke};
use super::ticks::length;
use crate::table::{LayoutCell, Layouts};

/// E*(L) against L, a panel a target, a line a rank, with the floor E⁰(L) dashed.
pub fn frontiers(study: &Layouts) -> Figure {
    let y = readable_errors(study);
    let drawn = |cells: &&[LayoutCell]| {
        cells.iter().flat_map(|cell| &cell.seeds).any(|seed| seed.kl_nats >= y.range.0)
    };
    let targets = || study.cells.chunk_by(|a, b| a.target == b.target && a.n == b.n);
    let free: Vec<&str> =
        targets().filter(|cells| !drawn(cells)).map(|cells| cells[0].target.as_str()).collect();
    let mut caption = "The least error found under a cap on the logits, for each family of targets and each rank. \
                       Strokes are seeds, lines medians; dashed, the least error with no rank limit. Where a line \
                       lies on the dashed one, low rank costs nothing; where it levels off above it, larger logits were not found to help. \
                       Errors under the panels' edge are left out."
        .to_owned();
    if !free.is_empty() {
        caption.push_str(&format!(" Not drawn: {}, met under every cap.", free.join(", ")));
    }
    let panels = targets().filter(drawn).map(|cells| {
        Panel::new(
            &format!("{}, {}", cells[0].target, length(cells[0].n)),
            Axis::log_at("cap on max |logit|, L (nats)", cells.iter().map(|cell| cell.cap)),
            y.clone(),
            series(cells, &y),
        )
    });
    let mut keys = Key::of_ranks(study.cells.iter().map(|cell| cell.rank));
    keys.push(Key::new("seed", Ink::grey(Stroke::Solid), Shape::Seeds));
    keys.push(Key::grey("floor E⁰(L), no rank limit", Stroke::Dashed));
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
        let inside = |&(_, kl): &(f64, f64)| kl >= y.range.0;
        let seeds =
            same.iter().flat_map(|cell| cell.seeds.iter().map(|seed| (cell.cap, seed.kl_nats)));
        series.push(Series::new(&name, ink, Shape::Seeds, seeds.filter(inside).collect()));
        let medians: Vec<(f64, f64)> =
            same.iter().filter_map(|cell| Some((cell.cap, cell.kl_nats()?.median))).collect();
        let line = cut_below(&medians, y.range.0);
        series.push(Series::new(&name, ink, Shape::Line, line));
        let markers = medians.into_iter().filter(inside).collect();
        series.push(Series::new(&name, ink, Shape::Points, markers));
    }
    series
}

fn alt(study: &Layouts) -> String {
    let same = |a: &LayoutCell, b: &LayoutCell| a.target == b.target && a.rank == b.rank;
    let lines = study.cells.chunk_by(same).filter_map(|same| {
        let (first, last) = (same.first()?, same.last()?);
        Some(format!(
            "{}, rank {}: error {:.2e} at cap {}, {:.2e} at cap {}, floor {:.2e} there.",
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

//! The figures of a study of windows.

use crate::experiments::fits::figures::layouts::errors;
use crate::experiments::fits::tables::layouts::{LayoutCell, Layouts};
use crate::figure::Ink;
use crate::figure::ticks::{length, symbols, tick_label};
use crate::figure::{Axis, Figure, Key, Panel};

/// Smaller errors count as none; smooth targets are fitted up to rounding.
const LEAST: f64 = 1e-6;

/// Error against the local head's window; one panel per target and length, one line per rank.
pub fn window_rule(study: &Layouts) -> Vec<Figure> {
    let is_shown = |kl: f64| kl >= LEAST;
    let all = study.cells.iter().flat_map(|cell| &cell.seeds).map(|seed| seed.kl_nats);
    let mut y = Axis::log(
        "error: KL(target ‖ attention) (nats)",
        all.filter(|kl| is_shown(*kl)).chain([LEAST]),
    );
    y.range.0 = LEAST;
    let mut cells: Vec<&LayoutCell> =
        study.cells.iter().filter(|cell| cell.window().is_some()).collect();
    cells.sort_by(|a, b| {
        let key = |cell: &LayoutCell| (cell.target.clone(), cell.n, cell.rank, cell.window());
        key(a).cmp(&key(b))
    });
    let targets = || cells.chunk_by(|a, b| a.target == b.target && a.n == b.n);
    let drawn = |here: &&[&LayoutCell]| {
        here.iter().flat_map(|cell| &cell.seeds).any(|seed| is_shown(seed.kl_nats))
    };
    let title = |here: &[&LayoutCell]| format!("{}, {}", here[0].target, length(here[0].n));
    let met: Vec<String> = targets().filter(|here| !drawn(here)).map(title).collect();
    let panels = targets().filter(drawn).map(|here| {
        let mut series = Vec::new();
        for same in here.chunk_by(|a, b| a.rank == b.rank) {
            let (name, ink) = (format!("rank {}", same[0].rank), Ink::of_rank(same[0].rank));
            let window = |cell: &LayoutCell| cell.window().map_or(f64::NAN, |w| w as f64);
            series.extend(errors(&name, ink, same.iter().copied(), window, LEAST));
        }
        let windows = here.iter().filter_map(|cell| Some(cell.window()? as f64));
        Panel::new(
            &title(here),
            Axis::log_at("window W of the local head (tokens)", windows),
            y.clone(),
            series,
        )
    });
    let mut keys = Key::of_ranks(cells.iter().map(|cell| cell.rank));
    keys.push(Key::seed());
    let cap = cells.first().map_or(0.0, |cell| cell.cap);
    let mut caption = format!(
        "The error of one local head of window W beside one global head at logit bound {cap}. Lines are \
         medians, ticks single seeds. Lower is better; errors under {} nats are left out.{}",
        tick_label(LEAST),
        symbols(cells.iter().map(|cell| cell.target.as_str()))
    );
    if !met.is_empty() {
        let met = met.join("; ");
        caption.push_str(&format!(" Not drawn, because every error is smaller: {met}."));
    }
    vec![Figure {
        name: "windows".to_owned(),
        caption,
        alt: alt(study),
        keys,
        panels: panels.collect(),
    }]
}

fn alt(study: &Layouts) -> String {
    let lines = study.least_windows().into_iter().map(|one| {
        let window = one.window.map_or("none".to_owned(), |window| window.to_string());
        format!(
            "{}, {}, rank {}: smallest window for an error of {}: {window}.",
            one.target,
            length(one.n),
            one.rank,
            one.error
        )
    });
    lines.collect::<Vec<_>>().join(" ")
}

//! The figures of the smallest error within a logit bound: by rank, and by layout of heads.

use crate::experiments::fits::tables::layouts::{LayoutCell, Layouts};
use crate::experiments::training::figures::variant::Variant;
use crate::figure::style::DARK;
use crate::figure::ticks::{length, symbols};
use crate::figure::{Axis, Figure, Ink, Key, Panel, Series, Shape, Stroke};
use crate::table::plural;

/// Error against logit bound with the floor dashed; one panel per target, one line per layout.
pub fn layouts(study: &Layouts) -> Vec<Figure> {
    let y = readable_errors(study);
    let panels: Vec<Panel> = study
        .cells
        .chunk_by(|a, b| a.target == b.target && a.n == b.n)
        .map(|cells| {
            Panel::new(
                &title(study, &cells[0]),
                Axis::log_at("logit bound", cells.iter().map(|cell| cell.cap)),
                y.clone(),
                series(cells, &y, |cell| (name(cell), ink(cell))),
            )
        })
        .collect();
    // Lines leave the panels at the bottom and at the right, so there is no room for names beside them.
    let lines = panels.iter().flat_map(|panel| &panel.series);
    let mut keys =
        Key::of_series(lines.filter(|line| line.shape == Shape::Points), Shape::LineMarkers);
    keys.push(Key::seed());
    keys.push(Key::grey("floor: one head, no rank limit", Stroke::Dashed));
    vec![Figure {
        name: "layouts".to_owned(),
        caption: format!(
            "The error that each layout of heads reaches within a logit bound, for {} at {}; λ is the weight of the local part. Lines \
             are medians, ticks single seeds. Lower is better. Layouts with a local head can be below the floor.",
            shared(study),
            length(study.cells.first().map_or(0, |cell| cell.n)),
        ),
        keys,
        panels,
    }]
}

/// Whether the names of all targets of the study contain this part.
fn is_shared(study: &Layouts, part: &str) -> bool {
    study.cells.iter().all(|cell| cell.target.split(", ").any(|known| known == part))
}

/// The parts of the name that all targets of the study share.
fn shared(study: &Layouts) -> String {
    let first = study.cells.first().map_or("", |cell| cell.target.as_str());
    let parts: Vec<&str> = first.split(", ").filter(|part| is_shared(study, part)).collect();
    parts.join(", ")
}

/// The title of a panel: the parts of its target's name that not all targets share.
fn title(study: &Layouts, cell: &LayoutCell) -> String {
    let apart: Vec<&str> = cell.target.split(", ").filter(|part| !is_shared(study, part)).collect();
    let one_length = study.cells.iter().all(|other| other.n == cell.n);
    match apart.is_empty() || !one_length {
        true => format!("{}, {}", cell.target, length(cell.n)),
        false => apart.join(", "),
    }
}

/// An axis that covers the errors from [`LEAST_SHOWN`] on. It excludes floors far below all errors, which would
/// compress the rest.
fn readable_errors(study: &Layouts) -> Axis {
    let seeds = study.cells.iter().flat_map(|cell| &cell.seeds).map(|seed| seed.kl_nats);
    let shown = |kl: &f64| *kl >= LEAST_SHOWN;
    let floors = study.cells.iter().filter_map(|cell| Some(cell.floor?.median));
    let least = seeds.clone().filter(shown).fold(f64::INFINITY, f64::min);
    Axis::log(
        "error: KL(target ‖ attention) (nats)",
        seeds.filter(shown).chain(floors.filter(|floor| *floor > 0.3 * least)),
    )
}

/// Smaller errors count as none.
const LEAST_SHOWN: f64 = 1e-4;

/// The floor as a dashed line, cut at the lower end of the axis.
fn floor_line(cells: &[LayoutCell], y: &Axis) -> Series {
    let mut floor: Vec<(f64, f64)> =
        cells.iter().filter_map(|cell| Some((cell.cap, cell.floor?.median))).collect();
    floor.sort_by(|a, b| a.0.total_cmp(&b.0));
    floor.dedup_by(|a, b| a.0 == b.0);
    Series::new("floor", Ink::grey(Stroke::Dashed), Shape::Line, cut_below(&floor, y.range.0))
}

/// The floor, and the errors of each layout and rank, which `look` names and colours.
fn series(
    cells: &[LayoutCell],
    y: &Axis,
    look: impl Fn(&LayoutCell) -> (String, Ink),
) -> Vec<Series> {
    let mut series = vec![floor_line(cells, y)];
    let mut inks: Vec<Ink> = Vec::new();
    for same in cells.chunk_by(|a, b| a.layout == b.layout && a.rank == b.rank) {
        let (label, base) = look(&same[0]);
        let ink = base.nth(inks.iter().filter(|used| **used == base).count());
        inks.push(base);
        series.extend(errors(&label, ink, same, y.range.0));
    }
    series
}

/// The errors of a layout against the logit bound: ticks for single seeds and markers for medians. A line through the
/// medians ends where it falls below `least`.
fn errors(name: &str, ink: Ink, cells: &[LayoutCell], least: f64) -> [Series; 3] {
    let of_cell = |cell: &LayoutCell| {
        cell.seeds.iter().map(|seed| (cell.cap, seed.kl_nats)).collect::<Vec<_>>()
    };
    let seeds = cells.iter().flat_map(of_cell);
    let [mut seeds, medians] = Series::over_seeds(name, ink, seeds.collect());
    let line = Series::new(name, ink, Shape::Line, cut_below(&medians.points, least));
    let mut markers = Series { shape: Shape::Points, ..medians };
    for series in [&mut seeds, &mut markers] {
        series.points.retain(|point| point.1 >= least);
    }
    [seeds, line, markers]
}

/// The line through `points` (x, y), cut where it leaves a logarithmic axis that begins at `least`.
fn cut_below(points: &[(f64, f64)], least: f64) -> Vec<(f64, f64)> {
    let inside = points.iter().take_while(|point| point.1 >= least).count();
    let mut kept = points[..inside].to_vec();
    if let (Some(&(x, y)), Some(&(next_x, next_y))) = (kept.last(), points.get(inside))
        && next_y > 0.0
    {
        let part = (y / least).ln() / (y / next_y).ln();
        kept.push((x * (next_x / x).powf(part), least));
    }
    kept
}

/// The ink of the training variant that has such heads; a single global head has its own.
fn ink(cell: &LayoutCell) -> Ink {
    match (cell.is_split(), cell.is_global(), cell.layout.heads().len()) {
        (true, _, _) => Variant::plain("ls").ink(),
        (_, true, 0 | 1) => Ink { colour: DARK, ..Ink::numbered(1) },
        (_, true, _) => Variant::plain("mhsa").ink(),
        _ => Variant::plain("local-only").ink(),
    }
}

/// The label of a layout: `2 global heads of rank 8`, `1 local head (window 24) + 1 global head of rank 8`.
fn name(cell: &LayoutCell) -> String {
    let mut parts: Vec<String> = Vec::new();
    for alike in cell.layout.heads().chunk_by(|a, b| a == b) {
        parts.push(match alike[0].window() {
            None => plural(alike.len(), "global head"),
            Some(window) => format!("{} (window {window})", plural(alike.len(), "local head")),
        });
    }
    format!("{} of rank {}", parts.join(" + "), cell.rank)
}

/// E*(L) against L with the floor E⁰(L) dashed; one panel per target, one line per rank.
pub fn frontiers(study: &Layouts) -> Vec<Figure> {
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
            series(cells, &y, |cell| (format!("rank {}", cell.rank), Ink::of_rank(cell.rank))),
        )
    });
    let mut keys = Key::of_ranks(study.cells.iter().map(|cell| cell.rank));
    keys.push(Key::seed());
    keys.push(Key::grey("floor: no rank limit", Stroke::Dashed));
    vec![Figure { name: "frontiers".to_owned(), caption, keys, panels: panels.collect() }]
}

#[cfg(test)]
mod tests {
    use super::cut_below;

    #[test]
    fn a_line_is_cut_where_it_leaves_the_axis() {
        let cut = cut_below(&[(1.0, 1.0), (4.0, 0.01), (8.0, 0.001)], 0.1);
        assert_eq!(cut.len(), 2);
        assert!((cut[1].0 - 2.0).abs() < 1e-12 && cut[1].1 == 0.1, "{cut:?}");
    }
}

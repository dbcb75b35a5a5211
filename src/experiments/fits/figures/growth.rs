//! The figures of a study of logit growth.

use crate::experiments::fits::tables::growth::{Growth, GrowthCell};
use crate::figure::ticks::symbols;
use crate::figure::{Axis, Figure, Ink, Key, Panel, Series, Shape, Stroke};
use crate::table::distinct;

/// The figures of the view `logit-growth`.
pub fn growth(growth: &Growth) -> Vec<Figure> {
    vec![inflation(growth), logits_needed(growth)]
}

/// The rank penalty L*(ε) / L⁰(ε) against n/d; one panel per family, one line per rank.
pub fn inflation(growth: &Growth) -> Figure {
    let x = |cells: &[GrowthCell]| {
        Axis::log_at("sequence length / rank (n/d)", cells.iter().map(GrowthCell::ratio))
    };
    let seeds = growth.cells.iter().flat_map(|cell| &cell.seeds);
    let y = Axis::log(
        &at_epsilon("rank penalty (×)", growth),
        seeds.filter_map(|seed| seed.inflation).chain([1.0]),
    );
    // A target that needs no logits, such as the uniform prefix, has no rank penalty.
    let priced = |cells: &&[GrowthCell]| {
        cells.iter().any(|cell| cell.inflation().is_some() || cell.unreached() > 0)
    };
    let free: Vec<String> =
        families(growth).filter(|cells| !priced(cells)).map(|cells| title(growth, cells)).collect();
    let panels = families(growth).filter(priced).map(|cells| {
        let mut series = Vec::new();
        for rank in ranks(cells) {
            let of_rank = || cells.iter().filter(move |cell| cell.rank == rank);
            let (name, ink) = (format!("rank {rank}"), Ink::of_rank(rank));
            let points = of_rank().flat_map(|cell| {
                cell.seeds.iter().filter_map(|seed| Some((cell.ratio(), seed.inflation?)))
            });
            series.extend(Series::over_seeds(&name, ink, points.collect()));
            series.push(unreached(&name, ink, of_rank(), GrowthCell::ratio));
        }
        Panel::new(&title(growth, cells), x(cells), y.clone(), series).with_guide(1.0)
    });
    let mut keys = Key::of_ranks(growth.cells.iter().map(|cell| cell.rank));
    keys.push(Key::seed());
    keys.push(Key::grey("1: no penalty", Stroke::Dashed));
    keys.extend(unreached_key(growth));
    let mut caption = format!(
        "The rank penalty: the smallest max |logit| that reaches error {} nats at rank d, divided by the smallest at any \
         rank. Lines are medians, ticks single seeds. A larger marker or broader line lies under another. On the dashed line low rank costs nothing. Hollow markers above \
         a panel: some or all seeds did not reach the error at the bounds tried.",
        tolerances(growth)
    );
    caption.push_str(&symbols(growth.cells.iter().map(|cell| cell.label.as_str())));
    if !free.is_empty() {
        caption.push_str(&format!(" Not drawn, because it needs no logits: {}.", free.join(", ")));
    }
    Figure { name: "inflation".to_owned(), caption, keys, panels: panels.collect() }
}

/// L*(ε) against n with the floor L⁰(ε) dashed; one panel per family, one line per rank.
pub fn logits_needed(growth: &Growth) -> Figure {
    let seeds = || growth.cells.iter().flat_map(|cell| &cell.seeds);
    let y = Axis::log(
        &at_epsilon("max |logit| needed", growth),
        seeds().flat_map(|seed| [seed.needed, seed.floor]).flatten(),
    );
    let panels = families(growth).map(|cells| {
        let lengths = cells.iter().map(|cell| cell.n as f64);
        let mut series =
            vec![Series::new("floor", Ink::grey(Stroke::Dashed), Shape::Line, floor(cells))];
        for rank in ranks(cells) {
            let of_rank = || cells.iter().filter(move |cell| cell.rank == rank);
            let (name, ink) = (format!("rank {rank}"), Ink::of_rank(rank));
            let medians = of_rank().filter_map(|cell| Some((cell.n as f64, cell.needed()?.median)));
            series.push(Series::new(&name, ink, Shape::LineMarkers, medians.collect()));
            series.push(unreached(&name, ink, of_rank(), |cell| cell.n as f64));
        }
        Panel::new(
            &title(growth, cells),
            Axis::log_at("sequence length n", lengths),
            y.clone(),
            series,
        )
    });
    let mut keys: Vec<Key> = Key::of_ranks(growth.cells.iter().map(|cell| cell.rank));
    keys.push(Key::grey("floor: no rank limit", Stroke::Dashed));
    keys.extend(unreached_key(growth));
    Figure {
        name: "logits-needed".to_owned(),
        caption: format!(
            "The smallest max |logit| that reaches error {} nats, against sequence length, as medians over seeds. The dashed \
             floor has no rank limit and grows with n by itself. The gap between a line and the floor is the rank penalty.{}",
            tolerances(growth),
            symbols(growth.cells.iter().map(|cell| cell.label.as_str()))
        ),
        keys,
        panels: panels.collect(),
    }
}

/// The cells of each family at each tolerance; each group is one panel.
fn families(growth: &Growth) -> impl Iterator<Item = &[GrowthCell]> {
    growth.cells.chunk_by(|a, b| a.label == b.label && a.tolerance == b.tolerance)
}

fn ranks(cells: &[GrowthCell]) -> Vec<usize> {
    distinct(cells.iter().map(|cell| cell.rank))
}

/// The title of a panel: the family, and ε if the study has several. A single ε is part of the axis label.
fn title(growth: &Growth, cells: &[GrowthCell]) -> String {
    let first = &cells[0];
    match one_tolerance(growth) {
        Some(_) => first.label.clone(),
        None => format!("{}; ε = {}", first.label, first.tolerance),
    }
}

/// The label of an axis, with ε if the study has only one.
fn at_epsilon(label: &str, growth: &Growth) -> String {
    match one_tolerance(growth) {
        Some(epsilon) => format!("{label} at ε = {epsilon} nats"),
        None => label.to_owned(),
    }
}

/// The ε of the study if it has only one.
fn one_tolerance(growth: &Growth) -> Option<f64> {
    let first = growth.cells.first()?.tolerance;
    growth.cells.iter().all(|cell| cell.tolerance == first).then_some(first)
}

fn tolerances(growth: &Growth) -> String {
    let all = distinct(growth.cells.iter().map(|cell| cell.tolerance));
    all.iter().map(|tolerance| format!("ε = {tolerance}")).collect::<Vec<_>>().join(" or ")
}

fn unreached_key(growth: &Growth) -> Option<Key> {
    let any = growth.cells.iter().any(|cell| cell.unreached() > 0);
    any.then(|| {
        Key::new(
            "hollow: some or all seeds did not reach ε",
            Ink::grey(Stroke::Solid),
            Shape::Above,
        )
    })
}

/// Marks the cells of one rank in which a seed did not reach ε.
fn unreached<'a>(
    name: &str,
    ink: Ink,
    cells: impl Iterator<Item = &'a GrowthCell>,
    x: impl Fn(&GrowthCell) -> f64,
) -> Series {
    let points = cells.filter(|cell| cell.unreached() > 0).map(|cell| (x(cell), f64::NAN));
    Series::new(name, ink, Shape::Above, points.collect())
}

/// Points (n, L⁰(ε)). The floor does not depend on rank, so there is one line for all ranks.
fn floor(cells: &[GrowthCell]) -> Vec<(f64, f64)> {
    let points = cells.chunk_by(|a, b| a.n == b.n);
    points.filter_map(|same| Some((same[0].n as f64, same[0].floor()?.median))).collect()
}

//! The figures of one fit: its frontier, and its error row by row.

use crate::experiments::fits;
use crate::experiments::fits::tables::one_fit::OneFit;
use crate::figure::model::heights;
use crate::figure::ticks::ticks_at_values;
use crate::figure::{Axis, Figure, Ink, Key, Panel, Series, Shape, Stroke};

/// A floor below this share of the smallest error is not drawn.
const FAR_UNDER: f64 = 1e-3;

/// E*(L) with its floor and the proven bounds; `None` for a fit with fewer than two logit bounds.
pub fn frontier_of_fit(fit: &OneFit) -> Option<Figure> {
    let by_cap = |of: fn(&crate::experiments::fits::FitMeasurement) -> Option<f64>| {
        let points = fit.rows.iter().filter_map(|row| Some((row.found.cap?, of(&row.found)?)));
        let mut points: Vec<(f64, f64)> = points.filter(|(_, kl)| *kl > 0.0).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        points
    };
    let found = by_cap(|found| found.kl_nats);
    if found.len() < 2 {
        return None;
    }
    let mut floor = by_cap(|found| found.floor_kl_nats);
    // A floor far below all errors would compress them.
    let least = found.iter().map(|point| point.1).fold(f64::INFINITY, f64::min);
    floor.retain(|point| point.1 >= FAR_UNDER * least);
    let proven = fit.rows.iter().filter_map(|row| {
        let bound = row.found.proven.as_ref()?.lower_bound_max_abs_logit;
        Some((bound, row.found.kl_nats?))
    });
    let mut proven: Vec<(f64, f64)> = proven.filter(|(at, kl)| *at > 0.0 && *kl > 0.0).collect();
    proven.sort_by(|a, b| a.0.total_cmp(&b.0));
    let ink = Ink::of_rank(fit.rank);
    let bound_ink = Ink { stroke: Stroke::Dotted, ..ink };
    let names = [
        format!("found at rank {}", fit.rank),
        "floor: unlimited rank".to_owned(),
        "proven lower bound at this rank".to_owned(),
    ];
    let all = || found.iter().chain(&floor).chain(&proven);
    let mut x = Axis::log("logit bound L", all().map(|point| point.0));
    x.ticks = ticks_at_values(&found.iter().map(|point| point.0).collect::<Vec<_>>());
    let y = Axis::log("error kl (nats)", all().map(|point| point.1));
    let [found_name, floor_name, bound_name] = &names;
    let series = vec![
        Series::new(floor_name, Ink::grey(Stroke::Dashed), Shape::Line, floor),
        Series::new(bound_name, bound_ink, Shape::Line, proven),
        Series::new(found_name, ink, Shape::LineMarkers, found),
    ];
    Some(Figure {
        name: "frontier".to_owned(),
        caption: "The smallest error found within each logit bound, the floor at unlimited rank, and the logit bound that each error \
                  provably needs at this rank. The gap to the floor is the cost of low rank. Floors below a thousandth of the \
                  smallest error are left out."
            .to_owned(),
        keys: vec![
            Key::new(found_name, ink, Shape::LineMarkers),
            Key::grey(floor_name, Stroke::Dashed),
            Key::new(bound_name, bound_ink, Shape::Line),
        ],
        panels: vec![Panel::new("Frontier", x, y, series)],
    })
}

/// KL(A_i ‖ P_i) row by row, one line per fit; `None` if no fit can be compared with its target.
pub fn errors_by_row(fit: &OneFit) -> Option<Figure> {
    let line = |(at, found): (usize, &fits::tables::one_fit::FoundAttention)| {
        // Rounding makes some values slightly negative.
        let points = found.kl_by_row.iter().enumerate().map(|(row, kl)| (row as f64, kl.max(0.0)));
        let ink = Ink::numbered(at);
        Series::new(&found.name, ink, Shape::Line, points.collect())
    };
    let series: Vec<Series> = fit.found.iter().enumerate().map(line).collect();
    let first = series.first()?;
    let x = Axis::from_zero("query i", first.points.iter().map(|point| point.0));
    let y = Axis::linear("KL(A_i ‖ P_i) (nats)", heights(&series), Some(0.0));
    Some(Figure {
        name: "errors-by-row".to_owned(),
        caption: "The error of each row of the matrix. Their mean is kl; a peak marks the rows that fit worst.".to_owned(),
        keys: Key::of_series(&series, Shape::Line),
        panels: vec![Panel::new("Error by row", x, y, series)],
    })
}

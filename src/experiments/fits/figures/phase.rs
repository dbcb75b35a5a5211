//! The heat map of the rank penalty over w/d and n/d.

use crate::experiments::fits::tables::growth::{Growth, GrowthCell};
use crate::figure::style::BEYOND;
use crate::figure::{Axis, Figure, Key, Panel, Rgb, Tile, heat};
use crate::table::{Spread, distinct};

/// The rank penalty at the end of the colour scale.
const MOST: f64 = 10.0;

/// Rank penalty over w/d (or k/d, m/d) and n/d: one tile per pair of ratios, with the median over its cells. A tile is
/// dark if most fits did not reach ε at any logit, and grey if the study has no cell.
pub fn phase(growth: &Growth) -> Vec<Figure> {
    let fields = fields(growth);
    let x = Axis::log_at("sequence length / rank (n/d)", fields.iter().map(|f| f.n_over_d));
    let y = Axis::log_at("window / rank (w/d)", fields.iter().map(|f| f.w_over_d));
    // Ratios are powers of two, so a tile reaches half-way to its neighbours.
    let half = std::f64::consts::SQRT_2;
    let across = distinct(fields.iter().map(|field| field.n_over_d));
    let up = distinct(fields.iter().map(|field| field.w_over_d));
    let tile = |(n_over_d, w_over_d): (f64, f64)| {
        let here = fields.iter().find(|f| (f.n_over_d, f.w_over_d) == (n_over_d, w_over_d));
        let (colour, text) = match here.map(|field| field.inflation) {
            Some(Some(value)) if value < 9.95 => (colour(value), format!("{value:.1}")),
            Some(Some(value)) => (colour(value), format!("{value:.0}")),
            Some(None) => (BEYOND, "none".to_owned()),
            None => (NOT_MEASURED, String::new()),
        };
        let [x, y] = [n_over_d, w_over_d].map(|ratio| (ratio / half, ratio * half));
        Tile { x, y, colour, text }
    };
    let all = up.iter().flat_map(|&w_over_d| across.iter().map(move |&n| (n, w_over_d)));
    let epsilon = growth.cells.first().map_or(0.0, |cell| cell.tolerance);
    let title = format!("Median rank penalty (×) at ε = {epsilon} nats");
    let mut panel = Panel::new(&title, x, y, Vec::new());
    panel.tiles = all.map(tile).collect();
    panel.tiles.sort_by_key(|tile| tile.colour == NOT_MEASURED);
    for (axis, values) in [(&mut panel.x, &across), (&mut panel.y, &up)] {
        let (low, high) = (values.first().unwrap_or(&1.0), values.last().unwrap_or(&1.0));
        axis.range = (low / half / 1.03, high * half * 1.03);
    }
    let seeds = growth.cells.iter().map(|cell| cell.seeds.len()).min().unwrap_or(0);
    vec![Figure {
        name: "phase".to_owned(),
        caption: format!(
            "The rank penalty of dense local attention by window/rank and sequence length/rank, median over lengths, ranks and \
             seeds (at least {seeds}). 1 means that low rank costs nothing. Dark fields: most fits reached error {epsilon} at no logit \
             bound up to 128. Light grey fields were not measured."
        ),
        keys: vec![
            Key::field("rank penalty 1", colour(1.0)),
            Key::field("2", colour(2.0)),
            Key::field("3", colour(3.0)),
            Key::field("5", colour(5.0)),
            Key::field("10 and more", colour(MOST)),
            Key::field("none: most fits did not reach ε", BEYOND),
            Key::field("not measured", NOT_MEASURED),
        ],
        panels: vec![panel],
    }]
}

/// The colour of a tile for which the study has no cell.
const NOT_MEASURED: Rgb = (236, 236, 236);

/// The colour of a rank penalty, on a logarithmic scale.
fn colour(inflation: f64) -> Rgb {
    heat(inflation.ln() / MOST.ln())
}

struct Field {
    n_over_d: f64,
    w_over_d: f64,
    /// The median rank penalty; `None` if most fits did not reach ε.
    inflation: Option<f64>,
}

fn fields(growth: &Growth) -> Vec<Field> {
    let ratios = |cell: &GrowthCell| Some((cell.support? as f64 / cell.rank as f64, cell.ratio()));
    let places = distinct(growth.cells.iter().filter_map(ratios));
    let field = |&(w_over_d, n_over_d): &(f64, f64)| {
        let here: Vec<&GrowthCell> =
            growth.cells.iter().filter(|cell| ratios(cell) == Some((w_over_d, n_over_d))).collect();
        let seeds = here.iter().flat_map(|cell| &cell.seeds);
        // A fit that did not reach ε counts as larger than any that did.
        let values = seeds.clone().map(|seed| seed.inflation.unwrap_or(f64::MAX));
        let median = Spread::of(values).map(|spread| spread.median);
        Field { n_over_d, w_over_d, inflation: median.filter(|value| *value < f64::MAX / 4.0) }
    };
    places.iter().map(field).collect()
}

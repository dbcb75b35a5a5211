//! The alternative text of a figure, for readers who cannot see it.

use crate::figure::{Axis, Figure, Panel, Series, Shape, Tick};
use crate::table::{plural, significant};

impl Figure {
    /// The ends of each line, the range of each cloud of points and the text of each field, panel by panel.
    pub fn alt(&self) -> String {
        self.panels.iter().flat_map(sentences).collect::<Vec<_>>().join(" ")
    }
}

fn sentences(panel: &Panel) -> Vec<String> {
    let Panel { title, x, y, series, tiles, .. } = panel;
    let within = if title.is_empty() { String::new() } else { format!("{title}, ") };
    let fields = tiles.iter().filter(|tile| !tile.text.is_empty()).map(|tile| {
        let (across, up) = (middle(x, tile.x), middle(y, tile.y));
        format!("{within}{} {across}, {} {up}: {}.", x.label, y.label, tile.text)
    });
    let series = series
        .iter()
        .filter_map(|series| Some(format!("{within}{}: {}.", series.name, extent(panel, series)?)));
    if tiles.is_empty() && panel.series.is_empty() {
        return vec![format!("{title}.")];
    }
    fields.chain(series).collect()
}

/// What a series spans; `None` for ticks of single seeds, whose line says it, and for series without a finite point.
fn extent(panel: &Panel, series: &Series) -> Option<String> {
    let points: Vec<(f64, f64)> =
        series.points.iter().copied().filter(|point| point.1.is_finite()).collect();
    let (first, last) = (points.first()?, points.last()?);
    let at = |point: &(f64, f64)| {
        format!("{} at {}", shown(&panel.y, point.1), shown(&panel.x, point.0))
    };
    match series.shape {
        Shape::Seeds | Shape::Above => None,
        Shape::Points | Shape::OpenPoints => {
            let range = |axis: &Axis, values: Vec<f64>| {
                let low = values.iter().copied().fold(f64::INFINITY, f64::min);
                let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                format!("{} {} to {}", axis.label, shown(axis, low), shown(axis, high))
            };
            let (across, up) = points.iter().copied().unzip();
            let count = plural(points.len(), "point");
            Some(format!("{count}, {}, {}", range(&panel.x, across), range(&panel.y, up)))
        }
        _ if points.len() == 1 => Some(at(first)),
        _ => Some(format!("{}, {}", at(first), at(last))),
    }
}

/// The name of a place on an axis where it has one, else the number.
fn shown(axis: &Axis, value: f64) -> String {
    named(axis, axis.fraction(value)).unwrap_or_else(|| significant(value, 3))
}

/// The place in the middle of a field, as it is drawn.
fn middle(axis: &Axis, (from, to): (f64, f64)) -> String {
    named(axis, 0.5 * (axis.fraction(from) + axis.fraction(to)))
        .unwrap_or_else(|| format!("{} to {}", significant(from, 3), significant(to, 3)))
}

/// The label of the tick at a share of the axis, if there is one.
fn named(axis: &Axis, share: f64) -> Option<String> {
    let is_there = |tick: &&Tick| (axis.fraction(tick.value) - share).abs() < 1e-9;
    axis.ticks.iter().find(is_there).map(|tick| tick.label.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::{Ink, Tile};

    #[test]
    fn it_names_the_ends_of_lines_the_range_of_points_and_the_text_of_fields() {
        let ink = Ink::numbered(0);
        let points = vec![(1.0, 0.27), (2.0, f64::NAN), (4.0, 3.1)];
        let x = Axis::log_at("n", [1.0, 4.0].into_iter());
        let y = Axis::linear("KL", [0.27, 3.1].into_iter(), None);
        let of = |name: &str, shape| Series::new(name, ink, shape, points.clone());
        let series = vec![of("a", Shape::Line), of("b", Shape::Seeds), of("c", Shape::Points)];
        let lines = Panel::new("lines", x, y, series);
        let axis = |label| Axis::of_fields(label, vec!["0".into(), "1".into()]);
        let mut fields = Panel::new("", axis("head"), axis("layer"), Vec::new());
        let (x, y, colour) = ((0.0, 1.0), (1.0, 2.0), (0, 0, 0));
        fields.tiles = ["20", ""].map(|text| Tile { x, y, colour, text: text.to_owned() }).to_vec();
        let [name, caption] = ["some", "What is seen."].map(str::to_owned);
        let figure = Figure { name, caption, keys: Vec::new(), panels: vec![lines, fields] };
        assert_eq!(
            figure.alt(),
            "lines, a: 0.270 at 1, 3.10 at 4. lines, c: 2 points, n 1 to 4, KL 0.270 to 3.10. \
             head 0, layer 1: 20."
        );
    }
}

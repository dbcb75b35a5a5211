//! Figures before they are drawn: panels of named series. Tests check these.

use crate::figure::Raster;
use crate::figure::Tick;
use crate::figure::ticks::{linear_ticks, log_ticks, ticks_at_values};
use crate::figure::{Ink, Marker, Rgb, Stroke};
use crate::table::{Spread, distinct, groups};

/// How values lie along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Evenly.
    Linear,
    /// By their logarithm.
    Log,
}

/// The largest magnitude that an axis reaches, and one over the least of a logarithmic one: beyond, nothing that was
/// measured lies, and what is computed of an axis' ends would be infinite.
const REACH: f64 = 1e100;

/// How many lengths of an axis a value may be drawn beyond its ends: of a line that leaves a panel each pixel costs.
const BEYOND: f64 = 10.0;

/// One axis of a panel.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// What is measured, with its unit.
    pub label: String,
    /// How values lie along it.
    pub scale: Scale,
    /// The least and the greatest value shown.
    pub range: (f64, f64),
    /// The ticks, in order.
    pub ticks: Vec<Tick>,
}

impl Axis {
    /// A logarithmic axis that holds all of `values` with a little room, ticks at round numbers. It ends at ticks where
    /// they are near, so that values at its ends can be read.
    pub(crate) fn log(label: &str, values: impl Iterator<Item = f64>) -> Self {
        let mut range = log_range(values);
        let more = (range.1 / range.0).powf(MORE);
        let near = log_ticks(range.0 / more, range.1 * more);
        if let Some(tick) = near.iter().rev().find(|tick| tick.value < range.0) {
            range.0 = tick.value;
        }
        if let Some(tick) = near.iter().find(|tick| tick.value > range.1) {
            range.1 = tick.value;
        }
        let ticks = log_ticks(range.0, range.1);
        Self { label: label.to_owned(), scale: Scale::Log, range, ticks }
    }

    /// The same axis for another quantity.
    pub(crate) fn named(&self, label: &str) -> Self {
        Self { label: label.to_owned(), ..self.clone() }
    }

    /// A logarithmic axis with its ticks at the values themselves.
    pub(crate) fn log_at(label: &str, values: impl Iterator<Item = f64>) -> Self {
        let values: Vec<f64> = values.filter(|value| *value > 0.0).collect();
        let ticks = ticks_at_values(&values);
        let range = log_range(values.into_iter());
        Self { label: label.to_owned(), scale: Scale::Log, range, ticks }
    }

    /// A linear axis from `from`, or from the least value where none is given.
    pub(crate) fn linear(
        label: &str,
        values: impl Iterator<Item = f64>,
        from: Option<f64>,
    ) -> Self {
        let (low, high) = bounds(values).unwrap_or((0.0, 1.0));
        // A range that rounding leaves nothing of could not be divided by.
        let least = 1e-9_f64.max(1e-14 * low.abs().max(high.abs()));
        let room = 0.05 * (high - from.unwrap_or(low)).abs().max(least);
        let range = (from.unwrap_or(low - room), high + room);
        let ticks = linear_ticks(range.0, range.1);
        Self { label: label.to_owned(), scale: Scale::Linear, range, ticks }
    }

    /// A linear axis from zero that ends where the values do.
    pub(crate) fn from_zero(label: &str, values: impl Iterator<Item = f64>) -> Self {
        let last = values.filter(|value| value.is_finite()).fold(0.0, f64::max);
        let last = if last > 0.0 { last.clamp(1.0 / REACH, REACH) } else { 1.0 };
        let mut axis = Self::linear(label, [0.0, last].into_iter(), Some(0.0));
        axis.range.1 = last;
        axis.ticks.retain(|tick| tick.value <= last);
        axis
    }

    /// An axis of names: the first at 0, each 1 from the last.
    pub(crate) fn of_names(label: &str, names: Vec<String>) -> Self {
        let range = (-0.6, names.len() as f64 - 0.4);
        let tick = |(at, label): (usize, String)| Tick { value: at as f64, label };
        let ticks = names.into_iter().enumerate().map(tick).collect();
        Self { label: label.to_owned(), scale: Scale::Linear, range, ticks }
    }

    /// An axis of fields of breadth 1, each with its name in the middle; the first at the end where they run down.
    pub(crate) fn of_fields(label: &str, names: Vec<String>, runs_down: bool) -> Self {
        let count = names.len() as f64;
        let range = if runs_down { (count, 0.0) } else { (0.0, count) };
        let tick = |(at, label): (usize, String)| Tick { value: at as f64 + 0.5, label };
        let ticks = names.into_iter().enumerate().map(tick).collect();
        Self { label: label.to_owned(), scale: Scale::Linear, range, ticks }
    }

    /// Where `value` lies: 0 at the axis' start, 1 at its end, and at most ten lengths of the axis beyond either.
    pub fn fraction(&self, value: f64) -> f64 {
        let (low, high) = self.range;
        let fraction = match self.scale {
            Scale::Linear => (value - low) / (high - low),
            Scale::Log => (value / low).ln() / (high / low).ln(),
        };
        match fraction.is_finite() {
            true => fraction.clamp(-BEYOND, 1.0 + BEYOND),
            false => fraction,
        }
    }
}

/// The share of its length by which a logarithmic axis may grow to end at a tick.
const MORE: f64 = 0.09;

fn log_range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let values = values.filter(|value| *value > 0.0).map(|value| value.max(1.0 / REACH));
    let (low, high) = bounds(values).unwrap_or((0.1, 10.0));
    let room = (high / low).powf(0.06).max(1.06);
    (low / room, high * room)
}

fn bounds(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    let values = values.filter(|value| value.is_finite()).map(|value| value.clamp(-REACH, REACH));
    values.fold(None, |bounds, value| match bounds {
        None => Some((value, value)),
        Some((low, high)) => Some((f64::min(low, value), f64::max(high, value))),
    })
}

/// How a series is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A line through the points.
    Line,
    /// A line, with a marker at every point; markers alone where there are two points or fewer.
    LineMarkers,
    /// Small markers alone.
    Points,
    /// The same, open.
    OpenPoints,
    /// Short ticks: one per seed.
    Seeds,
    /// Open markers in the lane above the panel, for values that do not exist; y is ignored.
    Above,
    /// Bars from the axis' start up to the points; in a legend, a filled field.
    Bars,
    /// A translucent field: the points along its lower edge, and back along its upper one.
    Band,
}

/// How broad a bar is on an axis of names.
pub(crate) const BAR: f64 = 0.36;

/// A named run of points.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// What the points are.
    pub name: String,
    /// Colour, marker and dashes.
    pub ink: Ink,
    /// How it is drawn.
    pub shape: Shape,
    /// (x, y), in the order in which a line joins them.
    pub points: Vec<(f64, f64)>,
    /// What is written beside the last point.
    pub label: Option<String>,
}

impl Series {
    pub(crate) fn new(name: &str, ink: Ink, shape: Shape, points: Vec<(f64, f64)>) -> Self {
        Self { name: name.to_owned(), ink, shape, points, label: None }
    }

    /// The field between the least and the greatest of the spreads along x.
    pub(crate) fn band(name: &str, ink: Ink, spreads: &[(f64, Spread)]) -> Self {
        let lower = spreads.iter().map(|(x, spread)| (*x, spread.low));
        let upper = spreads.iter().rev().map(|(x, spread)| (*x, spread.high));
        Self::new(name, ink, Shape::Band, lower.chain(upper).collect())
    }

    /// The ticks of single seeds, and the line through their medians at each x.
    pub(crate) fn over_seeds(name: &str, ink: Ink, seeds: Vec<(f64, f64)>) -> [Self; 2] {
        let medians = by_x(seeds.clone()).into_iter();
        let medians = medians.filter_map(|(x, values)| Some((x, Spread::of(values)?.median)));
        let medians = Self::new(name, ink, Shape::LineMarkers, medians.collect());
        [Self::new(name, ink, Shape::Seeds, seeds), medians]
    }

    /// A line across the panel from the one x to the other, at one level.
    pub(crate) fn level(name: &str, ink: Ink, ends: (f64, f64), y: f64) -> Self {
        Self::new(name, ink, Shape::Line, vec![(ends.0, y), (ends.1, y)])
    }

    /// The dashed line on which both axes show the same value.
    pub(crate) fn diagonal(name: &str, x: &Axis) -> Self {
        let (low, high) = x.range;
        Self::new(name, Ink::grey(Stroke::Dashed), Shape::Line, vec![(low, low), (high, high)])
    }

    /// The same without the points that are not above `least`.
    pub(crate) fn above(mut self, least: f64) -> Self {
        self.points.retain(|point| point.1 > least);
        self
    }

    /// The same, with `label` written beside its last point.
    pub(crate) fn labelled(self, label: &str) -> Self {
        Self { label: Some(label.to_owned()), ..self }
    }
}

/// For each x among the points of several seeds, their values.
pub(crate) fn by_x(mut points: Vec<(f64, f64)>) -> Vec<(f64, Vec<f64>)> {
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    let same = points.chunk_by(|a, b| a.0 == b.0);
    same.map(|same| (same[0].0, same.iter().map(|point| point.1).collect())).collect()
}

/// The second coordinates of all points, for an axis that holds them.
pub(crate) fn heights(series: &[Series]) -> impl Iterator<Item = f64> {
    series.iter().flat_map(|series| &series.points).map(|point| point.1)
}

/// One pair of axes and what is drawn in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    /// What the panel shows.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// What is drawn, the first lowest.
    pub series: Vec<Series>,
    /// A reference level across the panel.
    pub guide: Option<f64>,
    /// Fields of a heat map, drawn under the series.
    pub tiles: Vec<Tile>,
    /// A matrix that fills the panel.
    pub raster: Option<Raster>,
}

impl Panel {
    pub(crate) fn new(title: &str, x: Axis, y: Axis, series: Vec<Series>) -> Self {
        Self { title: title.to_owned(), x, y, series, guide: None, tiles: Vec::new(), raster: None }
    }

    /// Whether both axes show the same values, so that a diagonal joins equal ones.
    pub(crate) fn has_equal_axes(&self) -> bool {
        (self.x.scale, self.x.range) == (self.y.scale, self.y.range)
    }

    /// The same with a reference level.
    pub(crate) fn with_guide(self, level: f64) -> Self {
        Self { guide: Some(level), ..self }
    }
}

/// One field of a heat map.
#[derive(Clone, Debug, PartialEq)]
pub struct Tile {
    /// Its left and right ends.
    pub x: (f64, f64),
    /// Its lower and upper ends.
    pub y: (f64, f64),
    /// Its colour.
    pub colour: Rgb,
    /// What is written in it.
    pub text: String,
}

/// One entry of the legend above the panels.
#[derive(Clone, Debug, PartialEq)]
pub struct Key {
    /// What it stands for.
    pub label: String,
    /// The ink that is explained.
    pub ink: Ink,
    /// The shape that is explained.
    pub shape: Shape,
}

impl Key {
    pub(crate) fn new(label: &str, ink: Ink, shape: Shape) -> Self {
        Self { label: label.to_owned(), ink, shape }
    }

    /// The entries of ranks, in order, each once.
    pub(crate) fn of_ranks(ranks: impl Iterator<Item = usize>) -> Vec<Self> {
        let of_rank =
            |rank| Self::new(&format!("rank {rank}"), Ink::of_rank(rank), Shape::LineMarkers);
        distinct(ranks).into_iter().map(of_rank).collect()
    }

    /// The entry of the ticks, one per seed.
    pub(crate) fn seed() -> Self {
        Self::new("one seed", Ink::grey(Stroke::Solid), Shape::Seeds)
    }

    /// The entries of series, each name once.
    pub(crate) fn of_series<'s>(
        series: impl IntoIterator<Item = &'s Series>,
        shape: Shape,
    ) -> Vec<Self> {
        let alike = groups(series, |series| &series.name).into_iter();
        alike.map(|alike| Self::new(&alike[0].name, alike[0].ink, shape)).collect()
    }

    /// A field filled with a colour.
    pub(crate) fn field(label: &str, colour: Rgb) -> Self {
        let ink = Ink { colour, marker: Marker::Square, stroke: Stroke::Solid };
        Self::new(label, ink, Shape::Bars)
    }

    /// A grey line that stands for no series in particular.
    pub(crate) fn grey(label: &str, stroke: Stroke) -> Self {
        Self::new(label, Ink::grey(stroke), Shape::Line)
    }
}

/// The most panels of one picture: each costs the same number of pixels, however many rows asked for it.
const MOST_PANELS: usize = 48;

/// A picture of one or more panels, with what is said about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// A short name, fit for a file: `inflation`.
    pub name: String,
    /// What one sees, then how to read it: at most 60 words, without the symbols of titles.
    pub caption: String,
    /// The figure in words, for those who do not see it.
    pub alt: String,
    /// The legend above the panels.
    pub keys: Vec<Key>,
    /// The panels, from left to right, row by row.
    pub panels: Vec<Panel>,
}

impl Figure {
    /// The figure itself, or, where it has more panels than a picture can hold, as many figures as it takes: `name-1`, ….
    pub(crate) fn in_parts(self) -> Vec<Self> {
        let parts = self.panels.len().div_ceil(MOST_PANELS);
        if parts <= 1 {
            return vec![self];
        }
        let Self { name, caption, alt, keys, panels } = self;
        let part = |(at, panels): (usize, &[Panel])| Self {
            name: format!("{name}-{}", at + 1),
            caption: format!("{caption} Part {} of {parts}.", at + 1),
            alt: format!("{alt} Part {} of {parts}.", at + 1),
            keys: keys.clone(),
            panels: panels.to_vec(),
        };
        panels.chunks(MOST_PANELS).enumerate().map(part).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_panels_than_a_picture_holds_make_several() {
        let of = |count: usize| {
            let axis = || Axis::linear("x", std::iter::empty(), None);
            let panel = |at| Panel::new(&format!("panel {at}"), axis(), axis(), Vec::new());
            let [name, caption, alt] = ["many", "What is seen.", "In words."].map(str::to_owned);
            Figure { name, caption, alt, keys: Vec::new(), panels: (0..count).map(panel).collect() }
        };
        assert_eq!(of(MOST_PANELS).in_parts(), [of(MOST_PANELS)]);
        let parts = of(2 * MOST_PANELS + 1).in_parts();
        let told: Vec<_> = parts.iter().map(|part| (&*part.name, part.panels.len())).collect();
        assert_eq!(told, [("many-1", MOST_PANELS), ("many-2", MOST_PANELS), ("many-3", 1)]);
        assert_eq!(parts[2].caption, "What is seen. Part 3 of 3.");
        let titles = parts.iter().flat_map(|part| &part.panels).map(|panel| panel.title.clone());
        assert!(titles.eq((0..=2 * MOST_PANELS).map(|at| format!("panel {at}"))));
    }

    #[test]
    fn a_line_goes_through_the_medians_of_seeds() {
        let ink = Ink::numbered(0);
        let seeds = vec![(2.0, 5.0), (1.0, 3.0), (2.0, -1.0), (1.0, 1.0), (2.0, 0.5)];
        let [ticks, line] = Series::over_seeds("runs", ink, seeds.clone());
        assert_eq!((ticks.shape, &ticks.points), (Shape::Seeds, &seeds));
        assert_eq!((line.shape, line.points), (Shape::LineMarkers, vec![(1.0, 2.0), (2.0, 0.5)]));
        // The median is that of all seeds; what is not drawn is left out afterwards.
        assert_eq!(ticks.above(0.5).points, [(2.0, 5.0), (1.0, 3.0), (1.0, 1.0)]);
    }

    #[test]
    fn a_legend_has_each_name_once() {
        let series = ["b", "a", "b"]
            .map(|name| Series::new(name, Ink::numbered(0), Shape::Seeds, Vec::new()));
        let keys = Key::of_series(&series, Shape::Line);
        let labels: Vec<_> = keys.iter().map(|key| (&*key.label, key.shape)).collect();
        assert_eq!(labels, [("b", Shape::Line), ("a", Shape::Line)]);
    }

    #[test]
    fn fields_have_their_names_in_the_middle_and_may_run_down() {
        let axis = |runs_down| Axis::of_fields("layer", vec!["0".into(), "1".into()], runs_down);
        assert_eq!(axis(false).range, (0.0, 2.0));
        let down = axis(true);
        let places = down.ticks.iter().map(|tick| down.fraction(tick.value));
        assert!(places.eq([0.75, 0.25]), "the first at the top");
    }
}

//! Figures before they are drawn: panels of named series. Tests check these.

use crate::figure::ticks::{linear_ticks, log_ticks, ticks_at_values};
use crate::figure::{Ink, Marker, Raster, Rgb, Stroke, Tick};
use crate::table::{Spread, distinct, groups};

/// Mapping of values to positions on an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Proportional to the value.
    Linear,
    /// Proportional to the logarithm of the value.
    Log,
}

/// Largest magnitude of an axis' ends; its inverse is the smallest end of a logarithmic axis. No measured value lies
/// beyond, and larger ends would overflow to infinity.
const REACH: f64 = 1e100;

/// A value is drawn at most this many axis lengths beyond an axis' ends, because every pixel of a line outside the
/// panel takes time.
const BEYOND: f64 = 10.0;

/// One axis of a panel.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// Quantity on the axis, with its unit.
    pub label: String,
    /// Mapping of values to positions.
    pub scale: Scale,
    /// Values at the start and the end of the axis.
    pub range: (f64, f64),
    /// The ticks, in order.
    pub ticks: Vec<Tick>,
}

impl Axis {
    /// Creates a logarithmic axis that contains all of `values` with a margin, with ticks at round numbers. It ends at
    /// ticks if they are near, so that values at its ends can be read.
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

    /// Returns the same axis with another label.
    pub(crate) fn named(&self, label: &str) -> Self {
        Self { label: label.to_owned(), ..self.clone() }
    }

    /// Creates a logarithmic axis with ticks at the values themselves.
    pub(crate) fn log_at(label: &str, values: impl Iterator<Item = f64>) -> Self {
        let values: Vec<f64> = values.filter(|value| *value > 0.0).collect();
        let ticks = ticks_at_values(&values);
        let range = log_range(values.into_iter());
        Self { label: label.to_owned(), scale: Scale::Log, range, ticks }
    }

    /// Creates a linear axis that starts at `from`, or at the smallest value (less a margin) if `from` is `None`.
    pub(crate) fn linear(
        label: &str,
        values: impl Iterator<Item = f64>,
        from: Option<f64>,
    ) -> Self {
        let (low, high) = bounds(values).unwrap_or((0.0, 1.0));
        // The range must stay above rounding error, because `fraction` divides by it.
        let least = 1e-9_f64.max(1e-14 * low.abs().max(high.abs()));
        let room = 0.05 * (high - from.unwrap_or(low)).abs().max(least);
        let range = (from.unwrap_or(low - room), high + room);
        let ticks = linear_ticks(range.0, range.1);
        Self { label: label.to_owned(), scale: Scale::Linear, range, ticks }
    }

    /// Creates a linear axis from zero to the largest value.
    pub(crate) fn from_zero(label: &str, values: impl Iterator<Item = f64>) -> Self {
        let last = values.filter(|value| value.is_finite()).fold(0.0, f64::max);
        let last = if last > 0.0 { last.clamp(1.0 / REACH, REACH) } else { 1.0 };
        let mut axis = Self::linear(label, [0.0, last].into_iter(), Some(0.0));
        axis.range.1 = last;
        axis.ticks.retain(|tick| tick.value <= last);
        axis
    }

    /// Creates an axis of names at 0, 1, 2, ….
    pub(crate) fn of_names(label: &str, names: Vec<String>) -> Self {
        let range = (-0.6, names.len() as f64 - 0.4);
        let tick = |(at, label): (usize, String)| Tick { value: at as f64, label };
        let ticks = names.into_iter().enumerate().map(tick).collect();
        Self { label: label.to_owned(), scale: Scale::Linear, range, ticks }
    }

    /// Creates an axis of named fields of width 1, with each name in the middle.
    pub(crate) fn of_fields(label: &str, names: Vec<String>) -> Self {
        let range = (0.0, names.len() as f64);
        let tick = |(at, label): (usize, String)| Tick { value: at as f64 + 0.5, label };
        let ticks = names.into_iter().enumerate().map(tick).collect();
        Self { label: label.to_owned(), scale: Scale::Linear, range, ticks }
    }

    /// Position of `value`: 0 at the axis' start, 1 at its end, and at most ten axis lengths beyond either.
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

/// Share of its length by which a logarithmic axis may grow to end at a tick.
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

/// Shape of a series in a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A line through the points.
    Line,
    /// A line with a marker at every point; only the markers if there are at most two points.
    LineMarkers,
    /// Small filled markers.
    Points,
    /// Small open markers.
    OpenPoints,
    /// Short ticks: one per seed.
    Seeds,
    /// Open markers in the lane above the panel, for points without a finite value; y is ignored.
    Above,
    /// A filled swatch, in a legend alone.
    Field,
}

/// A named sequence of points.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Name of the series.
    pub name: String,
    /// Colour, marker and dashes.
    pub ink: Ink,
    /// Shape in the figure.
    pub shape: Shape,
    /// (x, y), in the order in which a line joins them.
    pub points: Vec<(f64, f64)>,
    /// Text beside the last point.
    pub label: Option<String>,
}

impl Series {
    pub(crate) fn new(name: &str, ink: Ink, shape: Shape, points: Vec<(f64, f64)>) -> Self {
        Self { name: name.to_owned(), ink, shape, points, label: None }
    }

    /// Ticks for single seeds, and a line through their medians at each x.
    pub(crate) fn over_seeds(name: &str, ink: Ink, seeds: Vec<(f64, f64)>) -> [Self; 2] {
        let medians = by_x(seeds.clone()).into_iter();
        let medians = medians.filter_map(|(x, values)| Some((x, Spread::of(values)?.median)));
        let medians = Self::new(name, ink, Shape::LineMarkers, medians.collect());
        [Self::new(name, ink, Shape::Seeds, seeds), medians]
    }

    /// The dashed line on which x and y are equal.
    pub(crate) fn diagonal(name: &str, x: &Axis) -> Self {
        let (low, high) = x.range;
        Self::new(name, Ink::grey(Stroke::Dashed), Shape::Line, vec![(low, low), (high, high)])
    }

    /// Keeps only the points whose y exceeds `least`.
    pub(crate) fn above(mut self, least: f64) -> Self {
        self.points.retain(|point| point.1 > least);
        self
    }

    /// Sets the text beside the last point.
    pub(crate) fn labelled(self, label: &str) -> Self {
        Self { label: Some(label.to_owned()), ..self }
    }
}

/// Collects the y values of the points for each x, in ascending order of x.
pub(crate) fn by_x(mut points: Vec<(f64, f64)>) -> Vec<(f64, Vec<f64>)> {
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    let same = points.chunk_by(|a, b| a.0 == b.0);
    same.map(|same| (same[0].0, same.iter().map(|point| point.1).collect())).collect()
}

/// The y values of all points, for an axis that contains them.
pub(crate) fn heights(series: &[Series]) -> impl Iterator<Item = f64> {
    series.iter().flat_map(|series| &series.points).map(|point| point.1)
}

/// A pair of axes and the series drawn in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    /// What the panel shows.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The series; later ones are drawn over earlier ones.
    pub series: Vec<Series>,
    /// Level of a horizontal reference line across the panel.
    pub guide: Option<f64>,
    /// Fields of a heat map, drawn below the series.
    pub tiles: Vec<Tile>,
    /// A matrix that fills the panel.
    pub raster: Option<Raster>,
}

impl Panel {
    pub(crate) fn new(title: &str, x: Axis, y: Axis, series: Vec<Series>) -> Self {
        Self { title: title.to_owned(), x, y, series, guide: None, tiles: Vec::new(), raster: None }
    }

    /// Returns `true` if both axes have the same scale and range, so that equal values lie on the diagonal.
    pub(crate) fn has_equal_axes(&self) -> bool {
        (self.x.scale, self.x.range) == (self.y.scale, self.y.range)
    }

    /// Sets the reference level.
    pub(crate) fn with_guide(self, level: f64) -> Self {
        Self { guide: Some(level), ..self }
    }
}

/// One field of a heat map.
#[derive(Clone, Debug, PartialEq)]
pub struct Tile {
    /// Left and right ends.
    pub x: (f64, f64),
    /// Lower and upper ends.
    pub y: (f64, f64),
    /// Its colour.
    pub colour: Rgb,
    /// Text in the field.
    pub text: String,
}

/// One entry of the legend above the panels.
#[derive(Clone, Debug, PartialEq)]
pub struct Key {
    /// Text of the entry.
    pub label: String,
    /// Ink that is explained.
    pub ink: Ink,
    /// Shape that is explained.
    pub shape: Shape,
}

impl Key {
    pub(crate) fn new(label: &str, ink: Ink, shape: Shape) -> Self {
        Self { label: label.to_owned(), ink, shape }
    }

    /// Entries of ranks, in ascending order without duplicates.
    pub(crate) fn of_ranks(ranks: impl Iterator<Item = usize>) -> Vec<Self> {
        let of_rank =
            |rank| Self::new(&format!("rank {rank}"), Ink::of_rank(rank), Shape::LineMarkers);
        distinct(ranks).into_iter().map(of_rank).collect()
    }

    /// Entry of the ticks, one per seed.
    pub(crate) fn seed() -> Self {
        Self::new("one seed", Ink::grey(Stroke::Solid), Shape::Seeds)
    }

    /// Entries of series, one per name.
    pub(crate) fn of_series<'s>(
        series: impl IntoIterator<Item = &'s Series>,
        shape: Shape,
    ) -> Vec<Self> {
        let alike = groups(series, |series| &series.name).into_iter();
        alike.map(|alike| Self::new(&alike[0].name, alike[0].ink, shape)).collect()
    }

    /// Entry with a swatch of a colour.
    pub(crate) fn field(label: &str, colour: Rgb) -> Self {
        let ink = Ink { colour, marker: Marker::Square, stroke: Stroke::Solid };
        Self::new(label, ink, Shape::Field)
    }

    /// Entry with a grey line, for a reference line.
    pub(crate) fn grey(label: &str, stroke: Stroke) -> Self {
        Self::new(label, Ink::grey(stroke), Shape::Line)
    }
}

/// Maximum number of panels per figure, because each panel has a fixed size in pixels.
const MOST_PANELS: usize = 48;

/// A figure of one or more panels, with its caption.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// A short name, usable as a file name: `inflation`.
    pub name: String,
    /// Description of the figure and how to read it: at most 60 words, without the symbols of titles.
    pub caption: String,
    /// The legend above the panels.
    pub keys: Vec<Key>,
    /// The panels, from left to right, row by row.
    pub panels: Vec<Panel>,
}

impl Figure {
    /// Returns the figure itself or, if it has too many panels, several figures: `name-1`, ….
    pub(crate) fn in_parts(self) -> Vec<Self> {
        let parts = self.panels.len().div_ceil(MOST_PANELS);
        if parts <= 1 {
            return vec![self];
        }
        let Self { name, caption, keys, panels } = self;
        let part = |(at, panels): (usize, &[Panel])| Self {
            name: format!("{name}-{}", at + 1),
            caption: format!("{caption} Part {} of {parts}.", at + 1),
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
            let [name, caption] = ["many", "What is seen."].map(str::to_owned);
            Figure { name, caption, keys: Vec::new(), panels: (0..count).map(panel).collect() }
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
        // Medians are taken over all seeds; points are removed only afterwards.
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
    fn fields_have_their_names_in_the_middle() {
        let axis = Axis::of_fields("layer", vec!["0".into(), "1".into()]);
        let places = axis.ticks.iter().map(|tick| axis.fraction(tick.value));
        assert!(axis.range == (0.0, 2.0) && places.eq([0.25, 0.75]));
    }
}

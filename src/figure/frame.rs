//! Layout of a figure in pixels.

use super::pen::width;
use super::style::size;
use crate::figure::{Figure, Key, Panel, Series, Shape};

/// Maximum number of columns of panels; fewer if labels stand beside the lines.
const COLUMNS: usize = 3;
const COLUMNS_LABELLED: usize = 2;
/// Gap between the text of one legend entry and the sample of the next.
const KEY_GAP: f64 = 20.0;
/// Width of a legend's sample, including the gap to its text.
pub(crate) const SAMPLE: f64 = 32.0;
const KEY_LINE: f64 = 20.0;
const EDGE: f64 = 12.0;
/// Space above a panel for its title, and below it for ticks and the label of x.
const OVER: f64 = 26.0;
const UNDER: f64 = 48.0;
/// Height of the first line of a title on two lines.
pub(crate) const TITLE_LINE: f64 = 15.0;

/// Data rectangle of one panel, without the lane above it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Plot {
    pub left: f64,
    pub right: f64,
    pub top: f64,
    pub bottom: f64,
    /// Width of the labels to the right of the data.
    pub beside: f64,
    /// Whether this panel shows the label of its y axis.
    pub says_y: bool,
    /// Byte index at which the title is broken into two lines, if it is.
    pub title_break: Option<usize>,
}

/// The layout of a figure.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Frame {
    pub width: f64,
    pub height: f64,
    /// The left end and the height of each legend entry.
    pub keys: Vec<(f64, f64)>,
    pub plots: Vec<Plot>,
    /// Whether panels have a lane above the data, for points without a finite value.
    pub lane: bool,
}

impl Frame {
    pub(crate) fn from_figure(figure: &Figure) -> Self {
        let square = figure.panels.iter().find(|p| p.raster.is_some() || p.has_equal_axes());
        let whole = match (figure.panels.len(), square) {
            (1, Some(panel)) if panel.raster.is_none() => size::WIDTH_OF_SQUARE,
            (1, _) => size::WIDTH_OF_ONE,
            _ => size::WIDTH,
        };
        let (keys, top) = keys(&figure.keys, whole);
        let lane = figure
            .panels
            .iter()
            .flat_map(|panel| &panel.series)
            .any(|series| series.shape == Shape::Above && !series.points.is_empty());
        let labelled =
            figure.panels.iter().flat_map(|panel| &panel.series).any(|s| s.label.is_some());
        let most = if labelled { COLUMNS_LABELLED } else { COLUMNS };
        let columns = columns(figure.panels.len(), most);
        let lane_height = if lane { size::LANE } else { 0.0 };
        let y = |panel: &Panel| (panel.y.label.clone(), panel.y.scale, panel.y.range);
        let shared = figure.panels.windows(2).all(|pair| y(&pair[0]) == y(&pair[1]));
        let cell = (whole - 2.0 * EDGE) / columns as f64;
        // A panel with a matrix or a diagonal is square.
        let plot_height = square
            .map_or(size::PLOT_HEIGHT, |panel| cell - left_room(panel, true) - right_room(panel));
        let says_y = |at: usize| at.is_multiple_of(columns) || !shared;
        let breaks: Vec<Option<usize>> = figure
            .panels
            .iter()
            .enumerate()
            .map(|(at, panel)| title_break(&panel.title, cell - left_room(panel, says_y(at))))
            .collect();
        let over = if breaks.iter().any(Option::is_some) { OVER + TITLE_LINE } else { OVER };
        let over = over + lane_height;
        let row_height = over + plot_height + UNDER;
        let plots = figure.panels.iter().enumerate().map(|(at, panel)| {
            let (row, column) = (at / columns, at % columns);
            let left = EDGE + column as f64 * cell;
            let top = top + row as f64 * row_height + over;
            // Panels in the same column with the same x range get the same width.
            let under = || {
                let panels = figure.panels.iter().enumerate().skip(column).step_by(columns);
                panels.filter(|(_, other)| other.x.range == panel.x.range)
            };
            let left_room = under().map(|(at, panel)| left_room(panel, says_y(at)));
            let beside = under().map(|(_, panel)| right_room(panel)).fold(0.0, f64::max);
            Plot {
                left: left + left_room.fold(0.0, f64::max),
                right: left + cell - beside,
                top,
                bottom: top + plot_height,
                beside,
                says_y: says_y(at),
                title_break: breaks[at],
            }
        });
        let mut plots: Vec<Plot> = plots.collect();
        even_out(&mut plots, columns, shared);
        let rows = figure.panels.len().div_ceil(columns);
        Self { width: whole, height: top + rows as f64 * row_height, keys, plots, lane }
    }
}

/// Byte index at which to break a title that is much too wide for its space: after its colon, or after the last comma
/// that fits.
fn title_break(title: &str, room: f64) -> Option<usize> {
    const SHRUNK: f64 = 1.1;
    let fits = |text: &str| width(text, size::TITLE_TEXT, true) <= SHRUNK * room;
    if fits(title) {
        return None;
    }
    let commas = || title.rmatch_indices(", ").map(|(at, _)| at);
    title.find(": ").or_else(|| commas().find(|&at| fits(&title[..at]))).map(|at| at + 1)
}

/// Number of columns for `panels` panels: four stand two by two, otherwise all rows but the last are full.
fn columns(panels: usize, most: usize) -> usize {
    if panels == 4 { 2 } else { panels.clamp(1, most) }
}

/// Gives panels that share a y axis the same width: all contribute to the space for the first one's label.
fn even_out(plots: &mut [Plot], columns: usize, shared: bool) {
    if !shared || plots.len() < 2 {
        return;
    }
    let free: f64 = plots.iter().take(columns).map(|plot| plot.right - plot.left).sum();
    let each = free / columns as f64;
    for row in plots.chunks_mut(columns) {
        let mut moved = 0.0;
        for plot in row {
            let change = each - (plot.right - plot.left);
            plot.left += moved;
            plot.right += moved + change;
            moved += change;
        }
    }
}

/// Space on the left for the tick labels and, if it is shown, the label of y.
fn left_room(panel: &Panel, says_y: bool) -> f64 {
    let ticks = panel.y.ticks.iter().map(|tick| width(&tick.label, size::TICK_TEXT, false));
    let label = if says_y { 22.0 } else { 6.0 };
    ticks.fold(0.0, f64::max) + 8.0 + label
}

/// Space for the marker before a label. Several series of points may have one colour, and no line leads to the label.
pub(crate) fn before_label(series: &Series) -> f64 {
    if series.shape == Shape::Points { 2.0 * size::SEED + 5.0 } else { 0.0 }
}

/// Space on the right for labels beside the last points.
fn right_room(panel: &Panel) -> f64 {
    let room = |series: &Series| {
        let text = width(series.label.as_deref()?, size::TICK_TEXT, true);
        Some(before_label(series) + text)
    };
    let widest = panel.series.iter().filter_map(room).fold(0.0, f64::max);
    if widest > 0.0 { widest + 22.0 } else { 12.0 }
}

/// Returns the positions of legend entries, wrapped into lines, and the y at which the panels begin.
fn keys(keys: &[Key], whole: f64) -> (Vec<(f64, f64)>, f64) {
    let (mut x, mut y) = (2.0 * EDGE, EDGE + 6.0);
    let mut places = Vec::new();
    for key in keys {
        let breadth = SAMPLE + width(&key.label, size::TICK_TEXT, false);
        if x + breadth > whole - EDGE && x > 2.0 * EDGE {
            (x, y) = (2.0 * EDGE, y + KEY_LINE);
        }
        places.push((x, y));
        x += breadth + KEY_GAP;
    }
    let top = if keys.is_empty() { 4.0 } else { y + KEY_LINE / 2.0 };
    (places, top)
}

#[cfg(test)]
mod tests {
    use super::title_break;

    #[test]
    fn a_title_is_broken_only_where_it_is_much_too_broad() {
        let broken =
            |title: &str, room| title_break(title, room).map(|at| title.split_at(at).0.to_owned());
        let title = "multi-head, RoPE: n = 512, d_head = 16";
        assert_eq!(broken(title, 1000.0), None);
        assert_eq!(broken(title, 150.0).as_deref(), Some("multi-head, RoPE:"));
        assert_eq!(broken("band, w = 32, no mask", 120.0).as_deref(), Some("band, w = 32,"));
    }
}

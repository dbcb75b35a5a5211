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
        let y = |panel: &Panel| (panel.y.label.clone(), panel.y.scale, panel.y.range);
        let shared = figure.panels.windows(2).all(|pair| y(&pair[0]) == y(&pair[1]));
        let cell = (whole - 2.0 * EDGE) / columns as f64;
        // All panels leave the same room on both sides, so that they have the same width.
        let left_room = figure.panels.iter().map(left_room).fold(0.0, f64::max);
        let beside = figure.panels.iter().map(right_room).fold(0.0, f64::max);
        // A panel with a matrix or a diagonal is square.
        let plot_height = square.map_or(size::PLOT_HEIGHT, |_| cell - left_room - beside);
        let over = OVER + if lane { size::LANE } else { 0.0 };
        let row_height = over + plot_height + UNDER;
        let plots = (0..figure.panels.len()).map(|at| {
            let (row, column) = (at / columns, at % columns);
            let left = EDGE + column as f64 * cell;
            let top = top + row as f64 * row_height + over;
            Plot {
                left: left + left_room,
                right: left + cell - beside,
                top,
                bottom: top + plot_height,
                beside,
                says_y: column == 0 || !shared,
            }
        });
        let plots = plots.collect();
        let rows = figure.panels.len().div_ceil(columns);
        Self { width: whole, height: top + rows as f64 * row_height, keys, plots, lane }
    }
}

/// Number of columns for `panels` panels: four stand two by two, otherwise all rows but the last are full.
fn columns(panels: usize, most: usize) -> usize {
    if panels == 4 { 2 } else { panels.clamp(1, most) }
}

/// Space on the left for the tick labels and the label of y.
fn left_room(panel: &Panel) -> f64 {
    let ticks = panel.y.ticks.iter().map(|tick| width(&tick.label, size::TICK_TEXT, false));
    ticks.fold(0.0, f64::max) + 30.0
}

/// Space for the marker before a label. Several series of points may have one colour, and no line leads to the label.
pub(crate) fn before_label(series: &Series) -> f64 {
    if series.shape == Shape::Points { 2.0 * size::SEED + 5.0 } else { 0.0 }
}

/// Breaks a label after commas, or at spaces if it has none, into lines of at most [`size::LABEL_WIDTH`], so that it leaves
/// room for the data. A longer part is a line of its own.
pub(crate) fn label_lines(label: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for part in label.split_inclusive(if label.contains(", ") { ", " } else { " " }) {
        match lines.last_mut().map(|line| (format!("{line}{part}"), line)) {
            Some((longer, line))
                if width(longer.trim_end(), size::TICK_TEXT, true) <= size::LABEL_WIDTH =>
            {
                *line = longer;
            }
            _ => lines.push(part.to_owned()),
        }
    }
    lines
}

/// Space on the right for labels beside the last points.
fn right_room(panel: &Panel) -> f64 {
    let room = |series: &Series| {
        let lines = label_lines(series.label.as_deref()?);
        let widths = lines.iter().map(|line| width(line, size::TICK_TEXT, true));
        Some(before_label(series) + widths.fold(0.0, f64::max))
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

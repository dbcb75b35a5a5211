//! Draws a figure with the drawing library: legend, panels, axes, series, labels.

use plotters::prelude::DrawingBackend;
use plotters::style::text_anchor::HPos;

use super::frame::{Frame, Plot, SAMPLE, before_label, label_lines};
use super::pen::{Drawn, Pen, Type, width};
use crate::figure::style::{DARK, GREY, GRID, LANE, dark, luminance, size};
use crate::figure::{Figure, Ink, Key, Panel, Series, Shape, Stroke, attention_colour};

/// Draws the whole of `figure` in the layout of `frame`.
pub(crate) fn figure<DB: DrawingBackend>(
    pen: &Pen<DB>,
    figure: &Figure,
    frame: &Frame,
) -> Drawn<DB> {
    pen.rectangle((0.0, 0.0), (frame.width, frame.height), (255, 255, 255))?;
    for (key, &place) in figure.keys.iter().zip(&frame.keys) {
        legend(pen, key, place)?;
    }
    for (panel, plot) in figure.panels.iter().zip(&frame.plots) {
        axes(pen, panel, plot, frame.lane)?;
        raster(pen, panel, plot)?;
        tiles(pen, panel, plot)?;
        for series in &panel.series {
            draw_series(pen, panel, plot, series)?;
        }
        labels(pen, panel, plot)?;
    }
    Ok(())
}

fn legend<DB: DrawingBackend>(pen: &Pen<DB>, key: &Key, (x, y): (f64, f64)) -> Drawn<DB> {
    let (from, to) = ((x, y), (x + SAMPLE - 8.0, y));
    let middle = (0.5 * (from.0 + to.0), y);
    let ink = key.ink;
    match key.shape {
        Shape::Line => pen.line(&[from, to], ink.colour, size::LINE, ink.stroke)?,
        Shape::LineMarkers => {
            pen.line(&[from, to], ink.colour, size::LINE, ink.stroke)?;
            pen.marker(middle, size::MARKER, ink, false)?;
        }
        Shape::Points => pen.marker(middle, size::SEED + 0.4, ink, false)?,
        Shape::OpenPoints => pen.marker(middle, size::SEED + 0.4, ink, true)?,
        Shape::Seeds => seeds(pen, &[middle], ink)?,
        Shape::Above => pen.marker(middle, size::MARKER, ink, true)?,
        Shape::Field => {
            pen.rectangle((from.0, y - size::SWATCH), (to.0, y + size::SWATCH), ink.colour)?;
        }
    }
    let set = Type::plain(size::TICK_TEXT, DARK);
    pen.words(&key.label, (x + SAMPLE, y), HPos::Left, set)
}

fn axes<DB: DrawingBackend>(pen: &Pen<DB>, panel: &Panel, plot: &Plot, lane: bool) -> Drawn<DB> {
    let set = Type::plain(size::TICK_TEXT, DARK);
    let mut over = plot.top;
    if lane {
        over -= size::LANE;
        pen.rectangle((plot.left, over), (plot.right, plot.top), LANE)?;
    }
    for tick in &panel.y.ticks {
        let y = down(panel, plot, tick.value);
        pen.line(&[(plot.left, y), (plot.right, y)], GRID, size::THIN, Stroke::Solid)?;
        pen.words(&tick.label, (plot.left - 6.0, y), HPos::Right, set)?;
    }
    for tick in &panel.x.ticks {
        let x = across(panel, plot, tick.value);
        let ends = [(x, plot.bottom), (x, plot.bottom + 4.0)];
        pen.line(&ends, DARK, size::THIN, Stroke::Solid)?;
        pen.words(&tick.label, (x, plot.bottom + 13.0), HPos::Center, set)?;
    }
    let corner = [(plot.left, plot.top), (plot.left, plot.bottom), (plot.right, plot.bottom)];
    pen.line(&corner, DARK, size::THIN, Stroke::Solid)?;
    if let Some(guide) = panel.guide {
        let y = down(panel, plot, guide);
        pen.line(&[(plot.left, y), (plot.right, y)], GREY, 1.3, Stroke::Dashed)?;
    }
    names(pen, panel, plot, over)
}

fn names<DB: DrawingBackend>(pen: &Pen<DB>, panel: &Panel, plot: &Plot, over: f64) -> Drawn<DB> {
    let room = plot.right + plot.beside - plot.left;
    if !panel.title.is_empty() {
        // A title that is too wide is set smaller.
        let em = size::TITLE_TEXT / (width(&panel.title, size::TITLE_TEXT, true) / room).max(1.0);
        let title = Type { bold: true, ..Type::plain(em, DARK) };
        pen.words(&panel.title, (plot.left, over - 12.0), HPos::Left, title)?;
    }
    let set = Type::plain(size::LABEL_TEXT, DARK);
    let middle = 0.5 * (plot.left + plot.right);
    pen.words(&panel.x.label, (middle, plot.bottom + 32.0), HPos::Center, set)?;
    if plot.says_y {
        let room = panel.y.ticks.iter().map(|tick| width(&tick.label, size::TICK_TEXT, false));
        let x = plot.left - room.fold(0.0, f64::max) - 18.0;
        let set = Type { upwards: true, ..set };
        pen.words(&panel.y.label, (x, 0.5 * (plot.top + plot.bottom)), HPos::Center, set)?;
    }
    Ok(())
}

/// Draws a matrix that fills the panel, pixel by pixel; in an SVG the matrix is an embedded image instead.
fn raster<DB: DrawingBackend>(pen: &Pen<DB>, panel: &Panel, plot: &Plot) -> Drawn<DB> {
    let Some(raster) = panel.raster.as_ref().filter(|_| !pen.is_vector()) else { return Ok(()) };
    let (rows, columns) = raster.values.dim();
    let (width, height) = (plot.right - plot.left, plot.bottom - plot.top);
    raster.values.indexed_iter().try_for_each(|((row, column), &value)| {
        let at = |row: usize, column: usize| {
            let (x, y) = (column as f64 / columns as f64, row as f64 / rows as f64);
            (plot.left + x * width, plot.top + y * height)
        };
        pen.rectangle(at(row, column), at(row + 1, column + 1), attention_colour(value))
    })
}

/// Draws the tiles of a heat map with white gaps. Their text is dark on light tiles and white on dark ones.
fn tiles<DB: DrawingBackend>(pen: &Pen<DB>, panel: &Panel, plot: &Plot) -> Drawn<DB> {
    panel.tiles.iter().try_for_each(|tile| {
        let (left, right) = (across(panel, plot, tile.x.0), across(panel, plot, tile.x.1));
        let (bottom, top) = (down(panel, plot, tile.y.0), down(panel, plot, tile.y.1));
        pen.rectangle((left + 1.0, top + 1.0), (right - 1.0, bottom - 1.0), tile.colour)?;
        let colour = if luminance(tile.colour) > 0.5 { DARK } else { (255, 255, 255) };
        let middle = (0.5 * (left + right), 0.5 * (top + bottom));
        pen.words(&tile.text, middle, HPos::Center, Type::plain(size::TICK_TEXT, colour))
    })
}

fn draw_series<DB: DrawingBackend>(
    pen: &Pen<DB>,
    panel: &Panel,
    plot: &Plot,
    series: &Series,
) -> Drawn<DB> {
    let ink = series.ink;
    let at = |&(x, y): &(f64, f64)| (across(panel, plot, x), down(panel, plot, y));
    let shown =
        |&(x, y): &(f64, f64)| x.is_finite() && (y.is_finite() || series.shape == Shape::Above);
    let points: Vec<(f64, f64)> = series.points.iter().map(at).filter(shown).collect();
    let covers = covers(panel, plot, series, &points);
    let nested = |radius: f64| {
        points.iter().zip(&covers).try_for_each(|(&point, &over)| {
            pen.marker(point, radius + size::NESTED * over as f64, ink, false)
        })
    };
    match series.shape {
        Shape::Line => nested_line(pen, &points, ink, &covers),
        Shape::LineMarkers => {
            // A line through two points would look like a trend.
            if points.len() > 2 {
                nested_line(pen, &points, ink, &covers)?;
            }
            nested(size::MARKER)
        }
        Shape::Points => nested(size::SEED),
        Shape::OpenPoints => open_markers(pen, &points, size::SEED, ink),
        Shape::Seeds => seeds(pen, &points, ink),
        Shape::Field => Ok(()),
        Shape::Above => {
            let y = plot.top - 0.5 * size::LANE;
            let beside = series.points.iter().map(|&(x, _)| beside(panel, series, x));
            let points: Vec<(f64, f64)> =
                points.iter().zip(beside).map(|(&(x, _), beside)| (x + beside, y)).collect();
            open_markers(pen, &points, size::MARKER, ink)
        }
    }
}

/// Returns, for each of `points` (of `series`, in pixels), how many later series cover it. Long curves are noisy and
/// scattered points belong to no line, so they count as not covered.
fn covers(panel: &Panel, plot: &Plot, series: &Series, points: &[(f64, f64)]) -> Vec<usize> {
    const MANY: usize = 40;
    // The order of many lines in one place is not visible, and broad lines hide their surroundings.
    const MOST: usize = 2;
    const NEAR: f64 = 2.0;
    let on_line = |other: &Series| {
        let line = |of: &Series| matches!(of.shape, Shape::Line | Shape::LineMarkers);
        let drawn = |of: &Series| line(of) && of.name == other.name && of.points.len() <= MANY;
        line(other) || other.shape == Shape::Points && panel.series.iter().any(drawn)
    };
    let own = on_line(series) && points.len() <= MANY;
    let later = panel.series.iter().skip_while(|other| !std::ptr::eq(*other, series)).skip(1);
    let later = later.filter(|of| own && on_line(of) && of.points.len() <= MANY);
    let alike = later.filter(|of| (of.shape == Shape::Points) == (series.shape == Shape::Points));
    let others: Vec<Vec<(f64, f64)>> = alike
        .map(|of| of.points.iter().map(|&(x, y)| (across(panel, plot, x), down(panel, plot, y))))
        .map(Iterator::collect)
        .collect();
    let is_near = |a: (f64, f64), b: (f64, f64)| (a.0 - b.0).abs().max((a.1 - b.1).abs()) < NEAR;
    let of_point = |&point: &(f64, f64)| {
        others.iter().filter(|other| other.iter().any(|&b| is_near(point, b))).take(MOST).count()
    };
    points.iter().map(of_point).collect()
}

/// Draws a line broader where other lines lie over it, so that each stays visible.
fn nested_line<DB: DrawingBackend>(
    pen: &Pen<DB>,
    points: &[(f64, f64)],
    ink: Ink,
    covers: &[usize],
) -> Drawn<DB> {
    let stretches: Vec<usize> = covers.windows(2).map(|ends| ends[0].min(ends[1])).collect();
    let mut from = 0;
    for alike in stretches.chunk_by(|a, b| a == b) {
        let to = from + alike.len();
        let breadth = size::LINE + size::NESTED * alike[0] as f64;
        pen.line(&points[from..=to], ink.colour, breadth, ink.stroke)?;
        from = to;
    }
    Ok(())
}

/// Horizontal offset of a marker above the panel, so that markers of several series at one x stand side by side.
fn beside(panel: &Panel, series: &Series, x: f64) -> f64 {
    let at_x = |other: &&Series| {
        other.shape == Shape::Above && other.points.iter().any(|point| point.0 == x)
    };
    let there: Vec<&Series> = panel.series.iter().filter(at_x).collect();
    let own = there.iter().position(|other| std::ptr::eq(*other, series)).unwrap_or(0);
    (own as f64 - 0.5 * there.len().saturating_sub(1) as f64) * 2.7 * size::MARKER
}

fn seeds<DB: DrawingBackend>(pen: &Pen<DB>, points: &[(f64, f64)], ink: Ink) -> Drawn<DB> {
    points.iter().try_for_each(|&(x, y)| {
        pen.line(&[(x - size::STROKE, y), (x + size::STROKE, y)], ink.colour, 1.1, Stroke::Solid)
    })
}

fn open_markers<DB: DrawingBackend>(
    pen: &Pen<DB>,
    points: &[(f64, f64)],
    radius: f64,
    ink: Ink,
) -> Drawn<DB> {
    points.iter().try_for_each(|&point| pen.marker(point, radius, ink, true))
}

/// Draws labels beside the last points, moved apart so that they do not overlap.
fn labels<DB: DrawingBackend>(pen: &Pen<DB>, panel: &Panel, plot: &Plot) -> Drawn<DB> {
    let mut wanted: Vec<(f64, &Series, Vec<String>)> = panel
        .series
        .iter()
        .filter_map(|series| {
            let &(_, y) = series.points.last()?;
            Some((down(panel, plot, y), series, label_lines(series.label.as_deref()?)))
        })
        .filter(|entry| entry.0.is_finite())
        .collect();
    wanted.sort_by(|a, b| a.0.total_cmp(&b.0));
    // The middle of a label stands beside its point.
    let tops = wanted.iter().map(|(y, _, lines)| {
        let rows = lines.len() as f64;
        (y - 0.5 * (rows - 1.0) * size::LABEL_LINE, rows * size::LABEL_LINE)
    });
    let heights = apart(&tops.collect::<Vec<_>>(), plot.bottom + size::LABEL_LINE);
    for ((_, series, lines), y) in wanted.iter().zip(heights) {
        let set = Type { bold: true, ..Type::plain(size::TICK_TEXT, dark(series.ink.colour)) };
        let x = plot.right + 7.0;
        if series.shape == Shape::Points {
            pen.marker((x + size::SEED, y), size::SEED + 0.4, series.ink, false)?;
        }
        for (row, line) in lines.iter().enumerate() {
            let y = y + row as f64 * size::LABEL_LINE;
            pen.words(line, (x + before_label(series), y), HPos::Left, set)?;
        }
    }
    Ok(())
}

/// Moves blocks, each given by its top and height, until none overlaps the next and none ends below `bottom` (y grows
/// downwards). Returns their tops.
fn apart(wanted: &[(f64, f64)], bottom: f64) -> Vec<f64> {
    let mut tops: Vec<f64> = wanted.iter().map(|block| block.0).collect();
    for at in 1..tops.len() {
        tops[at] = tops[at].max(tops[at - 1] + wanted[at - 1].1);
    }
    let mut limit = bottom;
    for (top, (_, height)) in tops.iter_mut().zip(wanted).rev() {
        *top = top.min(limit - height);
        limit = *top;
    }
    tops
}

fn across(panel: &Panel, plot: &Plot, value: f64) -> f64 {
    plot.left + panel.x.fraction(value) * (plot.right - plot.left)
}

fn down(panel: &Panel, plot: &Plot, value: f64) -> f64 {
    plot.bottom - panel.y.fraction(value) * (plot.bottom - plot.top)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::Axis;

    #[test]
    fn a_line_is_broader_where_a_later_one_covers_it() {
        let series = |name: &str, last: f64| {
            let points = vec![(1.0, 1.0), (2.0, 2.0), (3.0, last)];
            Series::new(name, Ink::of_rank(4), Shape::LineMarkers, points)
        };
        let axis = || Axis::linear("", [1.0, 3.0].into_iter(), None);
        let panel =
            Panel::new("", axis(), axis(), vec![series("lower", 3.0), series("upper", 1.0)]);
        let plot =
            Plot { left: 0.0, right: 100.0, top: 0.0, bottom: 100.0, beside: 0.0, says_y: true };
        let covered = |series: &Series| {
            let at = |&(x, y): &(f64, f64)| (across(&panel, &plot, x), down(&panel, &plot, y));
            let points: Vec<(f64, f64)> = series.points.iter().map(at).collect();
            covers(&panel, &plot, series, &points)
        };
        assert_eq!(covered(&panel.series[0]), [1, 1, 0]);
        assert_eq!(covered(&panel.series[1]), [0, 0, 0]);
    }

    #[test]
    fn labels_do_not_touch_and_stay_inside() {
        let one_line = [(10.0, 14.0), (12.0, 14.0), (50.0, 14.0)];
        assert_eq!(apart(&one_line, 100.0), [10.0, 24.0, 50.0]);
        assert_eq!(apart(&[(95.0, 28.0), (96.0, 14.0)], 100.0), [58.0, 86.0]);
        assert_eq!(label_lines("multi-head, RoPE, recursions 3, router expert").len(), 2);
        assert_eq!(label_lines("multi-head, RoPE"), ["multi-head, RoPE"]);
    }
}

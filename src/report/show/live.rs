//! Data of a page's figures as JSON, for its script.

use base64::prelude::{BASE64_STANDARD, Engine as _};
use half::bf16;
use serde_json::{Value, json};

use super::head_grid::HeadGrid;
use crate::figure::{Axis, Figure, Panel, Raster, Scale, Series, Shape, Stroke, hex};
use crate::report::document::{in_script, number};

/// Data of a figure whose panels all have series or all have a matrix; other figures stay static images.
pub(super) fn of_figure(figure: &Figure) -> Option<String> {
    let is_of_series = |panel: &Panel| {
        let mut shapes = panel.series.iter().map(|series| series.shape);
        panel.tiles.is_empty() && panel.raster.is_none() && shapes.all(can_be_live)
    };
    let value = if figure.panels.iter().all(|panel| panel.raster.is_some()) {
        let rasters =
            figure.panels.iter().filter_map(|panel| Some((panel, panel.raster.as_ref()?)));
        json!({ "rasters": rasters.map(|(panel, raster)| of_raster(panel, raster)).collect::<Vec<_>>() })
    } else if figure.panels.iter().all(is_of_series) {
        json!({ "panels": figure.panels.iter().map(of_panel).collect::<Vec<_>>() })
    } else {
        return None;
    };
    Some(in_script(&value))
}

/// Data of a grid of heads.
pub(super) fn of_grid(grid: &HeadGrid) -> String {
    let heads = grid.heads.iter().map(|head| {
        let values: Vec<Vec<Value>> = head
            .values
            .iter()
            .map(|steps| steps.iter().map(|value| number(value.unwrap_or(f64::NAN))).collect())
            .collect();
        json!({ "layer": head.layer, "head": head.head, "kind": head.kind, "values": values })
    });
    in_script(&json!({
        "steps": grid.steps,
        "quantities": grid.quantities,
        "heads": heads.collect::<Vec<_>>(),
    }))
}

/// Whether the script can draw a shape. It cannot draw a marker above the panel, which stands for a missing value.
fn can_be_live(shape: Shape) -> bool {
    matches!(
        shape,
        Shape::Line | Shape::LineMarkers | Shape::Points | Shape::OpenPoints | Shape::Seeds
    )
}

fn of_panel(panel: &Panel) -> Value {
    let drawn = panel.series.iter().filter(|series| !series.points.is_empty());
    json!({
        "title": panel.title,
        "x": axis(&panel.x),
        "y": axis(&panel.y),
        "series": drawn.map(of_series).collect::<Vec<_>>(),
    })
}

fn axis(axis: &Axis) -> Value {
    json!({
        "label": axis.label,
        "log": axis.scale == Scale::Log,
        "range": [number(axis.range.0), number(axis.range.1)],
        "ticks": axis.ticks.iter().map(|tick| number(tick.value)).collect::<Vec<_>>(),
    })
}

fn of_series(series: &Series) -> Value {
    let Series { name, ink, shape, points, .. } = series;
    let dash = match ink.stroke {
        Stroke::Solid => vec![],
        Stroke::Dashed => vec![6, 4],
        Stroke::Dotted => vec![2, 3],
        Stroke::DashDotted => vec![6, 3, 2, 3],
    };
    json!({
        "name": name,
        "colour": hex(ink.colour),
        "dash": dash,
        "line": matches!(shape, Shape::Line | Shape::LineMarkers),
        "marks": *shape != Shape::Line,
        "x": points.iter().map(|point| number(point.0)).collect::<Vec<_>>(),
        "y": points.iter().map(|point| number(point.1)).collect::<Vec<_>>(),
    })
}

/// Encodes the entries row by row in bfloat16, which has about 2.5 significant digits.
fn of_raster(panel: &Panel, raster: &Raster) -> Value {
    let (rows, columns) = raster.values.dim();
    let bytes: Vec<u8> =
        raster.values.iter().flat_map(|&value| bf16::from_f64(value).to_le_bytes()).collect();
    json!({
        "title": panel.title,
        "rows": rows,
        "columns": columns,
        "block": raster.block,
        "values": BASE64_STANDARD.encode(bytes),
    })
}

//! The page of `show`: one self-contained HTML file, with the data of its figures as JSON for its script.

use maud::{Markup, PreEscaped, html};
use serde_json::{Value, json};

use super::shown::{HeadGrid, Shown};
use crate::figure::{Axis, Figure, Panel, Scale, Series, Shape, Stroke, hex};
use crate::report::document::{SHARED, document, in_script, number};
use crate::report::error::ReportError;
use crate::report::section::{Picture, Section};
use crate::report::svg;
use crate::report::table_markup::{folded, grid};
use crate::table::significant;

const STYLE: &str = include_str!("show.css");
const SCRIPT: &str = include_str!("show.js");
/// uPlot 1.6.32 (MIT, Leon Sorokin), unmodified, with its licence.
const PLOT_STYLE: &str = include_str!("uplot/uPlot.min.css");
const PLOT_SCRIPT: &str = include_str!("uplot/uPlot.iife.min.js");
const PLOT_LICENCE: &str = include_str!("uplot/LICENSE");

/// Builds one self-contained page. Its script makes line figures zoomable and heads openable.
///
/// # Errors
/// A figure cannot be drawn.
pub fn shown_page(shown: &[Shown], generator: &str) -> Result<String, ReportError> {
    let mut pictures = Vec::new();
    for one in shown {
        pictures.push(one.figures.iter().map(Picture::of).collect::<Result<Vec<_>, _>>()?);
    }
    let title = match shown {
        [one] => one.title.clone(),
        several => format!("{} and {} more", several[0].title, several.len() - 1),
    };
    let body = html! {
        @if shown.len() > 1 { header { h1 { (title) } } }
        main {
            @for (at, (one, pictures)) in shown.iter().zip(&pictures).enumerate() {
                (section(one, pictures, at, shown.len() == 1))
            }
        }
        footer { p.about { (generator) } }
    };
    let plot = format!("/*!\n{PLOT_LICENCE}*/\n{PLOT_SCRIPT}");
    Ok(document(&title, &[PLOT_STYLE, STYLE], &[&plot, SHARED, SCRIPT], body))
}

/// Section `at` of the page; its files are in a folder beside the page.
fn section(shown: &Shown, pictures: &[Picture], at: usize, is_alone: bool) -> Markup {
    let id = &format!("part-{at}");
    let within = if is_alone { String::new() } else { format!("{}/", at + 1) };
    // Without a link to rows, tables are shown in full.
    let of_tables = Section { study: id.to_owned(), ..Section::default() };
    html! {
        section id=(id) {
            @if is_alone { h1 { (shown.title) } } @else { h2 { (shown.title) } }
            @for sentence in &shown.conclusion { p.conclusion { (sentence) } }
            @for note in &shown.notes { p.note { (note) } }
            @for picture in pictures {
                (live(picture, &format!("{id}-{}", picture.figure.name), &within))
            }
            @for (at, of) in shown.grids.iter().enumerate() {
                (heads(of, &format!("{id}-heads-{at}")))
            }
            @for (at, table) in shown.tables.iter().enumerate() {
                (folded(&of_tables, table, at))
                p.files { a href={ (within) "tables/" (table.name) ".csv" } { (table.name) ".csv" } }
            }
        }
    }
}

/// A figure with its files, and its numbers if the script can draw it.
fn live(picture: &Picture, id: &str, within: &str) -> Markup {
    let figure = &picture.figure;
    let numbers = of_figure(figure);
    let data = numbers.as_ref().map(|_| format!("{id}-numbers"));
    let files = html! {
        p.files {
            "Files: "
            a href={ (within) "figures/" (figure.name) ".svg" } { (figure.name) ".svg" }
            ", "
            a href={ (within) "figures/" (figure.name) ".png" } { "png" }
        }
    };
    html! {
        (svg::figure(picture, id, data.as_deref(), &files))
        @if let Some(numbers) = numbers {
            script type="application/json" id=[data] { (PreEscaped(numbers)) }
        }
    }
}

/// The heads at the last step, one row per layer. The script lets the reader choose the step and open a head.
fn heads(of: &HeadGrid, id: &str) -> Markup {
    let places: Vec<(usize, usize)> = of.heads.iter().map(|head| (head.layer, head.head)).collect();
    let quantity = of.quantities.first().copied().unwrap_or_default();
    html! {
        h3 { "Heads of " (of.model) }
        p.note {
            (quantity) " of each head, one row per layer and one column per head"
            @if let Some(step) = of.steps.last() { ", at step " span.step { (step) } }
            "."
        }
        div.heads id=(id) data-live={ (id) "-numbers" } {
            div.wide tabindex="0" role="region" aria-label={ "Heads of " (of.model) } {
                table { (grid(&places, |at| html! { td data-head=(at) { (last(of, at)) } })) }
            }
        }
        script type="application/json" id={ (id) "-numbers" } { (PreEscaped(of_grid(of))) }
    }
}

fn last(grid: &HeadGrid, head: usize) -> String {
    let values = grid.heads[head].values.first().and_then(|steps| steps.last().copied().flatten());
    values.map_or_else(|| "–".to_owned(), |value| significant(value, 3))
}

/// Data of a figure whose panels all have series; other figures stay static images.
fn of_figure(figure: &Figure) -> Option<String> {
    let is_of_series = |panel: &Panel| {
        let mut shapes = panel.series.iter().map(|series| series.shape);
        panel.tiles.is_empty() && panel.raster.is_none() && shapes.all(can_be_live)
    };
    let is_live = figure.panels.iter().all(is_of_series);
    is_live.then(|| {
        in_script(&json!({ "panels": figure.panels.iter().map(of_panel).collect::<Vec<_>>() }))
    })
}

/// Data of a grid of heads.
fn of_grid(grid: &HeadGrid) -> String {
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

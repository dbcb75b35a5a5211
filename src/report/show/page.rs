//! The page of `show`: one self-contained HTML file of figures, grids of heads and tables.

use maud::{Markup, html};

use super::shown::{HeadGrid, Shown};
use crate::figure::Figure;
use crate::report::document::document;
use crate::report::error::ReportError;
use crate::report::section::Section;
use crate::report::svg;
use crate::report::table_markup::{folded, grid};
use crate::table::significant;

const STYLE: &str = include_str!("show.css");

/// Builds one self-contained page.
///
/// # Errors
/// A figure cannot be drawn.
pub fn shown_page(shown: &[Shown], generator: &str) -> Result<String, ReportError> {
    let title = match shown {
        [one] => one.title.clone(),
        several => format!("{} and {} more", several[0].title, several.len() - 1),
    };
    let body = html! {
        @if shown.len() > 1 { header { h1 { (title) } } }
        main {
            @for (at, one) in shown.iter().enumerate() { (section(one, at, shown.len() == 1)?) }
        }
        footer { p.about { (generator) } }
    };
    Ok(document(&title, &[STYLE], &[], body))
}

/// Section `at` of the page; its files are in a folder beside the page.
fn section(shown: &Shown, at: usize, is_alone: bool) -> Result<Markup, ReportError> {
    let id = &format!("part-{at}");
    let within = if is_alone { String::new() } else { format!("{}/", at + 1) };
    // Without a link to rows, tables are shown in full.
    let of_tables = Section { study: id.to_owned(), ..Section::default() };
    Ok(html! {
        section id=(id) {
            @if is_alone { h1 { (shown.title) } } @else { h2 { (shown.title) } }
            @for sentence in &shown.conclusion { p.conclusion { (sentence) } }
            @for note in &shown.notes { p.note { (note) } }
            @for figure in &shown.figures {
                (svg::figure(figure, &format!("{id}-{}", figure.name), &files(figure, &within))?)
            }
            @for of in &shown.grids { (heads(of)) }
            @for (at, table) in shown.tables.iter().enumerate() {
                (folded(&of_tables, table, at))
                p.files { a href={ (within) "tables/" (table.name) ".csv" } { (table.name) ".csv" } }
            }
        }
    })
}

/// Links to a figure's files.
fn files(Figure { name, .. }: &Figure, within: &str) -> Markup {
    html! {
        p.files {
            "Files: "
            a href={ (within) "figures/" (name) ".svg" } { (name) ".svg" }
            ", "
            a href={ (within) "figures/" (name) ".png" } { "png" }
        }
    }
}

/// The heads of a model, one row per layer.
fn heads(of: &HeadGrid) -> Markup {
    let places: Vec<(usize, usize)> = of.heads.keys().copied().collect();
    let cell = |at: usize| match of.heads[&places[at]] {
        value if value.is_finite() => significant(value, 3),
        _ => "–".to_owned(),
    };
    html! {
        h3 { "Heads of " (of.model) }
        p.note {
            "max |logit| of each head, one row per layer and one column per head, at step " (of.step) "."
        }
        div.heads.wide tabindex="0" role="region" aria-label={ "Heads of " (of.model) } {
            table.unsorted { (grid(&places, |at| html! { td { (cell(at)) } })) }
        }
    }
}

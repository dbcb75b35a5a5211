//! Figures in a page.

use maud::{Markup, PreEscaped, html};

use super::error::ReportError;
use crate::figure::Figure;

/// A figure with its caption, its description and `files`.
///
/// # Errors
/// It cannot be drawn.
pub(super) fn figure(figure: &Figure, id: &str, files: &Markup) -> Result<Markup, ReportError> {
    let Figure { name, caption, .. } = figure;
    let svg = figure.svg()?;
    Ok(html! {
        figure id=(id) {
            div.picture tabindex="0" role="region" aria-label={ "Figure " (name) } {
                (PreEscaped(svg))
            }
            figcaption {
                span id={ (id) "-caption" } { (caption) }
                details { summary { "Description of the figure" } p { (figure.alt()) } }
                (files)
            }
        }
    })
}

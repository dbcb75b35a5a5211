//! Figures in a page.

use maud::{Markup, PreEscaped, html};

use super::section::Picture;
use crate::figure::Figure;

/// A figure with its caption, its description and `files`. `data` is the id of its numbers for the script.
pub(super) fn figure(picture: &Picture, id: &str, data: Option<&str>, files: &Markup) -> Markup {
    let Picture { figure: Figure { name, caption, .. }, svg } = picture;
    html! {
        figure id=(id) data-live=[data] {
            div.picture tabindex="0" role="region" aria-label={ "Figure " (name) } {
                (PreEscaped(svg))
            }
            figcaption {
                span id={ (id) "-caption" } { (caption) }
                details { summary { "Description of the figure" } p { (picture.figure.alt()) } }
                (files)
            }
        }
    }
}

//! Figures in a page.

use maud::{Markup, PreEscaped, html};

use super::section::Picture;
use crate::figure::Figure;

/// A figure with its caption, its description and `files`.
pub(super) fn figure(picture: &Picture, id: &str, files: &Markup) -> Markup {
    let Picture { figure: Figure { name, caption, .. }, svg } = picture;
    html! {
        figure id=(id) {
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

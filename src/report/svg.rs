//! Figures in a page: prepares SVGs to be inserted into one page. Makes ids unique, and removes attributes that the page
//! sets for all.

use maud::{Markup, PreEscaped, html};

use super::section::Picture;
use crate::figure::Figure;

/// Attributes with default values, which are removed.
const DEFAULTS: [&str; 3] = [
    " opacity=\"1\"",
    " stroke=\"none\" stroke-width=\"1\"",
    // The page's style sheet sets the font for all SVGs.
    " font-family=\"DejaVu Sans, Verdana, sans-serif\"",
];

/// A figure with its caption, its description and `files`. `data` is the id of its numbers for the script.
pub(super) fn figure(picture: &Picture, id: &str, data: Option<&str>, files: &Markup) -> Markup {
    let Picture { figure: Figure { name, caption, .. }, svg } = picture;
    html! {
        figure id=(id) data-live=[data] {
            div.picture tabindex="0" role="region" aria-label={ "Figure " (name) } {
                (PreEscaped(inline(svg, id)))
            }
            figcaption {
                span id={ (id) "-caption" } { (caption) }
                details { summary { "Description of the figure" } p { (picture.figure.alt()) } }
                (files)
            }
        }
    }
}

/// Adds `prefix-` to every id and every reference to one, and removes the prologue, so that several SVGs can be in one
/// page. It also shortens the SVG without changing its look. The element with the id `prefix-caption` replaces its
/// title and label.
fn inline(svg: &str, prefix: &str) -> String {
    let prefix = anchor(prefix);
    let body = svg.find("<svg").map_or(svg, |start| &svg[start..]);
    let mut text = without(body, "<title>", "</title>\n");
    for default in DEFAULTS {
        text = text.replace(default, "");
    }
    if text.contains(" aria-label=\"") {
        text = without(&text, " aria-label=\"", "\"");
        text = text.replacen("<svg", &format!("<svg aria-labelledby=\"{prefix}-caption\""), 1);
    }
    // The page's policy forbids inline styles, and this attribute is one.
    text = text.replace(" style=\"image-rendering:pixelated\"", " image-rendering=\"pixelated\"");
    for opening in [" id=\"", "url(#", "href=\"#"] {
        text = text.replace(opening, &format!("{opening}{prefix}-"));
    }
    text
}

/// Encodes a name as the beginning of ids: characters that would end an attribute or separate ids become hexadecimal
/// bytes.
pub(super) fn anchor(name: &str) -> String {
    let mut anchor = String::with_capacity(name.len());
    for byte in name.bytes() {
        match byte {
            b'-' | b'_' | b'.' => anchor.push(char::from(byte)),
            byte if byte.is_ascii_alphanumeric() => anchor.push(char::from(byte)),
            other => anchor.push_str(&format!("_{other:02x}")),
        }
    }
    anchor
}

/// Removes the first part of `text` from `opening` up to the next `closing`.
fn without(text: &str, opening: &str, closing: &str) -> String {
    let found = text.split_once(opening).and_then(|(before, rest)| {
        let (_, after) = rest.split_once(closing)?;
        Some(format!("{before}{after}"))
    });
    found.unwrap_or_else(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::inline;

    #[test]
    fn ids_and_their_references_are_prefixed() {
        let svg = "<?xml version=\"1.0\"?>\n<svg><clipPath id=\"a\"/><g clip-path=\"url(#a)\"/>\
                   <use href=\"#a\"/></svg>";
        assert_eq!(
            inline(svg, "growth"),
            "<svg><clipPath id=\"growth-a\"/><g clip-path=\"url(#growth-a)\"/>\
             <use href=\"#growth-a\"/></svg>"
        );
    }

    #[test]
    fn no_name_ends_an_attribute() {
        let svg = "<svg role=\"img\" aria-label=\"Much\"><use href=\"#a\"/></svg>";
        let shown = inline(svg, "\"><img src=x>");
        assert_eq!(
            shown,
            "<svg aria-labelledby=\"_22_3e_3cimg_20src_3dx_3e-caption\" role=\"img\">\
             <use href=\"#_22_3e_3cimg_20src_3dx_3e-a\"/></svg>"
        );
    }

    #[test]
    fn the_caption_is_the_name() {
        let svg = "<svg role=\"img\" aria-label=\"Much\">\n<title>Of it</title>\n<rect/>\n</svg>";
        assert_eq!(
            inline(svg, "growth"),
            "<svg aria-labelledby=\"growth-caption\" role=\"img\">\n<rect/>\n</svg>"
        );
    }
}

//! Figures in a page, and anchors.

use maud::{Markup, PreEscaped, html};

use super::section::Picture;
use crate::figure::Figure;

/// A figure with its caption, its description and `files`. `data` is the id of its numbers for the script.
pub(super) fn figure(picture: &Picture, id: &str, data: Option<&str>, files: &Markup) -> Markup {
    let Picture { figure: Figure { name, caption, alt, .. }, svg } = picture;
    html! {
        figure id=(id) data-live=[data] {
            div.picture tabindex="0" role="region" aria-label={ "Figure " (name) } {
                (PreEscaped(svg))
            }
            figcaption {
                span id={ (id) "-caption" } { (caption) }
                details { summary { "Description of the figure" } p { (alt) } }
                (files)
            }
        }
    }
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

#[cfg(test)]
mod tests {
    use super::anchor;

    #[test]
    fn no_name_ends_an_attribute() {
        assert_eq!(anchor("\"><img src=x>"), "_22_3e_3cimg_20src_3dx_3e");
    }
}

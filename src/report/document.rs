//! The frame of every page: one HTML file with its style inside, and the script that sorts tables.

use std::borrow::Cow;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::policy::policy;
use crate::system::printable_lines;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// A page that fetches nothing; `styles` follow the one that all pages have, and `scripts` go before its script. A name that
/// would turn the text after it about is written out.
pub(super) fn document(title: &str, styles: &[&str], scripts: &[&str], body: Markup) -> String {
    let style = std::iter::once(&STYLE).chain(styles).copied().collect::<String>();
    let style = as_parsed(&style);
    let scripts: Vec<Cow<'_, str>> =
        scripts.iter().chain([&SCRIPT]).map(|script| as_parsed(script)).collect();
    let policy = policy(scripts.iter().map(AsRef::as_ref), std::iter::once(style.as_ref()));
    let body = body.into_string();
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                link rel="icon" href="data:,";
                title { (printable_lines(title)) }
                style { (PreEscaped(&style)) }
            }
            body {
                (PreEscaped(printable_lines(&body)))
                @for script in &scripts { script { (PreEscaped(script)) } }
            }
        }
    }
    .into_string()
}

/// A script or a style as a browser reads it, which is what its hash is of: with one kind of line ends, whatever those of
/// this program's sources are.
fn as_parsed(text: &str) -> Cow<'_, str> {
    match text.contains('\r') {
        true => text.replace("\r\n", "\n").replace('\r', "\n").into(),
        false => text.into(),
    }
}

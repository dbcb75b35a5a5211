//! Text forms of the types of targets, fits and heads in columns.

use crate::record::value;
use crate::solver::{BoundKind, Outcome};
use crate::targets::{HeadKind, Layout, Visibility};

value!(Text, "a layout of heads", Layout);
value!(Text, "a kind of head", ToString::to_string, head_kind, HeadKind);
value!(Text, "a visibility", Visibility);
value!(
    Text,
    "an outcome of a fit, or screened",
    |outcome| outcome.name().to_owned(),
    |text| text.parse().ok(),
    Outcome
);
value!(Text, "a bound", |by| by.name().to_owned(), |text| text.parse().ok(), BoundKind);

fn head_kind(text: &str) -> Option<HeadKind> {
    match text.parse::<Layout>().ok()?.heads() {
        &[kind] => Some(kind),
        _ => None,
    }
}

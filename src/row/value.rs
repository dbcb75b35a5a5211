//! The values that stand in columns.

use super::column::{Column, ColumnKind};
use super::fields::Fields;
use super::head::HeadOutcome;
use super::part::Part;
use super::range::Range;
use crate::fit::{BoundKind, Outcome};
use crate::lm::Split;
use crate::pattern::{HeadKind, Layout, Visibility};
use crate::predict::{EditedHeads, InputSet, RankLimit};

/// A [`Part`] of one column.
macro_rules! value {
    ($kind:ident, $what:literal, $write:expr, $read:expr, $Type:ty $(, $check:ident as $As:ty)?) => {
            impl Part for $Type {
                fn columns(field: Column, into: &mut Vec<Column>) {
                    into.push(Column { kind: ColumnKind::$kind, needed: true, ..field });
                }

                fn write(&self, into: &mut Vec<String>) {
                    let write: fn(&$Type) -> String = $write;
                    into.push(write(self));
                }

                fn read(field: &'static str, from: &Fields<'_>) -> Result<Self, String> {
                    let text = from.get(field);
                    if text.is_empty() {
                        return Err(format!("nothing in column {field}"));
                    }
                    let read: fn(&str) -> Option<$Type> = $read;
                    read(text).ok_or_else(|| format!("{text:?} in column {field} is not {}", $what))
                }

                $(
                    fn check(&self, field: &'static str, range: Range) -> Result<(), String> {
                        range.$check(field, *self as $As)
                    }
                )?
            }
    };
}

value!(Text, "a word", Clone::clone, |text| Some(text.to_owned()), String);
value!(
    Integer,
    "a whole number",
    ToString::to_string,
    |text| text.parse().ok(),
    usize,
    check_whole as u64
);
value!(
    Integer,
    "a whole number",
    ToString::to_string,
    |text| text.parse().ok(),
    u64,
    check_whole as u64
);
value!(Number, "a number", ToString::to_string, |text| text.parse().ok(), f64, check_number as f64);
value!(Text, "a layout of heads", ToString::to_string, |text| text.parse().ok(), Layout);
value!(Text, "a kind of head", ToString::to_string, head_kind, HeadKind);
value!(Text, "a visibility", ToString::to_string, |text| text.parse().ok(), Visibility);
value!(
    Text,
    "an outcome of a fit",
    |outcome| outcome.name().to_owned(),
    Outcome::from_name,
    Outcome
);
value!(
    Text,
    "an outcome of a fit, or screened",
    |outcome| outcome.name().to_owned(),
    HeadOutcome::from_name,
    HeadOutcome
);
value!(Text, "a bound", |by| by.name().to_owned(), bound, BoundKind);
value!(Text, "a set of inputs", ToString::to_string, |text| text.parse().ok(), InputSet);
value!(Text, "a rank, or any", ToString::to_string, |text| text.parse().ok(), RankLimit);
value!(
    Text,
    "a choice of heads",
    |heads| heads.name().to_owned(),
    |text| EditedHeads::ALL.into_iter().find(|heads| heads.name() == text),
    EditedHeads
);
value!(Text, "a split", |split| split.name().to_owned(), split, Split);

fn head_kind(text: &str) -> Option<HeadKind> {
    match text.parse::<Layout>().ok()?.heads() {
        &[kind] => Some(kind),
        _ => None,
    }
}

fn bound(text: &str) -> Option<BoundKind> {
    use BoundKind::{Floor, Lift, LogRank, Packing};
    [Floor, Packing, Lift, LogRank].into_iter().find(|kind| kind.name() == text)
}

fn split(text: &str) -> Option<Split> {
    Split::ALL.into_iter().find(|split| split.name() == text)
}

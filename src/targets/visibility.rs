//! Masks: the pairs (i, j) that a query may attend to.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::TargetError;

/// The set of columns j that row i of an n × n attention matrix may attend to.
///
/// Every row may attend to one contiguous range of columns, so a tile of allowed pairs is a plain block of a matrix product.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Hash,
    Serialize,
    Deserialize,
    strum::Display,
    strum::EnumString,
)]
#[cfg_attr(feature = "lm", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case", parse_err_ty = TargetError, parse_err_fn = unknown_mask)]
pub enum Visibility {
    /// j ≤ i.
    Causal,
    /// All j.
    Bidirectional,
}

impl Visibility {
    /// The columns to which row `row` of `n` may attend.
    pub fn columns(self, row: usize, n: usize) -> Range<usize> {
        match self {
            Self::Causal => 0..row + 1,
            Self::Bidirectional => 0..n,
        }
    }

    /// The number of allowed pairs in an n × n matrix.
    pub fn pairs(self, n: usize) -> usize {
        match self {
            Self::Causal => n * (n + 1) / 2,
            Self::Bidirectional => n * n,
        }
    }
}

fn unknown_mask(text: &str) -> TargetError {
    TargetError::unknown("mask", text, &["causal", "bidirectional"])
}

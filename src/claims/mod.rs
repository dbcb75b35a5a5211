//! Claims and verdicts: how the rows decide each claim.
//!
//! A claim is a constant with its rule and the bounds of the rule. Its function computes estimates from tables, which
//! give a ruling and text. [`Verdict`] combines them into a status, a headline and a sentence.

pub(crate) mod claim;
pub(crate) mod estimate;
pub(crate) mod ruling;
pub(crate) mod verdict;
pub(crate) mod words;

pub use claim::{Claim, Group, OF_ALL_RULES, Origin, Rule};
pub use verdict::{HEADLINE_WORDS, SEEDS_TO_DECIDE, Verdict, VerdictStatus, multiplicity};

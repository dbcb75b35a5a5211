//! Verdicts: what the rows say of each claim.
//!
//! A claim is a constant with its rule and the numbers of the rule. Its function takes numbers out of tables as estimates,
//! which give a ruling and words; [`Verdict`] makes status, headline and sentence of them.

pub(crate) mod claim;
pub(crate) mod estimate;
pub(crate) mod ruling;
pub(crate) mod verdict;
pub(crate) mod words;

pub use claim::{Claim, Group, OF_ALL_RULES, Origin, Rule};
pub use ruling::Reason;
pub use verdict::{HEADLINE_WORDS, SEEDS_TO_DECIDE, Verdict, VerdictStatus, multiplicity};

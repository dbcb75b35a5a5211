//! Verdicts: what the rows say of each claim.
//!
//! A claim is a constant with its rule and the numbers of the rule. Its function takes numbers out of tables as estimates,
//! which give a ruling and words; [`Verdict`] makes status, headline and sentence of them.

mod all;
pub(crate) mod arms;
mod claim;
pub(crate) mod concentration;
pub(crate) mod controls;
mod estimate;
pub(crate) mod growth;
pub(crate) mod heads;
pub(crate) mod latency;
pub(crate) mod lattice;
pub(crate) mod layouts;
mod pairs;
pub(crate) mod published;
pub(crate) mod ramp;
mod ruling;
pub(crate) mod stabilisers;
pub(crate) mod surgery;
pub(crate) mod training;
mod tuning;
pub(crate) mod variants;
mod verdict;
mod words;

pub use all::{CLAIMS, LEADING};
pub use claim::{Claim, Group, OF_ALL_RULES, Origin, Rule};
pub use ruling::Reason;
pub use verdict::{HEADLINE_WORDS, SEEDS_TO_DECIDE, Verdict, VerdictStatus, multiplicity};

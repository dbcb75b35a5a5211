//! Verdicts: what the rows say of each claim.

mod all;
pub(crate) mod arms;
mod claim;
pub(crate) mod concentration;
pub(crate) mod controls;
pub(crate) mod exponent;
pub(crate) mod global_heads;
pub(crate) mod growth;
pub(crate) mod heads;
pub(crate) mod interventions;
pub(crate) mod latency;
pub(crate) mod lattice;
pub(crate) mod layouts;
pub(crate) mod modality;
mod pairs;
mod phrases;
pub(crate) mod published;
pub(crate) mod ramp;
mod scale;
pub(crate) mod stabilisers;
pub(crate) mod surgery;
pub(crate) mod training;
mod tuning;
pub(crate) mod variants;
mod verdict;

pub use all::{CLAIMS, LEADING};
pub use claim::{Claim, Group, OF_ALL_RULES, Origin, Rule};
pub use verdict::{HEADLINE_WORDS, SEEDS_TO_DECIDE, Verdict, VerdictStatus, multiplicity};

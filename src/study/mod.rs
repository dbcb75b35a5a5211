//! From a definition to its rows: plans of cells, sweeps that measure them, shards, merging and checks.

mod definition;
#[cfg(test)]
mod identity_tests;
mod merge;
mod parts;
mod plan;
mod rows_file;
mod shard;
mod stages;
mod store;
mod study_manifest;
mod sweep;
mod verify;

pub use crate::experiment::{Kind, Preset, StudyError};
pub use definition::{EXPECTED, Expected, MODELS, OWN_KEYS, Statistic, StudyDefinition, schema};
pub use merge::{Merged, merge};
pub use parts::{check_merged, has_parts, unmerged_parts};
pub use plan::{Plan, endings, stored_lines, time_of};
pub use shard::{MOST_SHARDS, Shard};
pub use stages::{Stage, Stages};
pub use store::Ending;
pub use study_manifest::check_measured;
pub use sweep::{Observer, Sweep, SweepSummary};
pub use verify::{Verification, verify};

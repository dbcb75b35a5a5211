//! `rank-study bench`: how long one evaluation, training step, attention or decoded token takes.

mod attention;
mod decode;
mod fit;
mod merge;
mod model;
mod run;
mod shards;
mod step;
mod timing;

pub use run::{BenchArgs, run};

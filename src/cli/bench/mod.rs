//! `rank-study bench`: how long one evaluation, training step, attention or decoded token takes.

mod attention;
mod decode;
mod fit;
mod model;
mod run;
mod step;
mod timing;

pub use run::{BenchArgs, run};

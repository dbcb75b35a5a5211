//! rank-study: how large must attention logits grow when the queries and keys are low-rank, and
//! does that explain what happens in real language-model training?

#[cfg(feature = "study")]
pub mod figure;
pub mod fit;
#[cfg(feature = "study")]
pub mod judge;
#[cfg(feature = "lm")]
pub mod lm;
pub mod numerics;
pub mod pattern;
#[cfg(feature = "lm")]
pub mod predict;
#[cfg(feature = "study")]
pub mod report;
#[cfg(feature = "study")]
pub mod row;
#[cfg(feature = "study")]
pub mod run;
#[cfg(feature = "study")]
pub mod study;
pub mod system;
#[cfg(feature = "study")]
pub mod table;

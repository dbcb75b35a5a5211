//! rank-study: how large must attention logits grow when the queries and keys are low-rank, and
//! does that explain what happens in real language-model training?

pub mod figure;
pub mod fit;
pub mod judge;
pub mod lm;
pub mod numerics;
pub mod pattern;
pub mod predict;
pub mod report;
pub mod row;
pub mod run;
pub mod study;
pub mod system;
pub mod table;

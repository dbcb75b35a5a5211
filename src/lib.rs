//! rank-study: how large must attention logits grow when the queries and keys are low-rank, and
//! does that explain what happens in real language-model training?

mod target;

pub use target::{
    Family, HeadKind, Layout, Parameters, Spectrum, Statistics, Target, TargetError, Visibility,
};

//! rank-study: how large must attention logits grow when the queries and keys are low-rank, and
//! does that explain what happens in real language-model training?

mod fit;
mod target;

pub use fit::{
    Candidate, Effort, Factors, FactorsError, FitError, Floor, FrontierPoint, LARGEST_CAP, Needed,
    Outcome, Problem, SearchOptions, Solution, frontier, needed_logit, norm_product,
};
pub use target::{
    Family, HeadKind, Layout, Parameters, Spectrum, Statistics, Target, TargetError, Visibility,
};

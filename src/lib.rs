//! How large must attention logits grow when queries and keys are low-rank, and does that explain what happens in
//! the training of language models?
//!
//! Attention A of n tokens is to be had from logits Z = QKᵀ/√d of rank d. This library says, for any A, how large
//! they must be: L\*(ε; A, d) is the least max |z| with which the mean over rows of KL(Aᵢ ‖ softmax(Z)ᵢ) is at
//! most ε nats. It is bracketed: [`fit::needed_logit`] finds queries and keys that reach ε, [`fit::lower_bound`]
//! proves that none do with less. What logits of *any* rank need, L⁰(ε; A), is exact ([`fit::Floor`]); L\*/L⁰ is the
//! *inflation*, the price of the rank. The same is asked of the heads of trained models ([`predict`]).
//!
//! # A first example
//!
//! Dense local attention of 24 tokens, at rank 2 and an error of 0.3 nats:
//!
//! ```
//! use rank_study::fit::{Problem, SearchOptions, lower_bound, needed_logit};
//! use rank_study::pattern::{Family, Layout, Visibility};
//!
//! let band = Family::DirichletBand { window: 8, alpha: 1.0 };
//! let target = band.build(24, 0, Visibility::Causal)?;
//! let problem = Problem::new(target, Layout::global(), 2)?;
//!
//! let options = SearchOptions { starts: 2, passes: 0, ..SearchOptions::default() };
//! let found = needed_logit(&problem, 0.3, options, &())?.best.expect("a global head sees all");
//! let bound = lower_bound(&problem, 0.3).expect("a global head sees all");
//!
//! assert!(found.solution.kl_nats <= 0.3);
//! assert!(bound.floor <= bound.max_abs_logit);
//! assert!(bound.max_abs_logit <= found.solution.max_abs_logit);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The folder `examples` has more: `fit_one_matrix` for a matrix of one's own, `bracket` for several ranks,
//! `probe_heads` for a model that it trains.
//!
//! # What is where
//!
//! In the order in which one meets them. Each knows only modules above it, and the last three.
//!
//! | module | one finds there | feature |
//! |---|---|---|
//! | [`pattern`] | attention as it is wanted: families of targets, matrices from files, what heads see, spectra | |
//! | [`fit`] | what a rank allows: the least error within a cap, the least logit for an error, floor and lower bounds | |
//! | [`lm`] | language models: corpora, training with every head's logits watched, published models, probes | `lm` |
//! | [`predict`] | a trained head's largest logit, split into what its attention needed and what it did not | `lm` |
//! | [`row`] | what was measured, as types: columns with units, CSV, Parquet, the laws that hold | `study` |
//! | [`run`] | a training run's folder: logs, checkpoints, manifest | `study` |
//! | [`study`] | definitions into cells into rows, kept as they are measured; what holds rows to their definitions | `study` |
//! | [`table`] | rows into tables, over seeds | `study` |
//! | [`figure`] | tables into pictures | `study` |
//! | [`judge`] | tables into verdicts on claims | `study` |
//! | [`report`] | all of it on a page | `study` |
//! | [`collective`] | processes that train one model together | `lm` |
//! | [`numerics`], [`system`] | beneath them: the vector instructions in use, BLAS, process, files | |
//!
//! # Features
//!
//! `cli`, the default, is the program `rank-study`. With `default-features = false` there are [`pattern`], [`fit`],
//! [`numerics`] and [`system`], and neither a tensor library nor a data-frame library is compiled; `parquet` lets
//! [`pattern`] read and write that format, `lm` and `study` add the modules named above, and `cuda` trains on a GPU.
//! OpenBLAS is linked in any case, for decompositions.
//!
//! Errors are one enum a module, and say what was found and what to do. That a fit does not converge, or a training
//! run diverges, is no error but an outcome ([`fit::Outcome`]).

#![warn(missing_docs, unnameable_types)]

#[cfg(feature = "lm")]
pub mod collective;
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

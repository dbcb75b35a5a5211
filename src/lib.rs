//! The smallest attention logits that a rank allows.
//!
//! ```
//! use rank_study::fit::{Problem, SearchOptions, lower_bound, needed_logit};
//! use rank_study::pattern::{Family, Layout, Visibility};
//!
//! // Dense local attention of 24 tokens, at rank 2 and an error of 0.3 nats per row.
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
//! Attention A of n tokens is the row-wise softmax of logits Z = QKᵀ/√d, where Q and K have shape (n, d). For any A,
//! this library measures L\*(ε; A, d): the smallest max |z| for which the mean over rows of KL(Aᵢ ‖ softmax(Z)ᵢ) is at
//! most ε nats.
//!
//! - [`fit::needed_logit`] finds queries and keys that reach ε: an upper bound.
//! - [`fit::lower_bound`] proves that no queries and keys reach ε with less.
//! - [`fit::Floor`] is the exact minimum L⁰(ε; A) over logits of *any* rank. L\*/L⁰ is the *rank penalty*.
//!
//! [`predict`] measures the same for the heads of trained models. The folder `examples` has three programs:
//! `fit_one_matrix` fits your own matrix, `bracket` compares ranks, `probe_heads` trains a model and measures its heads.
//!
//! # Modules
//!
//! Each module uses only modules above it, and the last three.
//!
//! | module | contents | feature |
//! |---|---|---|
//! | [`pattern`] | target attention: families, matrices from files, masks, spectra | |
//! | [`fit`] | the solver: least error within a logit bound, least logit for an error, floor, lower bounds | |
//! | [`lm`] | language models: corpora, training with logits logged, published models | `lm` |
//! | [`predict`] | factors of a trained head's largest logit | `lm` |
//! | [`row`] | measured rows as types: columns with units, CSV, Parquet, invariants | `study` |
//! | [`run`] | the folder of a training run: logs, checkpoints, manifest | `study` |
//! | [`study`] | from definitions to cells to rows; checks of rows against definitions | `study` |
//! | [`table`] | tables of rows, over seeds | `study` |
//! | [`figure`] | figures of tables | `study` |
//! | [`claims`] | verdicts on claims | `study` |
//! | [`report`] | the HTML pages | `study` |
//! | [`numerics`], [`system`] | vector instructions, BLAS, files, processes | |
//!
//! # Features
//!
//! `cli`, the default, builds the program `rank-study`. Without default features you get [`pattern`], [`fit`],
//! [`numerics`] and [`system`], and no tensor or data-frame library is compiled. `parquet` adds that format to
//! [`pattern`]. `lm` and `study` add the modules named above. `cuda` trains on a GPU. OpenBLAS is always linked, for
//! decompositions.
//!
//! Each module has one error enum, whose messages say what was found and what to do. A fit that does not converge or a
//! training that diverges is an outcome in the result ([`fit::Outcome`]), not an error.

#![warn(missing_docs, unnameable_types)]

#[cfg(feature = "study")]
pub mod claims;
#[cfg(feature = "study")]
pub mod experiment;
#[cfg(feature = "study")]
pub mod experiments;
#[cfg(feature = "study")]
pub mod figure;
pub mod fit;
#[cfg(feature = "lm")]
pub mod lm;
pub mod numerics;
pub mod pattern;
#[cfg(feature = "lm")]
pub mod predict;
#[cfg(feature = "lm")]
pub mod record;
#[cfg(feature = "study")]
pub mod report;
#[cfg(feature = "study")]
pub mod run;
#[cfg(feature = "study")]
pub mod study;
pub mod system;
#[cfg(feature = "study")]
pub mod table;

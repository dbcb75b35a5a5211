//! The smallest attention logits that a rank allows.
//!
//! ```
//! use rank_study::solver::{Problem, SearchOptions, lower_bound, needed_logit};
//! use rank_study::targets::{Family, Layout, Visibility};
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
//! - [`solver::needed_logit`] finds queries and keys that reach ε: an upper bound.
//! - [`solver::lower_bound`] proves that no queries and keys reach ε with less.
//! - [`solver::Floor`] is the exact minimum L⁰(ε; A) over logits of *any* rank. L\*/L⁰ is the *rank penalty*.
//!
//! [`heads`] measures the same for the heads of trained models. The folder `examples` has three programs:
//! `fit_one_matrix` fits your own matrix, `bracket` compares ranks, `probe_heads` trains a model and measures its heads.
//!
//! # Modules
//!
//! Each module uses only modules above it, and the last three.
//!
//! | module | contents | feature |
//! |---|---|---|
//! | [`targets`] | target attention: families, matrices from files, masks, spectra | |
//! | [`solver`] | least error within a logit bound, least logit for an error, floor, lower bounds | |
//! | [`record`] | rows as types: columns with units, CSV, Parquet, invariants | `lm` |
//! | [`lm`] | language models: corpora, training with logits logged, published models | `lm` |
//! | [`heads`] | factors of a trained head's largest logit, and further measurements of heads | `lm` |
//! | [`run`] | the folder of a training run: logs, checkpoints, manifest | `study` |
//! | [`table`] | tables over seeds | `study` |
//! | [`figure`] | figures, drawn as SVG and PNG | `study` |
//! | [`claims`] | claims, their rules and verdicts | `study` |
//! | [`experiment`] | the framework: what a kind of study implements | `study` |
//! | [`experiments`] | one module per kind of study: configuration, rows, tables, figures, claims | `study` |
//! | [`study`] | from definitions to cells to rows; checks of rows against definitions | `study` |
//! | [`report`] | the HTML pages | `study` |
//! | [`numerics`], [`system`] | vector instructions, BLAS, files, processes | |
//!
//! # Features
//!
//! `cli`, the default, builds the program `rank-study`. Without default features you get [`targets`], [`solver`],
//! [`numerics`] and [`system`], and no tensor or data-frame library is compiled. `parquet` adds that format to
//! [`targets`]. `lm` and `study` add the modules named above. `cuda` trains on a GPU. OpenBLAS is always linked, for
//! decompositions.
//!
//! Each module has one error enum, whose messages say what was found and what to do. A fit that does not converge or a
//! training that diverges is an outcome in the result ([`solver::Outcome`]), not an error.

#![warn(missing_docs, unnameable_types)]

#[cfg(feature = "study")]
pub mod claims;
#[cfg(feature = "cli")]
mod cli;
#[cfg(feature = "study")]
pub mod experiment;
#[cfg(feature = "study")]
pub mod experiments;
#[cfg(feature = "study")]
pub mod figure;
#[cfg(feature = "lm")]
pub mod heads;
#[cfg(feature = "lm")]
pub mod lm;
pub mod numerics;
#[cfg(feature = "lm")]
pub mod record;
#[cfg(feature = "study")]
pub mod report;
#[cfg(feature = "study")]
pub mod run;
pub mod solver;
#[cfg(feature = "study")]
pub mod study;
pub mod system;
#[cfg(feature = "study")]
pub mod table;
pub mod targets;

#[cfg(feature = "cli")]
pub use cli::command::run as run_command_line;

//! Tables and pictures into verdicts and one HTML page.

mod analyse;
mod claims;
mod judge_arms;
mod judge_controls;
mod judge_exponent;
mod judge_growth;
mod judge_heads;
mod judge_interventions;
mod judge_latency;
mod judge_layouts;
mod judge_training;
mod page;
mod predicted;
mod save;
mod scheme;
mod section;
mod svg;
mod table_markup;
mod verdict;

pub use analyse::{Analysis, AnalysisKind, ReportError, analyse};
pub use claims::Claim;
pub use page::page;
pub use section::{Header, Picture, Section};
pub use verdict::{SEEDS_TO_CONFIRM, Verdict, Word};

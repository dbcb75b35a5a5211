//! Tables and pictures into verdicts and one HTML page.

mod analyse;
mod page;
mod save;
mod scheme;
mod section;
mod svg;
mod table_markup;

pub use analyse::{Analysis, AnalysisKind, ReportError, analyse};
pub use page::page;
pub use section::{Header, Picture, Section};

//! Pages: the report of all studies, `show` of one folder, `diagnose` of a model.

mod analysis;
mod claims;
mod conclusion;
mod diagnose;
mod document;
mod duration;
mod error;
mod measured;
mod page;
mod section;
mod show;
mod svg;
mod table_markup;

pub use analysis::{Analysis, save_figures, save_tables};
pub use claims::{ClaimRow, Measured};
pub use conclusion::{fit_conclusion, is_at_cap};
pub use diagnose::{DiagnosedHead, DiagnosedModel, Diagnosis, MOST_TOKENS, READING};
pub use duration::duration;
pub use error::ReportError;
pub use measured::{analyse, measured_study};
pub use page::page;
pub use section::{Header, Section, findings};
pub use show::{HeadGrid, Shown, show, shown_page};

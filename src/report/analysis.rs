//! The analysis of a study's rows: tables, figures and verdicts.

use crate::claims::{Group, Verdict};
use crate::figure::Figure;
use crate::table::Table;

/// The analysis of a study's rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Analysis {
    /// The part of the report that the study belongs to.
    pub group: Group,
    /// The tables, the most important first.
    pub tables: Vec<Table>,
    /// The figures.
    pub figures: Vec<Figure>,
    /// The verdicts on the claims that the study measures.
    pub verdicts: Vec<Verdict>,
    /// What is unknown about the rows, one line each.
    pub not_known: Vec<String>,
}

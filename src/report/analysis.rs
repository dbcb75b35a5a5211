//! What a study's rows come to: tables, figures and verdicts.

use crate::figure::Figure;
use crate::judge::Verdict;
use crate::table::Table;

/// What a study's rows came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Analysis {
    /// The tables, the most telling first.
    pub tables: Vec<Table>,
    /// The figures.
    pub figures: Vec<Figure>,
    /// The verdicts on the claims that such a study bears on.
    pub verdicts: Vec<Verdict>,
    /// What nobody knows of the rows, a line each.
    pub not_known: Vec<String>,
}

//! The view of how concentrated trained heads' attention is.

use super::rows;
use super::view_of::ViewOf;
use crate::figure;
use crate::judge;
use crate::table::Concentrations;

pub(super) const CONCENTRATION: ViewOf<Concentrations> = ViewOf {
    rows: rows::concentrations,
    tables: Concentrations::tables,
    figures: |concentrations, _| vec![figure::concentration(concentrations)],
    verdicts: |concentrations, _| judge::concentration::concentration(concentrations),
};

//! The view of how concentrated trained heads' attention is.

use super::rows;
use super::view_of::ViewOf;
use crate::claims;
use crate::figure;
use crate::table::Concentrations;

pub(super) const CONCENTRATION: ViewOf<Concentrations> = ViewOf {
    rows: rows::concentrations,
    tables: Concentrations::tables,
    figures: |concentrations, _| vec![figure::concentration(concentrations)],
    verdicts: |concentrations, _| claims::concentration::concentration(concentrations),
};

//! The view of how concentrated trained heads' attention is.

use super::rows;
use super::view_of::ViewOf;
use crate::experiments::concentration;
use crate::experiments::concentration::tables::Concentrations;

pub(super) const CONCENTRATION: ViewOf<Concentrations> = ViewOf {
    rows: rows::concentrations,
    tables: Concentrations::tables,
    figures: |concentrations, _| vec![concentration::figures::concentration(concentrations)],
    verdicts: |concentrations, _| concentration::claims::concentration(concentrations),
};

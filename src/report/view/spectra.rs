//! The view of singular values.

use super::rows;
use super::view_of::ViewOf;
use crate::figure;
use crate::table::Spectra;

pub(super) const SPECTRA: ViewOf<Spectra> = ViewOf {
    rows: rows::spectra,
    tables: Spectra::tables,
    figures: |spectra, _| figure::spectra(spectra),
    verdicts: |_, _| vec![],
};

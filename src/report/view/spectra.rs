//! The view of singular values.

use super::rows;
use super::view_of::ViewOf;
use crate::experiments::spectrum;
use crate::experiments::spectrum::tables::Spectra;

pub(super) const SPECTRA: ViewOf<Spectra> = ViewOf {
    rows: rows::spectra,
    tables: Spectra::tables,
    figures: |spectra, _| spectrum::figures::spectra(spectra),
    verdicts: |_, _| vec![],
};

//! Views of trained heads.

use super::rows;
use super::view_of::ViewOf;
use crate::experiments::heads::tables::heads::TrainedHeads;
use crate::experiments::heads::tables::published::PublishedHeads;
use crate::experiments::lattice::tables::lattice::Lattices;
use crate::experiments::{heads, lattice};

pub(super) const DECOMPOSITION: ViewOf<TrainedHeads> = ViewOf {
    rows: rows::heads,
    tables: TrainedHeads::tables,
    figures: |heads, _| heads::figures::heads::decomposition(heads),
    verdicts: |heads, _| vec![heads::claims::heads::growth(heads)],
};

pub(super) const PREDICTION: ViewOf<TrainedHeads> = ViewOf {
    rows: rows::heads,
    tables: TrainedHeads::tables,
    figures: |heads, _| heads::figures::prediction::prediction(heads, &[]),
    verdicts: |heads, _| vec![heads::claims::heads::ordering(heads)],
};

pub(super) const PUBLISHED: ViewOf<PublishedHeads> = ViewOf {
    rows: rows::published,
    tables: PublishedHeads::tables,
    figures: |heads, _| match &heads.fitted {
        Some(fitted) => heads::figures::prediction::prediction(fitted, &heads.screened()),
        None => Vec::new(),
    },
    verdicts: |heads, _| {
        vec![heads::claims::published::needed(heads), heads::claims::published::ramp(heads)]
    },
};

pub(super) const RANKS: ViewOf<TrainedHeads> = ViewOf {
    rows: rows::heads,
    tables: |heads| vec![heads.ranks_table(), heads.parts_table()],
    figures: |heads, _| heads::figures::ranks::ranks(heads).into_iter().collect(),
    verdicts: |heads, _| vec![heads::claims::heads::given_inputs(heads)],
};

pub(super) const LATTICE: ViewOf<Lattices> = ViewOf {
    rows: rows::lattices,
    tables: Lattices::tables,
    figures: |lattices, _| lattice::figures::lattice(lattices).into_iter().collect(),
    verdicts: |lattices, _| vec![lattice::claims::positions(lattices)],
};

pub(super) const HEAD_DIMENSION: ViewOf<Lattices> = ViewOf {
    rows: rows::lattices,
    tables: Lattices::tables,
    figures: |lattices, _| lattice::figures::lattice(lattices).into_iter().collect(),
    verdicts: |lattices, _| vec![lattice::claims::rank(lattices)],
};

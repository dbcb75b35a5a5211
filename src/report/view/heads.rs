//! Views of trained heads.

use super::rows;
use super::view_of::ViewOf;
use crate::claims;
use crate::figure;
use crate::table::{Lattices, PublishedHeads, TrainedHeads};

pub(super) const DECOMPOSITION: ViewOf<TrainedHeads> = ViewOf {
    rows: rows::heads,
    tables: TrainedHeads::tables,
    figures: |heads, _| figure::decomposition(heads),
    verdicts: |heads, _| vec![claims::heads::growth(heads)],
};

pub(super) const PREDICTION: ViewOf<TrainedHeads> = ViewOf {
    rows: rows::heads,
    tables: TrainedHeads::tables,
    figures: |heads, _| figure::prediction(heads, &[]),
    verdicts: |heads, _| vec![claims::heads::ordering(heads)],
};

pub(super) const PUBLISHED: ViewOf<PublishedHeads> = ViewOf {
    rows: rows::published,
    tables: PublishedHeads::tables,
    figures: |heads, _| match &heads.fitted {
        Some(fitted) => figure::prediction(fitted, &heads.screened()),
        None => Vec::new(),
    },
    verdicts: |heads, _| vec![claims::published::needed(heads), claims::published::ramp(heads)],
};

pub(super) const RANKS: ViewOf<TrainedHeads> = ViewOf {
    rows: rows::heads,
    tables: |heads| vec![heads.ranks_table(), heads.parts_table()],
    figures: |heads, _| figure::ranks(heads).into_iter().collect(),
    verdicts: |heads, _| vec![claims::heads::given_inputs(heads)],
};

pub(super) const LATTICE: ViewOf<Lattices> = ViewOf {
    rows: rows::lattices,
    tables: Lattices::tables,
    figures: |lattices, _| figure::lattice(lattices).into_iter().collect(),
    verdicts: |lattices, _| vec![claims::lattice::positions(lattices)],
};

pub(super) const HEAD_DIMENSION: ViewOf<Lattices> = ViewOf {
    rows: rows::lattices,
    tables: Lattices::tables,
    figures: |lattices, _| figure::lattice(lattices).into_iter().collect(),
    verdicts: |lattices, _| vec![claims::lattice::rank(lattices)],
};

//! Views of fits.

use super::rows;
use super::view_of::ViewOf;
use crate::figure;
use crate::judge;
use crate::table::{Growth, Layouts};

pub(super) const LOGIT_GROWTH: ViewOf<Growth> = ViewOf {
    rows: rows::growth,
    tables: Growth::tables,
    figures: |growth, _| vec![figure::inflation(growth), figure::logits_needed(growth)],
    verdicts: |growth, _| judge::growth::growth(growth),
};

pub(super) const PHASE: ViewOf<Growth> = ViewOf {
    rows: rows::growth,
    tables: Growth::tables,
    figures: |growth, _| vec![figure::phase(growth)],
    verdicts: |_, _| vec![],
};

pub(super) const CONTROLS: ViewOf<Growth> = ViewOf {
    rows: rows::growth,
    tables: Growth::tables,
    figures: |growth, _| vec![figure::inflation(growth)],
    verdicts: |growth, _| vec![judge::controls::controls(growth)],
};

pub(super) const LAYOUTS: ViewOf<Layouts> = ViewOf {
    rows: rows::layouts,
    tables: Layouts::tables,
    figures: |layouts, _| vec![figure::layouts(layouts)],
    verdicts: |layouts, _| vec![judge::layouts::layouts(layouts)],
};

pub(super) const FRONTIERS: ViewOf<Layouts> = ViewOf {
    rows: rows::layouts,
    tables: Layouts::tables,
    figures: |layouts, _| vec![figure::frontiers(layouts)],
    verdicts: |_, _| vec![],
};

pub(super) const WINDOW_RULE: ViewOf<Layouts> = ViewOf {
    rows: rows::layouts,
    tables: Layouts::window_tables,
    figures: |layouts, _| figure::window_rule(layouts),
    verdicts: |_, _| vec![],
};

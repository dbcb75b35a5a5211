//! Views of fits.

use super::rows;
use super::view_of::ViewOf;
use crate::claims;
use crate::figure;
use crate::table::{Growth, Layouts};

pub(super) const LOGIT_GROWTH: ViewOf<Growth> = ViewOf {
    rows: rows::growth,
    tables: Growth::tables,
    figures: |growth, _| vec![figure::inflation(growth), figure::logits_needed(growth)],
    verdicts: |growth, _| claims::growth::growth(growth),
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
    verdicts: |growth, _| vec![claims::controls::controls(growth)],
};

pub(super) const LAYOUTS: ViewOf<Layouts> = ViewOf {
    rows: rows::layouts,
    tables: Layouts::tables,
    figures: |layouts, _| vec![figure::layouts(layouts)],
    verdicts: |layouts, _| vec![claims::layouts::layouts(layouts)],
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

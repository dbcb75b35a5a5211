//! Views of fits.

use super::rows;
use super::view_of::ViewOf;
use crate::experiments::fits;
use crate::experiments::fits::tables::growth::Growth;
use crate::experiments::fits::tables::layouts::Layouts;

pub(super) const LOGIT_GROWTH: ViewOf<Growth> = ViewOf {
    rows: rows::growth,
    tables: Growth::tables,
    figures: |growth, _| {
        vec![fits::figures::growth::inflation(growth), fits::figures::growth::logits_needed(growth)]
    },
    verdicts: |growth, _| fits::claims::growth::growth(growth),
};

pub(super) const PHASE: ViewOf<Growth> = ViewOf {
    rows: rows::growth,
    tables: Growth::tables,
    figures: |growth, _| vec![fits::figures::phase::phase(growth)],
    verdicts: |_, _| vec![],
};

pub(super) const CONTROLS: ViewOf<Growth> = ViewOf {
    rows: rows::growth,
    tables: Growth::tables,
    figures: |growth, _| vec![fits::figures::growth::inflation(growth)],
    verdicts: |growth, _| vec![fits::claims::controls::controls(growth)],
};

pub(super) const LAYOUTS: ViewOf<Layouts> = ViewOf {
    rows: rows::layouts,
    tables: Layouts::tables,
    figures: |layouts, _| vec![fits::figures::layouts::layouts(layouts)],
    verdicts: |layouts, _| vec![fits::claims::layouts::layouts(layouts)],
};

pub(super) const FRONTIERS: ViewOf<Layouts> = ViewOf {
    rows: rows::layouts,
    tables: Layouts::tables,
    figures: |layouts, _| vec![fits::figures::frontiers::frontiers(layouts)],
    verdicts: |_, _| vec![],
};

pub(super) const WINDOW_RULE: ViewOf<Layouts> = ViewOf {
    rows: rows::layouts,
    tables: Layouts::window_tables,
    figures: |layouts, _| fits::figures::window_rule::window_rule(layouts),
    verdicts: |_, _| vec![],
};

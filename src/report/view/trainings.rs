//! Views of trainings.

use super::rows;
use super::view_of::{Against, ViewOf};
use crate::claims::{self, Verdict};
use crate::figure::{self, Figure};
use crate::table::Trainings;

pub(super) const TRAINING: ViewOf<Trainings> = ViewOf {
    rows: rows::trainings_with_logs,
    tables: Trainings::tables,
    figures: by_step,
    verdicts: with_exponents,
};

pub(super) const ARMS: ViewOf<Trainings> = ViewOf {
    rows: rows::trainings_with_logs,
    tables: Trainings::tables,
    figures: |trainings, _| figure::arms(trainings),
    verdicts: |trainings, _| claims::arms::arms(&trainings.ended()),
};

pub(super) const ABLATION: ViewOf<Trainings> = ViewOf {
    rows: rows::trainings,
    tables: Trainings::tables,
    figures: |trainings, _| vec![figure::ablation(trainings)],
    verdicts: |_, _| vec![],
};

pub(super) const DIAL: ViewOf<Trainings> = ViewOf {
    rows: rows::trainings,
    tables: Trainings::tables,
    figures: |trainings, _| vec![figure::dial(trainings)],
    verdicts: |trainings, _| vec![claims::arms::dial(&trainings.ended())],
};

pub(super) const LEARNING_RATE: ViewOf<Trainings> = ViewOf {
    rows: rows::trainings,
    tables: Trainings::tables,
    figures: |trainings, _| vec![figure::learning_rate(trainings)],
    // A rate compares variants only where each has its best one inside the rates tried, over several seeds.
    verdicts: |_, _| vec![],
};

pub(super) const INTERVENTIONS: ViewOf<Trainings> = ViewOf {
    rows: rows::trainings_with_baselines,
    tables: Trainings::tables,
    figures: |trainings, against| vec![figure::interventions(trainings, &against.baselines)],
    verdicts: |trainings, against| {
        vec![claims::variants::interventions(&trainings.ended(), &against.baselines)]
    },
};

/// With the names of the unchanged runs.
pub(super) const VARIANTS: ViewOf<(Trainings, Vec<String>)> = ViewOf {
    rows: rows::trainings_with_names_of_baselines,
    tables: |(trainings, baselines)| {
        let mut tables = vec![trainings.variants_table(baselines)];
        tables.extend(trainings.tables());
        tables
    },
    figures: |(trainings, _), _| {
        let overview = figure::overview(trainings).into_iter();
        overview.chain([figure::variants(trainings)]).chain(figure::by_context(trainings)).collect()
    },
    verdicts: |(trainings, baselines), _| {
        let ended = trainings.ended();
        let mut verdicts = Vec::new();
        if ["ls", "mhsa"].iter().all(|arm| ended.arm(arm).next().is_some()) {
            verdicts.extend(claims::training::training(trainings));
        }
        verdicts.extend(claims::variants::slopes(&ended, baselines));
        verdicts.extend(claims::variants::head_dimension(&ended, baselines));
        verdicts
    },
};

/// With the names of the baselines.
pub(super) const BITS: ViewOf<(Trainings, Vec<String>)> = ViewOf {
    rows: rows::trainings_with_names_of_baselines,
    tables: |(trainings, baselines)| {
        let mut tables = vec![trainings.bits_table(baselines)];
        tables.extend(trainings.tables());
        tables
    },
    figures: |(trainings, _), _| vec![figure::variants(trainings)],
    verdicts: |(trainings, _), _| {
        claims::arms::other_data(&trainings.ended()).into_iter().collect()
    },
};

/// Curves of several lengths in one panel would lie over each other.
fn by_step(trainings: &Trainings, _: &Against) -> Vec<Figure> {
    match trainings.contexts().len() {
        0 | 1 => {
            let kinds = figure::head_kinds(trainings);
            [figure::training(trainings)].into_iter().chain(kinds).collect()
        }
        _ => figure::by_context(trainings),
    }
}

fn with_exponents(trainings: &Trainings, against: &Against) -> Vec<Verdict> {
    let mut verdicts = claims::training::training(trainings);
    verdicts.extend(claims::variants::exponent(&trainings.ended(), &against.predicted));
    verdicts
}

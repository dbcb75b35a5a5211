//! Views of trainings.

use super::rows;
use super::view_of::{Against, ViewOf};
use crate::claims::Verdict;
use crate::experiments::training;
use crate::experiments::training::tables::training::Trainings;
use crate::figure::Figure;

pub(super) const TRAINING: ViewOf<Trainings> = ViewOf {
    rows: rows::trainings_with_logs,
    tables: Trainings::tables,
    figures: by_step,
    verdicts: with_exponents,
};

pub(super) const ARMS: ViewOf<Trainings> = ViewOf {
    rows: rows::trainings_with_logs,
    tables: Trainings::tables,
    figures: |trainings, _| training::figures::arms::arms(trainings),
    verdicts: |trainings, _| training::claims::arms::arms(&trainings.ended()),
};

pub(super) const ABLATION: ViewOf<Trainings> = ViewOf {
    rows: rows::trainings,
    tables: Trainings::tables,
    figures: |trainings, _| vec![training::figures::arms::ablation(trainings)],
    verdicts: |_, _| vec![],
};

pub(super) const DIAL: ViewOf<Trainings> = ViewOf {
    rows: rows::trainings,
    tables: Trainings::tables,
    figures: |trainings, _| vec![training::figures::arms::dial(trainings)],
    verdicts: |trainings, _| vec![training::claims::arms::dial(&trainings.ended())],
};

pub(super) const LEARNING_RATE: ViewOf<Trainings> = ViewOf {
    rows: rows::trainings,
    tables: Trainings::tables,
    figures: |trainings, _| vec![training::figures::arms::learning_rate(trainings)],
    // A rate compares variants only where each has its best one inside the rates tried, over several seeds.
    verdicts: |_, _| vec![],
};

pub(super) const INTERVENTIONS: ViewOf<Trainings> = ViewOf {
    rows: rows::trainings_with_baselines,
    tables: Trainings::tables,
    figures: |trainings, against| {
        vec![training::figures::training::interventions(trainings, &against.baselines)]
    },
    verdicts: |trainings, against| {
        vec![training::claims::variants::interventions(&trainings.ended(), &against.baselines)]
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
        let overview = training::figures::overview::overview(trainings).into_iter();
        overview
            .chain([training::figures::training::variants(trainings)])
            .chain(training::figures::training::by_context(trainings))
            .collect()
    },
    verdicts: |(trainings, baselines), _| {
        let ended = trainings.ended();
        let mut verdicts = Vec::new();
        if ["ls", "mhsa"].iter().all(|arm| ended.arm(arm).next().is_some()) {
            verdicts.extend(training::claims::training::training(trainings));
        }
        verdicts.extend(training::claims::variants::slopes(&ended, baselines));
        verdicts.extend(training::claims::variants::head_dimension(&ended, baselines));
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
    figures: |(trainings, _), _| vec![training::figures::training::variants(trainings)],
    verdicts: |(trainings, _), _| {
        training::claims::arms::other_data(&trainings.ended()).into_iter().collect()
    },
};

/// Curves of several lengths in one panel would lie over each other.
fn by_step(trainings: &Trainings, _: &Against) -> Vec<Figure> {
    match trainings.contexts().len() {
        0 | 1 => {
            let kinds = training::figures::training::head_kinds(trainings);
            [training::figures::training::training(trainings)].into_iter().chain(kinds).collect()
        }
        _ => training::figures::training::by_context(trainings),
    }
}

fn with_exponents(trainings: &Trainings, against: &Against) -> Vec<Verdict> {
    let mut verdicts = training::claims::training::training(trainings);
    verdicts.extend(training::claims::variants::exponent(&trainings.ended(), &against.predicted));
    verdicts
}

//! The content of a page of `show`, and the grids of a model's heads.

use std::collections::BTreeMap;

use crate::experiments::heads::tables::heads::TrainedHeads;
use crate::experiments::training::tables::run_course::RunCourse;
use crate::figure::Figure;
use crate::table::{Table, distinct};

/// The analysis of one folder, or of several runs together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Shown {
    /// The title.
    pub title: String,
    /// The results, in sentences.
    pub conclusion: Vec<String>,
    /// Contents missing from the figures, and why.
    pub notes: Vec<String>,
    /// The figures.
    pub figures: Vec<Figure>,
    /// Grids of heads, one per model.
    pub grids: Vec<HeadGrid>,
    /// The tables.
    pub tables: Vec<Table>,
}

/// The largest |logit| of each head of a model at its last step.
#[derive(Clone, Debug, PartialEq)]
pub struct HeadGrid {
    /// Name of the model.
    pub model: String,
    /// The last step.
    pub step: usize,
    /// max |logit| by layer and head.
    pub heads: BTreeMap<(usize, usize), f64>,
}

impl HeadGrid {
    /// Makes the grid of heads, each given by layer and head, step and max |logit|. Of several for one head and step, the
    /// first counts. `None` if there are none.
    pub(super) fn of(
        model: String,
        entries: impl Iterator<Item = ((usize, usize), usize, f64)> + Clone,
    ) -> Option<Self> {
        let step = entries.clone().map(|(_, step, _)| step).max()?;
        let mut heads = BTreeMap::new();
        for (place, _, max_logit) in entries.filter(|(_, of, _)| *of == step) {
            heads.entry(place).or_insert(max_logit);
        }
        Some(Self { model, step, heads })
    }

    /// The heads of a run at its last logged step; `None` if its logs have no heads.
    pub fn of_run(run: &RunCourse) -> Option<Self> {
        let entries = run.heads.iter().filter_map(|head| {
            let &(step, max_logit) = head.max_logit.last()?;
            Some(((head.layer, head.head), step as usize, max_logit))
        });
        Self::of(run.name.clone(), entries)
    }

    /// The heads of each model in predictions, at one tolerance ε. With several passages or ranks, the first one is shown.
    pub fn of_predictions(study: &TrainedHeads) -> Vec<Self> {
        let epsilon = study.epsilon_told();
        let here = || study.heads.iter().filter(|head| head.found.epsilon == epsilon);
        let grid = |(run, seed): (&str, u64)| {
            let own = here().filter(|head| (head.run(), head.seed()) == (run, seed));
            let entries =
                own.map(|head| ((head.of.layer, head.found.head), head.step(), head.found.actual));
            Self::of(format!("{run}, seed {seed}"), entries)
        };
        let models = distinct(here().map(|head| (head.run(), head.seed())));
        models.into_iter().filter_map(grid).collect()
    }
}

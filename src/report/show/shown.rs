//! The content of a page of `show`, and the grids of a model's heads.

use std::collections::{BTreeMap, BTreeSet};

use crate::experiments::heads::tables::heads::{HeadRow, TrainedHeads};
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

/// Quantities of each head of a model at several steps.
#[derive(Clone, Debug, PartialEq)]
pub struct HeadGrid {
    /// Name of the model.
    pub model: String,
    /// The steps, in order.
    pub steps: Vec<usize>,
    /// The names of the quantities; the grid shows the first.
    pub quantities: Vec<&'static str>,
    /// The heads, layer by layer.
    pub heads: Vec<GridHead>,
}

/// One head of a grid.
#[derive(Clone, Debug, PartialEq)]
pub struct GridHead {
    /// The layer, from 0.
    pub layer: usize,
    /// The head within it, from 0.
    pub head: usize,
    /// `global`, or the window of a local head.
    pub kind: String,
    /// Values by quantity, then by step.
    pub values: Vec<Vec<Option<f64>>>,
}

/// Layer and head.
type Place = (usize, usize);
/// Values of one head at one step: place, `kind`, step, values by quantity.
pub(super) type GridEntry = (Place, String, usize, Vec<Option<f64>>);

impl HeadGrid {
    /// Arranges entries by head and step; of several for one head and step, the first counts. `None` if there are none.
    pub(super) fn of(
        model: String,
        quantities: Vec<&'static str>,
        entries: impl IntoIterator<Item = GridEntry>,
    ) -> Option<Self> {
        let mut kinds: BTreeMap<Place, String> = BTreeMap::new();
        let mut values: BTreeMap<(Place, usize), Vec<Option<f64>>> = BTreeMap::new();
        for (place, kind, step, of_entry) in entries {
            kinds.entry(place).or_insert(kind);
            values.entry((place, step)).or_insert(of_entry);
        }
        let steps: BTreeSet<usize> = values.keys().map(|(_, step)| *step).collect();
        let at =
            |place, step: &usize, quantity: usize| *values.get(&(place, *step))?.get(quantity)?;
        let head = |(place, kind): (Place, String)| GridHead {
            layer: place.0,
            head: place.1,
            kind,
            values: (0..quantities.len())
                .map(|quantity| steps.iter().map(|step| at(place, step, quantity)).collect())
                .collect(),
        };
        let heads: Vec<GridHead> = kinds.into_iter().map(head).collect();
        let steps: Vec<usize> = steps.iter().copied().collect();
        (!steps.is_empty()).then_some(Self { model, steps, quantities, heads })
    }

    /// The heads of a run at each logged step; `None` if its logs have no heads.
    pub fn of_run(run: &RunCourse) -> Option<Self> {
        let entries = run.heads.iter().flat_map(|head| {
            head.max_logit.iter().map(move |&(step, max_logit)| {
                let entropy = head.entropy_nats.iter().find(|point| point.0 == step);
                let values = vec![Some(max_logit), entropy.map(|point| point.1)];
                ((head.layer, head.head), head.kind.clone(), step as usize, values)
            })
        });
        Self::of(run.name.clone(), vec!["max |logit|", "row entropy (nats)"], entries)
    }

    /// The heads of each model in predictions, at one tolerance ε. With several passages or ranks, the first one is shown.
    pub fn of_predictions(study: &TrainedHeads) -> Vec<Self> {
        let quantities = vec![
            "max |logit|",
            "half the logit range",
            "needed with its inputs",
            "needed at its rank",
            "floor",
            "row entropy (nats)",
        ];
        let epsilon = study.epsilon_told();
        let here = || study.heads.iter().filter(|head| head.found.epsilon == epsilon);
        let entry = |HeadRow { of, found, .. }: &HeadRow, step| {
            let values = vec![
                Some(found.actual),
                Some(0.5 * found.spread),
                found.needed_tied,
                found.needed,
                found.floor,
                Some(found.entropy_nats),
            ];
            ((of.layer, found.head), found.kind.to_string(), step, values)
        };
        let grid = |(run, seed): (&str, u64)| {
            let own = here().filter(|head| (head.run(), head.seed()) == (run, seed));
            let model = format!("{run}, seed {seed}, tolerance ε = {epsilon} nats");
            Self::of(model, quantities.clone(), own.map(|head| entry(head, head.step())))
        };
        distinct(here().map(|head| (head.run(), head.seed())))
            .into_iter()
            .filter_map(grid)
            .collect()
    }
}

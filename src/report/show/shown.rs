//! The content of a page of `show`, and the grids of a model's heads.

use crate::experiments::heads::tables::heads::{HeadRow, TrainedHeads};
use crate::experiments::training::tables::run_course::RunCourse;
use crate::experiments::training::tables::run_log::Curve;
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

impl HeadGrid {
    /// The heads of a run at each logged step; `None` if its logs have no heads.
    pub fn of_run(run: &RunCourse) -> Option<Self> {
        let first = run.heads.first()?;
        let steps: Vec<usize> = first.max_logit.iter().map(|point| point.0 as usize).collect();
        let values = |curve: &Curve| {
            let at = |step: &usize| {
                curve.iter().find(|point| point.0 as usize == *step).map(|point| point.1)
            };
            steps.iter().map(at).collect()
        };
        let heads = run.heads.iter().map(|head| GridHead {
            layer: head.layer,
            head: head.head,
            kind: head.kind.clone(),
            values: vec![values(&head.max_logit), values(&head.entropy_nats)],
        });
        Some(Self {
            model: run.name.clone(),
            heads: heads.collect(),
            quantities: vec!["max |logit|", "row entropy (nats)"],
            steps,
        })
    }

    /// The heads of each model in predictions, at one tolerance ε.
    pub fn of_predictions(study: &TrainedHeads) -> Vec<Self> {
        type Of = fn(&HeadRow) -> Option<f64>;
        const QUANTITIES: [(&str, Of); 6] = [
            ("max |logit|", |head| Some(head.found.actual)),
            ("half the logit range", |head| Some(0.5 * head.found.spread)),
            ("needed with its inputs", |head| head.found.needed_tied),
            ("needed at its rank", |head| head.found.needed),
            ("floor", |head| head.found.floor),
            ("row entropy (nats)", |head| Some(head.found.entropy_nats)),
        ];
        let epsilon = study.epsilon_told();
        let here = || study.heads.iter().filter(|head| head.found.epsilon == epsilon);
        let grid = |(run, seed): (&str, u64)| {
            let own: Vec<&HeadRow> =
                here().filter(|head| (head.run(), head.seed()) == (run, seed)).collect();
            let steps = distinct(own.iter().map(|head| head.step()));
            let places = distinct(own.iter().map(|head| (head.of.layer, head.found.head)));
            let head = |(layer, head): (usize, usize)| {
                // With several passages or ranks, the first one is shown.
                let at = |step: usize| {
                    own.iter().find(|h| (h.of.layer, h.found.head, h.step()) == (layer, head, step))
                };
                let kind = own.iter().find(|h| (h.of.layer, h.found.head) == (layer, head));
                GridHead {
                    layer,
                    head,
                    kind: kind.map_or_else(String::new, |h| h.found.kind.to_string()),
                    values: QUANTITIES
                        .iter()
                        .map(|(_, of)| steps.iter().map(|&step| of(at(step)?)).collect())
                        .collect(),
                }
            };
            Self {
                model: format!("{run}, seed {seed}, tolerance ε = {epsilon} nats"),
                quantities: QUANTITIES.map(|(name, _)| name).to_vec(),
                heads: places.into_iter().map(head).collect(),
                steps,
            }
        };
        distinct(here().map(|head| (head.run(), head.seed()))).into_iter().map(grid).collect()
    }
}

//! A model at one step: its heads' rows, and what they look like on one passage.

use super::look::Look;
use crate::experiments::heads::HeadMeasurement;
use crate::record::Row;

/// A head of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct DiagnosedHead {
    /// The layer, from 0.
    pub layer: usize,
    /// Its row.
    pub found: HeadMeasurement,
    /// What it looks like on the first passage; none before [`DiagnosedModel::look`].
    pub(super) look: Option<Look>,
}

/// A model at one step.
#[derive(Clone, Debug, PartialEq)]
pub struct DiagnosedModel {
    /// The run's name, or the folder's.
    pub name: String,
    /// The step; none for a model from elsewhere.
    pub step: Option<usize>,
    /// What it is: a run's arm, or the type of a published model.
    pub arm: String,
    /// The heads, by layer and head.
    pub heads: Vec<DiagnosedHead>,
    /// The tokens of the first passage as text; where they have no written form, as numbers.
    pub tokens: Vec<String>,
}

impl DiagnosedModel {
    /// The models that rows are of, in their order.
    pub fn of(rows: &[Row<HeadMeasurement>]) -> Vec<Self> {
        let mut models: Vec<Self> = Vec::new();
        for Row { of, found, .. } in rows {
            let head = DiagnosedHead { layer: of.layer, found: found.clone(), look: None };
            let (name, step) = (&of.model.run, of.model.step);
            match models.iter_mut().find(|model| (&model.name, model.step) == (name, step)) {
                Some(model) => model.heads.push(head),
                None => models.push(Self {
                    name: name.clone(),
                    step,
                    arm: of.model.arm.clone(),
                    heads: vec![head],
                    tokens: Vec::new(),
                }),
            }
        }
        for model in &mut models {
            model.heads.sort_by_key(|head| (head.layer, head.found.head));
        }
        models
    }

    /// What it is called beside others.
    pub fn title(&self) -> String {
        match self.step {
            Some(step) => format!("{}, step {step}", self.name),
            None => self.name.clone(),
        }
    }

    /// One of its heads.
    pub fn head(&self, layer: usize, head: usize) -> Option<&DiagnosedHead> {
        self.heads.iter().find(|other| (other.layer, other.found.head) == (layer, head))
    }

    /// Tokens of a passage.
    pub fn n(&self) -> usize {
        self.heads.first().map_or(0, |head| head.found.n)
    }
}

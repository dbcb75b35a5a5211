//! A model at one step: the rows of its heads, and their pictures on one passage.

use super::look::Look;
use crate::experiments::heads::HeadMeasurement;
use crate::record::Row;

/// A head of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct DiagnosedHead {
    /// The layer, from 0.
    pub layer: usize,
    /// The head's row.
    pub found: HeadMeasurement,
    /// Pictures on the first passage; `None` before [`DiagnosedModel::look`].
    pub(super) look: Option<Look>,
}

/// A model at one step.
#[derive(Clone, Debug, PartialEq)]
pub struct DiagnosedModel {
    /// Name of the run or of the model's folder.
    pub name: String,
    /// Training step; `None` for published models.
    pub step: Option<usize>,
    /// Variant of a run, or type of a published model.
    pub arm: String,
    /// Heads, sorted by layer and head.
    pub heads: Vec<DiagnosedHead>,
    /// Tokens of the first passage as text, or as numbers if they have no text.
    pub tokens: Vec<String>,
}

impl DiagnosedModel {
    /// Groups rows into models, in the order of the rows.
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

    /// Name of the model, with its step if it has one.
    pub fn title(&self) -> String {
        match self.step {
            Some(step) => format!("{}, step {step}", self.name),
            None => self.name.clone(),
        }
    }

    /// Number of tokens per passage.
    pub fn n(&self) -> usize {
        self.heads.first().map_or(0, |head| head.found.n)
    }
}

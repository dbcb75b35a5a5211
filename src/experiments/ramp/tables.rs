//! When heads of trained models become local, and how large logits are then.

use crate::experiments::ramp::RampMeasurement;
use crate::record::{Row, Rows};
use crate::table::error::READ_ERR;
use crate::table::groups::{distinct, groups};
use crate::table::{Table, TableError};
use crate::targets::HeadKind;

/// A head is local if its rows have at least this share of their mass on their last 16 tokens, on average.
pub const LOCAL_MASS: f64 = 0.8;

/// The steps after the first local head of a model at which models of several lengths are compared.
pub const AGE: usize = 3_000;

/// One head of a model at one step.
pub type RampHead = Row<RampMeasurement>;

impl RampHead {
    /// Whether the head is local, and no window makes it so.
    fn is_local_without_window(&self) -> bool {
        self.found.mass_within_16 >= LOCAL_MASS && self.found.kind == HeadKind::Global
    }

    /// Whether it is a global head of `mhsa` with learned positions and without a position bias, so that only its logits
    /// can make it local.
    pub fn buys_its_locality(&self) -> bool {
        self.of.model.arm == "mhsa"
            && self.found.kind == HeadKind::Global
            && self.of.positions.as_deref() == Some("learned")
            && self.of.slopes.as_deref() == Some("none")
    }

    /// The model of the head: study, run and seed.
    pub fn model(&self) -> (Option<String>, String, u64) {
        (self.of.model.of.clone(), self.run().to_owned(), self.seed())
    }
}

/// Studies of ramps.
#[derive(Clone, Debug, PartialEq)]
pub struct Ramps {
    /// The heads of each model at its last step, in the order of the rows.
    pub heads: Vec<RampHead>,
    /// The heads of each model at every step.
    pub all: Vec<RampHead>,
    /// The number of rows of failed cells.
    pub failed: usize,
}

/// A model at its last step, and at the first step that lies [`AGE`] or more after its first local head.
#[derive(Clone, Debug, PartialEq)]
pub struct RampModel<'r> {
    /// Each step with the largest |logit| there, in order.
    pub course: Vec<(usize, f64)>,
    /// The heads at the last step.
    pub last: Vec<&'r RampHead>,
    /// The first step at which a head without a window is local.
    pub local_from: Option<usize>,
    /// The heads at that age; empty if no head is local, or if the run ended earlier.
    pub aged: Vec<&'r RampHead>,
}

impl<'r> RampModel<'r> {
    /// Gathers the heads of one model.
    fn of(heads: Vec<&'r RampHead>) -> Self {
        let local = heads.iter().filter(|head| head.is_local_without_window());
        let local_from = local.map(|head| head.step()).min();
        let of_age = |head: &&RampHead| local_from.is_some_and(|from| head.step() >= from + AGE);
        let aged = heads.iter().copied().filter(of_age).map(|head| head.step()).min();
        let at = |step: Option<usize>| -> Vec<&'r RampHead> {
            heads.iter().copied().filter(|head| Some(head.step()) == step).collect()
        };
        let steps = distinct(heads.iter().map(|head| head.step()));
        let of_step = |&step: &usize| Some((step, largest(&at(Some(step)))?));
        let course = steps.iter().filter_map(of_step).collect();
        Self { course, last: at(steps.last().copied()), local_from, aged: at(aged) }
    }

    /// Any head of the model: its settings are those of all.
    pub fn any(&self) -> &'r RampHead {
        self.last[0]
    }
}

/// The largest |logit| of these heads; `None` if there are none.
pub fn largest(heads: &[&RampHead]) -> Option<f64> {
    heads.iter().map(|head| head.found.actual).reduce(f64::max)
}

impl Ramps {
    /// Gathers the rows of studies of ramps.
    ///
    /// # Errors
    /// [`TableError::NoRows`] if there are none.
    pub fn of(rows: &Rows<RampMeasurement>) -> Result<Self, TableError> {
        let why = "no finished row has a trained head";
        let heads = TableError::unless_empty(rows.rows.clone(), &rows.path, why, READ_ERR)?;
        Ok(Self::of_heads(heads, rows.failed))
    }

    /// Gathers heads at any steps.
    pub fn of_heads(all: Vec<RampHead>, failed: usize) -> Self {
        let models = groups(&all, RampHead::model);
        let last = |model: &Vec<&RampHead>| model.iter().map(|head| head.step()).max();
        let last: Vec<_> = models.iter().map(|model| (model[0].model(), last(model))).collect();
        let is_last = |head: &&RampHead| last.contains(&(head.model(), Some(head.step())));
        Self { heads: all.iter().filter(is_last).cloned().collect(), all, failed }
    }

    /// Every model, in the order of the rows.
    pub fn models(&self) -> Vec<RampModel<'_>> {
        groups(&self.all, RampHead::model).into_iter().map(RampModel::of).collect()
    }

    /// When models become local, and how large logits are then.
    pub fn table(&self) -> Table {
        let models = self.models();
        let key = |model: &RampModel<'_>| {
            let any = model.any();
            (any.of.model.of.clone(), any.run().to_owned(), any.found.n)
        };
        let half_range = |heads: &[&RampHead]| {
            let local = heads.iter().filter(|head| head.is_local_without_window());
            local.map(|head| head.found.half_spread).reduce(f64::max)
        };
        let local = |models: &[&RampModel<'_>]| {
            models.iter().filter(|model| model.local_from.is_some()).count()
        };
        let title = "When heads without a window become local, and how large logits are";
        Table::from_groups("lengths", title, groups(&models, key))
            .words("run", "run", |model| model.any().run())
            .numbers("n", "n", |model| model.any().found.n)
            .sizes("models", "models")
            .per_group("local", "become local", local)
            .medians("local_from", "first local step", |model| model.local_from.map(|s| s as f64))
            .medians("last", "max |logit|, last step", |model| largest(&model.last))
            .medians("aged", "max |logit|, at that age", |model| largest(&model.aged))
            .medians("half_range", "local half-range, last step", |model| half_range(&model.last))
            .medians("half_range_aged", "local half-range, at that age", |model| {
                half_range(&model.aged)
            })
            .note(format!(
                "A model becomes local at its first kept step with a head without a window that has {LOCAL_MASS} or more \
                 of its attention on the last 16 tokens. That age: the first kept step {AGE} or more after it. Half-range: \
                 the largest of such heads. Medians over models with (least–greatest)."
            ))
            .note_failed(self.failed)
            .build()
    }
}

#[cfg(test)]
pub(crate) mod tests;

//! Tables of trained heads compared with ramps over positions.

use crate::experiments::ramp::RampMeasurement;
use crate::record::{Row, Rows};
use crate::table::error::READ_ERR;
use crate::table::groups::{distinct, groups, keep_last_steps};
use crate::table::{Columns, Interval, Regression, Table, TableError};
use crate::targets::HeadKind;

/// A head is local if its rows have at least this share of their mass on their last 16 tokens, on average.
pub const LOCAL_MASS: f64 = 0.8;

/// The steps after the first local head of a model at which models of several lengths are compared.
pub const AGE: usize = 3_000;

/// One head of a model at one step.
pub type RampHead = Row<RampMeasurement>;

impl RampHead {
    /// Whether the head is local.
    pub fn is_local(&self) -> bool {
        self.found.mass_within_16 >= LOCAL_MASS
    }

    /// The measurement, if the head is local.
    fn local(&self) -> Option<&RampMeasurement> {
        self.is_local().then_some(&self.found)
    }

    /// Whether the head is local, and no window makes it so.
    fn is_local_without_window(&self) -> bool {
        self.is_local() && self.found.kind == HeadKind::Global
    }

    /// Whether it is a global head of `mhsa` with these positions and without a position bias, so that only its logits
    /// can make it local.
    pub fn buys_its_locality(&self, positions: &str) -> bool {
        self.of.model.arm == "mhsa"
            && self.found.kind == HeadKind::Global
            && self.of.positions.as_deref() == Some(positions)
            && self.of.slopes.as_deref() == Some("none")
    }

    /// The head dimension and the width of the residual stream.
    pub fn shape(&self) -> (usize, Option<usize>) {
        (self.found.rank, self.of.model.d_model)
    }

    /// Its half-range over the predicted one.
    pub fn ratio(&self) -> Option<f64> {
        Some(self.found.half_spread / self.found.formula?)
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

/// A coefficient of a regression, and what was regressed.
pub struct Exponent {
    /// The positions of the models.
    positions: &'static str,
    /// The quantity that is regressed.
    quantity: &'static str,
    /// The steps at which it is taken.
    at: &'static str,
    /// The variable.
    of: &'static str,
    /// The coefficient of the variable.
    pub found: Interval,
    /// The number of points, and of models.
    counts: [usize; 2],
}

/// The number of models that the heads of a run are from.
pub(super) fn models_of(heads: &[&RampHead]) -> usize {
    distinct(heads.iter().map(|head| head.seed())).len()
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
        let mut heads = all.clone();
        keep_last_steps(&mut heads, RampHead::model, |head| head.step());
        Self { heads, all, failed }
    }

    /// Every model, in the order of the rows.
    pub fn models(&self) -> Vec<RampModel<'_>> {
        groups(&self.all, RampHead::model).into_iter().map(RampModel::of).collect()
    }

    /// The local heads at the last step that only their logits make local.
    pub fn all_bought(&self) -> impl Iterator<Item = &RampHead> {
        self.heads.iter().filter(|head| head.is_local() && head.buys_its_locality("learned"))
    }

    /// The head dimension and width at which such heads cover the most lengths, and among those the most heads. With
    /// several shapes, the effect of length could not be separated from that of dimension.
    pub fn shape_of_the_law(&self) -> Option<(usize, Option<usize>)> {
        let mut shapes = groups(self.all_bought(), RampHead::shape);
        shapes.sort_by_key(|heads| {
            let lengths = groups(heads.iter().copied(), |head| head.found.n).len();
            std::cmp::Reverse((lengths, heads.len()))
        });
        Some(shapes.first()?[0].shape())
    }

    /// The heads of the ramp law: local ones with learned positions, of [one shape](Self::shape_of_the_law).
    pub fn bought(&self) -> Vec<&RampHead> {
        let shape = self.shape_of_the_law();
        self.all_bought().filter(|head| Some(head.shape()) == shape).collect()
    }

    /// Regresses log half_spread of these heads on log (n − 1) and log ln(1 + 1/τ), clustered by model; the formula
    /// predicts exponents of 1. Returns `None` for too few models or only one length.
    pub fn exponents(&self) -> Option<Regression> {
        of_half_range(self.bought())
    }

    /// The exponents of n with learned positions and with RoPE, for heads of [one shape](Self::shape_of_the_law).
    pub fn all_exponents(&self) -> Vec<Exponent> {
        let shape = self.shape_of_the_law();
        let models = self.models();
        let mut found = Vec::new();
        for positions in ["learned", "rope"] {
            let is_of = |head: &RampHead| {
                head.buys_its_locality(positions) && shape.is_none_or(|shape| head.shape() == shape)
            };
            let mut add = |quantity, at, of: &[&'static str], regression: Option<Regression>| {
                let Some(all) = regression else { return };
                let counts = [all.points, all.clusters];
                let each = of.iter().zip(all.coefficients);
                found.extend(each.map(|(of, found)| Exponent {
                    positions,
                    quantity,
                    at,
                    of,
                    found,
                    counts,
                }));
            };
            let last: Vec<_> = models.iter().map(|model| &model.last).collect();
            let aged: Vec<_> = models.iter().map(|model| &model.aged).collect();
            for (at, models) in [(LAST, last), (OF_AGE, aged)] {
                let peak = |heads: &&Vec<&RampHead>| {
                    let heads: Vec<&RampHead> =
                        heads.iter().copied().filter(|head| is_of(head)).collect();
                    let logit = largest(&heads).filter(|logit| *logit > 0.0)?.ln();
                    Some((heads[0].model(), vec![(heads[0].found.n as f64).ln()], logit))
                };
                let peaks: Vec<_> = models.iter().filter_map(peak).collect();
                add("max |logit| of a model", at, &["n"], Regression::of(&peaks));
                let heads = models.into_iter().flatten().copied();
                let local = heads.filter(|head| head.is_local() && is_of(head));
                let names = ["n − 1", "ln(1 + 1/τ)"];
                add("half-range of local heads", at, &names, of_half_range(local));
            }
            let changes = self.changes(is_of);
            add("change of log half-range", "kept steps", &["log of the formula"], changes);
        }
        found
    }

    /// Regresses the change of the log half-range of a head that is local at two steps in a row on that of the formula.
    fn changes(&self, is_of: impl Fn(&RampHead) -> bool) -> Option<Regression> {
        let same =
            |head: &RampHead| (head.model(), head.found.layer, head.found.head, head.found.passage);
        let mut points = Vec::new();
        for steps in groups(self.all.iter().filter(|head| is_of(head)), same) {
            let both = steps.windows(2).filter(|two| two.iter().all(|head| head.is_local()));
            points.extend(both.filter_map(|two| {
                let of = |head: &RampHead| {
                    let (half, formula) = (head.found.half_spread, head.found.formula?);
                    (half > 0.0 && formula > 0.0).then(|| (half.ln(), formula.ln()))
                };
                let (before, after) = (of(two[0])?, of(two[1])?);
                Some((two[0].model(), vec![after.1 - before.1], after.0 - before.0))
            }));
        }
        Regression::of(&points)
    }

    /// The tables, the most important first.
    pub fn tables(&self) -> Vec<Table> {
        vec![self.lengths_table(), self.runs_table(), self.exponents_table()]
    }

    fn lengths_table(&self) -> Table {
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

    /// A table with one row per run and kind of heads, at the last step, and the columns that identify it.
    pub(super) fn by_run(&self, name: &str, title: &str) -> Columns<'_, RampHead> {
        let key = |head: &RampHead| {
            (
                head.of.model.of.clone(),
                head.run().to_owned(),
                head.found.kind,
                head.found.n,
                head.step(),
            )
        };
        Table::from_groups(name, title, groups(&self.heads, key))
            .words("run", "run", |head| head.run())
            .words("kind", "kind of heads", |head| head.found.kind.to_string())
            .numbers("n", "n", |head| head.found.n)
            .numbers("d", "d_head", |head| head.found.rank)
            .numbers("step", "step", |head| head.step())
    }

    fn runs_table(&self) -> Table {
        let local = |heads: &[&RampHead]| heads.iter().filter(|head| head.is_local()).count();
        let title = "Half-range of local heads against the prediction (m − 1)/2 · ln(1 + 1/τ), at \
                     the last step";
        self.by_run("ramps", title)
            .per_group("local", "local heads", local)
            .sizes("heads", "all heads")
            .per_group("models", "models", models_of)
            .medians("mean_lag", ("mean relative distance τ", "tokens"), |head| {
                Some(head.local()?.mean_lag)
            })
            .medians("half_spread", "half-range", |head| Some(head.local()?.half_spread))
            .medians("formula", "predicted half-range", |head| head.local()?.formula)
            .medians("ratio", "measured / predicted", |head| head.local().and(head.ratio()))
            .medians("share_ramp", "R² of a ramp c·j", |head| head.local()?.share_ramp)
            .medians("share_position", "R² of f(j)", |head| head.local()?.share_position)
            .medians("share_lag", "R² of g(i − j)", |head| head.local()?.share_lag)
            .medians("kl_uniform", ("KL of uniform", "nats"), |head| Some(head.local()?.kl_uniform))
            .medians("kl_ramp", ("KL of the ramp", "nats"), |head| Some(head.local()?.kl_ramp))
            .medians("kl_position", ("KL of f(j)", "nats"), |head| Some(head.local()?.kl_position))
            .medians("kl_lag", ("KL of g(i − j)", "nats"), |head| Some(head.local()?.kl_lag))
            .medians("effective_rank", "effective rank, centred", |head| {
                Some(head.local()?.effective_rank_centred)
            })
            .note(format!(
                "Local: {LOCAL_MASS} or more of a head's attention on the last 16 tokens. Medians \
                 over the local heads of all seeds with (least–greatest). m is n, or the window of \
                 a local head. Logits are QKᵀ/√d, without a position bias."
            ))
            .note_failed(self.failed)
            .build()
    }

    fn exponents_table(&self) -> Table {
        let title = "Exponents of n in logits, with 95 % intervals";
        Table::from_items("exponents", title, &self.all_exponents())
            .words("positions", "positions", |one| one.positions)
            .words("quantity", "quantity", |one| one.quantity)
            .words("at", "at", |one| one.at)
            .words("of", "exponent of", |one| one.of)
            .numbers("exponent", "exponent", |one| one.found.value)
            .numbers("low", "95 % CI, low", |one| one.found.low)
            .numbers("high", "95 % CI, high", |one| one.found.high)
            .numbers("points", "points", |one| one.counts[0])
            .numbers("models", "models", |one| one.counts[1])
            .note(format!(
                "Multi-head attention without a position bias, at the d_head and d_model with the most lengths. That age: \
                 the first kept step {AGE} or more after the first local head. The formula, (n − 1)/2 · ln(1 + 1/τ), predicts 1 for n − 1, for \
                 ln(1 + 1/τ) and for its own change. Intervals are clustered by model."
            ))
            .build()
    }
}

/// The steps of [`Exponent`]s.
const LAST: &str = "last step";
const OF_AGE: &str = "that age";

/// Regresses log half-range on log (n − 1) and log ln(1 + 1/τ), clustered by model.
fn of_half_range<'r>(heads: impl IntoIterator<Item = &'r RampHead>) -> Option<Regression> {
    let point = |head: &RampHead| {
        let f = &head.found;
        let steepness = (1.0 / f.mean_lag).ln_1p();
        (f.half_spread > 0.0 && f.mean_lag > 0.0 && f.n > 1).then(|| {
            (head.model(), vec![(f.n as f64 - 1.0).ln(), steepness.ln()], f.half_spread.ln())
        })
    };
    let points: Vec<_> = heads.into_iter().filter_map(point).collect();
    Regression::of(&points)
}

#[cfg(test)]
pub(crate) mod tests;

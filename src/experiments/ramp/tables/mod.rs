//! Tables of trained heads compared with ramps over positions.

#[cfg(test)]
pub mod ramps_tests;

use crate::experiments::ramp::RampMeasurement;
use crate::record::{Row, Rows};
use crate::table::Table;
use crate::table::TableError;
use crate::table::error::READ_ERR;
use crate::table::groups::{distinct, groups, keep_last_steps};
use crate::table::{Coefficient, Regression};
use crate::targets::HeadKind;

/// A head is local if its rows have at least this share of their mass on their last 16 tokens, on average.
pub const LOCAL_MASS: f64 = 0.8;

/// One head of a model at its last measured step.
#[derive(Clone, Debug, PartialEq)]
pub struct RampHead {
    /// The study of its run.
    pub of: String,
    /// The run's name in that study.
    pub run: String,
    /// The variant.
    pub arm: String,
    /// The model's positional encoding; `None` for a published model.
    pub positions: Option<String>,
    /// The position bias of the model; `None` for a published model.
    pub slopes: Option<String>,
    /// The run's seed.
    pub seed: u64,
    /// The step of the weights.
    pub step: usize,
    /// The width of the residual stream.
    pub d_model: Option<usize>,
    /// The measurement.
    pub found: RampMeasurement,
}

impl From<&Row<RampMeasurement>> for RampHead {
    fn from(row: &Row<RampMeasurement>) -> Self {
        let of = &row.of.model;
        Self {
            of: of.of.clone().unwrap_or_default(),
            run: of.run.clone(),
            arm: of.arm.clone(),
            positions: row.of.positions.clone(),
            slopes: row.of.slopes.clone(),
            d_model: of.d_model,
            seed: of.seed.unwrap_or(0),
            step: of.step.unwrap_or(0),
            found: row.found.clone(),
        }
    }
}

impl RampHead {
    /// Whether the head is local.
    pub fn is_local(&self) -> bool {
        self.found.mass_within_16 >= LOCAL_MASS
    }

    /// The measurement, if the head is local.
    fn local(&self) -> Option<&RampMeasurement> {
        self.is_local().then_some(&self.found)
    }

    /// Whether only its logits can make the head local: it is a global head of `mhsa` with learned positions and
    /// without a position bias.
    pub fn buys_its_locality(&self) -> bool {
        self.arm == "mhsa"
            && self.found.kind == HeadKind::Global
            && self.positions.as_deref() == Some("learned")
            && self.slopes.as_deref() == Some("none")
    }

    /// The head dimension and the width of the residual stream.
    pub fn shape(&self) -> (usize, Option<usize>) {
        (self.found.rank, self.d_model)
    }

    /// Its half-range over the predicted one.
    pub fn ratio(&self) -> Option<f64> {
        Some(self.found.half_spread / self.found.formula?)
    }

    /// The model of the head: study, run and seed.
    pub fn model(&self) -> (String, String, u64) {
        (self.of.clone(), self.run.clone(), self.seed)
    }
}

/// Studies of ramps.
#[derive(Clone, Debug, PartialEq)]
pub struct Ramps {
    /// The heads of each model at its last step, in the order of the rows.
    pub heads: Vec<RampHead>,
    /// The number of rows of failed cells.
    pub failed: usize,
}

impl Ramps {
    /// Gathers the rows of studies of ramps.
    ///
    /// # Errors
    /// [`TableError::NoRows`] if there are none.
    pub fn of(rows: &Rows<RampMeasurement>) -> Result<Self, TableError> {
        let heads = rows.rows.iter().map(RampHead::from).collect();
        let why = "no finished row has a trained head";
        let mut heads = TableError::unless_empty(heads, &rows.path, why, READ_ERR)?;
        keep_last_steps(&mut heads, RampHead::model, |head| head.step);
        Ok(Self { heads, failed: rows.failed })
    }

    /// The local heads that [only their logits make local](RampHead::buys_its_locality), of every dimension and width.
    pub fn all_bought(&self) -> impl Iterator<Item = &RampHead> {
        self.heads.iter().filter(|head| head.is_local() && head.buys_its_locality())
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

    /// The heads of the ramp law: local ones that [only their logits make local](RampHead::buys_its_locality), of [one
    /// shape](Self::shape_of_the_law).
    pub fn bought(&self) -> Vec<&RampHead> {
        let shape = self.shape_of_the_law();
        self.all_bought().filter(|head| Some(head.shape()) == shape).collect()
    }

    /// Regresses log half_spread of these heads on log (n − 1) and log ln(1 + 1/τ), clustered by model; the formula
    /// predicts exponents of 1. Returns `None` for too few models or only one length.
    pub fn exponents(&self) -> Option<Regression> {
        let point = |head: &RampHead| {
            let f = &head.found;
            let steepness = (1.0 / f.mean_lag).ln_1p();
            (f.half_spread > 0.0 && f.mean_lag > 0.0 && f.n > 1).then(|| {
                (head.model(), vec![(f.n as f64 - 1.0).ln(), steepness.ln()], f.half_spread.ln())
            })
        };
        let points: Vec<_> = self.bought().into_iter().filter_map(point).collect();
        Regression::of(&points)
    }

    /// The tables, the most important first.
    pub fn tables(&self) -> Vec<Table> {
        vec![self.runs_table(), self.exponents_table()]
    }

    fn runs_table(&self) -> Table {
        let key = |head: &RampHead| {
            (head.of.clone(), head.run.clone(), head.found.kind, head.found.n, head.step)
        };
        let local = |heads: &[&RampHead]| heads.iter().filter(|head| head.is_local()).count();
        let models = |heads: &[&RampHead]| distinct(heads.iter().map(|head| head.seed)).len();
        let title = "Half-range of local heads against the prediction (m − 1)/2 · ln(1 + 1/τ), at \
                     the last step";
        Table::from_groups("ramps", title, groups(&self.heads, key))
            .words("run", "run", |head| &head.run)
            .words("kind", "kind of heads", |head| head.found.kind.to_string())
            .numbers("n", "n", |head| head.found.n)
            .numbers("d", "d_head", |head| head.found.rank)
            .numbers("step", "step", |head| head.step)
            .per_group("local", "local heads", local)
            .sizes("heads", "all heads")
            .per_group("models", "models", models)
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
        let regression = self.exponents();
        let lines: Vec<(&str, &Coefficient, &Regression)> = regression
            .iter()
            .flat_map(|all| {
                let named = ["n − 1", "ln(1 + 1/τ)"].into_iter().zip(&all.coefficients);
                named.map(move |(name, exponent)| (name, exponent, all))
            })
            .collect();
        let title = "Regression of log half-range of local heads on log(n − 1) and log ln(1 + 1/τ)";
        Table::from_items("exponents", title, &lines)
            .words("of", "exponent of", |line| line.0)
            .numbers("exponent", "exponent", |line| line.1.value)
            .numbers("low", "95 % CI, low", |line| line.1.low)
            .numbers("high", "95 % CI, high", |line| line.1.high)
            .numbers("by_formula", "predicted", |_| 1_usize)
            .numbers("heads", "heads", |line| line.2.points)
            .numbers("models", "models", |line| line.2.clusters)
            .note(
                "Local heads of multi-head attention with learned positions and no position bias, \
                 at the d_head and d_model with the most lengths. Intervals are clustered by \
                 model.",
            )
            .build()
    }
}

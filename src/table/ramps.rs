//! Trained heads held against ramps over positions.

use super::TableError;
use super::grid::{Cell, Column, Table};
use super::groups::{groups, keep_last_steps};
use super::regression::Regression;
use super::spread::Spread;
use crate::pattern::HeadKind;
use crate::row::{RampFound, Row, Rows};

/// A head is local whose rows have this much of their mass on their last 16 tokens, in the mean.
pub const LOCAL_MASS: f64 = 0.8;

/// One head of a model at its last step here.
#[derive(Clone, Debug, PartialEq)]
pub struct RampHead {
    /// The study of its run.
    pub of: String,
    /// The run's name there.
    pub run: String,
    /// The arm.
    pub arm: String,
    /// The model's positions; none for a published one.
    pub positions: Option<String>,
    /// The slopes beside its logits; none for a published one.
    pub slopes: Option<String>,
    /// The run's seed.
    pub seed: u64,
    /// The step of the weights.
    pub step: usize,
    /// The width of the stream.
    pub d_model: Option<usize>,
    /// What was found of it.
    pub found: RampFound,
}

impl From<&Row<RampFound>> for RampHead {
    fn from(row: &Row<RampFound>) -> Self {
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
    /// Whether it attends locally.
    pub fn is_local(&self) -> bool {
        self.found.mass_within_16 >= LOCAL_MASS
    }

    /// Whether nothing but its logits can make it local: a head that sees everything, of multi-head attention whose
    /// positions are learned vectors and that has no slope over the lag.
    pub fn buys_its_locality(&self) -> bool {
        self.arm == "mhsa"
            && self.found.kind == HeadKind::Global
            && self.positions.as_deref() == Some("learned")
            && self.slopes.as_deref() == Some("none")
    }

    /// The head dimension, and the width of the stream.
    pub fn shape(&self) -> (usize, Option<usize>) {
        (self.found.rank, self.d_model)
    }

    /// Its half-spread over the formula.
    pub fn ratio(&self) -> Option<f64> {
        Some(self.found.half_spread / self.found.formula?)
    }

    /// The model that it is of.
    pub fn model(&self) -> (String, String, u64) {
        (self.of.clone(), self.run.clone(), self.seed)
    }
}

/// Studies of ramps.
#[derive(Clone, Debug, PartialEq)]
pub struct Ramps {
    /// The heads of each model at its last step, in the order of the rows.
    pub heads: Vec<RampHead>,
    /// Rows of cells that failed.
    pub failed: usize,
}

impl Ramps {
    /// Gathers the rows of studies of ramps.
    ///
    /// # Errors
    /// [`TableError::NoRows`] where there is none.
    pub fn of(rows: &Rows<RampFound>) -> Result<Self, TableError> {
        let mut heads: Vec<RampHead> = rows.rows.iter().map(RampHead::from).collect();
        if heads.is_empty() {
            return Err(TableError::NoRows {
                path: rows.path.clone(),
                why: "no finished row has a trained head".to_owned(),
                advice: "read the column err, and run the study again".to_owned(),
            });
        }
        keep_last_steps(&mut heads, RampHead::model, |head| head.step);
        Ok(Self { heads, failed: rows.failed })
    }

    /// The local heads that [buy their locality](RampHead::buys_its_locality), of every dimension and width.
    pub fn all_bought(&self) -> impl Iterator<Item = &RampHead> {
        self.heads.iter().filter(|head| head.is_local() && head.buys_its_locality())
    }

    /// The dimension of heads and the width of the stream at which local heads that buy their locality have most lengths,
    /// and of those most heads: at other ones, lengths cannot be told from dimensions.
    pub fn shape_of_the_law(&self) -> Option<(usize, Option<usize>)> {
        let mut shapes = groups(self.all_bought(), RampHead::shape);
        shapes.sort_by_key(|heads| {
            let lengths = groups(heads.iter().copied(), |head| head.found.n).len();
            std::cmp::Reverse((lengths, heads.len()))
        });
        Some(shapes.first()?[0].shape())
    }

    /// The heads that the law is about: local ones that [buy their locality](RampHead::buys_its_locality), of the
    /// [one shape](Self::shape_of_the_law).
    pub fn bought(&self) -> Vec<&RampHead> {
        let shape = self.shape_of_the_law();
        self.all_bought().filter(|head| Some(head.shape()) == shape).collect()
    }

    /// log half_spread of these heads on log (n − 1) and log ln(1 + 1/τ), clustered by model: exponents that the formula
    /// has at 1; none where they are of too few models or of one length.
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

    /// The tables, the most telling first.
    pub fn tables(&self) -> Vec<Table> {
        vec![self.runs_table(), self.exponents_table()]
    }

    fn runs_table(&self) -> Table {
        let columns = vec![
            Column::words("run", "run"),
            Column::words("kind", "kind of heads"),
            Column::numbers("n", "n", None),
            Column::numbers("d", "d_head", None),
            Column::numbers("step", "step", None),
            Column::numbers("local", "local heads", None),
            Column::numbers("heads", "all heads", None),
            Column::numbers("models", "models", None),
            Column::numbers("mean_lag", "mean relative distance τ", Some("tokens")),
            Column::numbers("half_spread", "half-range", None),
            Column::numbers("formula", "predicted half-range", None),
            Column::numbers("ratio", "measured / predicted", None),
            Column::numbers("share_ramp", "R² of a ramp c·j", None),
            Column::numbers("share_position", "R² of f(j)", None),
            Column::numbers("share_lag", "R² of g(i − j)", None),
            Column::numbers("kl_uniform", "KL of uniform", Some("nats")),
            Column::numbers("kl_ramp", "KL of the ramp", Some("nats")),
            Column::numbers("kl_position", "KL of f(j)", Some("nats")),
            Column::numbers("kl_lag", "KL of g(i − j)", Some("nats")),
            Column::numbers("effective_rank", "effective rank, centred", None),
        ];
        let mut table = Table::new(
            "ramps",
            "Half-range of local heads against the prediction (m − 1)/2 · ln(1 + 1/τ), at the last step",
            columns,
        );
        let key = |head: &RampHead| {
            (head.of.clone(), head.run.clone(), head.found.kind, head.found.n, head.step)
        };
        for alike in groups(&self.heads, key) {
            let first = alike[0];
            let local: Vec<&RampHead> =
                alike.iter().copied().filter(|head| head.is_local()).collect();
            let over = |value: &dyn Fn(&RampHead) -> Option<f64>| {
                Cell::over(Spread::of(local.iter().filter_map(|head| value(head))))
            };
            let of_found = |value: fn(&RampFound) -> f64| over(&|head| Some(value(&head.found)));
            let share = |value: fn(&RampFound) -> Option<f64>| over(&|head| value(&head.found));
            table.push(vec![
                Cell::text(&first.run),
                Cell::text(first.found.kind.to_string()),
                Cell::count(first.found.n),
                Cell::count(first.found.rank),
                Cell::count(first.step),
                Cell::count(local.len()),
                Cell::count(alike.len()),
                Cell::count(groups(alike.iter().copied(), |head| head.seed).len()),
                of_found(|f| f.mean_lag),
                of_found(|f| f.half_spread),
                share(|f| f.formula),
                over(&|head| head.ratio()),
                share(|f| f.share_ramp),
                share(|f| f.share_position),
                share(|f| f.share_lag),
                of_found(|f| f.kl_uniform),
                of_found(|f| f.kl_ramp),
                of_found(|f| f.kl_position),
                of_found(|f| f.kl_lag),
                of_found(|f| f.effective_rank_centred),
            ]);
        }
        table.notes.push(format!(
            "Local: {LOCAL_MASS} or more of a head's attention on the last 16 tokens. Medians over the local heads of all seeds with \
             (least–greatest). m is n, or the window of a local head. Logits are QKᵀ/√d, without a position bias."
        ));
        table.note_failed(self.failed);
        table
    }

    fn exponents_table(&self) -> Table {
        let columns = vec![
            Column::words("of", "exponent of"),
            Column::numbers("exponent", "exponent", None),
            Column::numbers("low", "95 % CI, low", None),
            Column::numbers("high", "95 % CI, high", None),
            Column::numbers("by_formula", "predicted", None),
            Column::numbers("heads", "heads", None),
            Column::numbers("models", "models", None),
        ];
        let title = "Regression of log half-range of local heads on log(n − 1) and log ln(1 + 1/τ)";
        let mut table = Table::new("exponents", title, columns);
        if let Some(regression) = self.exponents() {
            for (name, c) in ["n − 1", "ln(1 + 1/τ)"].into_iter().zip(&regression.coefficients) {
                table.push(vec![
                    Cell::text(name),
                    Cell::number(Some(c.value)),
                    Cell::number(Some(c.low)),
                    Cell::number(Some(c.high)),
                    Cell::count(1),
                    Cell::count(regression.points),
                    Cell::count(regression.clusters),
                ]);
            }
        }
        table.notes.push(
            "Local heads of multi-head attention with learned positions and no position bias, at the d_head and d_model with the most \
             lengths. Intervals are clustered by model."
                .to_owned(),
        );
        table
    }
}

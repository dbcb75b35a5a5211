//! Trained heads compared with the logits that their attention needs: by run, step and ε.

use crate::experiments::heads::HeadMeasurement;
use crate::heads::PARTS;
use crate::record::{Row, Rows};
use crate::table::error::READ_ERR;
use crate::table::groups::{distinct, epsilons, greatest_of_each, groups};
use crate::table::{RankCorrelation, Spread, Table, TableError};

/// The display name of each of [`PARTS`].
pub const FACTOR_NAMES: [&str; 5] =
    ["floor", "rank penalty", "input factor", "excess factor", "shift factor"];

/// One head at one step and ε.
pub type HeadRow = Row<HeadMeasurement>;

impl HeadRow {
    /// What seeds share at one ε: study, run, rank and step.
    pub(crate) fn setting(&self) -> (&Option<String>, &str, usize, usize, u64) {
        let (of, found) = (&self.of.model.of, &self.found);
        (of, self.run(), found.rank, self.step(), found.epsilon.to_bits())
    }

    /// The model at one ε: study, run, seed and step.
    pub(crate) fn model(&self) -> (&Option<String>, &str, u64, usize, u64) {
        let of = &self.of.model.of;
        (of, self.run(), self.seed(), self.step(), self.found.epsilon.to_bits())
    }

    /// The run at one rank and ε.
    fn all_steps(&self) -> (&Option<String>, &str, u64, usize, u64) {
        let (of, found) = (&self.of.model.of, &self.found);
        (of, self.run(), self.seed(), found.rank, found.epsilon.to_bits())
    }
}

/// The contribution of each factor to the growth of a run's largest logit, from the first measured step to the last.
#[derive(Clone, Debug, PartialEq)]
pub struct PartsOfGrowth<'h> {
    /// The largest head at the last step.
    pub head: &'h HeadRow,
    /// log(actual at the last step) − log(actual at the first step), each of the largest head.
    pub growth: f64,
    /// The contribution of each of [`PARTS`]; they sum to `growth`.
    pub by_part: [f64; 5],
}

/// The rank correlation of a quantity with the largest logits of the heads of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct Ordering {
    /// The variant.
    pub arm: String,
    /// ε in nats.
    pub epsilon: f64,
    /// The quantity: `needed`, `floor`, `needed, given entropy`, …
    pub by: String,
    /// The rank correlation.
    pub correlation: RankCorrelation,
    /// For quantities given entropy: Spearman's ρ of the quantity with low entropy, median over models.
    pub with_entropy: Option<f64>,
}

impl Ordering {
    /// 1/(1 − ρ²), with ρ to the entropy that is fixed: the factor by which collinearity raises the variance of a
    /// partial correlation (Marquardt 1970, *Technometrics* 12). `None` if nothing is fixed.
    pub fn variance_inflation(&self) -> Option<f64> {
        self.with_entropy.map(|rho| 1.0 / (1.0 - rho * rho))
    }
}

/// A study of trained heads.
#[derive(Clone, Debug, PartialEq)]
pub struct TrainedHeads {
    /// The heads, in the order of the rows.
    pub heads: Vec<HeadRow>,
    /// The number of rows of failed cells.
    pub failed: usize,
}

impl TrainedHeads {
    /// Gathers the rows of a study of trained heads, without heads that were not fitted.
    ///
    /// # Errors
    /// [`TableError::NoRows`] if there are none.
    pub fn of(rows: &Rows<HeadMeasurement>) -> Result<Self, TableError> {
        let heads = rows.rows.iter().filter(|row| row.found.is_fitted()).cloned().collect();
        let (why, advice) = match rows.rows.is_empty() {
            true => ("no finished row has a trained head", READ_ERR),
            false => (
                "its heads were screened, and none was fitted",
                "measure it with a smaller `above`, or without",
            ),
        };
        let heads = TableError::unless_empty(heads, &rows.path, why, advice)?;
        Ok(Self { heads, failed: rows.failed })
    }

    /// The errors ε in descending order.
    pub fn epsilons(&self) -> Vec<f64> {
        epsilons(self.heads.iter().map(|head| head.found.epsilon))
    }

    /// The ε of figures and verdicts: 0.01 if the study has it, else the middle one.
    pub fn epsilon_told(&self) -> f64 {
        let all = self.epsilons();
        all.iter().copied().find(|e| *e == 0.01).unwrap_or(all[all.len() / 2])
    }

    /// The last step of any run.
    pub fn last_step(&self) -> usize {
        self.heads.iter().map(|head| head.step()).max().unwrap_or(0)
    }

    /// The head with the largest logit of each run, seed, step, rank and ε.
    pub fn largest(&self) -> Vec<&HeadRow> {
        greatest_of_each(
            &self.heads,
            |head| (head.model(), head.found.rank),
            |head| head.found.actual,
        )
    }

    /// The `count` heads with the largest logits of each run, seed, rank and ε, at the last step of each.
    pub fn largest_at_last_step(&self, count: usize) -> Vec<&HeadRow> {
        let mut runs = groups(&self.heads, HeadRow::all_steps);
        for heads in &mut runs {
            let last = heads.iter().map(|head| head.step()).max();
            heads.retain(|head| Some(head.step()) == last);
            heads.sort_by(|a, b| b.found.actual.total_cmp(&a.found.actual));
            heads.truncate(count);
        }
        runs.concat()
    }

    /// The contributions to the growth of each run's largest logit, for runs with several steps.
    pub fn growth<'h>(&'h self) -> Vec<PartsOfGrowth<'h>> {
        let growth = |heads: Vec<&'h HeadRow>| {
            let first = heads.iter().min_by_key(|head| head.step())?;
            let last = heads.iter().max_by_key(|head| head.step())?;
            let (before, after) = (first.found.parts()?, last.found.parts()?);
            (last.step() > first.step()).then(|| PartsOfGrowth {
                head: last,
                growth: (last.found.actual / first.found.actual).ln(),
                by_part: std::array::from_fn(|part| (after[part] / before[part]).ln()),
            })
        };
        groups(self.largest(), HeadRow::all_steps).into_iter().filter_map(growth).collect()
    }

    /// The rank correlations of needed logits, and of quantities to compare them with, with the largest logits of each
    /// model's heads at the last step.
    pub fn orderings(&self) -> Vec<Ordering> {
        let last = self.last_step();
        let mut found = Vec::new();
        for arm in distinct(self.heads.iter().map(|head| head.of.model.arm.as_str())) {
            for epsilon in self.epsilons() {
                let chosen = self.heads.iter().filter(|h| {
                    h.of.model.arm == arm && h.found.epsilon == epsilon && h.step() == last
                });
                let models = groups(chosen, HeadRow::model);
                // For each model, the quantity, the largest logit and low entropy of each head.
                let points = |of: OfHead| -> Vec<Vec<[f64; 3]>> {
                    let point = |head: &&HeadRow| {
                        let found = &head.found;
                        Some([of(found)?, found.actual, -found.entropy_nats])
                    };
                    models.iter().map(|heads| heads.iter().filter_map(point).collect()).collect()
                };
                let mut push = |by: String, correlation: Option<RankCorrelation>, with_entropy| {
                    let Some(correlation) = correlation else { return };
                    let arm = arm.to_owned();
                    found.push(Ordering { arm, epsilon, by, correlation, with_entropy });
                };
                for (by, of) in ORDERED_BY {
                    push(by.to_owned(), RankCorrelation::between(&points(of), 0, 1), None);
                }
                for (by, of) in &ORDERED_BY[..ALSO_GIVEN_ENTROPY] {
                    let points = points(*of);
                    let with_entropy = RankCorrelation::between(&points, 0, 2).map(|c| c.rho);
                    let given = RankCorrelation::given(&points);
                    push(format!("{by}, given entropy"), given, with_entropy);
                }
            }
        }
        found
    }
}

type OfHead = fn(&HeadMeasurement) -> Option<f64>;

/// The quantities that may order heads.
const ORDERED_BY: [(&str, OfHead); 6] = [
    ("needed", |h| h.needed),
    ("needed from the input", |h| h.needed_from_input),
    ("inflation", |h| Some(h.parts()?[1])),
    ("floor", |h| h.floor),
    ("low entropy", |h| Some(-h.entropy_nats)),
    ("effective rank of attention", |h| h.effective_rank_attention),
];

/// The number of them, from the first, that are also correlated given entropy.
const ALSO_GIVEN_ENTROPY: usize = 4;

impl TrainedHeads {
    /// The tables: factors of the largest logit, and rank correlations of heads.
    pub fn tables(&self) -> Vec<Table> {
        vec![self.parts_table(), self.orderings_table()]
    }

    /// The table of the five factors of each model's largest logit.
    pub fn parts_table(&self) -> Table {
        let title = "Factors of the largest logit of each model: max |logit| = floor · rank \
                     penalty · input factor · excess factor · shift factor";
        let mut table =
            Table::from_groups("parts", title, groups(self.largest(), HeadRow::setting))
                .words("run", "run", |head| head.run())
                .words("arm", "variant", |head| &head.of.model.arm)
                .numbers("n", "n", |head| head.found.n)
                .numbers("rank", "d_head", |head| head.found.rank)
                .settings("epsilon", "ε (nats)", |head| head.found.epsilon)
                .numbers("step", "step", |head| head.step())
                .medians("actual", "max |logit|", |head| head.found.actual);
        for (at, (part, name)) in PARTS.iter().zip(FACTOR_NAMES).enumerate() {
            table = table.medians(part, name, |head| Some(head.found.parts()?[at]));
        }
        let over_all_heads = |part: usize| {
            move |largest: &[&HeadRow]| {
                let alike = self.heads.iter().filter(|h| h.setting() == largest[0].setting());
                Spread::of(alike.filter_map(|head| Some(head.found.parts()?[part])))
            }
        };
        table
            .per_group("other_inflation", "rank penalty, all heads", over_all_heads(1))
            .per_group("other_input_factor", "input factor, all heads", over_all_heads(2))
            .per_group("other_excess_factor", "excess factor, all heads", over_all_heads(3))
            .sizes("seeds", "seeds")
            .note(
                "The head with the largest logit of each model. Medians over seeds with \
                 (least–greatest). Columns with \"all heads\" are medians over every head of every \
                 seed. Needed logits are upper bounds.",
            )
            .note_failed(self.failed)
            .build()
    }

    fn orderings_table(&self) -> Table {
        let title = "Rank correlation (Spearman's ρ) of the max |logit| of heads with other \
                     measures, at the last step";
        Table::from_items("orderings", title, &self.orderings())
            .words("arm", "variant", |one| &one.arm)
            .settings("epsilon", "ε (nats)", |one| one.epsilon)
            .words("by", "correlated with", |one| &one.by)
            .numbers("rho", "ρ, median over models", |one| one.correlation.rho)
            .numbers("low", "95 % CI, low", |one| one.correlation.low)
            .numbers("high", "95 % CI, high", |one| one.correlation.high)
            .numbers("mean_rho", "ρ, mean over models", |one| one.correlation.mean)
            .numbers("by_chance", "|ρ| by chance (95 %)", |one| one.correlation.by_chance)
            .numbers("with_entropy", "its ρ with low entropy", |one| one.with_entropy)
            .numbers("variance_inflation", "variance inflation", Ordering::variance_inflation)
            .numbers("models", "models", |one| one.correlation.groups)
            .numbers("heads", "heads", |one| one.correlation.points)
            .numbers("left_out", "models left out", |one| one.correlation.left_out)
            .numbers("collinear", "of these, collinear with entropy", |one| {
                one.correlation.collinear
            })
            .note(
                "ρ is computed within each model; the table gives its median over models with a \
                 bootstrap interval over models and heads. By chance: |ρ| exceeds this value in 5 \
                 % of random shuffles of the heads of each model. \"Given entropy\" is the partial \
                 rank correlation given the mean entropy of the rows. Variance inflation is 1/(1 − \
                 ρ²) of the median ρ with low entropy; from 10 on, the two measures cannot be \
                 separated. A model is left out where the correlation is undefined: fewer than \
                 three heads, equal values, or a measure that orders the heads as entropy does. A \
                 head is left out where it has no value: no rank penalty where its attention is \
                 within ε of uniform, no needed logit where no fit reached ε.",
            )
            .build()
    }
}

#[cfg(test)]
pub(crate) mod tests;

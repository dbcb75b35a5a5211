//! The tables of a study of trained heads.

use crate::experiments::heads::tables::head_parts::{FACTOR_NAMES, HeadParts};
use crate::experiments::heads::tables::heads::{Ordering, PartsOfGrowth, TrainedHeads};
use crate::heads::PARTS;
use crate::table::Spread;
use crate::table::Table;
use crate::table::groups::groups;

impl TrainedHeads {
    /// The tables: factors of the largest logit, contributions to its growth, and rank correlations of heads.
    pub fn tables(&self) -> Vec<Table> {
        let mut tables = vec![self.parts_table()];
        let growth = self.growth();
        if !growth.is_empty() {
            tables.push(growth_table(&growth));
        }
        tables.push(self.orderings_table());
        tables
    }

    /// The table of the five factors of each model's largest logit.
    pub fn parts_table(&self) -> Table {
        let title = "Factors of the largest logit of each model: max |logit| = floor · rank \
                     penalty · input factor · excess factor · shift factor";
        let mut table =
            Table::from_groups("parts", title, groups(self.largest(), HeadParts::setting))
                .words("run", "run", |head| &head.run)
                .words("arm", "variant", |head| &head.arm)
                .numbers("n", "n", |head| head.n)
                .numbers("rank", "d_head", |head| head.rank)
                .settings("epsilon", ("ε", "nats"), |head| head.epsilon)
                .numbers("step", "step", |head| head.step)
                .medians("actual", "max |logit|", |head| head.actual);
        for (at, (part, name)) in PARTS.iter().zip(FACTOR_NAMES).enumerate() {
            table = table.medians(part, name, |head| Some(head.parts()?[at]));
        }
        let over_all_heads = |part: usize| {
            move |largest: &[&HeadParts]| {
                let alike = self.heads.iter().filter(|h| h.setting() == largest[0].setting());
                Spread::of(alike.filter_map(|head| Some(head.parts()?[part])))
            }
        };
        table
            .per_group("other_inflation", "rank penalty, all heads", over_all_heads(1))
            .per_group("other_tying", "input factor, all heads", over_all_heads(2))
            .per_group("other_drift", "excess factor, all heads", over_all_heads(3))
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
            .settings("epsilon", ("ε", "nats"), |one| one.epsilon)
            .words("by", "correlated with", |one| one.by)
            .numbers("rho", "ρ, median over models", |one| one.correlation.rho)
            .numbers("low", "95 % CI, low", |one| one.correlation.low)
            .numbers("high", "95 % CI, high", |one| one.correlation.high)
            .numbers("mean_rho", "ρ, mean over models", |one| one.correlation.mean)
            .numbers("by_chance", "|ρ| by chance (95 %)", |one| one.correlation.by_chance)
            .numbers("with_entropy", "its ρ with low entropy", |one| one.with_entropy)
            .numbers("variance_inflation", "variance inflation", Ordering::variance_inflation)
            .numbers("models", "models", |one| one.correlation.groups)
            .numbers("heads", "heads", |one| one.correlation.points)
            .numbers("left_out", "models left out", |one| one.correlation.left_out.groups())
            .numbers("collinear", "of these, collinear with entropy", |one| {
                one.correlation.left_out.collinear
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

fn growth_table(growth: &[PartsOfGrowth]) -> Table {
    let title = "Growth of the largest logit in training, by factor";
    let alike = groups(growth, |one| (&one.run, one.n, one.epsilon.to_bits()));
    let mut table = Table::from_groups("growth", title, alike)
        .words("run", "run", |one| &one.run)
        .words("arm", "variant", |one| &one.arm)
        .numbers("n", "n", |one| one.n)
        .settings("epsilon", ("ε", "nats"), |one| one.epsilon)
        .numbers("first_step", "from step", |one| one.steps.0)
        .numbers("last_step", "to step", |one| one.steps.1)
        .medians("growth", "growth of log max |logit|", |one| one.growth);
    for (at, (part, name)) in PARTS.iter().zip(FACTOR_NAMES).enumerate() {
        table = table.medians(part, &*format!("from the {name}"), |one| one.by_part[at]);
    }
    table
        .sizes("seeds", "seeds")
        .note(
            "Natural logarithms: the factors add up to the growth, and 0.69 is a doubling. Each \
             step has its own largest head. Medians over seeds with (least–greatest).",
        )
        .build()
}

//! The tables of a study of lattices.

use crate::experiments::lattice::tables::lattice::{LatticeOfHead, Lattices, Shares};
use crate::heads::{InputSet, RankLimit};
use crate::table::Columns;
use crate::table::Table;
use crate::table::groups::{distinct, groups};
use crate::table::{Spread, significant};

const OF_LARGEST: &str =
    "The head with the largest logit of each model. Medians over seeds with (least–greatest).";

impl Lattices {
    /// The tables: effect of each constraint, logits saved by positions, needed logits by corner, realised ranks.
    pub fn tables(&self) -> Vec<Table> {
        vec![
            self.shares_table(),
            self.positions_table(),
            self.corners_table(),
            self.realised_table(),
        ]
    }

    /// The ranks that occur in any head; "any rank" is the last.
    pub fn ranks(&self) -> Vec<RankLimit> {
        distinct(self.heads.iter().flat_map(|head| &head.corners).map(|corner| corner.rank))
    }

    /// The largest heads over seeds, for each run, step and ε and each set of inputs.
    fn by_inputs(&self, sets: &[InputSet]) -> Vec<WithInputs<'_>> {
        let settings = groups(self.largest(|_| true), LatticeOfHead::setting);
        let of_setting = |heads: &Vec<_>| sets.iter().map(|&set| (set, heads.clone())).collect();
        settings.iter().flat_map::<Vec<_>, _>(of_setting).collect()
    }

    /// The table of the logits needed at each corner.
    pub fn corners_table(&self) -> Table {
        let title = "Logits that the attention of the largest head needs, by the inputs and the \
                     rank of queries and keys";
        let rows = self.by_inputs(&self.inputs());
        let lower_bound = over(LatticeOfHead::lower_bound);
        let mut table =
            table_of_heads("lattice", title, &rows).words("inputs", "inputs", |row| row.0.name());
        for rank in self.ranks() {
            let (name, heading) = (format!("rank_{rank}"), format!("needed, rank {rank}"));
            table = table.numbers(&name, &*heading, over(|head, set| head.needed(set, rank)));
        }
        table
            .numbers("lower_bound", "proven lower bound at any rank", lower_bound)
            .numbers("seeds", "seeds", |row| row.1.len())
            .note(format!(
                "{OF_LARGEST} An en dash: no logit reached ε, or the combination is undefined. \
                 Needed logits are upper bounds; that of free inputs at any rank is exact, and the \
                 lower bound is proven (see the methods)."
            ))
            .build()
    }

    /// The table of the effect of each constraint: Shapley values and both orders.
    pub fn shares_table(&self) -> Table {
        let share = |value: fn(&Shares) -> f64| {
            move |head: &LatticeOfHead| {
                let shares = head.shares()?;
                Some(value(&shares) / shares.whole)
            }
        };
        let title = "Shares of log(half-range / floor) due to two constraints of a head: rank ≤ \
                     d_head, and its own layer inputs";
        let settings = groups(self.largest(|_| true), LatticeOfHead::setting);
        setting_columns(Table::from_groups("shares", title, settings), |head| head)
            .medians("actual", "max |logit|", |head| head.actual)
            .medians("half_spread", "half-range", LatticeOfHead::half_spread)
            .medians("floor", "floor", LatticeOfHead::floor)
            .medians("rank", "rank: Shapley share", share(Shares::of_rank))
            .medians("inputs", "inputs: Shapley share", share(Shares::of_inputs))
            .medians("rest", "remainder", share(Shares::rest))
            .medians("rank_first", "rank, taken first", share(|shares| shares.rank[0]))
            .medians("rank_last", "rank, taken last", share(|shares| shares.rank[1]))
            .medians("inputs_first", "inputs, taken first", share(|shares| shares.inputs[0]))
            .medians("inputs_last", "inputs, taken last", share(|shares| shares.inputs[1]))
            .medians("interaction", "interaction", share(Shares::interaction))
            .sizes("seeds", "seeds")
            .note(format!(
                "{OF_LARGEST} A Shapley share is the mean over both orders of what a constraint \
                 adds to the logarithm of the needed logits. With the remainder, which neither \
                 constraint explains, the shares sum to 1. Rank taken first is the rank penalty, \
                 inputs taken last the input factor."
            ))
            .note_failed(self.failed)
            .build()
    }

    /// The table of the logits that added position columns save.
    pub fn positions_table(&self) -> Table {
        let mut given = self.inputs();
        given.retain(|set| !matches!(set, InputSet::Own | InputSet::Free));
        let title = "Reduction of the needed logits by position columns added to a head's inputs, \
                     at any rank";
        let any_rank = |head: &LatticeOfHead, set| head.needed(set, RankLimit::Any);
        let beyond_bias = over(LatticeOfHead::share_saved_beyond_bias);
        table_of_heads("positions", title, &self.by_inputs(&given))
            .words("given", "added inputs", |row| row.0.name())
            .numbers("own", "needed, own inputs", over(|head, _| any_rank(head, InputSet::Own)))
            .numbers("with", "needed, with added inputs", over(any_rank))
            .numbers("floor", "floor", over(|head, _| head.floor()))
            .numbers("saved", "reduction (×)", over(LatticeOfHead::saved_by))
            .numbers("proven", "proven reduction (×)", over(LatticeOfHead::saved_by_proven))
            .numbers("share", "share of log(own / floor)", over(LatticeOfHead::share_saved_by))
            .numbers("beyond_bias", "share beyond a constant", beyond_bias)
            .numbers("seeds", "seeds", |row| row.1.len())
            .note(format!(
                "{OF_LARGEST} Every set has a constant column, and every set but bias has position \
                 columns. The proven reduction is the lower bound with the own inputs over the \
                 needed logit with the added ones."
            ))
            .build()
    }

    /// The table of the smallest rank for which each head's own logits would suffice.
    pub fn realised_table(&self) -> Table {
        let mut ranks = self.ranks();
        ranks.retain(|rank| *rank != RankLimit::Any);
        let title = "Realised rank: the smallest rank of free queries and keys that reaches a \
                     head's attention within ε at its own logits";
        let mut table =
            setting_columns(Table::from_items("realised-rank", title, &self.heads), |head| head)
                .numbers("seed", "seed", |head| head.seed as usize)
                .words("head", "layer.head", |head| format!("{}.{}", head.layer, head.head))
                .numbers("mass_within_16", "attention on the last 16 tokens", |h| h.mass_within_16)
                .numbers("actual", "max |logit|", |head| head.actual)
                .numbers("half_spread", "half-range", LatticeOfHead::half_spread);
        for &rank in &ranks {
            let (name, heading) = (format!("rank_{rank}"), format!("needed, rank {rank}"));
            table = table.numbers(&name, &*heading, |head| head.needed(InputSet::Free, rank));
        }
        let shown: Vec<String> = ranks.iter().map(ToString::to_string).collect();
        table
            .numbers("realised", "rank within half-range", |h| h.realised_rank(h.half_spread()))
            .numbers("realised_actual", "rank within max |logit|", |h| h.realised_rank(h.actual))
            .note(format!(
                "Every head of the study, fitted at ranks {}. An en dash: no rank reached ε. Other \
                 starts may find a smaller rank.",
                shown.join(", ")
            ))
            .build()
    }

    /// The logits that each model's largest head needs at the main ε, as text.
    pub fn in_words(&self) -> String {
        let epsilon = self.epsilon_told();
        let largest = self.largest(|head| head.epsilon == epsilon && head.step == self.last_step());
        let line = |head: &&LatticeOfHead| {
            let needed = |inputs: &InputSet| {
                let needed = head.needed(*inputs, RankLimit::Any)?;
                Some(format!("{inputs} {}", significant(needed, 3)))
            };
            let each: Vec<String> = self.inputs().iter().filter_map(needed).collect();
            let actual = significant(head.actual, 3);
            format!(
                "{}, seed {}: max |logit| {actual}; needed at any rank: {}.",
                head.run,
                head.seed,
                each.join(", ")
            )
        };
        largest.iter().map(line).collect::<Vec<_>>().join(" ")
    }
}

/// Adds the columns that identify a head, or a setting.
fn setting_columns<'r, R>(
    table: Columns<'r, R>,
    head: impl Fn(&'r R) -> &'r LatticeOfHead,
) -> Columns<'r, R> {
    table
        .words("run", "run", |item| &head(item).run)
        .numbers("n", "n", |item| head(item).n)
        .numbers("own_rank", "d_head", |item| head(item).own_rank)
        .numbers("step", "step", |item| head(item).step)
        .settings("epsilon", ("ε", "nats"), |item| head(item).epsilon)
}

/// Heads of one setting with one set of inputs.
type WithInputs<'h> = (InputSet, Vec<&'h LatticeOfHead>);

fn table_of_heads<'r>(
    name: &str,
    title: &str,
    rows: &'r [WithInputs<'r>],
) -> Columns<'r, WithInputs<'r>> {
    setting_columns(Table::from_items(name, title, rows), |row| row.1[0])
}

/// The median and range over heads of a value that depends on their set of inputs.
fn over(
    value: impl Fn(&LatticeOfHead, InputSet) -> Option<f64>,
) -> impl Fn(&WithInputs<'_>) -> Option<Spread> {
    move |(set, heads)| Spread::of(heads.iter().filter_map(|head| value(head, *set)))
}

#[cfg(test)]
mod tests {
    use super::super::lattice::made_up::head;
    use super::*;

    fn study() -> Lattices {
        let heads = (1..4).map(|seed| head(seed, [20.0, 32.0], 8.0)).collect();
        Lattices { heads, failed: 1 }
    }

    fn shown(table: &Table, row: usize, column: &str) -> String {
        let at = table.columns.iter().position(|one| one.name == column).unwrap();
        table.rows()[row][at].shown()
    }

    #[test]
    fn the_tables_tell_what_the_lattices_hold() {
        let [shares, positions, corners, realised] = study().tables().try_into().unwrap();
        let sum: f64 = ["rank", "inputs", "rest"]
            .map(|c| shown(&shares, 0, c).parse::<f64>().unwrap())
            .iter()
            .sum();
        assert!((sum - 1.0).abs() < 5e-3, "{sum}");
        assert_eq!((shares.rows().len(), shown(&shares, 0, "seeds")), (1, "3".to_owned()));
        assert!(shares.notes.iter().any(|note| note.contains("1 cell that failed")));
        assert_eq!(
            (shown(&positions, 0, "saved"), shown(&positions, 0, "proven")),
            ("2.50".into(), "2.25".into())
        );
        assert_eq!(corners.rows().len(), 3, "a row for each set of inputs");
        assert_eq!(
            (shown(&corners, 0, "rank_2"), shown(&corners, 0, "rank_any")),
            ("–".into(), "20.0".into())
        );
        assert_eq!((realised.rows().len(), shown(&realised, 2, "realised")), (3, "2".to_owned()));
    }

    #[test]
    fn the_words_name_every_set_of_inputs() {
        let said = study().in_words();
        assert!(
            said.contains(
                "seed 2: max |logit| 50.0; needed at any rank: own 20.0, line 8.00, free 4.00."
            ),
            "{said}"
        );
    }
}

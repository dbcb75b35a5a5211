//! The tables of a study of lattices.

use super::digits::significant;
use super::grid::{Cell, Column, Table};
use super::lattice::{LatticeOfHead, Lattices, Shares};
use super::spread::Spread;
use crate::predict::{InputSet, RankLimit};

const OF_LARGEST: &str =
    "The head with the largest logit of each model. Medians over seeds with (least–greatest).";

impl Lattices {
    /// The tables: needed by inputs and rank, what each constraint adds, what positions save, realised ranks.
    pub fn tables(&self) -> Vec<Table> {
        let mut tables = vec![self.shares_table(), self.positions_table(), self.corners_table()];
        tables.push(self.realised_table());
        tables[0].note_failed(self.failed);
        tables
    }

    /// The ranks that any head has, any last.
    pub fn ranks(&self) -> Vec<RankLimit> {
        let corners = self.heads.iter().flat_map(|head| &head.corners);
        let mut ranks: Vec<RankLimit> = corners.map(|corner| corner.rank).collect();
        ranks.sort_unstable();
        ranks.dedup();
        ranks
    }

    /// The largest heads of each run, step and ε, over its seeds.
    fn settings(&self) -> Vec<Vec<&LatticeOfHead>> {
        let mut settings: Vec<Vec<&LatticeOfHead>> = Vec::new();
        for head in self.largest(|_| true) {
            match settings.iter_mut().find(|setting| setting[0].setting() == head.setting()) {
                Some(setting) => setting.push(head),
                None => settings.push(vec![head]),
            }
        }
        settings
    }

    /// What each corner needs.
    pub fn corners_table(&self) -> Table {
        let ranks = self.ranks();
        let mut columns = of_setting();
        columns.push(Column::words("inputs", "inputs"));
        columns.extend(ranks.iter().map(|rank| {
            let heading = format!("needed, rank {rank}");
            Column::numbers(&format!("rank_{rank}"), &heading, None)
        }));
        columns.push(Column::numbers("lower_bound", "proven lower bound at any rank", None));
        columns.push(Column::numbers("seeds", "seeds", None));
        let title = "Logits that the attention of the largest head needs, by the inputs and the rank of queries and keys";
        let mut table = Table::new("lattice", title, columns);
        for heads in self.settings() {
            for inputs in self.inputs() {
                let mut row = cells_of_setting(heads[0]);
                row.push(Cell::text(inputs.name()));
                row.extend(ranks.iter().map(|&rank| over(&heads, |h| h.needed(inputs, rank))));
                row.push(over(&heads, |head| head.lower_bound(inputs)));
                row.push(Cell::count(heads.len()));
                table.push(row);
            }
        }
        table.notes.push(format!(
            "{OF_LARGEST} An en dash: no logit reached ε, or the combination is undefined. Needed logits are upper bounds; that of free inputs at \
             any rank is exact, and the lower bound is proven (see the methods)."
        ));
        table
    }

    /// What each constraint adds: Shapley values beside both orders.
    pub fn shares_table(&self) -> Table {
        let mut columns = of_setting();
        columns.extend([
            Column::numbers("actual", "max |logit|", None),
            Column::numbers("half_spread", "half-range", None),
            Column::numbers("floor", "floor", None),
            Column::numbers("rank", "rank: Shapley share", None),
            Column::numbers("inputs", "inputs: Shapley share", None),
            Column::numbers("rest", "remainder", None),
            Column::numbers("rank_first", "rank, taken first", None),
            Column::numbers("rank_last", "rank, taken last", None),
            Column::numbers("inputs_first", "inputs, taken first", None),
            Column::numbers("inputs_last", "inputs, taken last", None),
            Column::numbers("interaction", "interaction", None),
            Column::numbers("seeds", "seeds", None),
        ]);
        let title = "Shares of log(half-range / floor) due to two constraints of a head: rank ≤ d_head, and its own layer \
                     inputs";
        let mut table = Table::new("shares", title, columns);
        for heads in self.settings() {
            let share = |of: fn(&Shares) -> f64| {
                over(&heads, move |head| {
                    let shares = head.shares()?;
                    Some(of(&shares) / shares.whole)
                })
            };
            let mut row = cells_of_setting(heads[0]);
            row.extend([
                over(&heads, |head| Some(head.actual)),
                over(&heads, |head| Some(head.half_spread())),
                over(&heads, LatticeOfHead::floor),
                share(Shares::of_rank),
                share(Shares::of_inputs),
                share(Shares::rest),
                share(|shares| shares.rank[0]),
                share(|shares| shares.rank[1]),
                share(|shares| shares.inputs[0]),
                share(|shares| shares.inputs[1]),
                share(Shares::interaction),
                Cell::count(heads.len()),
            ]);
            table.push(row);
        }
        table.notes.push(format!(
            "{OF_LARGEST} A Shapley share is the mean over both orders of what a constraint adds to the logarithm of the needed logits. With the \
             remainder, which neither constraint explains, the shares sum to 1. Rank taken first is the rank penalty, inputs \
             taken last the input factor."
        ));
        table
    }

    /// What positions for nothing would save.
    pub fn positions_table(&self) -> Table {
        let given: Vec<InputSet> = self
            .inputs()
            .into_iter()
            .filter(|set| !matches!(set, InputSet::Own | InputSet::Free))
            .collect();
        let mut columns = of_setting();
        columns.extend([
            Column::words("given", "added inputs"),
            Column::numbers("own", "needed, own inputs", None),
            Column::numbers("with", "needed, with added inputs", None),
            Column::numbers("floor", "floor", None),
            Column::numbers("saved", "reduction (×)", None),
            Column::numbers("proven", "proven reduction (×)", None),
            Column::numbers("share", "share of log(own / floor)", None),
            Column::numbers("beyond_bias", "share beyond a constant", None),
            Column::numbers("seeds", "seeds", None),
        ]);
        let title = "Reduction of the needed logits by position columns added to a head's inputs, at any rank";
        let mut table = Table::new("positions", title, columns);
        for heads in self.settings() {
            for &set in &given {
                let mut row = cells_of_setting(heads[0]);
                row.extend([
                    Cell::text(set.name()),
                    over(&heads, |head| head.needed(InputSet::Own, RankLimit::Any)),
                    over(&heads, |head| head.needed(set, RankLimit::Any)),
                    over(&heads, LatticeOfHead::floor),
                    over(&heads, |head| head.saved_by(set)),
                    over(&heads, |head| head.saved_by_proven(set)),
                    over(&heads, |head| head.share_saved_by(set)),
                    over(&heads, |head| head.share_saved_beyond_bias(set)),
                    Cell::count(heads.len()),
                ]);
                table.push(row);
            }
        }
        table.notes.push(format!(
            "{OF_LARGEST} Every set has a constant column, and every set but bias has position columns. The proven reduction is the lower bound \
             with the own inputs over the needed logit with the added ones."
        ));
        table
    }

    /// The rank that each head's own logits would pay for.
    pub fn realised_table(&self) -> Table {
        let ranks: Vec<RankLimit> =
            self.ranks().into_iter().filter(|rank| *rank != RankLimit::Any).collect();
        let mut columns = of_setting();
        columns.extend([
            Column::numbers("seed", "seed", None),
            Column::words("head", "layer.head"),
            Column::numbers("mass_within_16", "attention on the last 16 tokens", None),
            Column::numbers("actual", "max |logit|", None),
            Column::numbers("half_spread", "half-range", None),
        ]);
        columns.extend(ranks.iter().map(|rank| {
            let heading = format!("needed, rank {rank}");
            Column::numbers(&format!("rank_{rank}"), &heading, None)
        }));
        columns.extend([
            Column::numbers("realised", "rank within half-range", None),
            Column::numbers("realised_actual", "rank within max |logit|", None),
        ]);
        let title = "Realised rank: the smallest rank of free queries and keys that reaches a head's attention within ε at its own \
                     logits";
        let mut table = Table::new("realised-rank", title, columns);
        for head in &self.heads {
            let rank = |most| head.realised_rank(most).map_or(Cell::Missing, Cell::count);
            let mut row = cells_of_setting(head);
            row.extend([
                Cell::count(head.seed as usize),
                Cell::text(format!("{}.{}", head.layer, head.head)),
                Cell::number(Some(head.mass_within_16)),
                Cell::number(Some(head.actual)),
                Cell::number(Some(head.half_spread())),
            ]);
            let free = |&rank| Cell::number(head.needed(InputSet::Free, rank));
            row.extend(ranks.iter().map(free));
            row.extend([rank(head.half_spread()), rank(head.actual)]);
            table.push(row);
        }
        let shown: Vec<String> = ranks.iter().map(ToString::to_string).collect();
        table.notes.push(format!(
            "Every head of the study, fitted at ranks {}. An en dash: no rank reached ε. Other starts may find a smaller rank.",
            shown.join(", ")
        ));
        table
    }

    /// What each model's largest head needs at the ε that is told, in words.
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

fn of_setting() -> Vec<Column> {
    vec![
        Column::words("run", "run"),
        Column::numbers("n", "n", None),
        Column::numbers("own_rank", "d_head", None),
        Column::numbers("step", "step", None),
        Column::numbers("epsilon", "ε", Some("nats")),
    ]
}

fn cells_of_setting(head: &LatticeOfHead) -> Vec<Cell> {
    vec![
        Cell::text(&head.run),
        Cell::count(head.n),
        Cell::count(head.own_rank),
        Cell::count(head.step),
        Cell::Setting(head.epsilon),
    ]
}

fn over(heads: &[&LatticeOfHead], value: impl Fn(&LatticeOfHead) -> Option<f64>) -> Cell {
    Cell::over(Spread::of(heads.iter().filter_map(|head| value(head))))
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

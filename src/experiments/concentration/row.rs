//! The rows of how concentrated trained heads' attention is.

use crate::experiments::model_key::ModelOf;
use crate::pattern::{HeadKind, Visibility};
use crate::predict::{Concentration, held_from};
use crate::record::{InvariantChecker, Measurement, ROUNDING, Row, record, to_milliseconds};

record! {
    /// On how few tokens a trained head's attention P lies on a group of passages, and in how few dimensions. Far are the
    /// columns at a lag of the model's `window` or more but for the first. Everything is of the rows from max(n/2, window + n/4) on,
    /// tokens a mean over rows, ranks one over passages.
    pub struct ConcentrationFound {
        /// the layer, from 0
        #[range = Placed]
        layer: usize,
        /// the head, from 0
        #[range = Placed]
        head: usize,
        /// the kind of head: `global` or `local:W`
        kind: HeadKind,
        /// the group of passages
        passage: usize,
        /// the number of passages in the group
        #[range = Counted]
        passages: usize,
        /// the tokens per passage
        #[range = Counted]
        n: usize,
        /// the head dimension d
        #[range = Counted]
        rank: usize,
        /// the columns that a row sees
        columns: f64,
        /// the far columns that a row sees
        far_columns: f64,
        /// attention on the first column
        sink_mass: f64,
        /// attention on the far columns
        far_mass: f64,
        /// exp(H) of a row, H its entropy
        effective_tokens: f64,
        /// the least k whose largest entries hold 0.9 of a row
        tokens_90: f64,
        /// attention on the 4 largest entries of a row
        top_4: f64,
        /// attention on the 16 largest entries
        top_16: f64,
        /// attention on the 64 largest entries
        top_64: f64,
        /// the least r with ‖P − P_r‖_F² ≤ 0.1 ‖P‖_F², P_r the best approximation of rank r
        rank_90: f64,
        /// the same with 0.01
        rank_99: f64,
        /// stable rank ‖P‖_F²/σ₁²
        stable_rank: f64,
        /// of the far part; empty where a row has no mass there
        far: Option<FarFound>,
        /// the time of the head
        #[unit = "s"]
        wall_time_s: f64,
    }
}

record! {
    /// The same of P with all but its far columns set to 0.
    pub struct FarFound {
        /// exp(H) of the far part of a row, normalised
        far_effective_tokens: f64,
        /// the least k whose largest entries hold 0.9 of the far part
        far_tokens_90: f64,
        /// share of the 4 largest entries in the far part
        far_top_4: f64,
        /// share of the 16 largest entries
        far_top_16: f64,
        /// share of the 64 largest entries
        far_top_64: f64,
        /// the least r with ‖F − F_r‖_F² ≤ 0.1 ‖F‖_F², F the far part
        far_rank_90: f64,
        /// the same with 0.01
        far_rank_99: f64,
        /// stable rank ‖F‖_F²/σ₁²
        far_stable_rank: f64,
        /// far_rank_90 with each row's far entries in random order
        shuffled_rank_90: f64,
        /// far_rank_99 with each row's far entries in random order
        shuffled_rank_99: f64,
        /// far_stable_rank with each row's far entries in random order
        shuffled_stable_rank: f64,
    }
}

impl ConcentrationFound {
    /// What was found of a head on the group `passage` of so many passages.
    pub fn of(found: &Concentration, passage: usize, passages: usize, wall_time_s: f64) -> Self {
        let whole = &found.whole;
        let [top_4, top_16, top_64] = whole.top;
        let far = found.far.zip(found.shuffled).map(|(far, shuffled)| {
            let [far_top_4, far_top_16, far_top_64] = far.top;
            FarFound {
                far_effective_tokens: far.effective_tokens,
                far_tokens_90: far.tokens_90,
                far_top_4,
                far_top_16,
                far_top_64,
                far_rank_90: far.ranks.rank_90,
                far_rank_99: far.ranks.rank_99,
                far_stable_rank: far.ranks.stable_rank,
                shuffled_rank_90: shuffled.rank_90,
                shuffled_rank_99: shuffled.rank_99,
                shuffled_stable_rank: shuffled.stable_rank,
            }
        });
        Self {
            layer: found.layer,
            head: found.head,
            kind: found.kind,
            passage,
            passages,
            n: found.tokens,
            rank: found.rank,
            columns: found.columns,
            far_columns: found.far_columns,
            sink_mass: found.sink_mass,
            far_mass: found.far_mass,
            effective_tokens: whole.effective_tokens,
            tokens_90: whole.tokens_90,
            top_4,
            top_16,
            top_64,
            rank_90: whole.ranks.rank_90,
            rank_99: whole.ranks.rank_99,
            stable_rank: whole.ranks.stable_rank,
            far,
            wall_time_s: to_milliseconds(wall_time_s),
        }
    }

    /// Rows of a passage that are held, in a model of this window.
    pub fn rows(&self, window: usize) -> usize {
        self.n.saturating_sub(held_from(self.n, window))
    }
}

impl Measurement for ConcentrationFound {
    type Key = ModelOf;

    const NAME: &'static str = "concentration";
    const VERSION: u32 = 1;

    fn check_row(row: &Row<Self>, check: &mut InvariantChecker) {
        let (of, f) = (&row.of, &row.found);
        check.at(format!("{} layer {} head {} of group {}", row.cell, f.layer, f.head, f.passage));
        check.within("layer", f.layer as f64, 0.0, of.layers as f64 - 1.0);
        check.within("head", f.head as f64, 0.0, of.heads as f64 - 1.0);
        check.within("n", f.n as f64, 2.0, of.context as f64);
        check.at_least("passages", f.passages as f64, 1.0);
        check.at_least("wall_time_s", f.wall_time_s, 0.0);
        let width = of.d_model.map(|d_model| (d_model / of.heads) as f64);
        check.equal("rank is not d_model / heads", f.rank as f64, width, 0.0);
        check.holds(of.window.is_some(), || "the model has no window".to_owned());
        let Some(window) = of.window else { return };
        check.holds(
            matches!(f.kind, HeadKind::Global) || f.kind == HeadKind::Local { window },
            || format!("kind is {}, and the model's window {window}", f.kind),
        );
        let first = held_from(f.n, window);
        check.holds(first < f.n, || format!("no row of {} is held at a window of {window}", f.n));
        let rows: Vec<usize> = (first..f.n).collect();
        let seen = |row: &usize| f.kind.columns(*row, f.n, Visibility::Causal).len();
        let is_global = f.kind == HeadKind::Global;
        let far = |row: &usize| if is_global { row - window } else { 0 };
        let [seen, far] =
            [rows.iter().map(seen).collect::<Vec<_>>(), rows.iter().map(far).collect()];
        check.equal("columns", f.columns, mean(&seen, |m| m), ROUNDING);
        check.equal("far_columns", f.far_columns, mean(&far, |m| m), ROUNDING);
        check.within("sink_mass", f.sink_mass, 0.0, 1.0 + ROUNDING);
        check.within("far_mass", f.far_mass, 0.0, 1.0 - f.sink_mass + ROUNDING);
        let whole = Told {
            columns: &seen,
            effective_tokens: f.effective_tokens,
            tokens_90: f.tokens_90,
            top: [f.top_4, f.top_16, f.top_64],
            ranks: [f.rank_90, f.rank_99, f.stable_rank],
        };
        whole.check("", check);
        if !is_global {
            check.within("far_mass of a head without far columns", f.far_mass, 0.0, 0.0);
            check.there("far_effective_tokens", f.far.as_ref(), false);
        }
        let Some(told) = &f.far else { return };
        check.at_least("far_mass of a head with a far part", f.far_mass, f64::MIN_POSITIVE);
        let of_far = Told {
            columns: &far,
            effective_tokens: told.far_effective_tokens,
            tokens_90: told.far_tokens_90,
            top: [told.far_top_4, told.far_top_16, told.far_top_64],
            ranks: [told.far_rank_90, told.far_rank_99, told.far_stable_rank],
        };
        of_far.check("far_", check);
        let shuffled = [told.shuffled_rank_90, told.shuffled_rank_99, told.shuffled_stable_rank];
        check_ranks("shuffled_", shuffled, rows.len() as f64, check);
    }

    /// Of each group, every head of the layers once.
    fn check_cell(rows: &[Row<Self>], check: &mut InvariantChecker) {
        let Some(first) = rows.first() else { return };
        let heads = first.of.heads.max(1);
        let mut layers: Vec<usize> = rows.iter().map(|row| row.found.layer).collect();
        layers.sort_unstable();
        layers.dedup();
        let of_group = layers.len() * heads;
        check.holds(rows.len().is_multiple_of(of_group), || {
            format!("{} rows where each group has {of_group}", rows.len())
        });
        for (at, row) in rows.iter().enumerate() {
            let f = &row.found;
            let place = (f.passage, f.layer, f.head);
            let expected = (at / of_group, layers[at % of_group / heads], at % heads);
            check.holds(place == expected, || {
                format!("group, layer and head are {place:?} in place of {expected:?}: not each once, in order")
            });
            let [here, there] = [f, &first.found].map(|f| (f.passages, f.n));
            check.holds(here == there, || "passages of several sizes".to_owned());
        }
    }
}

fn mean(counts: &[usize], value: fn(f64) -> f64) -> f64 {
    counts.iter().map(|&count| value(count as f64)).sum::<f64>() / counts.len() as f64
}

/// What is told of rows and their matrix.
struct Told<'r> {
    /// The columns of each row.
    columns: &'r [usize],
    effective_tokens: f64,
    tokens_90: f64,
    top: [f64; 3],
    ranks: [f64; 3],
}

impl Told<'_> {
    fn check(&self, of: &str, check: &mut InvariantChecker) {
        let Self { columns, effective_tokens, tokens_90, top: [four, sixteen, sixty_four], ranks } =
            *self;
        let most = mean(columns, |m| m) + ROUNDING;
        check.within(&format!("{of}effective_tokens"), effective_tokens, 1.0 - ROUNDING, most);
        check.within(
            &format!("{of}tokens_90"),
            tokens_90,
            1.0,
            mean(columns, |m| (0.9 * m).ceil()),
        );
        // k of m columns hold k/m of a row or more.
        let least = [
            mean(columns, |m| (4.0 / m).min(1.0)),
            mean(columns, |m| (16.0 / m).min(1.0)),
            mean(columns, |m| (64.0 / m).min(1.0)),
        ];
        let tops = [("top_4", four), ("top_16", sixteen), ("top_64", sixty_four)];
        for ((name, top), least) in tops.into_iter().zip(least) {
            check.within(&format!("{of}{name}"), top, least - ROUNDING, 1.0 + ROUNDING);
        }
        // The next entries are no larger than those before them.
        for (what, less, more) in [("top_4", four, sixteen), ("top_16", sixteen, sixty_four)] {
            check.within(&format!("{of}{what}"), less, more / 4.0 - ROUNDING, more + ROUNDING);
        }
        check_ranks(of, ranks, columns.len() as f64, check);
    }
}

fn check_ranks(
    of: &str,
    [rank_90, rank_99, stable_rank]: [f64; 3],
    rows: f64,
    check: &mut InvariantChecker,
) {
    check.within(&format!("{of}rank_99"), rank_99, 1.0, rows);
    check.within(&format!("{of}rank_90"), rank_90, 1.0, rank_99);
    // r of σ² hold no more than r·σ₁².
    let most = rank_90 / 0.9 + ROUNDING;
    check.within(&format!("{of}stable_rank"), stable_rank, 1.0 - ROUNDING, most);
}

#[cfg(test)]
#[path = "row_tests.rs"]
mod tests;

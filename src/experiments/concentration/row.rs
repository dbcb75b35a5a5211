//! The rows of a study of concentration: how few tokens and how small a rank hold a trained head's attention.

use crate::experiments::model_key::ModelKey;
use crate::heads::{ConcentrationMeasurement, held_from};
use crate::record::{InvariantChecker, Measurement, ROUNDING, Row};
use crate::targets::{HeadKind, Visibility};

impl Measurement for ConcentrationMeasurement {
    type Key = ModelKey;

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
        let width = of.head_dimension().map(|d_head| d_head as f64);
        check.equal("rank is not the d_head of the model", f.rank as f64, width, 0.0);
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

    /// Checks that each group has one row for every head of its layers.
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

/// The measured values of a set of rows and their matrix.
struct Told<'r> {
    /// The number of columns of each row.
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
        // The k largest of m columns hold at least k/m of a row.
        let least = [
            mean(columns, |m| (4.0 / m).min(1.0)),
            mean(columns, |m| (16.0 / m).min(1.0)),
            mean(columns, |m| (64.0 / m).min(1.0)),
        ];
        let tops = [("top_4", four), ("top_16", sixteen), ("top_64", sixty_four)];
        for ((name, top), least) in tops.into_iter().zip(least) {
            check.within(&format!("{of}{name}"), top, least - ROUNDING, 1.0 + ROUNDING);
        }
        // Further entries are at most as large as those before them.
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
    // The r largest σ² sum to at most r·σ₁².
    let most = rank_90 / 0.9 + ROUNDING;
    check.within(&format!("{of}stable_rank"), stable_rank, 1.0 - ROUNDING, most);
}

#[cfg(test)]
#[path = "row_tests.rs"]
mod tests;

//! What a fit says at its end.

use std::path::Path;

use rank_study::fit::Outcome;
use rank_study::report::fit_conclusion;
use rank_study::row::FrontierRow;
use rank_study::table::significant;

/// The sentences: what the rank costs, what stopped the search before it was done, and where the files are. `most` is
/// the limit on a fit's iterations.
pub fn conclusion(rows: &[FrontierRow], most: usize, out: &Path) -> Vec<String> {
    let mut told = fit_conclusion(rows);
    let cut: Vec<String> = rows
        .iter()
        .filter(|row| {
            row.found.outcome == Outcome::StepLimit && row.found.floor_max_abs_logit != Some(0.0)
        })
        .map(|row| row.found.cap.map_or_else(String::new, |cap| significant(cap, 3)))
        .collect();
    if !cut.is_empty() {
        told.push(format!(
            "Step limit at max |logit| {}: {most} iterations ended before the search settled. The result is an upper \
             bound. Try --iterations {} or more --starts, with another --out.",
            cut.join(", "),
            4 * most
        ));
    }
    let of_factors = rows.iter().any(|row| row.found.factors.is_some());
    let out = out.display();
    let factors = match of_factors {
        true => format!(", queries and keys in {out}/factors/"),
        false => String::new(),
    };
    told.push(format!(
        "Rows are in {out}/frontier.csv{factors}; `rank-study show {out}` draws them."
    ));
    told
}

//! Holds a study's rows to what must be true of them, and to what its definition expects.

use std::path::Path;

use super::StudyError;
use super::definition::{Expected, Selection, Statistic, StudyDefinition, StudyWork};
use super::row::Row;
use super::store::Store;
use super::study_manifest::tells_of;
use super::sweep::{columns, planned};
use crate::run::manifest::Manifest;
use crate::run::series::CURVE;

/// A solver stops this far to either side of an error that it was asked for.
const SLACK: f64 = 1.01;
/// What rounding may do.
const ROUNDING: f64 = 1e-6;
/// What float32 weights taken for exact ones may do to a head's parts.
const HEAD_TOLERANCE: f64 = 1e-5;

/// What came of holding a study's rows to their checks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verification {
    /// Rows read.
    pub rows: usize,
    /// Checks made.
    pub checks: usize,
    /// What did not hold, a line each.
    pub breaches: Vec<String>,
    /// What nobody knows of the rows, a line each.
    pub notes: Vec<String>,
}

impl Verification {
    fn check(&mut self, holds: bool, otherwise: impl FnOnce() -> String) {
        self.checks += 1;
        if !holds {
            self.breaches.push(otherwise());
        }
    }
}

/// Holds the rows in `folder` to their definition: that they are those that were measured, whole and none
/// altered; that every cell is there, measured as the definition says; that what is true of every fit and
/// training is true of each row; and that every `[[expected]]` bound holds.
///
/// # Errors
/// Rows or a manifest that cannot be read.
pub fn verify(definition: &StudyDefinition, folder: &Path) -> Result<Verification, StudyError> {
    let store = Store::read(folder, &columns(&definition.work))?;
    let manifest = Manifest::read(&folder.join("manifest.toml"))?;
    let rows: Vec<&Row> = store.rows().collect();
    let notes = manifest.notes().into_iter().map(str::to_owned).collect();
    let mut found = Verification { rows: rows.len(), notes, ..Verification::default() };
    found.check(store.damaged().is_empty(), || {
        format!(
            "rows.csv: {} lines are cut off or have fields too many or too few",
            store.damaged().len()
        )
    });
    let command = manifest.sweep_command();
    found.check(store.sha256().is_some_and(|rows| tells_of(&manifest, rows)), || {
        format!(
            "rows.csv is not the file that was measured: its SHA-256 differs from the manifest's rows_sha256; where \
             the manifest is older than the rows, `{command}` takes them as they stand and notes it"
        )
    });
    let parquet = store.wrong_with_parquet();
    found.check(parquet.is_none(), || {
        format!("rows.parquet {}; `{command}` writes it again", parquet.unwrap_or_default())
    });
    let data = folder.parent().unwrap_or(folder);
    cells(definition, &manifest, &store, data, &mut found)?;
    for row in &rows {
        match &definition.work {
            StudyWork::Fit(_) => fit_row(row, &mut found),
            StudyWork::Train(_) => train_row(row, folder, &mut found)?,
            StudyWork::Predict(_) => head_row(row, &mut found),
            StudyWork::Spectrum(_) | StudyWork::Latency(_) => {}
        }
    }
    for expected in &definition.expected {
        hold(expected, &rows, &mut found);
    }
    Ok(found)
}

/// Every cell of the definition has its rows. What a text hashes to is not known without it, so there the
/// settings are not compared.
fn cells(
    definition: &StudyDefinition,
    manifest: &Manifest,
    store: &Store,
    data: &Path,
    found: &mut Verification,
) -> Result<(), StudyError> {
    let of_text = !manifest.text("text").is_empty();
    for (cell, settings) in planned(&definition.work, data)? {
        let there = match of_text {
            true => store.rows().any(|row| row.get("cell") == cell && row.get("err").is_empty()),
            false => store.finished(&cell, &settings).is_some(),
        };
        found.check(there, || {
            format!("{cell}: no rows measured as the definition says; sweep it again")
        });
    }
    Ok(())
}

fn number(row: &Row, column: &str) -> Option<f64> {
    row.get(column).parse().ok()
}

/// What is true of every fit.
fn fit_row(row: &Row, found: &mut Verification) {
    let value = |column| number(row, column);
    let mut at_most = |what: &str, small: Option<f64>, large: Option<f64>, factor: f64| {
        if let (Some(small), Some(large)) = (small, large) {
            let room = ROUNDING * 1e-3;
            found.check(small <= large * factor + room, || {
                format!("{}: {what}: {small} against {large}", row.get("cell"))
            });
        }
    };
    let logit = value("max_abs_logit");
    let rounding = 1.0 + ROUNDING;
    let reached = row.get("outcome") != "infeasible";
    at_most("max_abs_logit exceeds its cap", logit, value("cap"), 1.0 + 1e-12);
    at_most("kl_nats is under its floor", value("floor_kl_nats"), value("kl_nats"), rounding);
    at_most("max_abs_logit exceeds the norms' product", logit, value("norm_product"), rounding);
    let twice = logit.map(|logit| 2.0 * logit);
    at_most("logit_spread exceeds twice max_abs_logit", value("logit_spread"), twice, rounding);
    if reached {
        at_most("kl_nats exceeds the tolerance", value("kl_nats"), value("tolerance"), SLACK);
        let bound = value("lower_bound_max_abs_logit");
        at_most("max_abs_logit is under its proven bound", bound, logit, SLACK);
        at_most("max_abs_logit is under its floor", value("floor_max_abs_logit"), logit, SLACK);
        let ratio = logit.zip(value("floor_max_abs_logit")).map(|(logit, floor)| logit / floor);
        at_most("inflation is not the ratio", value("inflation"), ratio, rounding);
        at_most("inflation is not the ratio", ratio, value("inflation"), rounding);
    }
}

/// What is true of every trained head held against what it needed.
fn head_row(row: &Row, found: &mut Verification) {
    let value = |column| number(row, column);
    let [cell, head, rank, epsilon] = ["cell", "head", "rank", "epsilon"].map(|c| row.get(c));
    let place = format!("{cell} head {head} rank {rank} ε {epsilon}");
    let mut at_most = |what: &str, small: Option<f64>, large: Option<f64>| {
        if let (Some(small), Some(large)) = (small, large) {
            found.check(small <= large * (1.0 + HEAD_TOLERANCE), || {
                format!("{place}: {what}: {small} against {large}")
            });
        }
    };
    let (floor, needed, tied) = (value("floor"), value("needed"), value("needed_tied"));
    let (actual, spread) = (value("actual"), value("spread"));
    at_most("needed is under its floor", floor, needed);
    at_most("needed_tied is under needed", needed, tied);
    at_most("actual is under needed_tied", tied, actual);
    let (any_rank, proven) = (value("needed_any_rank"), value("lower_bound_tied"));
    at_most("needed_any_rank is under its floor", floor, any_rank);
    at_most("needed_any_rank is under its bound", proven, any_rank);
    at_most("needed_tied is under its bound", proven, tied);
    at_most("spread exceeds twice actual", spread, actual.map(|actual| 2.0 * actual));
    at_most("kl_nats exceeds ε", needed.and(value("kl_nats")), value("epsilon"));
    at_most("kl_nats_tied exceeds ε", tied.and(value("kl_nats_tied")), value("epsilon"));
    at_most(
        "effective rank of the logits exceeds d",
        value("effective_rank_logits"),
        value("rank"),
    );
    for (what, part, over, under) in [
        ("inflation is not needed/floor", "inflation", needed, floor),
        ("tying is not needed_tied/needed", "tying", tied, needed),
        ("drift is not ½ spread/needed_tied", "drift", spread.map(|spread| 0.5 * spread), tied),
        ("gauge is not actual/½ spread", "gauge", actual, spread.map(|spread| 0.5 * spread)),
    ] {
        let ratio = over.zip(under).map(|(over, under)| over / under);
        at_most(what, value(part), ratio);
        at_most(what, ratio.filter(|ratio| ratio.is_finite() && *ratio > 0.0), value(part));
    }
}

/// What is true of every training, and of the curve and evaluations beside its row.
fn train_row(row: &Row, folder: &Path, found: &mut Verification) -> Result<(), StudyError> {
    let cell = row.get("cell");
    if !row.get("err").is_empty() {
        return Ok(());
    }
    let (last, peak) = (number(row, "max_abs_logit"), number(row, "peak_max_abs_logit"));
    if let (Some(last), Some(peak)) = (last, peak) {
        found.check(last <= peak, || {
            format!("{cell}: max_abs_logit {last} exceeds its peak {peak}")
        });
    }
    let run = folder.join(cell);
    let curve = column(&run.join(CURVE), "max_abs_logit")?;
    let highest = curve.into_iter().flatten().reduce(f64::max);
    if let (Some(highest), Some(peak)) = (highest, peak) {
        found.check((highest - peak).abs() <= 1e-5 * peak.abs(), || {
            format!("{cell}: the curve's largest logit is {highest}, the row's peak {peak}")
        });
    }
    let evaluations = column(&run.join("eval.csv"), "loss_nats")?;
    if let (Some(Some(evaluated)), Some(loss)) =
        (evaluations.last(), number(row, "valid_loss_nats"))
    {
        found.check(*evaluated == loss, || {
            format!("{cell}: the last evaluation is {evaluated}, the row's valid_loss_nats {loss}")
        });
    }
    Ok(())
}

/// One column of a CSV file.
fn column(path: &Path, name: &str) -> Result<Vec<Option<f64>>, StudyError> {
    let wrong = |why: String| StudyError::Rows { path: path.to_owned(), why };
    let mut reader = csv::Reader::from_path(path).map_err(|e| wrong(e.to_string()))?;
    let header = reader.headers().map_err(|e| wrong(e.to_string()))?;
    let at = header.iter().position(|column| column == name);
    let at = at.ok_or_else(|| wrong(format!("has no column {name}")))?;
    reader
        .records()
        .map(|record| {
            let record = record.map_err(|e| wrong(e.to_string()))?;
            Ok(record.get(at).and_then(|field| field.parse().ok()))
        })
        .collect()
}

/// Holds rows to one bound of the definition.
fn hold(expected: &Expected, rows: &[&Row], found: &mut Verification) {
    let chosen = select(rows, &expected.rows);
    let what = &expected.what;
    if chosen.is_empty() {
        found.check(false, || format!("expected {what:?}: no row is meant by it"));
        return;
    }
    let values = |rows: &[&Row]| -> Vec<f64> {
        rows.iter().map(|row| number(row, &expected.column).unwrap_or(f64::INFINITY)).collect()
    };
    let column = &expected.column;
    let limits = match (expected.bound.least, expected.bound.most) {
        (Some(least), Some(most)) => format!("{least} to {most}"),
        (Some(least), None) => format!("at least {least}"),
        (None, most) => format!("at most {}", most.unwrap_or(f64::INFINITY)),
    };
    match expected.of {
        Statistic::Every => {
            for (row, value) in chosen.iter().zip(values(&chosen)) {
                found.check(expected.bound.holds(value), || {
                    format!(
                        "{}: expected {what:?}: {column} is {value}, not {limits}",
                        row.get("cell")
                    )
                });
            }
        }
        Statistic::Median => {
            let mut value = median(values(&chosen));
            if let Some(over) = &expected.over {
                value /= median(values(&select(rows, over)));
            }
            found.check(expected.bound.holds(value), || {
                format!("expected {what:?}: the median of {column} is {value}, not {limits}")
            });
        }
        Statistic::Count => {
            let count = chosen.iter().filter(|row| !row.get(column).is_empty()).count();
            found.check(expected.bound.holds(count as f64), || {
                format!("expected {what:?}: {count} rows have a {column}, not {limits}")
            });
        }
    }
}

fn select<'r>(rows: &[&'r Row], selection: &Selection) -> Vec<&'r Row> {
    let same = |field: &str, value: &str| {
        field == value
            || matches!((field.parse::<f64>(), value.parse::<f64>()), (Ok(a), Ok(b)) if a == b)
    };
    let meant = |row: &&&Row| {
        selection
            .0
            .iter()
            .all(|(column, values)| values.iter().any(|value| same(row.get(column), value)))
    };
    rows.iter().filter(meant).copied().collect()
}

/// The median; NaN, which no bound holds, where there is no value.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => f64::NAN,
        odd if odd % 2 == 1 => values[middle],
        _ => 0.5 * (values[middle - 1] + values[middle]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::Bound;

    fn row(fields: &[(&'static str, f64)]) -> Row {
        let mut row = Row::default();
        row.set("cell", "a");
        row.set("outcome", "converged");
        for &(column, value) in fields {
            row.set(column, value);
        }
        row
    }

    fn breaches_of_fit(fields: &[(&'static str, f64)]) -> Vec<String> {
        let mut found = Verification::default();
        fit_row(&row(fields), &mut found);
        found.breaches
    }

    #[test]
    fn an_altered_fit_breaks_a_law() {
        let good = [
            ("cap", 4.0),
            ("max_abs_logit", 4.0),
            ("logit_spread", 7.5),
            ("norm_product", 4.5),
            ("kl_nats", 0.13),
            ("floor_kl_nats", 0.1),
            ("floor_max_abs_logit", 2.0),
            ("inflation", 2.0),
            ("tolerance", 0.13),
            ("lower_bound_max_abs_logit", 2.5),
        ];
        assert_eq!(breaches_of_fit(&good), Vec::<String>::new());
        for (column, wrong, part) in [
            ("max_abs_logit", 4.1, "exceeds its cap"),
            ("logit_spread", 8.1, "twice max_abs_logit"),
            ("norm_product", 3.9, "norms' product"),
            ("kl_nats", 0.14, "exceeds the tolerance"),
            ("kl_nats", 0.09, "under its floor"),
            ("floor_max_abs_logit", 4.5, "under its floor"),
            ("inflation", 1.9, "not the ratio"),
            ("inflation", 2.1, "not the ratio"),
            ("lower_bound_max_abs_logit", 4.2, "proven bound"),
        ] {
            let altered =
                good.map(|(name, value)| (name, if name == column { wrong } else { value }));
            let breaches = breaches_of_fit(&altered);
            assert!(breaches.iter().any(|b| b.contains(part)), "{column} = {wrong}: {breaches:?}");
        }
    }

    #[test]
    fn bounds_hold_or_say_what_was_found() {
        let rows = [
            row(&[("rank", 4.0), ("inflation", 1.0)]),
            row(&[("rank", 4.0), ("inflation", 3.0)]),
            row(&[("rank", 4.0)]),
            row(&[("rank", 8.0), ("inflation", 1.5)]),
        ];
        let rows: Vec<&Row> = rows.iter().collect();
        let breaches = |of, rank: &str, over: Option<&str>, least, most| {
            let pick = |rank: &str| Selection(vec![("rank".to_owned(), vec![rank.to_owned()])]);
            let expected = Expected {
                what: "w".to_owned(),
                rows: pick(rank),
                over: over.map(pick),
                column: "inflation".to_owned(),
                of,
                bound: Bound { least, most },
            };
            let mut found = Verification::default();
            hold(&expected, &rows, &mut found);
            found.breaches.len()
        };
        assert_eq!(breaches(Statistic::Every, "4", None, Some(1.0), None), 0);
        assert_eq!(breaches(Statistic::Every, "4.0", None, None, Some(2.0)), 2, "3 and none");
        assert_eq!(breaches(Statistic::Median, "4", None, Some(3.0), Some(3.0)), 0);
        assert_eq!(breaches(Statistic::Median, "4", Some("8"), Some(2.0), Some(2.0)), 0);
        assert_eq!(breaches(Statistic::Count, "4", None, Some(2.0), Some(2.0)), 0);
        assert_eq!(breaches(Statistic::Count, "4", None, Some(3.0), None), 1);
        assert_eq!(breaches(Statistic::Every, "16", None, Some(0.0), None), 1, "no row is meant");
    }
}

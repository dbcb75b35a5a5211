//! Checks a study's rows against the invariants of their kind and the expectations of the definition.

use std::collections::HashMap;
use std::fmt::Display;
use std::path::Path;

use toml::Table;

use super::definition::{Expected, Statistic, StudyDefinition, selects};
use super::store::Store;
use super::study_manifest::tells_of;
use crate::experiment::{Cell, StudyError, TextSource};
use crate::record::{Column, InvariantChecker, Line};
use crate::run::manifest::{MANIFEST, Manifest};

/// Result of the checks of a study's rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verification {
    /// Number of rows.
    pub rows: usize,
    /// Number of checks, and the checks that failed.
    pub laws: InvariantChecker,
    /// Facts about the rows that are unknown, one per line.
    pub notes: Vec<String>,
}

/// Checks the rows in `folder` against their definition. The rows must be complete and unchanged since the measurement,
/// and include every cell with the definition's settings. Each row, and the files of training runs, must satisfy the
/// invariants of their kind. Every `[[expected]]` bound must hold.
///
/// A file that is missing or cannot be read counts as a failed check; checks that do not need the file still run.
pub fn verify(definition: &StudyDefinition, folder: &Path) -> Verification {
    let mut found = Verification::default();
    let laws = &mut found.laws;
    let columns = definition.work.kind().columns();
    laws.at("rows.csv");
    let Some(store) = readable(Store::read(folder, &columns), laws) else { return found };
    found.rows = store.rows().count();
    laws.holds(store.sha256().is_some(), || "is missing".to_owned());
    let damaged = store.damaged.len();
    laws.holds(damaged == 0, || {
        format!("{damaged} lines are cut off or have too many or too few fields")
    });
    laws.at(MANIFEST);
    let manifest = readable(Manifest::read(&folder.join(MANIFEST)), laws);
    if let Some(manifest) = &manifest {
        found.notes = manifest.notes().into_iter().map(str::to_owned).collect();
        laws.at("rows.csv");
        laws.holds(store.sha256().is_some_and(|rows| tells_of(manifest, rows)), || {
            format!(
                "has changed since it was measured (its SHA-256 differs from rows_sha256 in the manifest); \
                 if only the manifest is old, `{}` accepts the rows and notes it",
                manifest.sweep_command()
            )
        });
    }
    laws.at("rows.parquet");
    let parquet = store.wrong_with_parquet();
    laws.holds(parquet.is_none(), || {
        let again = manifest.as_ref().map(|m| format!("; `{}` writes it again", m.sweep_command()));
        format!("{}{}", parquet.unwrap_or_default(), again.unwrap_or_default())
    });
    planned(definition, folder, manifest.as_ref(), &store, &columns, &mut found);
    let laws = &mut found.laws;
    let lines: Vec<&Line> = store.rows().collect();
    found.notes.extend(definition.work.experiment.check_rows(&lines, folder, laws));
    for row in store.rows().filter(|row| row.was_stopped(&columns)) {
        found.notes.push(format!("{} was stopped; its row says at which step", row.cell()));
    }
    let rows: Vec<&Line> = store.rows().filter(|row| !row.was_stopped(&columns)).collect();
    for expected in &definition.expected {
        laws.at(format!("expected {:?}", expected.what));
        hold(expected, &columns, &rows, laws);
    }
    found
}

/// Returns the result of a read; an error counts as a failed check and gives `None`.
fn readable<T>(read: Result<T, impl Display>, laws: &mut InvariantChecker) -> Option<T> {
    match read {
        Ok(read) => Some(read),
        Err(error) => {
            laws.holds(false, || error.to_string());
            None
        }
    }
}

/// Checks that every cell of the definition has rows with the right settings, and that there are no other rows.
fn planned(
    definition: &StudyDefinition,
    folder: &Path,
    manifest: Option<&Manifest>,
    store: &Store,
    columns: &[Column],
    found: &mut Verification,
) {
    let laws = &mut found.laws;
    let text = manifest.and_then(|m| TextSource::of_rows(folder, &definition.study, m));
    let data = folder.parent().unwrap_or(folder);
    laws.at("the definition");
    let cells = definition.work.experiment.any_cells(text.as_ref(), data);
    if let Err(why @ StudyError::NotFetched { .. }) = &cells {
        found.notes.push(format!("{why}; without it only the rows' own invariants are checked"));
        return;
    }
    let Some(cells) = readable(cells, laws) else { return };
    let name = folder.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
    let by_key: HashMap<&str, &Cell> = cells.iter().map(|cell| (cell.key.as_str(), cell)).collect();
    for line in store.rows() {
        let key = line.cell();
        laws.at(key);
        laws.holds(line.at(0) == name, || format!("study is {:?}, not {name:?}", line.at(0)));
        let Some(cell) = by_key.get(key) else {
            laws.holds(false, || "is not a configuration of the definition".to_owned());
            continue;
        };
        for ((column, told), there) in
            columns[2..].iter().zip(&cell.key_fields).zip(line.fields().skip(2))
        {
            laws.holds(told == there, || {
                format!("{} is {there:?}, but {told:?} in the definition", column.name)
            });
        }
    }
    for cell in &cells {
        laws.at(&*cell.key);
        let there = store.has_finished(&cell.key, &cell.settings)
            || store.stopped(&cell.key, &cell.settings).is_some();
        laws.holds(there, || {
            "no rows measured with the present definition; sweep it again".to_owned()
        });
    }
}

/// Checks rows with the columns `columns` against one bound of the definition.
fn hold(expected: &Expected, columns: &[Column], rows: &[&Line], laws: &mut InvariantChecker) {
    let chosen = select(columns, rows, &expected.rows);
    if chosen.is_empty() {
        laws.holds(false, || "no row matches it".to_owned());
        return;
    }
    let values = |rows: &[&Line]| -> Vec<f64> {
        let value = |row: &&Line| row.get(columns, &expected.column).parse();
        rows.iter().map(|row| value(row).unwrap_or(f64::INFINITY)).collect()
    };
    let column = &expected.column;
    let limits = match (expected.least, expected.most) {
        (Some(least), Some(most)) => format!("{least} to {most}"),
        (Some(least), None) => format!("at least {least}"),
        (None, most) => format!("at most {}", most.unwrap_or(f64::INFINITY)),
    };
    match expected.of.unwrap_or_default() {
        Statistic::Every => {
            for (row, value) in chosen.iter().zip(values(&chosen)) {
                laws.holds(expected.holds(value), || {
                    format!("{column} is {value}, expected {limits}, in {}", row.cell())
                });
            }
        }
        Statistic::Median => {
            let mut value = median(values(&chosen));
            if let Some(over) = &expected.over {
                value /= median(values(&select(columns, rows, over)));
            }
            laws.holds(expected.holds(value), || {
                format!("the median of {column} is {value}, expected {limits}")
            });
        }
        Statistic::Count => {
            let count = chosen.iter().filter(|row| !row.get(columns, column).is_empty()).count();
            laws.holds(expected.holds(count as f64), || {
                format!("{count} rows have {column}, expected {limits}")
            });
        }
    }
}

fn select<'r>(columns: &[Column], rows: &[&'r Line], selection: &Table) -> Vec<&'r Line> {
    let is_meant = |row: &&&Line| selects(selection, |column| row.get(columns, column));
    rows.iter().filter(is_meant).copied().collect()
}

/// The median; NaN, which satisfies no bound, if there is no value.
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

    #[test]
    fn bounds_hold_or_say_what_was_found() {
        let columns = ["study", "cell", "rank", "inflation", "settings", "err"]
            .map(|name| Column { name, ..Column::default() });
        let rows = [["4", "1"], ["4", "3"], ["4", ""], ["8", "1.5"]]
            .map(|[rank, value]| Line::from_iter(["s", "a", rank, value, "12", ""]));
        let rows: Vec<&Line> = rows.iter().collect();
        let breaches = |of, rank: &str, over: Option<&str>, least, most| {
            let rank_of = |rank: &str| rank.parse::<f64>().unwrap().into();
            let pick = |rank: &str| Table::from_iter([("rank".to_owned(), rank_of(rank))]);
            let expected = Expected {
                what: "w".to_owned(),
                rows: pick(rank),
                over: over.map(pick),
                column: "inflation".to_owned(),
                of: Some(of),
                least,
                most,
            };
            let mut found = InvariantChecker::default();
            hold(&expected, &columns, &rows, &mut found);
            found.breaches.len()
        };
        assert_eq!(breaches(Statistic::Every, "4", None, Some(1.0), None), 0);
        assert_eq!(breaches(Statistic::Every, "4.0", None, None, Some(2.0)), 2, "3 and none");
        assert_eq!(breaches(Statistic::Median, "4", None, Some(3.0), Some(3.0)), 0);
        assert_eq!(breaches(Statistic::Median, "4", Some("8"), Some(2.0), Some(2.0)), 0);
        assert_eq!(breaches(Statistic::Count, "4", None, Some(2.0), Some(2.0)), 0);
        assert_eq!(breaches(Statistic::Count, "4", None, Some(3.0), None), 1);
        assert_eq!(breaches(Statistic::Every, "16", None, Some(0.0), None), 1, "no row matches");
    }
}

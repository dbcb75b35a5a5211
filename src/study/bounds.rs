//! Checks of rows against the bounds that a definition expects.

use super::definition::{Expected, Selection, Statistic};
use crate::record::{Column, InvariantChecker, Line};

/// Checks rows with the columns `columns` against one bound of the definition.
pub(super) fn hold(
    expected: &Expected,
    columns: &[Column],
    rows: &[&Line],
    laws: &mut InvariantChecker,
) {
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
    let limits = match (expected.bound.least, expected.bound.most) {
        (Some(least), Some(most)) => format!("{least} to {most}"),
        (Some(least), None) => format!("at least {least}"),
        (None, most) => format!("at most {}", most.unwrap_or(f64::INFINITY)),
    };
    match expected.of {
        Statistic::Every => {
            for (row, value) in chosen.iter().zip(values(&chosen)) {
                laws.holds(expected.bound.holds(value), || {
                    format!("{column} is {value}, expected {limits}, in {}", row.cell())
                });
            }
        }
        Statistic::Median => {
            let mut value = median(values(&chosen));
            if let Some(over) = &expected.over {
                value /= median(values(&select(columns, rows, over)));
            }
            laws.holds(expected.bound.holds(value), || {
                format!("the median of {column} is {value}, expected {limits}")
            });
        }
        Statistic::Count => {
            let count = chosen.iter().filter(|row| !row.get(columns, column).is_empty()).count();
            laws.holds(expected.bound.holds(count as f64), || {
                format!("{count} rows have {column}, expected {limits}")
            });
        }
    }
}

fn select<'r>(columns: &[Column], rows: &[&'r Line], selection: &Selection) -> Vec<&'r Line> {
    let same = |field: &str, value: &str| {
        field == value
            || matches!((field.parse::<f64>(), value.parse::<f64>()), (Ok(a), Ok(b)) if a == b)
    };
    let meant = |row: &&&Line| {
        selection.0.iter().all(|(column, values)| {
            values.iter().any(|value| same(row.get(columns, column), value))
        })
    };
    rows.iter().filter(meant).copied().collect()
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
    use crate::study::Bound;

    #[test]
    fn bounds_hold_or_say_what_was_found() {
        let columns = ["study", "cell", "rank", "inflation", "settings", "err"]
            .map(|name| Column { name, ..Column::default() });
        let rows = [["4", "1"], ["4", "3"], ["4", ""], ["8", "1.5"]]
            .map(|[rank, value]| Line::from_iter(["s", "a", rank, value, "12", ""]));
        let rows: Vec<&Line> = rows.iter().collect();
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

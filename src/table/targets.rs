//! What a row's target is called: its family with the parameters that it was given.

use polars::prelude::{Column, DataFrame, IntoColumn, NamedFrom, PolarsResult, Series};

use super::columns::{numbers, words};

/// The columns of parameters, with the symbol that each is known by.
const PARAMETERS: [(&str, &str); 9] = [
    ("window", "w"),
    ("tau", "τ"),
    ("alpha", "α"),
    ("sigma", "σ"),
    ("k", "k"),
    ("m", "m"),
    ("c", "c"),
    ("vocabulary", "vocabulary"),
    ("lambda", "λ"),
];

/// The column `label`: of every row the family and its parameters, `dirichlet-band, w = 32`.
pub(super) fn label_column(rows: &DataFrame) -> PolarsResult<Column> {
    Ok(Series::new("label".into(), labels(rows)?).into_column())
}

/// The column `support`: how many columns a row's target is spread over: its window, m or k, as given.
pub(super) fn support_column(rows: &DataFrame) -> PolarsResult<Column> {
    let column = |name: &str| numbers(rows, name).unwrap_or_else(|_| vec![None; rows.height()]);
    let widths = column("m").into_iter().zip(column("k")).zip(column("window"));
    let supports: Vec<Option<i64>> =
        widths.map(|((m, k), window)| Some(m.or(k).or(window)? as i64)).collect();
    Ok(Series::new("support".into(), supports).into_column())
}

fn labels(rows: &DataFrame) -> PolarsResult<Vec<String>> {
    let mut labels: Vec<String> =
        words(rows, "family")?.into_iter().map(Option::unwrap_or_default).collect();
    if let (Ok(local), Ok(global)) = (words(rows, "local"), words(rows, "global")) {
        for (label, parts) in labels.iter_mut().zip(local.into_iter().zip(global)) {
            if let (Some(local), Some(global)) = parts {
                label.push_str(&format!(" of {local} and {global}"));
            }
        }
    }
    if let Ok(shuffled) = words(rows, "of") {
        for (label, of) in labels.iter_mut().zip(shuffled) {
            label.extend(of.map(|of| format!(" {of}")));
        }
    }
    for (column, symbol) in PARAMETERS {
        let Ok(values) = numbers(rows, column) else { continue };
        for (label, value) in labels.iter_mut().zip(values) {
            if let Some(value) = value {
                label.push_str(&format!(", {symbol} = {value}"));
            }
        }
    }
    // Without a mask is what needs saying: most are causal.
    if let Ok(visibilities) = words(rows, "visibility") {
        for (label, visibility) in labels.iter_mut().zip(visibilities) {
            if visibility.as_deref() == Some("bidirectional") {
                label.push_str(", no mask");
            }
        }
    }
    Ok(labels)
}

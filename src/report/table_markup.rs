//! Tables as HTML: sortable cells, notes, links to the files; grids of heads.

use std::collections::BTreeSet;

use maud::{Markup, html};

use super::section::Section;
use crate::table::{Align, Cell, Table, plural};

/// On a page without links to files, tables with more rows than this are folded.
const LONG: usize = 12;
/// Maximum number of rows of a table on the page; the file has all rows.
const MOST_ROWS: usize = 20;
/// Text with more characters than this may be wrapped.
const LONG_WORDS: usize = 24;

/// Table number `at` of a study. In the report every table is folded, on other pages only long ones.
pub(super) fn folded(section: &Section, table: &Table, at: usize) -> Markup {
    let id = format!("{}-table-{at}", section.study);
    html! {
        @if table.rows().len() > LONG || !section.rows_link.is_empty() {
            details {
                summary { "Table: " (table.title) " (" (plural(table.rows().len(), "row")) ")" }
                (body(section, table, &id))
            }
        } @else {
            h3 { (table.title) }
            (body(section, table, &id))
        }
    }
}

/// A link to the rows of a study.
pub(super) fn rows_link(section: &Section) -> Markup {
    html! { a href=(section.rows_address()) { "rows.csv" } }
}

/// The table's cells, its notes and the links to its files.
fn body(section: &Section, table: &Table, id: &str) -> Markup {
    let (constant, set): (Vec<usize>, Vec<usize>) =
        (0..table.columns.len()).partition(|&at| is_constant(table, at));
    let classes: Vec<Option<&str>> = set.iter().map(|&at| class(table, at)).collect();
    // If there is no file with all rows, the page shows all of them.
    let most = if section.rows_link.is_empty() { usize::MAX } else { MOST_ROWS };
    html! {
        div.wide tabindex="0" role="region" aria-label=(table.title) id=(id) {
            table {
                thead { tr {
                    @for (&at, class) in set.iter().zip(&classes) {
                        th scope="col" class=[class] { (table.columns[at].heading) }
                    }
                } }
                tbody {
                    @for row in table.rows().iter().take(most) {
                        tr {
                            @for (&at, class) in set.iter().zip(&classes) {
                                td class=[class] data-value=[value(&row[at])] { (words(&row[at])) }
                            }
                        }
                    }
                }
            }
        }
        @if let Some(told) = in_all_rows(table, &constant) { p.note { (told) } }
        @for note in &table.notes { p.note { (note) } }
        @if !section.rows_link.is_empty() {
            p.files {
                @if table.rows().len() > most {
                    "The first " (most) " of " (table.rows().len()) " rows. All rows: "
                } @else { "As a file: " }
                a href=(section.table_link(&table.name)) { (table.name) ".csv" }
                ", computed from " (rows_link(section))
            }
        }
    }
}

/// The head and body of a table of heads, one row per layer and one column per head. `places` has the layer and head of
/// each; `cell` returns the cell of the head with this index.
pub(super) fn grid(places: &[(usize, usize)], cell: impl Fn(usize) -> Markup) -> Markup {
    let layers: BTreeSet<usize> = places.iter().map(|(layer, _)| *layer).collect();
    let heads: BTreeSet<usize> = places.iter().map(|(_, head)| *head).collect();
    html! {
        thead { tr {
            th scope="col" { "layer" }
            @for head in &heads { th scope="col" { (head) } }
        } }
        tbody {
            @for &layer in &layers {
                tr {
                    th scope="row" { (layer) }
                    @for &head in &heads {
                        @match places.iter().position(|place| *place == (layer, head)) {
                            Some(at) => (cell(at)),
                            None => td { "–" },
                        }
                    }
                }
            }
        }
    }
}

/// Whether column `at` has the same value in several rows, so that it moves to a note.
fn is_constant(table: &Table, at: usize) -> bool {
    let [first, others @ ..] = table.rows() else { return false };
    !others.is_empty() && others.iter().all(|row| row[at] == first[at])
}

/// Note on the columns with one value: `Equal in all rows: n = 256; steps = 6000.`
fn in_all_rows(table: &Table, constant: &[usize]) -> Option<String> {
    let row = table.rows().first()?;
    let values = constant.iter().map(|&at| {
        let heading = &table.columns[at].heading;
        match &row[at] {
            Cell::Missing => format!("{heading} missing"),
            cell => format!("{heading} = {}", cell.shown()),
        }
    });
    let told: Vec<String> = values.collect();
    (!told.is_empty()).then(|| format!("Equal in all rows: {}.", told.join("; ")))
}

/// CSS class of the cells of column `at`; numbers, the most common type, have none.
fn class(table: &Table, at: usize) -> Option<&'static str> {
    let long = |row: &Vec<Cell>| row[at].shown().chars().count() > LONG_WORDS;
    match table.columns[at].align {
        Align::Right => None,
        Align::Left if table.rows().iter().any(long) => Some("words long"),
        Align::Left => Some("words"),
    }
}

/// Text of a cell. A range is below its median, which makes tables narrower.
fn words(cell: &Cell) -> Markup {
    let shown = cell.shown();
    let range = match cell {
        Cell::Over { .. } => shown.split_once(" ("),
        _ => None,
    };
    html! {
        @match range {
            Some((median, range)) => { (median) br; "(" (range) }
            None => { (shown) }
        }
    }
}

/// Sort key of a cell, with the digits of a float32; for a range, its median.
fn value(cell: &Cell) -> Option<String> {
    let value = match cell {
        Cell::Integer(value) => return Some(value.to_string()),
        Cell::Setting(value) | Cell::Number { value, .. } => *value,
        Cell::Over { spread, .. } => spread.median,
        Cell::Text(_) | Cell::Missing => return None,
    };
    match value {
        f64::INFINITY => Some("Infinity".to_owned()),
        f64::NEG_INFINITY => Some("-Infinity".to_owned()),
        value if value.is_nan() => None,
        value => Some((value as f32).to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::{in_all_rows, is_constant, value};
    use crate::table::{Cell, Spread, Table};

    #[test]
    fn what_all_rows_share_is_constant() {
        let table = |runs: &[&'static str]| {
            Table::from_items("t", "T", runs)
                .words("run", "run", |run| *run)
                .numbers("n", "n (tokens)", |_| 64_usize)
                .numbers("loss", "loss", |_| Cell::Missing)
                .build()
        };
        let constant = |table: &Table| [0, 1, 2].map(|column| is_constant(table, column));
        assert_eq!(constant(&table(&["a"])), [false; 3], "a single row stays whole");
        let two_rows = table(&["a", "b"]);
        assert_eq!(constant(&two_rows), [false, true, true]);
        let said = in_all_rows(&two_rows, &[1, 2]).unwrap();
        assert!(said.contains("n (tokens) = 64; loss missing"), "{said}");
    }

    #[test]
    fn cells_are_sorted_by_more_than_is_shown() {
        for (cell, expected) in [
            (Cell::from(3_usize), Some("3")),
            (Cell::Setting(0.13), Some("0.13")),
            (Cell::from(0.123_456_789), Some("0.12345679")),
            (Cell::from(1e-7), Some("0.0000001")),
            (Cell::from(Spread::of([3.0, 1.5, 9.0])), Some("3")),
            (Cell::from(f64::NEG_INFINITY), Some("-Infinity")),
            (Cell::from(f64::NAN), None),
            (Cell::from("12"), None),
            (Cell::Missing, None),
        ] {
            assert_eq!(value(&cell).as_deref(), expected, "{cell:?}");
        }
    }
}

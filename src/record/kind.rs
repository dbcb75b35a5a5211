//! The rows of a study: the key of a cell, its measurement, and the columns of both.

use std::fmt::Debug;

use super::column::{Column, ColumnKind, Fields, Header};
use super::invariants::InvariantChecker;
use super::line::Line;
use super::row_record::{Record, columns_of};

/// One measurement of a cell, as columns of its row.
pub trait Measurement: Record + Clone + Debug + PartialEq + Send + Sync + 'static {
    /// The columns that identify the cell; they come before those of the measurement.
    type Key: Record + Clone + Debug + PartialEq + Send + Sync;

    /// The value of `kind` in definitions.
    const NAME: &'static str;

    /// Raised when the meaning or the method of the measurement changes, so that older rows are measured again.
    const VERSION: u32;

    /// The outcome of the measurement in one word; empty if the kind has no outcome.
    fn outcome(&self) -> String {
        String::new()
    }

    /// Checks the invariants of one row.
    fn check_row(row: &Row<Self>, check: &mut InvariantChecker);

    /// Checks the invariants of the rows of one cell, which are in order.
    fn check_cell(_rows: &[Row<Self>], _check: &mut InvariantChecker) {}
}

/// A row: one measurement of a cell.
#[derive(Clone, Debug, PartialEq)]
pub struct Row<M: Measurement> {
    /// The study; it includes the name of the text, if any.
    pub study: String,
    /// The key of the cell within the study.
    pub cell: String,
    /// Identifies the cell.
    pub of: M::Key,
    /// The measurement.
    pub found: M,
    /// A hash of all settings that the measurement depends on.
    pub settings: String,
}

impl<M: Measurement> Row<M> {
    /// Reads the row of a cell that did not fail.
    ///
    /// # Errors
    /// A sentence that names a column whose value is missing or invalid.
    pub(super) fn read(from: &Fields<'_>) -> Result<Self, String> {
        Ok(Self {
            study: Record::read(STUDY.name, from)?,
            cell: Record::read(CELL.name, from)?,
            of: Record::read("", from)?,
            found: Record::read("", from)?,
            settings: Record::read(SETTINGS.name, from)?,
        })
    }
}

/// Reads lines as rows of the kind `M`. Lines of failed cells are skipped. An error holds the cell and the reason.
pub fn rows_of<'l, M: Measurement>(
    lines: impl Iterator<Item = &'l Line>,
) -> impl Iterator<Item = Result<Row<M>, (String, String)>> {
    let names: csv::StringRecord = columns::<M>().iter().map(|column| column.name).collect();
    let header = Header::read(&names).expect("no two columns of a kind have one name");
    lines.filter(|line| line.err().is_empty()).map(move |line| {
        Row::read(&header.fields(line.record())).map_err(|why| (line.cell().to_owned(), why))
    })
}

/// Checks the invariants of every row and of the rows of each cell. Returns the rows; a line that is not a valid row
/// counts as a breach.
#[cfg(feature = "study")]
pub(crate) fn check_rows<'l, M: Measurement>(
    lines: impl Iterator<Item = &'l Line>,
    check: &mut InvariantChecker,
) -> Vec<Row<M>> {
    let mut rows: Vec<Row<M>> = Vec::new();
    for row in rows_of(lines) {
        match row {
            Ok(row) => rows.push(row),
            Err((cell, why)) => {
                check.at(cell);
                check.holds(false, || why);
            }
        }
    }
    for cell in rows.chunk_by(|one, next| one.cell == next.cell) {
        for row in cell {
            check.at(&*row.cell);
            M::check_row(row, check);
        }
        check.at(&*cell[0].cell);
        M::check_cell(cell, check);
    }
    rows
}

const STUDY: Column =
    Column { about: "the study, with the text's name if it used one", ..named("study") };
const CELL: Column = Column { about: "the row's key", ..named("cell") };
const SETTINGS: Column =
    Column { about: "a hash of every setting of the configuration", ..named("settings") };
const ERR: Column =
    Column { about: "why the configuration failed; empty if it did not", ..named("err") };

const fn named(name: &'static str) -> Column {
    Column { name, kind: ColumnKind::Text, unit: None, about: "", needed: true }
}

/// The columns of a kind's `rows.csv`: study, cell, the cell's key, its measurement, settings and error.
pub fn columns<M: Measurement>() -> Vec<Column> {
    let mut all = vec![STUDY, CELL];
    all.extend(columns_of::<M::Key>());
    all.extend(columns_of::<M>());
    all.extend([SETTINGS, ERR]);
    all
}

/// The line of a measured cell, or of a failed one with its error.
pub fn line<M: Measurement>(
    study: &str,
    cell: &str,
    of: &M::Key,
    found: Result<&M, &str>,
    settings: &str,
) -> Line {
    let mut fields = vec![study.to_owned(), cell.to_owned()];
    of.write(&mut fields);
    let nothing: Option<M> = None;
    match found {
        Ok(found) => found.write(&mut fields),
        Err(_) => nothing.write(&mut fields),
    }
    fields.push(settings.to_owned());
    fields.push(found.err().unwrap_or_default().to_owned());
    fields.into_iter().collect()
}

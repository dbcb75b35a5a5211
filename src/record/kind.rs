//! The rows of a study: what identifies a cell, what was measured of it, and the columns of both.

use std::fmt::Debug;

use super::column::{Column, ColumnKind};
use super::fields::{Fields, Header};
use super::invariants::InvariantChecker;
use super::line::Line;
use super::row_record::{Record, columns_of};

/// One measurement of a cell, as columns of its row.
pub trait Measurement: Record + Clone + Debug + PartialEq + Send + Sync + 'static {
    /// Identifies the cell, in columns before those of the measurement.
    type Key: Record + Clone + Debug + PartialEq + Send + Sync;

    /// The key `kind` of definitions.
    const NAME: &'static str;

    /// Raised when the meaning or the method of the measurement changes, so that rows of before are measured
    /// again.
    const VERSION: u32;

    /// How the measurement ended, in one word; empty if the kind has no outcome.
    fn outcome(&self) -> String {
        String::new()
    }

    /// Checks what is true of every row.
    fn check_row(row: &Row<Self>, check: &mut InvariantChecker);

    /// Checks what is true of the rows of one cell, in order.
    fn check_cell(_rows: &[Row<Self>], _check: &mut InvariantChecker) {}
}

/// A row: one measurement of a cell.
#[derive(Clone, Debug, PartialEq)]
pub struct Row<M: Measurement> {
    /// The study, with its text's name where it has one.
    pub study: String,
    /// The cell's key there.
    pub cell: String,
    /// Identifies the cell.
    pub of: M::Key,
    /// The measurement.
    pub found: M,
    /// A hash of all that it was measured with.
    pub settings: String,
}

impl<M: Measurement> Row<M> {
    /// Reads the row of a cell that did not fail.
    ///
    /// # Errors
    /// In words, a value that is missing or none of its kind, with its column.
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

/// Reads lines of a kind as its rows, each with its cell and, where it is none, why; those of cells that failed
/// are passed over.
pub fn rows_of<'l, M: Measurement>(
    lines: impl Iterator<Item = &'l Line>,
) -> impl Iterator<Item = Result<Row<M>, (String, String)>> {
    let names: csv::StringRecord = columns::<M>().iter().map(|column| column.name).collect();
    let header = Header::read(&names).expect("no two columns of a kind have one name");
    lines.filter(|line| line.err().is_empty()).map(move |line| {
        Row::read(&header.fields(line.record())).map_err(|why| (line.cell().to_owned(), why))
    })
}

/// Checks what is true of every row, and of the rows of each cell. Returns the rows; a line that is no row is a check that
/// does not hold.
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

/// The columns of a kind's `rows.csv`: study, cell, what the cell is, what it measured, settings and error.
pub fn columns<M: Measurement>() -> Vec<Column> {
    let mut all = vec![STUDY, CELL];
    all.extend(columns_of::<M::Key>());
    all.extend(columns_of::<M>());
    all.extend([SETTINGS, ERR]);
    all
}

/// The line of what a cell measured, or of a cell that failed, with its error.
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

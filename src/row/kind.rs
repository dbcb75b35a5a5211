//! What every kind of study's rows have in common.

use std::fmt::Debug;

use super::column::{Column, ColumnKind};
use super::fields::{Fields, Header};
use super::laws::Laws;
use super::line::Line;
use super::part::{Part, columns_of_record};

/// A kind of rows: what a cell measures, in columns.
pub trait Kind: Part + Clone + Debug + PartialEq + Send + Sync + 'static {
    /// What tells a cell from others, in columns before those of what it measures.
    type Of: Part + Clone + Debug + PartialEq + Send + Sync;

    /// The kind as definitions name it.
    const NAME: &'static str;

    /// Raised when the meaning or the method of the measurement changes, so that rows of before are measured
    /// again.
    const VERSION: u32;

    /// How the measurement ended, in a word, where that is told.
    fn outcome(&self) -> String {
        String::new()
    }

    /// Holds a row to what is true of every one of its kind.
    fn laws(row: &Row<Self>, laws: &mut Laws);

    /// Holds the rows of one cell, in order, to what is true of them together.
    fn laws_of_cell(_rows: &[Row<Self>], _laws: &mut Laws) {}
}

/// What a cell measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Row<K: Kind> {
    /// The study, with its text's name where it has one.
    pub study: String,
    /// The cell's key there.
    pub cell: String,
    /// What tells the cell from others.
    pub of: K::Of,
    /// What was found.
    pub found: K,
    /// A hash of all that it was measured with.
    pub settings: String,
}

impl<K: Kind> Row<K> {
    /// Reads the row of a cell that did not fail.
    ///
    /// # Errors
    /// In words, a value that is missing or none of its kind, with its column.
    pub(super) fn read(from: &Fields<'_>) -> Result<Self, String> {
        Ok(Self {
            study: Part::read(STUDY.name, from)?,
            cell: Part::read(CELL.name, from)?,
            of: Part::read("", from)?,
            found: Part::read("", from)?,
            settings: Part::read(SETTINGS.name, from)?,
        })
    }
}

/// Reads lines of a kind as its rows, each with its cell and, where it is none, why; those of cells that failed
/// are passed over.
pub fn rows_of<'l, K: Kind>(
    lines: impl Iterator<Item = &'l Line>,
) -> impl Iterator<Item = Result<Row<K>, (String, String)>> {
    let names: csv::StringRecord = columns::<K>().iter().map(|column| column.name).collect();
    let header = Header::read(&names).expect("no two columns of a kind have one name");
    lines.filter(|line| line.err().is_empty()).map(move |line| {
        Row::read(&header.fields(line.record())).map_err(|why| (line.cell().to_owned(), why))
    })
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
pub fn columns<K: Kind>() -> Vec<Column> {
    let mut all = vec![STUDY, CELL];
    all.extend(columns_of_record::<K::Of>());
    all.extend(columns_of_record::<K>());
    all.extend([SETTINGS, ERR]);
    all
}

/// The line of what a cell measured, or of a cell that failed, with its error.
pub fn line<K: Kind>(
    study: &str,
    cell: &str,
    of: &K::Of,
    found: Result<&K, &str>,
    settings: &str,
) -> Line {
    let mut fields = vec![study.to_owned(), cell.to_owned()];
    of.write(&mut fields);
    let nothing: Option<K> = None;
    match found {
        Ok(found) => found.write(&mut fields),
        Err(_) => nothing.write(&mut fields),
    }
    fields.push(settings.to_owned());
    fields.push(found.err().unwrap_or_default().to_owned());
    fields.into_iter().collect()
}

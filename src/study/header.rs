//! The header of a file of rows: which column each field of a line is.

use super::row::Row;
use super::schema::Columns;

/// What no rows are without: which cell a row is of, what it was measured with, and its error.
const NEEDED: [&str; 4] = ["study", "cell", "settings", "err"];

/// The columns of a file, in its own order: all of today's, or those there were before some were
/// added. Rows outlive a new column, in which they have nothing.
pub(super) struct Header(Vec<&'static str>);

impl Header {
    /// The header in `record`, each of whose names must be one of `columns`.
    ///
    /// # Errors
    /// In words, for a name that is unknown, or there twice, and for a needed one that is missing.
    pub fn read(record: &csv::StringRecord, columns: &Columns) -> Result<Self, String> {
        let known = |name: &str| columns.iter().map(|(column, _)| *column).find(|c| *c == name);
        let mut names: Vec<&'static str> = Vec::with_capacity(record.len());
        for name in record {
            let another = known(name).filter(|name| !names.contains(name));
            names.push(another.ok_or_else(|| wrong(columns))?);
        }
        if NEEDED.iter().all(|needed| names.contains(needed)) {
            Ok(Self(names))
        } else {
            Err(wrong(columns))
        }
    }

    /// The row in `record`; none where it has another number of fields.
    pub fn row(&self, record: &csv::StringRecord) -> Option<Row> {
        (record.len() == self.0.len()).then(|| Row::from_fields(&self.0, record.iter()))
    }

    fn is_of(&self, columns: &Columns) -> bool {
        self.0.iter().eq(columns.iter().map(|(name, _)| name))
    }
}

fn wrong(columns: &Columns) -> String {
    let first: Vec<&str> = columns.iter().take(4).map(|(name, _)| *name).collect();
    format!("its header is not that of this kind of study (expected {}, …)", first.join(", "))
}

/// A file of rows and of lines that are none, with today's columns. Lines are read one at a time,
/// so that one cut off within quotes takes none of the others with it; those that are no rows stay
/// as they are.
///
/// # Errors
/// As [`Header::read`].
pub(super) fn brought_up_to_date(text: &str, columns: &Columns) -> Result<String, String> {
    let mut lines = text.split_inclusive('\n');
    let first = lines.next().and_then(record).unwrap_or_default();
    let header = Header::read(&first, columns)?;
    if header.is_of(columns) {
        return Ok(text.to_owned());
    }
    let names: csv::StringRecord = columns.iter().map(|(name, _)| *name).collect();
    let mut whole = line(&names)?;
    for old in lines {
        match record(old).and_then(|record| header.row(&record)) {
            Some(row) => whole.push_str(&line(&row.fields(columns).into())?),
            None => whole.push_str(old),
        }
    }
    Ok(whole)
}

/// The one record of a line.
fn record(line: &str) -> Option<csv::StringRecord> {
    csv::ReaderBuilder::new().has_headers(false).from_reader(line.as_bytes()).records().next()?.ok()
}

fn line(record: &csv::StringRecord) -> Result<String, String> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(record).map_err(|error| error.to_string())?;
    let bytes = writer.into_inner().map_err(|error| error.to_string())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::super::schema::ColumnKind::{Integer, Text};
    use super::*;

    const COLUMNS: &Columns =
        &[("study", Text), ("cell", Text), ("c", Integer), ("settings", Text), ("err", Text)];

    fn read(header: &str) -> Result<Header, String> {
        Header::read(&record(header).unwrap(), COLUMNS)
    }

    #[test]
    fn a_row_of_before_a_column_has_nothing_in_it() {
        let header = read("study,cell,settings,err\n").unwrap();
        let row = header.row(&record("s,a,12,bad\n").unwrap()).unwrap();
        assert_eq!(row.fields(COLUMNS), ["s", "a", "", "12", "bad"]);
        assert!(header.row(&record("s,a,12\n").unwrap()).is_none());
    }

    #[test]
    fn another_files_header_is_refused() {
        for header in [
            "study,cell,c,settings",
            "study,cell,c,settings,err,window",
            "study,cell,cell,settings,err",
            "a,b",
        ] {
            let error = read(header).err().unwrap();
            assert!(error.contains("expected study, cell, c, settings"), "{header}: {error}");
        }
    }

    #[test]
    fn old_lines_get_the_new_columns_and_damaged_ones_stay() {
        let old = "study,cell,settings,err\ns,\"a,1\",12,\ns,\"b,2\ns,c,13,bad\n";
        let new = brought_up_to_date(old, COLUMNS).unwrap();
        assert_eq!(new, "study,cell,c,settings,err\ns,\"a,1\",,12,\ns,\"b,2\ns,c,,13,bad\n",);
        assert_eq!(brought_up_to_date(&new, COLUMNS).unwrap(), new);
    }
}

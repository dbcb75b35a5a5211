//! Header of a file of rows: maps the fields of a line to columns.

use crate::record::{Column, Header, Line};

/// Columns that every file of rows has.
const NEEDED: [&str; 4] = ["study", "cell", "settings", "err"];

/// Reads a header with its columns in any order. Columns that were added later may be missing; rows of older files have
/// no value in them.
///
/// # Errors
/// A message in words if a name is unknown or occurs twice, or a needed name is missing.
pub(super) fn read(record: &csv::StringRecord, columns: &[Column]) -> Result<Header, String> {
    let known = |name: &str| columns.iter().any(|column| column.name == name);
    let header = Header::read(record)?;
    let is_there = |name: &&str| record.iter().any(|other| other == *name);
    match record.iter().all(known) && NEEDED.iter().all(is_there) {
        true => Ok(header),
        false => Err(wrong(columns)),
    }
}

/// Returns the line in `record`, or `None` if it has another number of fields.
pub(super) fn line_of(
    header: &Header,
    record: &csv::StringRecord,
    columns: &[Column],
) -> Option<Line> {
    (record.len() == header.count()).then(|| Line::from_record(header, record, columns))
}

fn wrong(columns: &[Column]) -> String {
    let first: Vec<&str> = columns.iter().take(4).map(|column| column.name).collect();
    format!("its header is not that of this kind of study (expected {}, …)", first.join(", "))
}

/// Rewrites a file of rows with the current columns. Lines are read one at a time, so that a line cut off within quotes
/// does not affect the next ones. Lines that are not valid rows stay as they are.
///
/// # Errors
/// As [`read`].
pub(super) fn brought_up_to_date(text: &str, columns: &[Column]) -> Result<String, String> {
    let mut lines = text.split_inclusive('\n');
    let first = lines.next().and_then(record).unwrap_or_default();
    let header = read(&first, columns)?;
    let names: csv::StringRecord = columns.iter().map(|column| column.name).collect();
    if first == names {
        return Ok(text.to_owned());
    }
    let mut whole = line(&names)?;
    for old in lines {
        match record(old).and_then(|record| line_of(&header, &record, columns)) {
            Some(row) => whole.push_str(&line(row.record())?),
            None => whole.push_str(old),
        }
    }
    Ok(whole)
}

/// Parses a line with the current columns; `None` if it has another number of fields.
pub(super) fn row_of(line: &str, columns: &[Column]) -> Option<Line> {
    record(line)
        .filter(|record| record.len() == columns.len())
        .map(|record| record.iter().collect())
}

/// Parses a line as one CSV record.
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
    use super::*;

    fn columns() -> Vec<Column> {
        let column = |name| Column { name, ..Column::default() };
        ["study", "cell", "c", "settings", "err"].map(column).to_vec()
    }

    fn header(text: &str) -> Result<Header, String> {
        read(&record(text).unwrap(), &columns())
    }

    #[test]
    fn a_row_of_before_a_column_has_nothing_in_it() {
        let header = header("study,cell,settings,err\n").unwrap();
        let row = line_of(&header, &record("s,a,12,bad\n").unwrap(), &columns()).unwrap();
        assert!(row.fields().eq(["s", "a", "", "12", "bad"]));
        assert!(line_of(&header, &record("s,a,12\n").unwrap(), &columns()).is_none());
    }

    #[test]
    fn another_files_header_is_refused() {
        for (text, part) in [
            ("study,cell,c,settings", "expected study, cell, c, settings"),
            ("study,cell,c,settings,err,window", "expected study, cell, c, settings"),
            ("study,cell,cell,settings,err", "names cell twice"),
            ("a,b", "expected study, cell, c, settings"),
        ] {
            let error = header(text).err().unwrap();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn old_lines_get_the_new_columns_and_damaged_ones_stay() {
        let old = "study,cell,settings,err\ns,\"a,1\",12,\ns,\"b,2\ns,c,13,bad\n";
        let new = brought_up_to_date(old, &columns()).unwrap();
        assert_eq!(new, "study,cell,c,settings,err\ns,\"a,1\",,12,\ns,\"b,2\ns,c,,13,bad\n",);
        assert_eq!(brought_up_to_date(&new, &columns()).unwrap(), new);
    }
}

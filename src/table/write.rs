//! Tables as CSV and Parquet for programs, and as Markdown for people.

use std::fmt::Write as _;

use polars::prelude::{DataFrame, IntoColumn, NamedFrom, ParquetWriter, Series};

use super::TableError;
use crate::system::printable;
use crate::table::{Align, Cell, Table};

impl Table {
    /// Formats the table as CSV: numbers in full, missing values empty. A column of spreads over seeds becomes three
    /// columns: `NAME`, `NAME_min`, `NAME_max`.
    pub fn to_csv(&self) -> String {
        let (header, rows) = self.flat();
        let mut writer = csv::Writer::from_writer(Vec::new());
        for record in std::iter::once(&header).chain(&rows) {
            // Records of one length, written to memory, cannot fail.
            writer.write_record(record).expect("records of one length");
        }
        let bytes = writer.into_inner().expect("written to memory");
        String::from_utf8(bytes).expect("made of text")
    }

    /// Writes the columns of the CSV as Parquet: numbers as float64, words as text, missing values as null.
    ///
    /// # Errors
    /// [`TableError::Frame`] if polars cannot write them.
    pub fn to_parquet(&self) -> Result<Vec<u8>, TableError> {
        let (header, rows) = self.flat();
        let is_words = |name: &str| {
            self.columns.iter().any(|column| column.name == name && column.align == Align::Left)
        };
        let columns = header.iter().enumerate().map(|(at, name)| {
            let fields =
                rows.iter().map(|row| row[at].as_str()).map(|f| (!f.is_empty()).then_some(f));
            let series = if is_words(name) {
                Series::new(name.as_str().into(), fields.collect::<Vec<_>>())
            } else {
                let number = |field: Option<&str>| field.and_then(|f| f.parse::<f64>().ok());
                Series::new(name.as_str().into(), fields.map(number).collect::<Vec<_>>())
            };
            series.into_column()
        });
        let fault = |source| TableError::Frame { name: self.name.clone(), source };
        let mut frame = DataFrame::new(rows.len(), columns.collect()).map_err(fault)?;
        let mut bytes = Vec::new();
        ParquetWriter::new(&mut bytes).finish(&mut frame).map_err(fault)?;
        Ok(bytes)
    }

    /// Returns the header and the fields of every row; a spread has three columns.
    fn flat(&self) -> (Vec<String>, Vec<Vec<String>>) {
        let wide: Vec<bool> = (0..self.columns.len())
            .map(|at| self.rows().iter().any(|row| matches!(row[at], Cell::Over { .. })))
            .collect();
        let mut header = Vec::new();
        for (column, &wide) in self.columns.iter().zip(&wide) {
            header.push(column.name.clone());
            if wide {
                header.extend([format!("{}_min", column.name), format!("{}_max", column.name)]);
            }
        }
        let flat_row = |row: &Vec<Cell>| {
            row.iter().zip(&wide).flat_map(|(cell, &wide)| fields(cell, wide)).collect()
        };
        (header, self.rows().iter().map(flat_row).collect())
    }

    /// Formats the table as Markdown: a heading, the cells with their significant digits, the notes.
    pub fn to_markdown(&self) -> String {
        let mut text = format!("### {}\n\n", self.title);
        let headings = self.columns.iter().map(|column| escape(&column.heading));
        text.push_str(&markdown_line(headings));
        text.push_str(&markdown_line(self.columns.iter().map(|column| match column.align {
            Align::Left => ":--".to_owned(),
            Align::Right => "--:".to_owned(),
        })));
        for row in self.rows() {
            text.push_str(&markdown_line(row.iter().map(|cell| escape(&cell.shown()))));
        }
        for note in &self.notes {
            let _ = write!(text, "\n{note}\n");
        }
        text
    }
}

fn fields(cell: &Cell, wide: bool) -> Vec<String> {
    let first = match cell {
        Cell::Text(text) => text.clone(),
        Cell::Integer(value) => value.to_string(),
        Cell::Number { value, .. } | Cell::Setting(value) => value.to_string(),
        Cell::Over { spread, .. } => {
            return [spread.median, spread.low, spread.high].map(|v| v.to_string()).to_vec();
        }
        Cell::Missing => String::new(),
    };
    let mut fields = vec![first];
    fields.resize(if wide { 3 } else { 1 }, String::new());
    fields
}

fn markdown_line(cells: impl Iterator<Item = String>) -> String {
    let cells: Vec<String> = cells.collect();
    format!("| {} |\n", cells.join(" | "))
}

/// Escapes a cell for Markdown: it stays in its line and column, and forms no HTML element, link or image.
fn escape(text: &str) -> String {
    let text =
        text.replace('\\', "\\\\").replace('|', "\\|").replace('\n', " ").replace("](", "]\\(");
    let mut written = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        let begins = |next: &char| next.is_ascii_alphabetic() || matches!(next, '/' | '!' | '?');
        if c == '<' && characters.peek().is_some_and(begins) {
            written.push('\\');
        }
        written.push(c);
    }
    printable(&written).into_owned()
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use polars::prelude::{ParquetReader, SerReader};

    use super::super::summary::Spread;
    use super::*;

    fn table() -> Table {
        let rows =
            [("a, \"b\" | c", Spread::of([0.123_456, 0.2, 0.3]), Some(3_usize)), ("d", None, None)];
        Table::from_items("example", "An example", &rows)
            .words("family", "family", |row| row.0)
            .numbers("kl_nats", "kl (nats)", |row| row.1)
            .numbers("seeds", "seeds", |row| row.2)
            .note("One row has no value.")
            .build()
    }

    #[test]
    fn csv_is_full_and_reads_back() {
        let text = table().to_csv();
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let header = vec!["family", "kl_nats", "kl_nats_min", "kl_nats_max", "seeds"];
        assert_eq!(reader.headers().unwrap(), header);
        let rows: Vec<_> = reader.records().map(Result::unwrap).collect();
        assert_eq!(&rows[0][0], "a, \"b\" | c");
        assert_eq!(&rows[0][2], "0.123456");
        assert_eq!(rows[1], vec!["d", "", "", "", ""]);
    }

    /// CSV is read by programs, so text that a spreadsheet would read as a formula stays unchanged, as do numbers.
    #[test]
    fn no_name_is_a_mark_and_csv_has_it_as_it_is() {
        let names = [
            ("=1+1", "=1+1"),
            ("+a", "+a"),
            ("-a", "-a"),
            ("@a", "@a"),
            ("a\r\nb", r"a\u000d b"),
            ("<img src=x>", r"\<img src=x>"),
            ("[a](javascript:b)", r"[a]\(javascript:b)"),
            ("a\\|b", r"a\\\|b"),
            ("x < 3", "x < 3"),
        ];
        let table = Table::from_items("t", "T", &names)
            .words("name", "name", |name| name.0)
            .numbers("nats", "nats", |_| -1.5e-7)
            .build();
        let (csv, markdown) = (table.to_csv(), table.to_markdown());
        let mut reader = csv::Reader::from_reader(csv.as_bytes());
        let lines = markdown.lines().skip(4);
        for ((row, line), (name, marked)) in reader.records().zip(lines).zip(names) {
            assert_eq!(row.unwrap(), vec![name, "-0.00000015"]);
            assert_eq!(line[2..].split_once(" | ").unwrap().0, marked);
        }
    }

    #[test]
    fn parquet_has_the_columns_of_the_csv() {
        let bytes = table().to_parquet().unwrap();
        let frame = ParquetReader::new(Cursor::new(bytes)).finish().unwrap();
        assert_eq!(frame.shape(), (2, 5));
        assert_eq!(frame.column("kl_nats_min").unwrap().f64().unwrap().get(0), Some(0.123_456));
        assert_eq!(frame.column("seeds").unwrap().null_count(), 1);
        assert_eq!(frame.column("family").unwrap().str().unwrap().get(1), Some("d"));
    }

    #[test]
    fn markdown_shows_honest_digits() {
        insta::assert_snapshot!(table().to_markdown(), @r#"
        ### An example

        | family | kl (nats) | seeds |
        | :-- | --: | --: |
        | a, "b" \| c | 0.200 (0.123–0.300) | 3 |
        | d | – | – |

        One row has no value.
        "#);
    }
}

//! Text files of numbers, one line per row, as spreadsheets, pandas, R and `numpy.savetxt` write them.

use std::io::{self, Write};

use csv::StringRecord;
use ndarray::{Array2, s};

use super::stack::square;
use crate::targets::TargetError;

/// Most characters of a field that an error shows.
const SHOWN: usize = 20;

/// The signs that separate numbers, by precedence: a semicolon or a tab leaves the comma to decimals.
const SEPARATORS: [u8; 4] = [b';', b'\t', b',', b' '];

/// Reads a matrix, and says what beside it was left out: a header, an index.
///
/// The first line shows the separator. Lines that start with # are left out. With semicolons or tabs, a comma may be a
/// decimal point.
pub(super) fn read(bytes: &[u8]) -> Result<(Array2<f64>, Vec<&'static str>), TargetError> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let separator = separator(bytes);
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .trim(csv::Trim::All)
        .delimiter(separator)
        .comment(Some(b'#'))
        .from_reader(bytes);
    let mut read = Lines { separator, ..Lines::default() };
    for record in reader.records() {
        let record = record.map_err(|error| error.to_string())?;
        let line = record.position().map_or(0, csv::Position::line);
        read.add(line, &record)?;
    }
    read.matrix()
}

/// The sign that separates the numbers of the first line that is no comment.
fn separator(bytes: &[u8]) -> u8 {
    let mut lines = bytes.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
    let first = lines.find(|line| !line.is_empty() && line[0] != b'#').unwrap_or_default();
    SEPARATORS.into_iter().find(|sign| first.contains(sign)).unwrap_or(b',')
}

/// The lines so far.
#[derive(Default)]
struct Lines {
    separator: u8,
    /// Whether the first line was a header: it begins with no number.
    has_header: bool,
    /// Line and length of the first row.
    first: Option<(u64, usize)>,
    rows: usize,
    /// Row by row; NaN for a label, which only the first field of a row may be.
    values: Vec<f64>,
}

impl Lines {
    fn add(&mut self, line: u64, record: &StringRecord) -> Result<(), TargetError> {
        // Columns may be aligned by several spaces.
        let is_field = |field: &&str| self.separator != b' ' || !field.is_empty();
        let fields: Vec<&str> = record.iter().filter(is_field).collect();
        let is_first = self.first.is_none() && !self.has_header;
        if is_first && fields.first().is_some_and(|name| self.number(name).is_none()) {
            self.has_header = true;
            return Ok(());
        }
        let (first, columns) = *self.first.get_or_insert((line, fields.len()));
        if fields.len() != columns {
            let found = fields.len();
            return Err(TargetError::Other(format!(
                "the number of fields is {found} in line {line} and {columns} in line {first}"
            )));
        }
        for (at, text) in fields.iter().enumerate() {
            match self.number(text) {
                Some(value) => self.values.push(value),
                None if at == 0 && columns > 1 => self.values.push(f64::NAN),
                None => return Err(no_number(line, at + 1, text).into()),
            }
        }
        self.rows += 1;
        Ok(())
    }

    fn number(&self, text: &str) -> Option<f64> {
        text.parse().ok().or_else(|| {
            let is_decimal = matches!(self.separator, b';' | b'\t') && text.contains(',');
            is_decimal.then(|| text.replacen(',', ".", 1).parse().ok()).flatten()
        })
    }

    fn matrix(self) -> Result<(Array2<f64>, Vec<&'static str>), TargetError> {
        let columns = self.first.map_or(0, |(_, columns)| columns);
        let shape = (self.rows, columns);
        let whole =
            Array2::from_shape_vec(shape, self.values).map_err(|error| error.to_string())?;
        // R counts rows from 1.
        let counts_from =
            |first: f64| move |(at, value): (usize, &f64)| *value == at as f64 + first;
        let mut left_out = Vec::new();
        let mut kept = whole.view();
        let is_header =
            shape.0 == shape.1 + 1 && kept.row(0).iter().enumerate().all(counts_from(0.0));
        if self.has_header || is_header {
            left_out.push("a header");
        }
        if is_header {
            kept = kept.slice_move(s![1.., ..]);
        }
        let is_wider = kept.nrows() > 1 && kept.ncols() == kept.nrows() + 1;
        let counts = |first| kept.column(0).iter().enumerate().all(counts_from(first));
        let has_labels = || kept.column(0).iter().all(|value| value.is_nan());
        if is_wider && (has_labels() || counts(0.0) || counts(1.0)) {
            left_out.push("an index");
            kept = kept.slice_move(s![.., 1..]);
        }
        square(kept.nrows(), kept.ncols())?;
        Ok((kept.to_owned(), left_out))
    }
}

fn no_number(line: u64, field: usize, text: &str) -> String {
    let shown: String = text.chars().take(SHOWN).collect();
    let more = if shown.len() < text.len() { "…" } else { "" };
    format!("line {line}, field {field} is not a number ({shown:?}{more})")
}

/// Writes each number in the shortest form that reads back as the same float64.
pub(super) fn write(dense: &Array2<f64>, file: &mut impl Write) -> io::Result<()> {
    let mut writer = csv::Writer::from_writer(file);
    for row in dense.outer_iter() {
        writer.write_record(row.iter().map(f64::to_string))?;
    }
    writer.flush()
}

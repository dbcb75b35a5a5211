//! CSV files: comma-separated numbers, one line per row.

use std::io::Write;

use ndarray::Array2;

use super::stack::{Problem, square};

pub(super) fn read(bytes: &[u8]) -> Result<Array2<f64>, Problem> {
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .trim(csv::Trim::All)
        .from_reader(bytes);
    let mut values: Vec<f64> = Vec::new();
    let mut first: Option<(u64, usize)> = None;
    let mut rows = 0;
    for (at, record) in reader.records().enumerate() {
        let record = record.map_err(|error| error.to_string())?;
        let line = record.position().map_or(0, csv::Position::line);
        if at == 0 && record.iter().all(|field| field.parse::<f64>().is_err()) {
            if let Some(sign) = other_separator(&record) {
                return Err(
                    format!("separate the numbers by commas (by {sign} in line {line})").into()
                );
            }
            continue;
        }
        let (first_line, columns) = *first.get_or_insert((line, record.len()));
        if record.len() != columns {
            let found = match record.len() {
                1 => "1 number".to_owned(),
                found => format!("{found} numbers"),
            };
            return Err(format!("line {line} has {found}, line {first_line} has {columns}").into());
        }
        for (field, text) in record.iter().enumerate() {
            let value = text.parse().map_err(|_| {
                format!("line {line}, field {} is not a number ({text:?})", field + 1)
            })?;
            values.push(value);
        }
        rows += 1;
    }
    let n = square(rows, first.map_or(0, |(_, columns)| columns))?;
    Array2::from_shape_vec((n, n), values).map_err(|error| error.to_string().into())
}

/// Name of the separator of a line of numbers without commas.
fn other_separator(record: &csv::StringRecord) -> Option<&'static str> {
    let line = record.iter().next().filter(|_| record.len() == 1)?;
    [(';', "semicolons"), ('\t', "tabs"), (' ', "spaces")].into_iter().find_map(|(sign, name)| {
        let mut fields = line.split(sign).map(str::trim).filter(|field| !field.is_empty());
        (line.contains(sign) && fields.all(|field| field.parse::<f64>().is_ok())).then_some(name)
    })
}

/// Writes each number in the shortest form that reads back as the same float64.
pub(super) fn write(dense: &Array2<f64>, file: &mut impl Write) -> Result<(), String> {
    let mut writer = csv::Writer::from_writer(file);
    for row in dense.outer_iter() {
        writer.write_record(row.iter().map(f64::to_string)).map_err(|error| error.to_string())?;
    }
    writer.flush().map_err(|error| error.to_string())
}

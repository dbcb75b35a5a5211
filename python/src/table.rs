//! A table of rows: columns by name, and Arrow's C stream interface, by which other libraries take it without a copy of
//! each value.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use polars::prelude::{
    AnyValue, CompatLevel, DataFrame, IntoColumn as _, NamedFrom as _, ParquetReader,
    SerReader as _, Series,
};
use polars_arrow::array::StructArray;
use polars_arrow::datatypes::{ArrowDataType, Field};
use polars_arrow::ffi::{ArrowArrayStream, export_iterator};
use pyo3::exceptions::{PyKeyError, PyOSError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyIterator, PyList};
use rank_study::record::{Line, Record, columns_of, to_frame};

use crate::matrix::value_error;

/// Rows as columns. `polars.DataFrame(t)`, `pandas.DataFrame.from_arrow(t)` and `pyarrow.table(t)` take it.
#[pyclass(frozen, module = "rank_study")]
pub(crate) struct Table(DataFrame);

impl Table {
    pub(crate) fn of_records<R: Record>(rows: &[R]) -> PyResult<Self> {
        let lines: Vec<Line> = rows.iter().map(Line::from).collect();
        Ok(Self(to_frame(&columns_of::<R>(), &lines).map_err(value_error)?))
    }
}

/// Reads a .parquet or .csv file that rank-study wrote.
#[pyfunction]
pub(crate) fn read_table(py: Python<'_>, path: PathBuf) -> PyResult<Table> {
    let failed = |why: String| PyOSError::new_err(format!("{}: {why}", path.display()));
    let read = || match path.extension().is_some_and(|ending| ending == "csv") {
        true => of_csv(&path).map_err(|error| error.to_string()),
        false => std::fs::File::open(&path)
            .map_err(|error| error.to_string())
            .and_then(|file| ParquetReader::new(file).finish().map_err(|e| e.to_string())),
    };
    py.detach(read).map(Table).map_err(failed)
}

/// A column holds whole numbers or numbers if each of its fields that is not empty is one, else text.
fn of_csv(path: &Path) -> Result<DataFrame, Box<dyn std::error::Error>> {
    let mut reader = csv::Reader::from_path(path)?;
    let names: Vec<String> = reader.headers()?.iter().map(str::to_owned).collect();
    let rows: Vec<csv::StringRecord> = reader.records().collect::<Result<_, _>>()?;
    let column = |(at, name): (usize, &String)| {
        let fields = || rows.iter().map(move |row| &row[at]);
        let name = name.as_str().into();
        match numbers::<i64>(fields()) {
            Some(whole) => Series::new(name, whole),
            None => match numbers::<f64>(fields()) {
                Some(numbers) => Series::new(name, numbers),
                None => Series::new(name, fields().collect::<Vec<_>>()),
            },
        }
        .into_column()
    };
    Ok(DataFrame::new(rows.len(), names.iter().enumerate().map(column).collect())?)
}

/// The fields as numbers, with None for empty ones; None where one is no number.
fn numbers<'f, T: FromStr>(fields: impl Iterator<Item = &'f str>) -> Option<Vec<Option<T>>> {
    let number = |field: &str| match field {
        "" => Some(None),
        field => field.parse().ok().map(Some),
    };
    fields.map(number).collect()
}

#[pymethods]
impl Table {
    /// The names of the columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.0.get_column_names().into_iter().map(ToString::to_string).collect()
    }

    fn __len__(&self) -> usize {
        self.0.height()
    }

    /// A column as a list; None where a row has no value.
    fn __getitem__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyList>> {
        let column = self.0.column(name).map_err(|_| {
            let names = self.columns().join(", ");
            PyKeyError::new_err(format!("no column {name:?}; there are {names}"))
        })?;
        let list = PyList::empty(py);
        for value in column.as_materialized_series().iter() {
            match value {
                AnyValue::Null => list.append(py.None())?,
                AnyValue::Int64(value) => list.append(value)?,
                AnyValue::Float64(value) => list.append(value)?,
                AnyValue::Boolean(value) => list.append(value)?,
                value => match value.extract::<i64>() {
                    Some(whole) => list.append(whole)?,
                    None => list.append(value.str_value().as_ref())?,
                },
            }
        }
        Ok(list)
    }

    /// The rows as dicts.
    fn rows<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let rows: Vec<_> = (0..self.0.height()).map(|_| PyDict::new(py)).collect();
        for name in self.columns() {
            for (row, value) in rows.iter().zip(self.__getitem__(py, &name)?) {
                row.set_item(&name, value)?;
            }
        }
        Ok(rows)
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        PyList::new(py, self.rows(py)?)?.try_iter()
    }

    fn __repr__(&self) -> String {
        format!("Table({} rows: {})", self.0.height(), self.columns().join(", "))
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // A consumer that wants other types casts what it gets.
        let _ = requested_schema;
        let fields: Vec<Field> = (self.0.columns().iter())
            .map(|column| column.field().to_arrow(CompatLevel::oldest()))
            .collect();
        let of_rows = ArrowDataType::Struct(fields);
        let frame = self.0.clone();
        let whole = of_rows.clone();
        let batches: Vec<_> = frame
            .iter_chunks(CompatLevel::oldest(), false)
            .map(|batch| {
                let rows = batch.len();
                let array = StructArray::new(whole.clone(), rows, batch.into_arrays(), None);
                Ok(Box::new(array) as Box<dyn polars_arrow::array::Array>)
            })
            .collect();
        let field = Field::new("".into(), of_rows, false);
        let stream: ArrowArrayStream = export_iterator(Box::new(batches.into_iter()), field);
        PyCapsule::new_with_value(py, Stream(stream), c"arrow_array_stream")
    }
}

/// A stream that another thread may release.
#[repr(transparent)]
struct Stream(ArrowArrayStream);

// SAFETY: the stream is the only owner of its list of arrays, and the arrays count their references atomically.
unsafe impl Send for Stream {}

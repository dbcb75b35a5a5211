//! Cells that measure one trained model; they share settings, needs and errors.

use std::path::Path;

use toml::{Table, Value};

use super::trained_model::TrainedModel;
use crate::experiment::{CellContext, Measure, Needs, StudyError};
use crate::record::Measurement;
use crate::solver::Precision;

/// A cell that measures one trained model.
pub(crate) trait ModelCell: Send + Sync + 'static {
    /// The type of its rows.
    type Row: Measurement;

    /// The model.
    fn model(&self) -> &TrainedModel;

    /// Adds the settings that the cell's numbers depend on besides the model.
    fn add_settings(&self, table: &mut Table);

    /// Adds the defaults of those settings.
    fn add_defaults(_table: &mut Table) {}

    /// The columns that identify the cell in its rows.
    fn key(&self) -> <Self::Row as Measurement>::Key;

    /// Measures the cell. Returns `None` if it was stopped.
    ///
    /// # Errors
    /// A model or text that cannot be read, or that the measurement does not support.
    fn run(&self, context: &CellContext<'_>) -> Result<Option<Vec<Self::Row>>, StudyError>;
}

impl<C: ModelCell> Measure for C {
    type Row = C::Row;

    fn settings(&self) -> Table {
        let mut table = self.model().settings();
        self.add_settings(&mut table);
        table
    }

    fn defaults() -> Table {
        let mut table = TrainedModel::defaults();
        C::add_defaults(&mut table);
        table
    }

    fn key(&self) -> <C::Row as Measurement>::Key {
        ModelCell::key(self)
    }

    fn needs(&self) -> Option<Needs> {
        self.model().needs()
    }

    fn lacks(&self, _folder: &Path) -> bool {
        self.model().lacks()
    }

    fn measure(&self, context: &CellContext<'_>) -> Result<Option<Vec<C::Row>>, String> {
        self.run(context).map_err(|e| e.to_string())
    }
}

/// The name of the floating-point type in which fits of trained heads compute.
pub(crate) fn dtype_of(precision: Precision) -> String {
    match precision {
        Precision::F32 => "float32".to_owned(),
        Precision::F64 => "float64".to_owned(),
    }
}

/// Converts whole numbers to a list in TOML.
pub(crate) fn whole(all: &[usize]) -> Value {
    all.iter().map(|&one| Value::from(one as i64)).collect::<Vec<_>>().into()
}

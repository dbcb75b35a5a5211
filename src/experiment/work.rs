//! The trait `Experiment`, studies of any kind with types erased, and the kinds of study.

use std::any::Any;
use std::fmt::Debug;
use std::path::Path;
use std::sync::Arc;

use super::cell::{Cell, Measure};
use super::error::StudyError;
use super::raw_definition::RawDefinition;
use super::schema::DefinitionTable;
use super::text_source::TextSource;
use super::view::{Configuration, View, by_name};
use crate::record::{Column, InvariantChecker, Line, Measurement, Row, check_rows, columns};

/// An experiment: the configuration of a study of one kind, from which its cells follow.
pub(crate) trait Experiment: Clone + Debug + Send + Sync + 'static {
    /// One configuration to measure.
    type Cell: Measure;

    /// The tables of its definition.
    const TABLES: &'static [DefinitionTable];

    /// The outputs that its rows can be turned into, in the order of a report.
    const VIEWS: &'static [View];

    /// Whether its cells are measured one at a time, as for timings.
    const ONE_AT_A_TIME: bool = false;

    /// Reads its tables from a definition.
    ///
    /// # Errors
    /// A sentence that names the key that is unknown, missing or has a wrong value.
    fn read(raw: &RawDefinition) -> Result<Self, String>;

    /// All cells with their keys, in the order of the definition. `data` holds the files of other studies.
    ///
    /// # Errors
    /// A folder that holds no run, or that lacks a requested step or layer; a missing run to start from.
    fn cells(
        &self,
        text: Option<&TextSource>,
        data: &Path,
    ) -> Result<Vec<(String, Self::Cell)>, StudyError>;

    /// The floating-point type of its computations.
    fn dtype(&self) -> String {
        "float64".to_owned()
    }

    /// The trained models that it measures, if any.
    fn models(&self) -> Option<&dyn ModelReferences> {
        None
    }

    /// Whether its cells can read a text.
    fn can_read_text(&self) -> bool {
        self.models().is_some()
    }

    /// Whether its rows depend on the text; then its folder's name includes the text's name.
    fn depends_on_text(&self) -> bool {
        self.models().is_some_and(ModelReferences::are_of_studies)
    }

    /// Checks that the studies and runs that it names are defined.
    ///
    /// # Errors
    /// Names the unknown study or run and the nearest one that is defined.
    fn check_references(&self) -> Result<(), StudyError> {
        self.models().map_or(Ok(()), ModelReferences::check)
    }

    /// Checks rows against the files beside them. Returns a description of what cannot be checked, if anything.
    fn check_files(
        _rows: &[RowOf<Self>],
        _folder: &Path,
        _check: &mut InvariantChecker,
    ) -> Option<String> {
        None
    }
}

/// The trained models that a definition names.
pub(crate) trait ModelReferences {
    /// Whether some of them are runs of other studies, which depend on the text.
    fn are_of_studies(&self) -> bool;

    /// Checks that the names are defined.
    ///
    /// # Errors
    /// Names the unknown study or run and the nearest one that is defined.
    fn check(&self) -> Result<(), StudyError>;
}

/// A row of an experiment.
pub(crate) type RowOf<E> = Row<<<E as Experiment>::Cell as Measure>::Row>;

/// The configuration of a study of any kind, and what `Experiment` says of it.
#[derive(Clone, Debug)]
pub struct StudyWork {
    pub(crate) experiment: Arc<dyn AnyExperiment>,
    kind: Kind,
    pub(crate) dtype: String,
    pub(crate) is_one_at_a_time: bool,
    pub(crate) depends_on_text: bool,
    /// Whether its cells can read a text.
    pub can_read_text: bool,
    /// Whether it measures trained models.
    pub measures_models: bool,
}

impl StudyWork {
    /// Wraps the configuration of an experiment.
    pub(crate) fn new<E: Experiment>(experiment: E) -> Self {
        Self {
            kind: Kind::of::<E>(),
            dtype: experiment.dtype(),
            is_one_at_a_time: E::ONE_AT_A_TIME,
            depends_on_text: experiment.depends_on_text(),
            can_read_text: experiment.can_read_text(),
            measures_models: experiment.models().is_some(),
            experiment: Arc::new(experiment),
        }
    }

    /// The kind of study.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The configuration, if it belongs to the experiment `E`.
    pub fn get<E: 'static>(&self) -> Option<&E> {
        let experiment: &dyn Any = &*self.experiment;
        experiment.downcast_ref()
    }

    /// The configuration in the form that views read.
    pub(crate) fn configuration(&self) -> Configuration {
        self.experiment.clone()
    }
}

/// [`Experiment`] with its types erased.
pub(crate) trait AnyExperiment: Any + Debug + Send + Sync {
    /// See [`Experiment::cells`].
    fn any_cells(&self, text: Option<&TextSource>, data: &Path) -> Result<Vec<Cell>, StudyError>;

    /// See [`Experiment::check_references`].
    fn any_check_references(&self) -> Result<(), StudyError>;

    /// Checks the invariants of every row, of each cell's rows, and of files beside them. Returns what cannot be checked.
    fn check_rows(
        &self,
        lines: &[&Line],
        folder: &Path,
        check: &mut InvariantChecker,
    ) -> Option<String>;
}

impl<E: Experiment> AnyExperiment for E {
    fn any_cells(&self, text: Option<&TextSource>, data: &Path) -> Result<Vec<Cell>, StudyError> {
        let cells = self.cells(text, data)?.into_iter();
        Ok(cells.map(|(key, cell)| Cell::new(key, cell)).collect())
    }

    fn any_check_references(&self) -> Result<(), StudyError> {
        self.check_references()
    }

    fn check_rows(
        &self,
        lines: &[&Line],
        folder: &Path,
        check: &mut InvariantChecker,
    ) -> Option<String> {
        let rows: Vec<RowOf<E>> = check_rows(lines.iter().copied(), check);
        E::check_files(&rows, folder, check)
    }
}

/// A kind of study: an experiment without its configuration.
#[derive(Clone, Copy)]
pub struct Kind {
    name: &'static str,
    tables: &'static [DefinitionTable],
    views: &'static [View],
    columns: fn() -> Vec<Column>,
    read: fn(&RawDefinition) -> Result<StudyWork, String>,
}

impl Kind {
    /// The kind of an experiment.
    pub(crate) const fn of<E: Experiment>() -> Self {
        Self {
            name: <E::Cell as Measure>::Row::NAME,
            tables: E::TABLES,
            views: E::VIEWS,
            columns: columns::<<E::Cell as Measure>::Row>,
            read: |raw| E::read(raw).map(StudyWork::new),
        }
    }

    /// The name in definitions.
    pub fn name(self) -> &'static str {
        self.name
    }

    /// The tables of its definitions.
    pub fn tables(self) -> &'static [DefinitionTable] {
        self.tables
    }

    /// The outputs that its rows can be turned into.
    pub fn views(self) -> &'static [View] {
        self.views
    }

    /// The names of its tables.
    pub(crate) fn table_names(self) -> impl Iterator<Item = &'static str> {
        self.tables.iter().map(|table| table.name)
    }

    /// The columns of its rows.
    pub fn columns(self) -> Vec<Column> {
        (self.columns)()
    }

    /// Reads the study of a definition.
    ///
    /// # Errors
    /// A sentence that names the key that is unknown, missing or has a wrong value.
    pub(crate) fn read(self, raw: &RawDefinition) -> Result<StudyWork, String> {
        (self.read)(raw)
    }
}

by_name!(Kind);

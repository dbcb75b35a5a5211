//! The kinds of studies, by the key `kind` of definitions.

use std::fmt;

use super::cell::Measure;
use super::raw_definition::RawDefinition;
use super::work::{Experiment, StudyWork};
use crate::record::{Column, Measurement, columns};

/// A kind of study: an experiment without its configuration.
#[derive(Clone, Copy)]
pub struct Kind {
    name: &'static str,
    tables: &'static [&'static str],
    columns: fn() -> Vec<Column>,
    read: fn(&RawDefinition) -> Result<StudyWork, String>,
}

impl Kind {
    /// The kind of an experiment.
    pub(crate) const fn of<E: Experiment>() -> Self {
        Self {
            name: <E::Cell as Measure>::Row::NAME,
            tables: E::TABLES,
            columns: columns::<<E::Cell as Measure>::Row>,
            read: |raw| E::read(raw).map(StudyWork::new),
        }
    }

    /// The name in definitions.
    pub fn name(self) -> &'static str {
        self.name
    }

    /// The tables that define such a study.
    pub(crate) fn tables(self) -> &'static [&'static str] {
        self.tables
    }

    /// The columns of its rows.
    pub fn columns(self) -> Vec<Column> {
        (self.columns)()
    }

    /// The study that a definition asks for.
    ///
    /// # Errors
    /// A sentence that names the key that is unknown, missing or has a wrong value.
    pub(crate) fn read(self, raw: &RawDefinition) -> Result<StudyWork, String> {
        (self.read)(raw)
    }
}

impl PartialEq for Kind {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Kind {}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

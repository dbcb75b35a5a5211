//! Views: the tables, figures and verdicts that rows of one kind of study are made into.

use std::any::Any;
use std::path::PathBuf;
use std::sync::Arc;

use crate::claims::{Group, Verdict};
use crate::figure::Figure;
use crate::record::{Measurement, Rows};
use crate::table::{Table, TableError};

/// The configuration of a study of some kind: what its definition's tables say.
pub type Configuration = Arc<dyn Any + Send + Sync>;

/// A study's rows, and what its definition says of them.
#[derive(Clone, Debug, Default)]
pub struct MeasuredStudy {
    /// The folder, beside those of other studies.
    pub folder: PathBuf,
    /// The definition by which they were measured; none of rows without a study.
    pub measured: Option<Configuration>,
    /// The definition as it is now.
    pub now: Option<Configuration>,
    /// Why the definition as it is now cannot be used, where it cannot.
    pub unusable: Option<String>,
    /// The rows of the study that its baselines are of, where it has baselines and they have rows.
    pub baseline: Option<Box<MeasuredStudy>>,
}

/// The tables, figures and verdicts of some rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Analysed {
    /// The tables, the most important first.
    pub tables: Vec<Table>,
    /// The figures.
    pub figures: Vec<Figure>,
    /// The verdicts on the claims that such rows bear on.
    pub verdicts: Vec<Verdict>,
}

/// Compares and prints a type by its field `name`.
macro_rules! by_name {
    ($Type:ty) => {
        impl PartialEq for $Type {
            fn eq(&self, other: &Self) -> bool {
                self.name == other.name
            }
        }

        impl Eq for $Type {}

        impl std::fmt::Debug for $Type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name)
            }
        }

        impl std::fmt::Display for $Type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name)
            }
        }
    };
}
pub(super) use by_name;

/// What the rows of a study can be made into: the key `view` of a definition.
#[derive(Clone, Copy)]
pub struct View {
    /// The name in a definition.
    pub name: &'static str,
    /// What it draws, in a sentence.
    pub about: &'static str,
    /// The part of the report that it belongs to.
    pub group: Group,
    /// Refuses a definition that the view cannot use.
    pub(crate) check: fn(&Configuration) -> Result<(), String>,
    /// Analyses the rows of studies of its kind. Fails for rows that are missing, damaged or of another kind.
    pub(crate) analyse: fn(&[MeasuredStudy]) -> Result<Analysed, TableError>,
}

impl View {
    /// A view of any definition of its kind.
    pub(crate) const fn new(
        name: &'static str,
        group: Group,
        about: &'static str,
        analyse: fn(&[MeasuredStudy]) -> Result<Analysed, TableError>,
    ) -> Self {
        Self { name, about, group, check: |_| Ok(()), analyse }
    }

    /// The same for definitions that pass `check`.
    pub(crate) const fn checked(mut self, check: fn(&Configuration) -> Result<(), String>) -> Self {
        self.check = check;
        self
    }
}

by_name!(View);

/// The folders of these studies.
pub(crate) fn folders(studies: &[MeasuredStudy]) -> Vec<PathBuf> {
    studies.iter().map(|study| study.folder.clone()).collect()
}

/// The rows of all of these studies.
pub(crate) fn rows_of<M: Measurement>(studies: &[MeasuredStudy]) -> Result<Rows<M>, TableError> {
    Ok(Rows::read(&folders(studies))?)
}

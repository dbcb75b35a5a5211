//! The framework of studies: the trait of experiments, how definitions are read, and the context of a measurement.
//!
//! An experiment is one folder of [`experiments`](crate::experiments) that implements `Experiment`. This module depends
//! on none of them.

mod cell;
mod error;
mod identity;
mod keys;
mod names;
mod raw_definition;
mod schema;
mod tables;
mod text_source;
mod view;
mod work;

pub(crate) use cell::{Cell, CellContext, Measure, Measured, Needs};
pub use error::StudyError;
#[cfg(test)]
pub(crate) use identity::identity_of;
pub(crate) use identity::{model_settings, search_settings, target_defaults, target_settings};
pub(crate) use keys::{check_keys, fields_of, read_both, read_each, read_table, take_text};
pub(crate) use names::{check_model_name, check_names_differ, check_run_name, check_study_name};
pub use raw_definition::Preset;
pub(crate) use raw_definition::RawDefinition;
pub use schema::DefinitionTable;
pub(crate) use schema::{Both, or_list};
pub use tables::StudyTarget;
pub(crate) use tables::{
    SearchKeys, TargetKeys, lengths, search_of_heads, search_of_targets, seeds, targets,
};
pub(crate) use text_source::{
    TEXT, TEXT_HASH, TextHashes, TextSource, VALID_TEXT, VALID_TEXT_HASH, on_the_same_text,
};
pub use view::{Analysed, Configuration, MeasuredStudy, View};
pub(crate) use view::{folders, rows_of};
pub(crate) use work::{Experiment, ModelReferences};
pub use work::{Kind, StudyWork};

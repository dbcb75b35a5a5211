//! Progress of a study's shards, read from their files.

use std::collections::HashMap;
use std::path::Path;

use super::StudyError;
use super::merge::kind_of;
use super::parts::{Part, Parts};
use super::rows_file::{Ending, RowsFile};
use super::shard::Shard;
use crate::system::holder_of;

/// How far the parts of a study are.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PartsState {
    /// Cells of the study, as a part that was begun found them.
    pub cells: usize,
    /// Those of them that are done, among the study's own rows or a part's.
    pub done: usize,
    /// The parts that were begun, in the order of their numbers.
    pub parts: Vec<PartState>,
}

/// How far a part of a study is.
#[derive(Clone, Debug, PartialEq)]
pub struct PartState {
    /// Which it is.
    pub shard: Shard,
    /// Its cells that are done, ...
    pub done: usize,
    /// ... those of trainings that were stopped, ...
    pub stopped: usize,
    /// ... and those that failed, with why.
    pub failed: Vec<(String, String)>,
    /// Who is at work on it, where somebody is.
    pub at_work: Option<String>,
}

impl PartsState {
    /// How far the parts of the study in `folder` are; none where it has none.
    ///
    /// # Errors
    /// Files that cannot be read.
    pub fn of(folder: &Path) -> Result<Option<Self>, StudyError> {
        let parts = Parts::of(folder);
        let begun = parts.all()?;
        let Some(with_rows) = begun.iter().find(|part| part.has_rows()) else {
            let parts: Vec<PartState> = begun.iter().map(PartState::without_rows).collect();
            return Ok((!parts.is_empty()).then(|| Self { parts, ..Self::default() }));
        };
        let columns = kind_of(&with_rows.folder)?.columns();
        // By cell, the best end that any file tells of it.
        let order = parts.order();
        let mut ends: HashMap<&str, bool> =
            order.iter().map(|cell| (cell.as_str(), false)).collect();
        let mut note = |file: &RowsFile| {
            for cell in file.cells.iter().filter(|cell| cell.ending == Ending::Whole) {
                if let Some(done) = ends.get_mut(&*cell.key) {
                    *done = true;
                }
            }
        };
        let own = folder.join("rows.csv");
        if own.exists() {
            note(&RowsFile::read(own, &columns)?);
        }
        let mut states = Vec::new();
        for part in &begun {
            let mut state = PartState::without_rows(part);
            if part.has_rows() {
                let file = RowsFile::read(part.rows(), &columns)?;
                note(&file);
                for cell in &file.cells {
                    match cell.ending {
                        Ending::Whole => state.done += 1,
                        Ending::Stopped => state.stopped += 1,
                        Ending::Failed => {
                            let why = file.rows(cell, &columns).map(|row| row.err().to_owned());
                            let why = why.filter(|why| !why.is_empty()).last().unwrap_or_default();
                            state.failed.push((cell.key.to_string(), why));
                        }
                    }
                }
            }
            states.push(state);
        }
        let done = ends.values().filter(|done| **done).count();
        Ok(Some(Self { cells: order.len(), done, parts: states }))
    }
}

impl PartState {
    fn without_rows(part: &Part) -> Self {
        Self {
            shard: part.shard,
            done: 0,
            stopped: 0,
            failed: Vec::new(),
            at_work: holder_of(&part.folder),
        }
    }
}

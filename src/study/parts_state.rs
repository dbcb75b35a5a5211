//! Progress of a study's shards, read from their files.

use std::collections::HashMap;
use std::path::Path;

use super::StudyError;
use super::merge::kind_of;
use super::parts::{Part, Parts};
use super::rows_file::{Ending, RowsFile};
use super::shard::Shard;
use crate::system::holder_of;

/// Progress of a study's shards.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PartsState {
    /// Number of cells of the study, as stored by a shard that was started.
    pub cells: usize,
    /// Number of these that are done, in the study's own rows or in a shard.
    pub done: usize,
    /// The shards that were started, in the order of their numbers.
    pub parts: Vec<PartState>,
}

/// Progress of one shard.
#[derive(Clone, Debug, PartialEq)]
pub struct PartState {
    /// The shard.
    pub shard: Shard,
    /// Number of cells that are done.
    pub done: usize,
    /// Number of cells whose training run was stopped.
    pub stopped: usize,
    /// Cells that failed, each with its error.
    pub failed: Vec<(String, String)>,
    /// Process that works on the shard, if there is one.
    pub at_work: Option<String>,
}

impl PartsState {
    /// Returns the progress of the shards of the study in `folder`, or `None` if it has none.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn of(folder: &Path) -> Result<Option<Self>, StudyError> {
        let parts = Parts::of(folder);
        let begun = parts.all()?;
        let Some(with_rows) = begun.iter().find(|part| part.has_rows()) else {
            let parts: Vec<PartState> = begun.iter().map(PartState::without_rows).collect();
            return Ok((!parts.is_empty()).then(|| Self { parts, ..Self::default() }));
        };
        let columns = kind_of(&with_rows.folder)?.columns();
        // Whether each cell is done in any of the files.
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

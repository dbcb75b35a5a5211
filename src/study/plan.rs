//! Plan of a study: its cells, those with rows, and the needs of the others.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

use super::definition::StudyDefinition;
use super::parts::Part;
use super::shard::Shard;
use super::store::{Ending, Store};
use crate::experiment::{Cell, Kind, Needs, StudyError, TextSource};
use crate::lm::Texts;
use crate::record::{Column, Line};

/// Name of the folder of tokens, beside the folders of studies.
const TOKENS: &str = "tokens";

/// A study's cells, and which of them are done.
pub struct Plan {
    pub(super) definition: StudyDefinition,
    /// Name of the study, followed by the name of its text if it has one.
    pub(super) name: String,
    pub(super) folder: PathBuf,
    /// Folder for the tokens of texts.
    pub(super) tokens: PathBuf,
    /// The text that models read, if they read one, and its source.
    pub(super) text: Option<(TextSource, Texts)>,
    pub(super) cells: Vec<Cell>,
    /// Keys of all the study's cells, including those that a filter leaves out.
    pub(super) order: Vec<String>,
    pub(super) store: Store,
    /// Cells to measure again although their rows exist, because files beside the rows are missing.
    again: HashSet<String>,
    /// The shard that this plan is, with rows of its own; `None` for the whole study.
    pub(super) shard: Option<Shard>,
    /// Cells that are done in the study's own rows or in one of its shards; only used for shards.
    elsewhere: HashSet<String>,
}

impl Plan {
    /// Plans the cells of `definition` that match `filter`, and compares them with the rows in `data/STUDY/`. With a
    /// `text`, or one that the definition names, training runs read it instead of the synthetic corpus. The names of
    /// the study and its folder then end with the text's name. A hash follows if another text of that name came first.
    /// With a `valid_text`, the runs are evaluated on that text.
    ///
    /// # Errors
    /// A filter that is not a regular expression or matches nothing; rows or a text that cannot be read; a folder that
    /// cannot be written.
    pub fn new(
        definition: &StudyDefinition,
        data: &Path,
        filter: Option<&str>,
        text: Option<&Path>,
        valid_text: Option<&Path>,
    ) -> Result<Self, StudyError> {
        let work = &definition.work;
        let reads = work.can_read_text;
        let text = text.or(definition.own_text.as_deref()).filter(|_| reads);
        let text = text.map(|text| TextSource::read(text, valid_text)).transpose()?;
        let source = text.as_ref().map(|(source, _)| source);
        let read = source.filter(|_| definition.work.depends_on_text);
        let name = TextSource::name_of_study(data, &definition.study, read);
        let mut cells = definition.work.experiment.any_cells(source, data)?;
        let columns = definition.work.kind().columns();
        let order: Vec<String> = cells.iter().map(|cell| cell.key.clone()).collect();
        let folder = data.join(&name);
        let tokens = data.join(TOKENS);
        let store = Store::read(&folder, &columns)?;
        if let Some(pattern) = filter {
            let wrong = |why: String| {
                StudyError::Message(format!("cannot read the filter {pattern:?}: {why}"))
            };
            let regex = regex::Regex::new(pattern).map_err(|e| wrong(what_is_wrong(&e)))?;
            cells.retain(|cell| regex.is_match(&cell.key));
            if cells.is_empty() {
                return Err(wrong(format!("matches none of the {} configurations", order.len())));
            }
        }
        Ok(Self {
            definition: definition.clone(),
            name,
            folder,
            tokens,
            text,
            cells,
            order,
            store,
            again: HashSet::new(),
            shard: None,
            elsewhere: HashSet::new(),
        })
    }

    /// Plans of the training runs that this plan's cells need, even if they exist; these need no others. The arguments
    /// are those of [`Plan::new`].
    ///
    /// # Errors
    /// As [`Plan::new`], for a study that is needed.
    pub fn needed(
        &self,
        data: &Path,
        text: Option<&Path>,
        valid_text: Option<&Path>,
    ) -> Result<Vec<Self>, StudyError> {
        let needs: Vec<Needs> = self.cells.iter().filter_map(|cell| cell.needs.clone()).collect();
        let mut studies: Vec<&str> = needs.iter().map(|needs| &*needs.study).collect();
        studies.sort_unstable();
        studies.dedup();
        let plan = |study: &&str| {
            let path = self.definition.path.with_file_name(format!("{study}.toml"));
            let definition = StudyDefinition::read(&path, self.definition.preset)?;
            let mut plan = Self::new(&definition, data, None, text, valid_text)?;
            let is_needed =
                |cell: &Cell| needs.iter().any(|n| n.study == **study && n.cell == cell.key);
            plan.cells.retain(is_needed);
            Ok(plan)
        };
        studies.iter().map(plan).collect()
    }

    /// Unmet needs of the cells that are left.
    pub(super) fn lacking(&self) -> impl Iterator<Item = Needs> {
        let undone = self.cells.iter().filter(|cell| !self.is_done(cell));
        undone.filter(|cell| self.lacks(cell)).filter_map(|cell| cell.needs.clone())
    }

    /// Whether files that a cell needs are missing.
    pub(super) fn lacks(&self, cell: &Cell) -> bool {
        cell.lacks(&self.folder.join(&cell.key))
    }

    /// Name of the study, followed by the name of its text if it has one.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Folder of the study.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Path of the file that this plan's rows are written to.
    pub fn rows(&self) -> PathBuf {
        self.folder_of_rows().join("rows.csv")
    }

    /// Every cell that the filter keeps, and whether it is done.
    pub fn cells(&self) -> impl Iterator<Item = (&str, bool)> {
        self.cells.iter().map(|cell| (cell.key.as_str(), self.is_done(cell)))
    }

    pub(super) fn is_done(&self, cell: &Cell) -> bool {
        !self.again.contains(&cell.key)
            && (self.elsewhere.contains(&cell.key)
                || self.store.has_finished(&cell.key, &cell.settings))
    }

    /// Marks cells to be measured again, because others need their files and these are missing.
    pub(super) fn measure_again(&mut self, needs: &[Needs]) {
        let study = &self.definition.study;
        let keys =
            needs.iter().filter(|needs| needs.study == *study).map(|needs| needs.cell.clone());
        self.again.extend(keys.collect::<Vec<_>>());
    }

    /// Counts cells with rows in the study's shards as done.
    ///
    /// # Errors
    /// The rows cannot be read.
    pub(super) fn look_into_parts(&mut self) -> Result<(), StudyError> {
        let mut stores = Vec::new();
        for part in Part::with_rows(&self.folder)? {
            stores.push(Store::read(&part.folder, &self.store.columns)?);
        }
        let is_done = |cell: &&Cell| {
            stores.iter().chain([&self.store]).any(|s| s.has_finished(&cell.key, &cell.settings))
        };
        self.elsewhere = self.cells.iter().filter(is_done).map(|cell| cell.key.clone()).collect();
        Ok(())
    }

    /// Returns the plan of one shard with the cells `keys`; its rows go to a folder of its own.
    ///
    /// # Errors
    /// The rows of the shard cannot be read.
    pub(super) fn part(&self, shard: Shard, keys: &HashSet<String>) -> Result<Self, StudyError> {
        let folder = Part::of(&self.folder, shard).folder;
        let store = Store::read(&folder, &self.store.columns)?;
        let cells = self.cells.iter().filter(|cell| keys.contains(&cell.key)).cloned().collect();
        Ok(Self {
            definition: self.definition.clone(),
            name: self.name.clone(),
            folder: self.folder.clone(),
            tokens: self.tokens.clone(),
            text: self.text.clone(),
            cells,
            order: self.order.clone(),
            store,
            again: self.again.clone(),
            shard: Some(shard),
            elsewhere: self.elsewhere.clone(),
        })
    }

    /// Adds the cells of another plan of the same study.
    pub(super) fn add(&mut self, other: Self) {
        let here: HashSet<String> = self.cells.iter().map(|cell| cell.key.clone()).collect();
        self.cells.extend(other.cells.into_iter().filter(|cell| !here.contains(&cell.key)));
        let place: HashMap<&str, usize> =
            self.order.iter().enumerate().map(|(at, key)| (key.as_str(), at)).collect();
        self.cells.sort_by_key(|cell| place.get(cell.key.as_str()).copied());
    }

    /// Folder that this plan's rows are written to.
    pub(super) fn folder_of_rows(&self) -> PathBuf {
        let part = |shard| Part::of(&self.folder, shard).folder;
        self.shard.map_or_else(|| self.folder.clone(), part)
    }

    /// Number of cells that are left.
    pub fn left(&self) -> usize {
        self.cells.iter().filter(|cell| !self.is_done(cell)).count()
    }

    /// Lines of `rows.csv` that are cut off or have the wrong number of fields. The next run moves them to
    /// `rows-set-aside.csv` and measures their cells again.
    pub fn damaged(&self) -> &[String] {
        &self.store.damaged
    }

    /// Number of measured rows that the next run moves to `rows-set-aside.csv`: those of cells that are measured again,
    /// and of cells that the definition no longer has.
    pub fn to_set_aside(&self) -> usize {
        if self.left() == 0 {
            return 0;
        }
        let todo = self.cells.iter().filter(|cell| !self.is_done(cell));
        let again: usize = todo.map(|cell| self.store.measured(&cell.key).count()).sum();
        again + self.store.others(&self.order)
    }

    /// Number of cells to measure at once, for `cells` cells on `threads` threads.
    pub(super) fn at_a_time(&self, threads: usize, cells: usize) -> usize {
        if self.definition.work.is_one_at_a_time { 1 } else { threads.clamp(1, cells.max(1)) }
    }
}

/// Returns the columns of rows of `kind`, and the rows in `folder`, including those of failed cells, in the order of
/// the cells.
///
/// # Errors
/// The rows cannot be read.
pub fn stored_lines(kind: Kind, folder: &Path) -> Result<(Vec<Column>, Vec<Line>), StudyError> {
    let columns = kind.columns();
    let lines = Store::read(folder, &columns)?.rows().cloned().collect();
    Ok((columns, lines))
}

/// Returns the result of each cell with rows in `folder`.
///
/// # Errors
/// The rows cannot be read.
pub fn endings(kind: Kind, folder: &Path) -> Result<BTreeMap<String, Ending>, StudyError> {
    let store = Store::read(folder, &kind.columns())?;
    Ok(store.cells.iter().map(|(cell, rows)| (cell.clone(), store.ending(rows))).collect())
}

/// Sum of the rows' run times in seconds; `None` if rows of this kind have no times.
pub fn time_of(columns: &[Column], lines: &[Line]) -> Option<f64> {
    lines.iter().filter_map(|line| line.wall_time_s(columns)).reduce(|sum, row| sum + row)
}

/// Returns the last line of a regular expression's error, without the drawing of its position.
fn what_is_wrong(error: &regex::Error) -> String {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default();
    last.strip_prefix("error: ").unwrap_or(last).to_owned()
}

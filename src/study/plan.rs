//! Plan of a study: its cells, those with rows, and the needs of the others.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use super::definition::StudyDefinition;
use super::parts::Parts;
use super::shard::Shard;
use super::store::Store;
use crate::experiment::{Cell, Kind, Needs, StudyError, TextSource};
use crate::experiments::spectrum::SpectrumStudy;
use crate::lm::Texts;
use crate::record::{Column, Line};

/// The folder of tokens beside the studies' own.
const TOKENS: &str = "tokens";

/// The cells of a study that are to be measured, or other work in parts.
#[derive(Clone, Debug, PartialEq)]
pub struct Work {
    /// The name of the study.
    pub name: String,
    /// How many cells are measured at a time.
    pub at_a_time: usize,
    /// The cells in their order, and the seconds of one core that each may take.
    pub cells: Vec<(String, f64)>,
}

/// A study's cells, and which of them are done.
pub struct Plan {
    pub(super) definition: StudyDefinition,
    /// The study's name, with the text's where there is one.
    pub(super) name: String,
    pub(super) folder: PathBuf,
    /// The folder that the tokens of texts are kept in.
    pub(super) tokens: PathBuf,
    /// The texts, where models read some, and what they are called.
    pub(super) text: Option<(TextSource, Texts)>,
    pub(super) cells: Vec<Cell>,
    /// The keys of all the study's cells, those that a filter leaves out among them.
    pub(super) order: Vec<String>,
    pub(super) store: Store,
    /// Cells that are measured again though their rows are there: for the files beside them.
    again: HashSet<String>,
    /// Which of several parts of the study this is, whose rows are kept apart; none where it is all of it.
    pub(super) shard: Option<Shard>,
    /// Cells that are done among the study's own rows or in one of its parts, where this is one of them.
    elsewhere: HashSet<String>,
}

impl Plan {
    /// The cells of `definition`, of which those matching `filter` are kept, against the rows in
    /// `data/STUDY/`. With a `text`, or one that the definition names, training runs read it in place of the synthetic corpus, and the
    /// study's name and folder carry the text's name, and its hash where another text of that name was
    /// first; with a `valid_text`, that is what they are evaluated on.
    ///
    /// # Errors
    /// A filter that is no regular expression or matches nothing, rows that cannot be read, a folder
    /// that cannot be written, a text that cannot be read, a name that is another's in other capitals.
    pub fn new(
        definition: &StudyDefinition,
        data: &Path,
        filter: Option<&str>,
        text: Option<&Path>,
        valid_text: Option<&Path>,
    ) -> Result<Self, StudyError> {
        let work = &definition.work;
        let reads = work.can_read_text();
        let text = text.or(definition.own_text.as_deref()).filter(|_| reads);
        let text = text.map(|text| TextSource::read(text, valid_text)).transpose()?;
        let source = text.as_ref().map(|(source, _)| source);
        let read = source.filter(|_| definition.work.depends_on_text());
        let name = TextSource::name_of_study(data, &definition.study, read);
        check_capitals(data, &name, definition)?;
        let mut cells = definition.work.cells(source, data)?;
        let columns = definition.work.kind().columns();
        let order: Vec<String> = cells.iter().map(|cell| cell.key.clone()).collect();
        let folder = data.join(&name);
        let tokens = data.join(TOKENS);
        let store = Store::read(&folder, &columns)?;
        if let Some(pattern) = filter {
            let regex = regex::Regex::new(pattern).map_err(|e| StudyError::Filter {
                pattern: pattern.to_owned(),
                why: what_is_wrong(&e),
            })?;
            cells.retain(|cell| regex.is_match(&cell.key));
            if cells.is_empty() {
                return Err(StudyError::Filter {
                    pattern: pattern.to_owned(),
                    why: format!("matches none of the {} configurations", order.len()),
                });
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

    /// The plans, to be run before this one, of what its cells still to do need of other studies: runs whose
    /// weights are not there, though their rows may be. The arguments are those of [`Plan::new`].
    ///
    /// # Errors
    /// As [`Plan::new`], of a study that is needed.
    pub fn prerequisites(
        &self,
        data: &Path,
        text: Option<&Path>,
        valid_text: Option<&Path>,
    ) -> Result<Vec<Self>, StudyError> {
        let lacking = |plan: &Self| plan.lacking().collect();
        let mut plans = self.plans_of(&lacking, data, text, valid_text)?;
        for plan in &mut plans {
            plan.again = plan.cells.iter().map(|cell| cell.key.clone()).collect();
        }
        Ok(plans)
    }

    /// The plans, to be run before this one, of all that its cells need of other studies, whether or not it is there. The
    /// arguments are those of [`Plan::new`].
    ///
    /// # Errors
    /// As [`Plan::new`], of a study that is needed.
    pub fn needed(
        &self,
        data: &Path,
        text: Option<&Path>,
        valid_text: Option<&Path>,
    ) -> Result<Vec<Self>, StudyError> {
        let all = |plan: &Self| plan.cells.iter().filter_map(Cell::needs).collect();
        self.plans_of(&all, data, text, valid_text)
    }

    /// What cells that are still to do need and do not find.
    pub(super) fn lacking(&self) -> impl Iterator<Item = Needs> {
        let undone = self.cells.iter().filter(|cell| !self.is_done(cell));
        undone.filter(|cell| self.lacks(cell)).filter_map(Cell::needs)
    }

    /// Whether files that a cell needs are not there.
    pub(super) fn lacks(&self, cell: &Cell) -> bool {
        cell.lacks(&self.folder.join(&cell.key))
    }

    /// The plans of what `needs` says of this one, and of them in turn, those that are needed first.
    fn plans_of(
        &self,
        needs_of: &dyn Fn(&Self) -> Vec<Needs>,
        data: &Path,
        text: Option<&Path>,
        valid_text: Option<&Path>,
    ) -> Result<Vec<Self>, StudyError> {
        let needs = needs_of(self);
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
            // What is needed is to be there, though its rows are, and may need something itself.
            plan.again = plan.cells.iter().map(|cell| cell.key.clone()).collect();
            let mut all = plan.plans_of(needs_of, data, text, valid_text)?;
            plan.again.clear();
            all.push(plan);
            Ok(all)
        };
        let plans: Vec<Vec<Self>> = studies.iter().map(plan).collect::<Result<_, StudyError>>()?;
        // A teacher may be among the runs that are needed themselves.
        let mut found: Vec<Self> = Vec::new();
        for mut plan in plans.into_iter().flatten() {
            let has = |other: &Self, key: &str| {
                other.name == plan.name && other.cells.iter().any(|cell| cell.key == key)
            };
            plan.cells.retain(|cell| !found.iter().any(|other| has(other, &cell.key)));
            if !plan.cells.is_empty() {
                found.push(plan);
            }
        }
        Ok(found)
    }

    /// The study's name, with the text's where there is one.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The folder of the study's rows.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The file that its own rows are written to.
    pub fn rows(&self) -> PathBuf {
        self.folder_of_rows().join("rows.csv")
    }

    /// Every cell that the filter keeps, and whether its rows are there.
    pub fn cells(&self) -> impl Iterator<Item = (&str, bool)> {
        self.cells.iter().map(|cell| (cell.key.as_str(), self.is_done(cell)))
    }

    pub(super) fn is_done(&self, cell: &Cell) -> bool {
        !self.again.contains(&cell.key)
            && (self.elsewhere.contains(&cell.key)
                || self.store.finished(&cell.key, &cell.settings).is_some())
    }

    /// Has cells measured again whose files others need and do not find, though their rows are there.
    pub(super) fn measure_again(&mut self, needs: &[Needs]) {
        let study = &self.definition.study;
        let keys =
            needs.iter().filter(|needs| needs.study == *study).map(|needs| needs.cell.clone());
        self.again.extend(keys.collect::<Vec<_>>());
    }

    /// Takes the rows of the study's parts for done, beside its own.
    ///
    /// # Errors
    /// Rows that cannot be read.
    pub(super) fn look_into_parts(&mut self) -> Result<(), StudyError> {
        let settings: HashMap<&str, &str> =
            self.cells.iter().map(|cell| (cell.key.as_str(), cell.settings.as_str())).collect();
        let mut found = HashSet::new();
        let mut look = |store: &Store| {
            let here = store.all_finished();
            let ours = here.filter(|(cell, of)| settings.get(cell) == Some(of));
            found.extend(ours.map(|(cell, _)| cell.to_owned()));
        };
        look(&self.store);
        for part in Parts::of(&self.folder).with_rows()? {
            look(&Store::read(&part.folder, self.store.columns())?);
        }
        self.elsewhere = found;
        Ok(())
    }

    /// The cells of these keys as one of so many parts, whose rows are kept apart from the others'.
    ///
    /// # Errors
    /// Rows of the part that cannot be read.
    pub(super) fn part(&self, shard: Shard, keys: &HashSet<String>) -> Result<Self, StudyError> {
        let folder = Parts::of(&self.folder).folder_of(shard);
        let store = Store::read(&folder, self.store.columns())?;
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

    /// Takes in the cells of another plan of the study.
    pub(super) fn add(&mut self, other: Self) {
        let here: HashSet<String> = self.cells.iter().map(|cell| cell.key.clone()).collect();
        self.cells.extend(other.cells.into_iter().filter(|cell| !here.contains(&cell.key)));
        let place: HashMap<&str, usize> =
            self.order.iter().enumerate().map(|(at, key)| (key.as_str(), at)).collect();
        self.cells.sort_by_key(|cell| place.get(cell.key.as_str()).copied());
    }

    /// The folder of the rows that are written.
    pub(super) fn folder_of_rows(&self) -> PathBuf {
        let part = |shard| Parts::of(&self.folder).folder_of(shard);
        self.shard.map_or_else(|| self.folder.clone(), part)
    }

    /// How many cells are still to do.
    pub fn left(&self) -> usize {
        self.cells.iter().filter(|cell| !self.is_done(cell)).count()
    }

    /// Whether matrices are to be decomposed for as long as the cells take.
    pub fn decomposes(&self) -> bool {
        self.definition.work.get::<SpectrumStudy>().is_some()
            && self.cells.iter().any(|cell| !self.is_done(cell))
    }

    /// Lines of `rows.csv` that are cut off or have the wrong number of fields. The next run puts
    /// them into `rows-set-aside.csv` and measures their cells again.
    pub fn damaged(&self) -> &[String] {
        self.store.damaged()
    }

    /// How many measured rows the next run puts into `rows-set-aside.csv`, and why, in words.
    pub fn to_set_aside(&self) -> Vec<(usize, &'static str)> {
        let todo: Vec<&Cell> = self.cells.iter().filter(|cell| !self.is_done(cell)).collect();
        if todo.is_empty() {
            return Vec::new();
        }
        let (mut others, mut again) = (0, 0);
        for cell in todo {
            for row in self.store.measured(&cell.key) {
                *(if row.settings() == cell.settings { &mut again } else { &mut others }) += 1;
            }
        }
        let reasons = [
            (others, "measured with other settings, to be measured again"),
            (again, "of runs whose files are missing, but needed"),
            (self.store.others(&self.order), "of configurations that the definition no longer has"),
        ];
        reasons.into_iter().filter(|(rows, _)| *rows > 0).collect()
    }

    /// What is still to do, on so many threads.
    pub fn work(&self, threads: usize) -> Work {
        let todo = self.cells.iter().filter(|cell| !self.is_done(cell));
        let cells: Vec<(String, f64)> = todo.map(|cell| (cell.key.clone(), cell.cost_s)).collect();
        Work { name: self.name.clone(), at_a_time: self.at_a_time(threads, cells.len()), cells }
    }

    /// How many of so many cells are measured at a time, on so many threads.
    pub(super) fn at_a_time(&self, threads: usize, cells: usize) -> usize {
        if self.definition.work.is_one_at_a_time() { 1 } else { threads.clamp(1, cells.max(1)) }
    }
}

/// The columns of rows of this kind of study, and those that there are in `folder`, of cells that failed among them,
/// in the order of the cells.
///
/// # Errors
/// Rows that cannot be read.
pub fn stored_lines(kind: Kind, folder: &Path) -> Result<(Vec<Column>, Vec<Line>), StudyError> {
    let columns = kind.columns();
    let lines = Store::read(folder, &columns)?.rows().cloned().collect();
    Ok((columns, lines))
}

/// How long the rows took, one after another, in seconds; none where their kind is not timed.
pub fn time_of(columns: &[Column], lines: &[Line]) -> Option<f64> {
    lines.iter().filter_map(|line| line.wall_time_s(columns)).reduce(|sum, row| sum + row)
}

/// Refuses a study that some systems would take for another, in `data` already.
fn check_capitals(data: &Path, name: &str, definition: &StudyDefinition) -> Result<(), StudyError> {
    let there = std::fs::read_dir(data).into_iter().flatten().flatten();
    let names = there.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let other = names.filter(|other| other != name).find(|other| other.eq_ignore_ascii_case(name));
    match other {
        None => Ok(()),
        Some(other) => Err(StudyError::Definition {
            path: definition.path.clone(),
            why: format!(
                "the study {name:?} and {other:?} in {}/ differ only in case, which some file systems \
                 ignore; rename one",
                data.display()
            ),
        }),
    }
}

/// What the last line of a regular expression's error says, below the drawing of where it is.
fn what_is_wrong(error: &regex::Error) -> String {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default();
    last.strip_prefix("error: ").unwrap_or(last).to_owned()
}

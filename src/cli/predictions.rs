//! Common parts of the commands that measure trained heads: a study made from flags, and its rows.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use rank_study::experiments::heads::HeadMeasurement;
use rank_study::lm::Device;
use rank_study::record::{Row, Rows};
use rank_study::solver::check_tolerance;
use rank_study::study::{Plan, Preset, StudyDefinition, SweepSummary, stored_lines};
use rank_study::table::plural;
use toml::{Table, Value};

use super::cells::CellsProgress;
use super::flags::Part;
use super::measuring::measure;
use super::stop::{AFTER_CELLS, stop_at_signal};
use super::streams::say;
use super::usage_error::FlagContext as _;

/// Request to measure trained heads, from the flags.
pub struct Asked<'a> {
    pub folders: &'a [PathBuf],
    pub steps: &'a [usize],
    pub epsilons: &'a [f64],
    pub passages: Option<usize>,
    pub groups: usize,
    pub tokens: Option<usize>,
    pub rows: Option<usize>,
    pub split: Part,
    pub layers: &'a [usize],
    /// Only heads whose max |logit| is above this are fitted; all if `None`.
    pub above: Option<f64>,
    pub factors: bool,
}

impl Asked<'_> {
    /// Builds a study definition with the name of the folder `out`.
    pub fn definition(&self, out: &Path) -> Result<StudyDefinition> {
        self.epsilons.iter().try_for_each(|&e| check_tolerance(e)).flag("--tolerance")?;
        let name = out.file_name().map(|name| name.to_string_lossy().into_owned());
        let Some(name) = name else {
            bail!("--out {} has no folder name; name a folder for the rows", out.display());
        };
        let mut predict = Table::new();
        let mut set = |key: &str, value: Value| predict.insert(key.to_owned(), value);
        // Values beyond the range of a TOML integer become the largest one, which later checks refuse.
        let number = |value: usize| Value::from(i64::try_from(value).unwrap_or(i64::MAX));
        let whole =
            |values: &[usize]| -> Vec<Value> { values.iter().copied().map(number).collect() };
        let folders: Vec<Value> =
            self.folders.iter().map(|run| run.display().to_string().into()).collect();
        set("folders", folders.into());
        set("steps", whole(self.steps).into());
        set("epsilon", self.epsilons.to_vec().into());
        set("groups", number(self.groups));
        set("split", self.split.name().into());
        set("layers", whole(self.layers).into());
        set("factors", self.factors.into());
        if let Some(above) = self.above {
            set("above", above.into());
        }
        for (key, value) in
            [("tokens", self.tokens), ("rows", self.rows), ("passages", self.passages)]
        {
            if let Some(value) = value {
                set(key, number(value));
            }
        }
        let mut top = Table::new();
        top.insert("study".to_owned(), name.into());
        top.insert("kind".to_owned(), "predict".into());
        top.insert("predict".to_owned(), predict.into());
        // The search runs in float32; reported values are computed in float64.
        let search = Table::from_iter([("dtype".to_owned(), "f32".into())]);
        top.insert("search".to_owned(), search.into());
        let text = toml::to_string(&top).context("cannot write the definition of the flags")?;
        Ok(StudyDefinition::parse(Path::new("the flags"), text, Preset::Paper)?)
    }
}

/// Result of measuring the cells of a plan.
pub struct Predicted {
    /// The plan's name.
    pub name: String,
    /// All cells of the plan, including those measured before.
    pub keys: Vec<String>,
    pub summary: SweepSummary,
}

impl Predicted {
    /// Measures the missing cells, with an estimate of the time and a progress bar.
    pub fn by(plan: Plan, threads: usize, quiet: bool) -> Result<Self> {
        let progress = CellsProgress::new(vec![plan.work(threads)], quiet);
        progress.say(&format!(
            "{} configurations; {} left on {}",
            plan.cells().count(),
            progress.left(),
            plural(threads, "thread")
        ));
        let stop = stop_at_signal(AFTER_CELLS)?;
        let name = plan.name().to_owned();
        let keys = plan.cells().map(|(cell, _)| cell.to_owned()).collect();
        let summary = measure(plan, threads, Device::Cpu, stop, &progress);
        progress.finish();
        Ok(Self { name, keys, summary: summary? })
    }
}

/// Reads the rows of the cells `keys` from a folder, without failed ones; empty if there is no file yet.
pub fn rows_of(folder: &Path, keys: &[String]) -> Result<Vec<Row<HeadMeasurement>>> {
    if !folder.join("rows.csv").is_file() {
        return Ok(Vec::new());
    }
    let mut rows = Rows::<HeadMeasurement>::read(&[folder.to_owned()])?.rows;
    rows.retain(|row| keys.contains(&row.cell));
    Ok(rows)
}

/// Prints the rows of the cells `keys` as one JSON array.
pub fn print_json(definition: &StudyDefinition, folder: &Path, keys: &[String]) -> Result<()> {
    let (columns, lines) = stored_lines(definition.work.kind(), folder)?;
    let asked = lines.iter().filter(|line| keys.iter().any(|key| key == line.cell()));
    let all: Vec<serde_json::Value> = asked.map(|line| line.to_json(&columns)).collect();
    say!("{}", serde_json::Value::from(all));
    Ok(())
}

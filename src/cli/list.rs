//! `rank-study list`: the studies, and how many configurations of each are done.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;

use super::analysis::fail_if_missing;
use super::flags::{JsonFlag, PresetFlag};
use super::places::{data, definitions, fail_if_broken, names_in_data};
use super::streams::say;
use crate::record::{Column, ColumnKind};
use crate::report::duration;
use crate::run::log_columns;
use crate::study::{
    Ending, Kind, Plan, Preset, StudyDefinition, StudyError, endings, schema, stored_lines,
    time_of, unmerged_parts,
};
use crate::system::printable;
use crate::table::plural;

/// List the studies and how much of each is done
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  rank-study list
  rank-study list --preset quick --json
  rank-study list --columns fit
  rank-study list --schema > study.schema.json

Guide: docs/own-study.md")]
pub struct ListArgs {
    #[command(flatten)]
    preset: PresetFlag,
    #[command(flatten)]
    json: JsonFlag,
    /// List the columns of a kind of study instead [also files of a run: steps, curve, eval, heads]
    #[arg(long, value_name = "KIND", conflicts_with = "preset", value_parser = columns_of)]
    columns: Option<Columns>,
    /// Print a JSON Schema of definitions instead
    #[arg(long, conflicts_with_all = ["columns", "preset"])]
    schema: bool,
}

/// Columns of one kind of rows.
#[derive(Clone, Debug)]
struct Columns(Vec<Column>);

fn columns_of(name: &str) -> Result<Columns, String> {
    match log_columns().into_iter().find(|(file, _)| *file == name) {
        Some((_, columns)) => Ok(Columns(columns)),
        None => name.parse::<Kind>().map(|kind| Columns(kind.columns())),
    }
}

/// Runs the subcommand.
///
/// # Errors
/// Invalid definitions and unreadable rows, reported after the list of all others.
pub fn run(args: &ListArgs) -> Result<()> {
    if let Some(Columns(columns)) = &args.columns {
        return list_columns(columns, args.json.is_set);
    }
    if args.schema {
        say!("{:#}", schema());
        return Ok(());
    }
    let found = definitions(args.preset.get())?;
    let data = data(args.preset.get());
    let (mut lines, mut missing) = (Vec::new(), Vec::new());
    let texts = on_texts(args.preset.get(), &mut missing)?;
    for definition in &found.studies {
        match lines_of(definition, &data, &texts) {
            Ok(of_study) => lines.extend(of_study),
            Err(error) => missing.push((definition.study.clone(), format!("{error:#}"))),
        }
    }
    if args.json.is_set {
        let objects: Vec<serde_json::Value> = lines.iter().map(Line::to_json).collect();
        say!("{}", serde_json::Value::from(objects));
    } else {
        let longest = |of: &dyn Fn(&Line<'_>) -> usize| lines.iter().map(of).max().unwrap_or(0);
        let widths = [
            longest(&|line| line.definition.study.chars().count()),
            longest(&|line| line.on().chars().count()),
        ];
        lines.iter().for_each(|line| say!("{}", printable(&line.to_text(widths))));
    }
    let broken = found.tell_broken();
    fail_if_missing(&missing).and(fail_if_broken(broken))
}

/// Prints one line per column: its name, type, description and unit.
fn list_columns(columns: &[Column], json: bool) -> Result<()> {
    let kind = |column: &Column| match column.kind {
        ColumnKind::Text => "text",
        ColumnKind::Integer => "integer",
        ColumnKind::Number => "number",
    };
    if json {
        let object = |column: &Column| {
            serde_json::json!({
                "name": column.name, "kind": kind(column), "unit": column.unit,
                "about": column.about.trim(), "may_be_empty": !column.needed,
            })
        };
        say!("{}", serde_json::Value::from_iter(columns.iter().map(object)));
        return Ok(());
    }
    let width = columns.iter().map(|column| column.name.len()).max().unwrap_or(0);
    for column in columns {
        let unit = column.unit.map_or_else(String::new, |unit| format!(", {unit}"));
        say!("{:<width$}  {:<7}  {}{unit}", column.name, kind(column), column.about.trim());
    }
    Ok(())
}

/// A folder with the rows of a study on a text.
struct OnText {
    /// Name of the study in its definition.
    study: String,
    folder: PathBuf,
    /// Paths of the text and, if there was one, of the validation text when the rows were measured.
    text: String,
    valid_text: Option<String>,
}

/// Finds the folders with rows on texts. Folders whose manifest cannot be read are added to `missing`, with the reason.
fn on_texts(preset: Preset, missing: &mut Vec<(String, String)>) -> Result<Vec<OnText>> {
    let mut found = Vec::new();
    let has_files = |folder: &Path| {
        Ok(["rows.csv", "manifest.toml"].iter().all(|file| folder.join(file).is_file()))
    };
    for name in names_in_data(preset, has_files)? {
        let folder = data(preset).join(name);
        match on_text(&folder) {
            Ok(on_text) => found.extend(on_text),
            Err(error) => missing.push((folder.display().to_string(), format!("{error:#}"))),
        }
    }
    Ok(found)
}

/// Reads the text of a folder's rows from its manifest; `None` if they have no text or belong to no study.
fn on_text(folder: &Path) -> Result<Option<OnText>> {
    let manifest: toml::Table = std::fs::read_to_string(folder.join("manifest.toml"))?.parse()?;
    let entry = |key: &str| manifest.get(key).and_then(toml::Value::as_str);
    let definition = entry("definition").and_then(|text| text.parse::<toml::Table>().ok());
    let study = definition.as_ref().and_then(|table| table.get("study")?.as_str());
    let Some((study, text)) = study.zip(entry("text").filter(|text| !text.is_empty())) else {
        return Ok(None);
    };
    // Rows that do not depend on the text, such as fits, are in a folder without the text's name.
    Ok((entry("study") != Some(study)).then(|| OnText {
        study: study.to_owned(),
        folder: folder.to_owned(),
        text: text.to_owned(),
        valid_text: entry("valid_text").map(str::to_owned),
    }))
}

/// A study on one text, or on none, and its progress.
struct Line<'d> {
    definition: &'d StudyDefinition,
    /// Name of the folder: the study's name, followed by the text's if there is one.
    name: String,
    text: Option<&'d str>,
    cells: usize,
    done: usize,
    /// Cells whose training run was stopped before its end; the next sweep resumes it.
    stopped: usize,
    /// Cells whose rows have other settings.
    of_other_settings: usize,
    /// Sum of the rows' run times, in seconds.
    wall_time_s: Option<f64>,
    /// Whether settings were not compared, because the text or the model is missing.
    by_name: bool,
    /// The model or text that the study needs is missing: the reason why only cells with rows are counted.
    not_here: Option<String>,
    /// Shards whose rows are not merged, and therefore not counted.
    parts: usize,
}

/// One line per text on which the study has rows. A line without a text is added if the study has rows without one, or
/// none.
fn lines_of<'d>(
    definition: &'d StudyDefinition,
    data: &Path,
    texts: &'d [OnText],
) -> Result<Vec<Line<'d>>> {
    let plain = match Plan::new(definition, data, None, None, None) {
        Ok(plain) => plain,
        Err(why @ (StudyError::NotFetched { .. } | StudyError::NoText { .. })) => {
            let line = Line::of(definition, &data.join(&definition.study), None, true)?;
            return Ok(vec![Line { not_here: Some(why.to_string()), ..line }]);
        }
        Err(other) => return Err(other.into()),
    };
    let own_text = definition.own_text.as_deref().and_then(Path::to_str);
    let line = Line::of(definition, plain.folder(), Some(&plain), false)?;
    let mut lines = vec![Line { text: own_text, ..line }];
    let of_study =
        |on_text: &&OnText| on_text.study == definition.study && on_text.folder != plain.folder();
    for on_text in texts.iter().filter(of_study) {
        let OnText { folder, text, valid_text, .. } = on_text;
        let paths = [Some(text), valid_text.as_ref()].map(|path| path.map(Path::new));
        let is_there = paths.iter().flatten().all(|path| path.exists());
        let plan = match is_there {
            true => Some(Plan::new(definition, data, None, paths[0], paths[1])?),
            false => None,
        };
        // The file may have another content by now, whose rows would go to another folder.
        let line = match plan.filter(|plan| plan.folder() == folder) {
            Some(plan) => Line::of(definition, folder, Some(&plan), false)?,
            None => Line::of(definition, folder, Some(&plain), true)?,
        };
        lines.push(Line { text: Some(text), ..line });
    }
    if lines.len() > 1 && lines[0].done + lines[0].stopped + lines[0].of_other_settings == 0 {
        lines.remove(0);
    }
    Ok(lines)
}

impl<'d> Line<'d> {
    /// Counts the cells of a plan, or only those with rows if there is no plan. If `by_name`, cells with rows of any
    /// settings are done.
    fn of(
        definition: &'d StudyDefinition,
        folder: &Path,
        plan: Option<&Plan>,
        by_name: bool,
    ) -> Result<Self> {
        let kind = definition.work.kind();
        let (columns, lines) = stored_lines(kind, folder)?;
        let there = endings(kind, folder)?;
        let is_there = |cell: &str| there.get(cell) == Some(&Ending::Whole);
        let all: Vec<(&str, bool)> = match plan {
            Some(plan) if by_name => plan.cells().map(|(cell, _)| (cell, is_there(cell))).collect(),
            Some(plan) => plan.cells().collect(),
            None => {
                let good = there.iter().filter(|(_, ending)| **ending != Ending::Failed);
                good.map(|(cell, _)| (&**cell, is_there(cell))).collect()
            }
        };
        let undone = |of: Ending| {
            all.iter().filter(|(cell, done)| !done && there.get(*cell) == Some(&of)).count()
        };
        Ok(Self {
            definition,
            name: folder.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            text: None,
            cells: all.len(),
            done: all.iter().filter(|(_, done)| *done).count(),
            stopped: undone(Ending::Stopped),
            of_other_settings: undone(Ending::Whole),
            wall_time_s: time_of(&columns, &lines),
            by_name,
            not_here: None,
            parts: unmerged_parts(folder)?,
        })
    }

    fn presets(&self) -> Vec<String> {
        self.definition.presets.iter().map(ToString::to_string).collect()
    }

    /// Name of the text within the folder's name. A hash follows it if another text of the same name came first.
    fn text_name(&self) -> Option<&str> {
        self.text
            .map(|_| self.name.strip_prefix(&*self.definition.study).unwrap_or(&self.name))
            .map(|name| name.trim_start_matches('-'))
    }

    /// Label of the count: `done on pg-books`.
    fn on(&self) -> String {
        let done = if self.by_name { "there" } else { "done" };
        self.text_name().map_or_else(|| done.to_owned(), |text| format!("{done} on {text}"))
    }

    fn to_text(&self, [of_study, of_text]: [usize; 2]) -> String {
        let mut notes = Vec::new();
        if self.by_name && self.text.is_some() {
            notes.push("settings not compared: the text is not here, or has changed".to_owned());
        }
        notes.extend(
            self.not_here
                .iter()
                .map(|why| format!("only configurations with rows are counted: {why}")),
        );
        if self.stopped > 0 {
            notes.push(format!("{} stopped before the end", self.stopped));
        }
        if self.of_other_settings > 0 {
            notes.push(format!("{} have rows with other settings", self.of_other_settings));
        }
        if self.parts > 0 {
            notes.push(format!(
                "rows of {} not merged: run rank-study merge",
                plural(self.parts, "shard")
            ));
        }
        let notes = match notes.is_empty() {
            true => String::new(),
            false => format!(" ({})", notes.join("; ")),
        };
        format!(
            "{:<of_study$} {:>4} of {:>4} {:<of_text$} {:>12}  {:<11}  {}{notes}",
            self.definition.study,
            self.done,
            self.cells,
            self.on(),
            self.wall_time_s.map_or_else(String::new, duration),
            self.presets().join(","),
            self.definition.title,
        )
    }

    fn to_json(&self) -> serde_json::Value {
        serde_json::json!({
            "study": self.definition.study, "title": self.definition.title,
            "presets": self.presets(), "folder": self.name, "text": self.text,
            "text_name": self.text_name(),
            "cells": self.cells, "done": self.done, "stopped": self.stopped,
            "of_other_settings": self.of_other_settings,
            "by_name": self.by_name, "wall_time_s": self.wall_time_s, "parts": self.parts,
        })
    }
}

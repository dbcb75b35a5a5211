//! `rank-study table`, `figure` and `report`: tables, figures and the report page of studies.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;

use super::flags::PresetFlag;
use super::places::{data, figures, measured, measured_studies, names_in_data, note};
use super::streams::{inform, is_quiet, say, tell};
use crate::claims::Verdict;
use crate::experiment::{Kind, View};
use crate::experiments::claims::CLAIMS;
use crate::experiments::views;
use crate::report::{
    Analysis, ClaimRow, Header, Section, analyse, findings, measured_study, page, save_figures,
    save_tables,
};
use crate::run::Manifest;
use crate::study::{Preset, stored_lines, time_of, unmerged_parts};
use crate::system::write_whole;
use crate::table::{Table, plural};

/// Write the tables of one or more studies
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  rank-study table logit-growth
  rank-study table logit-growth phase controls --out tables/fits
  rank-study table predicted/training

Prints Markdown; writes CSV, Parquet, Markdown and LaTeX files. Guide: docs/own-study.md")]
pub struct TableArgs {
    /// Studies with rows in data/, or folders of predict
    #[arg(required = true, value_name = "STUDY")]
    studies: Vec<String>,
    /// Write to this folder [default: tables/ beside the rows]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    preset: PresetFlag,
}

/// Draw the figures of a study as SVG and PNG
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  rank-study figure logit-growth
  rank-study figure layouts --preset quick

Writes figures/STUDY/. Guide: docs/own-study.md")]
pub struct FigureArgs {
    /// Study with rows in data/
    study: String,
    #[command(flatten)]
    preset: PresetFlag,
}

/// Write the report: one HTML page of verdicts and figures
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  rank-study report
  rank-study report logit-growth layouts --out report.html

Writes figures/report.html and data/verdicts.csv. Guide: docs/own-study.md")]
pub struct ReportArgs {
    /// Studies with rows in data/ [default: all]
    studies: Vec<String>,
    #[command(flatten)]
    preset: PresetFlag,
    /// Write to this file [default: figures/report.html]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Runs `table`.
///
/// # Errors
/// Rows that are missing or damaged; files that cannot be written.
pub fn table(args: &TableArgs) -> Result<()> {
    let (folder, manifest) = measured(&args.studies[0], args.preset.get())?;
    let out = match (&args.out, args.studies.len()) {
        (Some(out), _) => out.clone(),
        (None, 1) => folder.join("tables"),
        (None, _) => bail!("several studies need an output folder; give --out DIR"),
    };
    let (_, _, view) = measured_study(&folder, &manifest)?;
    let studies = args.studies.iter().map(|study| {
        let (folder, manifest) = measured(study, args.preset.get())?;
        Ok(measured_study(&folder, &manifest)?.0)
    });
    let analysis = analyse(&studies.collect::<Result<Vec<_>>>()?, view)?;
    let paths = save_tables(&analysis.tables, &out)?;
    warn(&analysis);
    for table in &analysis.tables {
        say!("{}", table.to_markdown());
    }
    paths.iter().for_each(|path| inform(&format!("wrote {}", path.display())));
    Ok(())
}

/// Runs `figure`.
///
/// # Errors
/// As `table`.
pub fn figure(args: &FigureArgs) -> Result<()> {
    let Analysed { analysis, folder, .. } = analysed(&args.study, args.preset.get())?;
    warn(&analysis);
    // The folder's name includes that of the text.
    let study = folder.file_name().unwrap_or(args.study.as_ref());
    let folder = figures(args.preset.get()).join(study);
    let paths = save_figures(&analysis.figures, &folder)?;
    if !is_quiet() {
        paths.iter().for_each(|path| say!("{}", path.display()));
    }
    Ok(())
}

/// Runs `report`.
///
/// # Errors
/// As `table`.
pub fn report(args: &ReportArgs) -> Result<()> {
    let studies = if args.studies.is_empty() {
        let mut all = measured_studies(args.preset.get())?;
        // Studies with rows in shards only are included, so that they are reported as left out.
        all.extend(names_in_data(args.preset.get(), |folder| Ok(unmerged_parts(folder)? > 0))?);
        all.sort_unstable();
        all.dedup();
        all
    } else {
        args.studies.clone()
    };
    if studies.is_empty() {
        bail!(
            "no study has rows in {}/; change to a folder with rows, or measure them with `rank-study reproduce`",
            data(args.preset.get()).display()
        );
    }
    let out = args.out.clone().unwrap_or_else(|| figures(args.preset.get()).join("report.html"));
    let written = write_report(&studies, &out, args.preset.get())?;
    if !is_quiet() {
        for (status, count) in ClaimRow::counts(&ClaimRow::all(written.sections.iter())) {
            say!("{} {status}", plural(count, "claim"));
        }
        say!("");
        say!("report  {}", out.display());
    }
    fail_if_missing(&written.missing)
}

/// Prints what is not known about the rows that a page or table is made from.
fn warn(analysis: &Analysis) {
    analysis.not_known.iter().for_each(|unknown| inform(&format!("warning: {unknown}")));
}

/// Result of writing a report.
pub struct Written {
    /// The studies on it, with their verdicts.
    pub sections: Vec<Section>,
    /// Studies that are left out, each with its error.
    pub missing: Vec<(String, String)>,
}

/// Writes the tables and figures of each study and one page with all of them. If `studies` includes all studies with
/// rows, it also writes `verdicts.csv`. A study whose rows cannot be analysed is left out and listed in the result.
///
/// # Errors
/// No study can be analysed, or a file cannot be written.
pub fn write_report(studies: &[String], out: &Path, preset: Preset) -> Result<Written> {
    let mut sections = Vec::new();
    let mut verdicts = Vec::new();
    let mut machine = String::new();
    let mut missing = Vec::new();
    for study in studies {
        let Analysed { folder, manifest, kind, view, analysis } = match analysed(study, preset) {
            Ok(analysed) => analysed,
            Err(error) if studies.len() > 1 => {
                missing.push((study.clone(), format!("{error:#}")));
                continue;
            }
            Err(error) => return Err(error),
        };
        warn(&analysis);
        save_tables(&analysis.tables, &folder.join("tables"))?;
        save_figures(&analysis.figures, &figures(preset).join(study))?;
        verdicts.extend(analysis.verdicts.iter().map(|v| (study.clone(), v.clone())));
        if !manifest.machine.cpu.is_empty() {
            machine = manifest.about_machine();
        }
        sections.push((
            views().position(|other| other == view),
            Section { analysis, ..section(&folder, study, &manifest, kind, out)? },
        ));
    }
    // Order by stage (targets, fits, training runs), not by name.
    sections.sort_by_key(|(place, _)| *place);
    let sections: Vec<Section> = sections.into_iter().map(|(_, section)| section).collect();
    let is_whole = measured_studies(preset)?.iter().all(|measured| studies.contains(measured));
    let in_short =
        if is_whole && preset == Preset::Paper { findings_in_short() } else { Vec::new() };
    let header = Header {
        title: "rank-study: how large must attention logits grow?".to_owned(),
        generator: format!("rank-study {}", env!("CARGO_PKG_VERSION")),
        preset: format!("preset {preset}"),
        machine,
        in_short,
    };
    write_whole(out, page(&header, &sections)?.as_bytes())
        .with_context(|| format!("cannot write {}", out.display()))?;
    // `verdicts.csv` covers every study with rows, so a page of only some of them does not change it.
    if is_whole {
        let table = verdict_table(verdicts);
        let path = data(preset).join("verdicts.csv");
        write_whole(&path, table.to_csv().as_bytes())
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(Written { sections, missing })
}

/// Reads the listed results under the heading "In short" of docs/findings.md; empty if there is no such file.
fn findings_in_short() -> Vec<String> {
    let text = std::fs::read_to_string("docs/findings.md").unwrap_or_default();
    let section = text.split("\n## ").find(|section| section.starts_with("In short"));
    let result = |line: &str| line.strip_prefix("- ").map(ToOwned::to_owned);
    section.into_iter().flat_map(str::lines).filter_map(result).collect()
}

/// Prints the studies that were left out, and fails if there are any.
pub fn fail_if_missing(missing: &[(String, String)]) -> Result<()> {
    for (study, why) in missing {
        tell(&format!("left out: {study}: {why}"));
    }
    let failed = plural(missing.len(), "study");
    match missing {
        [] => Ok(()),
        _ => bail!("{failed} failed; see the lines above that begin with \"left out\""),
    }
}

/// Computes the contents of `verdicts.csv` for these studies.
///
/// # Errors
/// Rows that cannot be read.
pub fn verdicts_of(studies: &[String], preset: Preset) -> Result<String> {
    let mut verdicts = Vec::new();
    for study in studies {
        let Analysed { analysis, .. } = analysed(study, preset)?;
        verdicts.extend(analysis.verdicts.into_iter().map(|verdict| (study.clone(), verdict)));
    }
    Ok(verdict_table(verdicts).to_csv())
}

/// A table with one row per claim and study that measures it, and one per claim that no study measures.
fn verdict_table(mut verdicts: Vec<(String, Verdict)>) -> Table {
    for &claim in CLAIMS.iter() {
        if verdicts.iter().all(|(_, verdict)| verdict.claim != claim) {
            verdicts.push((String::new(), Verdict::not_measured(claim)));
        }
    }
    verdicts.sort_by_key(|(_, verdict)| CLAIMS.iter().position(|claim| *claim == verdict.claim));
    Table::from_items("verdicts", "Verdicts", &verdicts)
        .words("claim", "claim", |(_, verdict)| verdict.claim.to_string())
        .words("group", "group", |(_, verdict)| verdict.claim.group.title())
        .words("place", "place", |(_, verdict)| verdict.claim.place)
        .words("paper_says", "paper_says", |(_, of)| of.claim.paper_says.unwrap_or_default())
        .words("verdict", "verdict", |(_, verdict)| verdict.status.to_string())
        .words("headline", "headline", |(_, verdict)| &verdict.headline)
        .words("measured", "measured", |(_, verdict)| &verdict.measured)
        .words("study", "study", |(study, _)| study)
        .numbers("seeds", "seeds", |(_, verdict)| verdict.seeds)
        .build()
}

fn section(
    folder: &Path,
    study: &str,
    manifest: &Manifest,
    kind: Kind,
    out: &Path,
) -> Result<Section> {
    let rows = folder.join("rows.csv");
    let (columns, lines) = stored_lines(kind, folder)?;
    // Without a note, none is shown.
    let note = std::fs::read_to_string(note(study)).unwrap_or_default();
    let [title, question] = title_and_question(study, manifest);
    Ok(Section {
        study: study.to_owned(),
        title,
        question,
        findings: findings(&note, manifest.text("rows_sha256")).unwrap_or_default().to_owned(),
        command: command(study, manifest),
        wall_time_s: time_of(&columns, &lines),
        definition_toml: manifest.text("definition").to_owned(),
        rows_link: relative(&rows, out.parent().unwrap_or(Path::new("")))?,
        ..Section::default()
    })
}

/// Returns a study's title and question from its definition file, or from its manifest if the file is missing or
/// belongs to another study.
fn title_and_question(study: &str, manifest: &Manifest) -> [String; 2] {
    let text = std::fs::read_to_string(manifest.text("definition_file")).unwrap_or_default();
    let definition: toml::Table = text.parse().unwrap_or_default();
    let now = |key: &str| definition.get(key).and_then(toml::Value::as_str);
    let is_of_study = now("study").is_some_and(|name| study.starts_with(name));
    ["title", "question"].map(|key| {
        now(key).filter(|_| is_of_study).unwrap_or_else(|| manifest.text(key)).to_owned()
    })
}

/// Returns the command that measures a study again and draws its figures.
fn command(study: &str, manifest: &Manifest) -> String {
    let size = manifest.preset_flag();
    format!("{} && rank-study figure {study}{size}", manifest.sweep_command())
}

/// Returns `path` relative to the folder `from`. Both are relative to the working folder, or absolute.
fn relative(path: &Path, from: &Path) -> Result<String> {
    let here = std::env::current_dir().context("cannot find the working folder")?;
    let (path, from) = (here.join(path), here.join(from));
    let shared = path.components().zip(from.components()).take_while(|(a, b)| a == b).count();
    let up = std::iter::repeat_n("..".to_owned(), from.components().count() - shared);
    let down = path.components().skip(shared).map(|c| c.as_os_str().to_string_lossy().into_owned());
    Ok(up.chain(down).collect::<Vec<_>>().join("/"))
}

/// A study's rows and their analysis.
struct Analysed {
    folder: PathBuf,
    manifest: Manifest,
    kind: Kind,
    view: View,
    analysis: Analysis,
}

fn analysed(study: &str, preset: Preset) -> Result<Analysed> {
    let (folder, manifest) = measured(study, preset)?;
    let (study, kind, view) = measured_study(&folder, &manifest)?;
    Ok(Analysed { analysis: analyse(&[study], view)?, folder, manifest, kind, view })
}

//! Shows a folder that the program wrote as a page.

mod head_log;
mod page;
mod shown;
mod sources;

use std::path::{Path, PathBuf};

use super::error::ReportError;
use super::measured::{analyse, measured_study};
use crate::experiment::Kind;
use crate::experiments::heads::tables::heads::{HeadRow, TrainedHeads};
use crate::experiments::heads::{HeadMeasurement, PredictStudy};
use crate::experiments::training::tables::run_course::RunCourse;
use crate::figure::Figure;
use crate::lm::ExportedHeads;
use crate::record::Rows;
use crate::run::{Manifest, RunError};
use crate::study::StudyError;
use crate::table::distinct;

pub use page::shown_page;
pub use shown::{HeadGrid, Shown};

/// Reads each path: a folder of a fit, a training run, predictions or a study, or a log of heads. Several runs are shown
/// together.
///
/// # Errors
/// A path is none of these, or a file is damaged.
pub fn show(paths: &[PathBuf]) -> Result<Vec<Shown>, ReportError> {
    let mut shown = match paths.iter().all(|path| RunCourse::is_in(path)) {
        true => vec![sources::runs(paths)?],
        false => paths.iter().map(|path| one(path)).collect::<Result<_, _>>()?,
    };
    for one in &mut shown {
        one.figures =
            std::mem::take(&mut one.figures).into_iter().flat_map(Figure::in_parts).collect();
    }
    Ok(shown)
}

fn one(path: &Path) -> Result<Shown, ReportError> {
    if path.join("frontier.csv").is_file() {
        return sources::fit(path);
    }
    if RunCourse::is_in(path) {
        return sources::runs(&[path.to_owned()]);
    }
    if path.join("rows.csv").is_file() {
        return study(path);
    }
    if head_log::is_at(path) {
        return head_log::show(path);
    }
    let why = match path.exists() {
        _ if ExportedHeads::read(path).is_ok() => {
            "holds exported heads; `rank-study diagnose` makes their page"
        }
        true => NOTHING,
        false => "does not exist",
    };
    Err(ReportError::Message(format!("{} {why}", path.display())))
}

/// Why a path is not shown.
const NOTHING: &str = "has nothing to show; give a folder of a fit (frontier.csv), a training run (steps.csv), \
                       predictions or a study (rows.csv), or a log of heads";

/// Shows predictions of one model none of whose heads was fitted, over its steps.
fn screened(rows: &[HeadRow]) -> Option<Shown> {
    let models = distinct(rows.iter().map(|row| (row.run(), row.seed())));
    let is_screened = models.len() == 1 && rows.iter().all(|row| !row.found.is_fitted());
    is_screened.then(|| head_log::screened(models[0].0.to_owned(), rows))
}

/// Shows the folder of a study, or of `predict`, whose rows have no definition.
fn study(folder: &Path) -> Result<Shown, ReportError> {
    let read = |error: RunError| ReportError::Study(StudyError::from(error));
    let manifest = Manifest::read(&folder.join("manifest.toml")).map_err(read)?;
    let (measured, kind, view) = measured_study(folder, &manifest)?;
    let is_of_study = !manifest.text("view").is_empty();
    let own = [folder.to_owned()];
    let is_of_heads = kind == Kind::of::<PredictStudy>();
    let heads = is_of_heads.then(|| Rows::<HeadMeasurement>::read(&own)).transpose()?;
    let predicted = heads.as_ref().filter(|_| !is_of_study);
    if let Some(shown) = predicted.and_then(|heads| screened(&heads.rows)) {
        return Ok(shown);
    }
    let analysis = analyse(&[measured], view)?;
    let title = match manifest.text("title") {
        "" => format!("Predictions: {}", folder.display()),
        title => title.to_owned(),
    };
    let verdicts = analysis.verdicts.iter().filter(|_| is_of_study);
    let mut shown = Shown {
        title,
        conclusion: verdicts
            .map(|v| format!("{}: {}. {}.", v.status, v.claim, v.headline))
            .collect(),
        figures: analysis.figures,
        tables: analysis.tables,
        notes: analysis.not_known.iter().map(|unknown| format!("{unknown}.")).collect(),
        ..Shown::default()
    };
    if let Some(heads) = heads {
        sources::add_heads(&mut shown, &TrainedHeads::of(&heads)?);
    }
    Ok(shown)
}

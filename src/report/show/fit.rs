//! Shows the folder of a fit.

use std::path::Path;

use super::shown::Shown;
use crate::experiments::fits::figures::one_fit::{errors_by_row, frontier_of_fit};
use crate::experiments::fits::tables::one_fit::{OneFit, TARGET};
use crate::figure::{Colouring, Matrix, matrices};
use crate::report::conclusion::fit_conclusion;
use crate::report::error::ReportError;
use crate::table::plural;

/// Shows a fit: frontier, errors by row and attention.
///
/// # Errors
/// A file of the folder is damaged.
pub(super) fn show(folder: &Path) -> Result<Shown, ReportError> {
    let fit = OneFit::read(folder)?;
    let mut figures = Vec::new();
    if let Some(target) = &fit.target {
        let mut maps = vec![Matrix { title: "target".to_owned(), values: target.view() }];
        maps.extend(
            fit.found
                .iter()
                .map(|found| Matrix { title: found.name.clone(), values: found.attention.view() }),
        );
        let what = "The target, and the attention of each fit.";
        figures.push(matrices("attention", what, &maps, Colouring::Attention));
    }
    figures.extend(frontier_of_fit(&fit));
    figures.extend(errors_by_row(&fit));
    let notes = match fit.target {
        Some(_) if fit.lost > 0 => vec![format!(
            "The factors of {} are missing: their attention is not drawn.",
            plural(fit.lost, "row")
        )],
        Some(_) => Vec::new(),
        None => vec![format!(
            "{} has no {TARGET}: its attention is not drawn. Fit again into another folder to get it.",
            folder.display()
        )],
    };
    Ok(Shown {
        conclusion: fit_conclusion(&fit.rows),
        tables: vec![fit.table()],
        title: format!("Fit: {}", fit.label),
        figures,
        notes,
        ..Shown::default()
    })
}

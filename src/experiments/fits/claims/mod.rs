//! Claims decided by this experiment.

pub mod controls;
pub mod growth;
pub mod layouts;

use super::tables::growth::GrowthCell;

/// The scale of fits as text: `n = 48–384, d = 4–32`.
pub(crate) fn scale_of_cells<'c>(cells: impl IntoIterator<Item = &'c GrowthCell>) -> String {
    let (lengths, ranks): (Vec<usize>, Vec<usize>) =
        cells.into_iter().map(|cell| (cell.n, cell.rank)).unzip();
    let range = |values: Vec<usize>| match (values.iter().min(), values.iter().max()) {
        (Some(least), Some(most)) if least < most => format!("{least}–{most}"),
        (Some(one), _) => one.to_string(),
        _ => "–".to_owned(),
    };
    format!("n = {}, d = {}", range(lengths), range(ranks))
}

//! The figures of a study of windows.

use super::model::{Axis, Figure, Key, Panel, Series, Shape};
use super::style::{Ink, Stroke};
use crate::table::{LayoutCell, Layouts};

/// Smaller errors are drawn here.
const LEAST: f64 = 1e-9;

/// Error against the local head's window, a panel a target and length, a line a rank.
pub fn window_rule(study: &Layouts) -> Vec<Figure> {
    // A smooth target is met to rounding: its errors need the whole range, of powers.
    let errors = study.cells.iter().flat_map(|cell| &cell.seeds).map(|seed| seed.kl_nats);
    let y = Axis::log("error, KL(target ‖ attention) (nats)", errors.map(|kl| kl.max(LEAST)));
    let mut cells: Vec<&LayoutCell> =
        study.cells.iter().filter(|cell| cell.window().is_some()).collect();
    cells.sort_by(|a, b| {
        let key = |cell: &LayoutCell| (cell.target.clone(), cell.n, cell.rank, cell.window());
        key(a).cmp(&key(b))
    });
    let panels = cells.chunk_by(|a, b| a.target == b.target && a.n == b.n).map(|here| {
        let mut series = Vec::new();
        for same in here.chunk_by(|a, b| a.rank == b.rank) {
            let (name, ink) = (format!("rank {}", same[0].rank), Ink::of_rank(same[0].rank));
            let window = |cell: &LayoutCell| cell.window().map_or(f64::NAN, |w| w as f64);
            let seeds = same.iter().flat_map(|cell| {
                cell.seeds.iter().map(|seed| (window(cell), seed.kl_nats.max(LEAST)))
            });
            series.push(Series::new(&name, ink, Shape::Seeds, seeds.collect()));
            let medians = same
                .iter()
                .filter_map(|cell| Some((window(cell), cell.kl_nats()?.median.max(LEAST))));
            series.push(Series::new(&name, ink, Shape::LineMarkers, medians.collect()));
        }
        let windows = here.iter().filter_map(|cell| Some(cell.window()? as f64));
        Panel::new(
            &format!("{}, n = {}", here[0].target, here[0].n),
            Axis::log_at("window of the local head, W", windows),
            y.clone(),
            series,
        )
    });
    let mut keys = Key::of_ranks(cells.iter().map(|cell| cell.rank));
    keys.push(Key::new("seed", Ink::grey(Stroke::Solid), Shape::Seeds));
    let cap = cells.first().map_or(0.0, |cell| cell.cap);
    vec![Figure {
        name: "windows".to_owned(),
        caption: format!(
            "The error of a local head of window W beside a global head, logits up to {cap}, for targets that \
             reach back as their titles say. Strokes are seeds, lines medians."
        ),
        alt: alt(study),
        keys,
        panels: panels.collect(),
    }]
}

fn alt(study: &Layouts) -> String {
    let lines = study.least_windows().into_iter().map(|one| {
        let window = one.window.map_or("none".to_owned(), |window| window.to_string());
        format!(
            "{}, n = {}, rank {}: least window for an error of {}: {window}.",
            one.target, one.n, one.rank, one.error
        )
    });
    lines.collect::<Vec<_>>().join(" ")
}

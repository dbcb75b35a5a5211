//! Figures drawn from plausible rows: their series, and that both media take them. The pictures are
//! left in the folder for test files, to be looked at.

use std::path::Path;

use crate::plausible;
use rank_study::experiments::{fits, training};
use rank_study::figure::{Figure, Shape};

fn keep(figure: &Figure) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("figures");
    std::fs::create_dir_all(&folder).unwrap();
    let (svg, png) = (figure.svg().unwrap(), figure.png().unwrap());
    assert!(svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>"));
    assert!(svg.contains("role=\"img\"") && svg.contains("DejaVu Sans"));
    assert!(png.starts_with(b"\x89PNG"));
    std::fs::write(folder.join(format!("{}.svg", figure.name)), svg).unwrap();
    std::fs::write(folder.join(format!("{}.png", figure.name)), png).unwrap();
}

#[test]
fn rank_penalty_has_a_panel_per_family_on_one_scale() {
    let figure = fits::figures::growth::inflation(&plausible::growth());
    let titles: Vec<&str> = figure.panels.iter().map(|panel| panel.title.as_str()).collect();
    assert_eq!(titles, ["dirichlet-band, w = 32", "landmark, m = 8", "random-sparse, k = 8"]);
    assert!(figure.panels.iter().all(|panel| panel.y == figure.panels[0].y));
    let missing = figure.panels[0].series.iter().filter(|series| series.shape == Shape::Above);
    assert_eq!(missing.map(|series| series.points.len()).sum::<usize>(), 3);
    let ticks: Vec<&str> =
        figure.panels[0].x.ticks.iter().map(|tick| tick.label.as_str()).collect();
    assert_eq!(ticks, ["2", "4", "8", "16", "32", "64"]);
    keep(&figure);
}

#[test]
fn logits_needed_stand_over_their_floor() {
    let figure = fits::figures::growth::logits_needed(&plausible::growth());
    let floor = &figure.panels[0].series[0];
    assert_eq!(floor.points.len(), 3);
    for series in figure.panels[0].series.iter().filter(|s| s.shape == Shape::LineMarkers) {
        for (x, y) in &series.points {
            let under = floor.points.iter().find(|(n, _)| n == x).unwrap().1;
            assert!(*y >= under, "{} at n = {x}: {y} under {under}", series.name);
        }
    }
    keep(&figure);
}

#[test]
fn layouts_are_named_in_the_legend() {
    let figure = fits::figures::layouts::layouts(&plausible::layout_tables()).remove(0);
    let keys: Vec<&str> = figure.keys.iter().map(|key| key.label.as_str()).collect();
    let expected = [
        "2 global heads of rank 8",
        "1 global head of rank 16",
        "1 local head (window 24) + 1 global head of rank 8",
        "one seed",
        "floor: one head, no rank limit",
    ];
    assert_eq!(keys, expected);
    assert!(figure.panels[0].series.iter().all(|series| series.label.is_none()));
    keep(&figure);
}

#[test]
fn training_shows_loss_and_logits_of_each_run() {
    let folder = tempfile::tempdir().unwrap();
    plausible::lm_quick(folder.path());
    let study = plausible::trainings(folder.path()).unwrap();
    let kinds = training::figures::training::head_kinds(&study).unwrap();
    let names: Vec<&str> = kinds.panels[0].series.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(
        names,
        ["LS-attention, global heads", "LS-attention, local heads", "multi-head, global heads"]
    );
    keep(&kinds);
    let figure = training::figures::training::training(&study);
    assert_eq!(figure.panels.len(), 2);
    assert!(figure.panels[1].y.range.0 == 0.0, "logits are shown from zero");
    assert!(figure.alt().contains("Loss, multi-head: "), "{}", figure.alt());
    keep(&figure);
}

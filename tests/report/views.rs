//! Figures of studies whose tables are made up here: their fields, series and labels.

use rank_study::experiments::fits::tables::growth::{Growth, GrowthCell, GrowthSeed};
use rank_study::experiments::fits::tables::layouts::{LayoutCell, LayoutSeed, Layouts};
use rank_study::experiments::heads::tables::heads::{HeadRow, TrainedHeads};
use rank_study::experiments::heads::{HeadKey, HeadMeasurement};
use rank_study::experiments::latency::LatencyMeasurement;
use rank_study::experiments::latency::tables::{Latencies, LatencyGroup};
use rank_study::experiments::spectrum::tables::{Spectra, SpectrumGroup};
use rank_study::experiments::training::tables::training::{TrainingRun, Trainings};
use rank_study::experiments::{ModelKey, fits, heads, latency, spectrum, training};
use rank_study::figure::Shape;
use rank_study::table::Spread;
use rank_study::targets::HeadKind;

fn growth_cell(window: usize, n: usize, rank: usize, inflations: [Option<f64>; 3]) -> GrowthCell {
    let seed = |(seed, inflation): (usize, Option<f64>)| GrowthSeed {
        seed,
        needed: inflation.map(|times| 2.0 * times),
        floor: Some(2.0),
        inflation,
    };
    GrowthCell {
        family: "dirichlet-band".to_owned(),
        label: format!("dirichlet-band, w = {window}"),
        support: Some(window),
        tolerance: 0.1,
        n,
        rank,
        seeds: inflations.into_iter().enumerate().map(seed).collect(),
        step_limited: 0,
    }
}

fn growth(cells: Vec<GrowthCell>) -> Growth {
    Growth { cells, slopes: Vec::new(), failed: 0 }
}

#[test]
fn the_heat_map_has_a_field_for_each_pair_of_ratios() {
    let figure = fits::figures::phase::phase(&growth(vec![
        growth_cell(8, 64, 8, [Some(1.0), Some(1.1), Some(1.2)]),
        growth_cell(16, 128, 16, [Some(1.1), Some(1.3), Some(1.4)]),
        growth_cell(32, 64, 8, [Some(12.0), Some(15.0), None]),
        growth_cell(32, 64, 4, [None, None, Some(40.0)]),
    ]))
    .remove(0);
    let tiles = &figure.panels[0].tiles;
    let texts: Vec<&str> = tiles.iter().map(|tile| tile.text.as_str()).collect();
    assert_eq!(texts[..3], ["1.1", "15", "none"], "w/d of 1, 4 and 8");
    assert_eq!(texts[3..], ["", "", ""], "no cell has these ratios");
    let inside = |(low, high): (f64, f64), value: f64| low < value && value < high;
    assert!(inside(tiles[1].x, 8.0) && inside(tiles[1].y, 4.0), "{:?}", tiles[1]);
    assert_ne!(tiles[0].colour, tiles[1].colour);
    let legend: Vec<&str> = figure.keys.iter().map(|key| key.label.as_str()).collect();
    assert_eq!(legend[..3], ["rank penalty 1", "2", "3"]);
    let colour =
        |label: &str| figure.keys.iter().find(|key| key.label == label).unwrap().ink.colour;
    assert_eq!(colour("none: most fits did not reach ε"), tiles[2].colour);
    assert_eq!(colour("not measured"), tiles[3].colour);
    assert_eq!(figure.panels[0].title, "Median rank penalty (×) at ε = 0.1 nats");
    assert!(figure.alt().contains("(n/d) 16, window / rank (w/d) 8: none."), "{}", figure.alt());
    assert!(figure.svg().unwrap().contains("none"));
}

#[test]
fn a_target_that_needs_no_logits_is_named_and_not_drawn() {
    let mut free = growth_cell(32, 64, 8, [None; 3]);
    free.family = "prefix".to_owned();
    free.label = "prefix".to_owned();
    for seed in &mut free.seeds {
        (seed.needed, seed.floor) = (Some(0.0), Some(0.0));
    }
    let cells = vec![growth_cell(8, 64, 8, [Some(1.0), Some(1.1), Some(1.2)]), free];
    let figure = fits::figures::growth::inflation(&growth(cells));
    assert_eq!(figure.panels.len(), 1);
    assert_eq!(figure.panels[0].y.label, "rank penalty (×) at ε = 0.1 nats");
    assert!(figure.caption.contains(": prefix."), "{}", figure.caption);
}

#[test]
fn several_errors_are_named_panel_by_panel() {
    let strict =
        GrowthCell { tolerance: 0.01, ..growth_cell(8, 64, 8, [Some(1.0), Some(1.1), Some(1.2)]) };
    let cells = vec![growth_cell(8, 64, 8, [Some(1.0), Some(1.1), Some(1.2)]), strict];
    let study = growth(cells);
    for figure in
        [fits::figures::growth::inflation(&study), fits::figures::growth::logits_needed(&study)]
    {
        let titles: Vec<&str> = figure.panels.iter().map(|panel| panel.title.as_str()).collect();
        let expected = ["dirichlet-band, w = 8; ε = 0.1", "dirichlet-band, w = 8; ε = 0.01"];
        assert_eq!(titles, expected, "{}", figure.name);
        assert!(!figure.panels[0].y.label.contains("ε ="), "{}", figure.panels[0].y.label);
    }
}

fn layout_cell(target: &str, layout: &str, rank: usize, cap: f64, kl_nats: f64) -> LayoutCell {
    LayoutCell {
        target: target.to_owned(),
        layout: layout.parse().unwrap(),
        n: 64,
        rank,
        cap,
        seeds: (0..3).map(|seed| LayoutSeed { seed, kl_nats }).collect(),
        floor: Spread::of([0.5 * kl_nats]),
    }
}

#[test]
fn frontiers_have_a_line_a_rank_over_the_floor_and_end_at_the_panels_edge() {
    let cells = [("band", 4, 1.0, 0.5), ("band", 4, 8.0, 1e-9), ("band", 8, 1.0, 0.2)]
        .map(|(target, rank, cap, kl)| layout_cell(target, "global", rank, cap, kl));
    let figure =
        fits::figures::layouts::frontiers(&Layouts { cells: cells.to_vec(), failed: 0 }).remove(0);
    let panel = &figure.panels[0];
    let lines: Vec<&str> = panel
        .series
        .iter()
        .filter(|series| series.shape == Shape::Line)
        .map(|series| series.name.as_str())
        .collect();
    assert_eq!(lines, ["floor", "rank 4", "rank 8"]);
    let lowest = panel.y.range.0;
    assert!(lowest > 1e-5, "errors as good as none do not press the rest into a corner: {lowest}");
    for series in &panel.series {
        assert!(series.points.iter().all(|&(_, kl)| kl >= lowest * 0.999), "{}", series.name);
    }
}

#[test]
fn spectra_show_attention_and_logits_of_each_target() {
    let cell = |label: &str, matrix: &str, n: usize, rank: f64| SpectrumGroup {
        label: label.to_owned(),
        matrix: matrix.to_owned(),
        n,
        effective_rank: Spread::of([rank]),
        numerical_rank: Spread::of([rank]),
        spectrum: vec![(1.0, 1.0), (2.0, 0.5), (4.0, 1e-9)],
        seeds: 3,
    };
    let cells = vec![
        cell("band", "attention", 64, 30.0),
        cell("band", "attention", 256, 120.0),
        cell("band", "logits", 256, 90.0),
        cell("landmark", "attention", 256, 6.0),
    ];
    let figures = spectrum::figures::spectra(&Spectra { cells, failed: 0 });
    let [values, ranks] = &figures[..] else { panic!("two figures") };
    assert_eq!(values.panels.len(), 2);
    assert_eq!(values.panels[0].series[0].points.len(), 2, "what is as good as 0 is left out");
    let band = &ranks.panels[0].series[0];
    assert_eq!(
        (band.name.as_str(), &band.points[..]),
        ("attention", &[(64.0, 30.0), (256.0, 120.0)][..])
    );
    assert!(ranks.alt().contains("landmark, attention: 6.00 at 256."), "{}", ranks.alt());
}

#[test]
fn latency_is_in_the_units_that_it_says() {
    let round = |seconds: f64| LatencyMeasurement {
        prefill_s: seconds,
        decode_s: 0.01 * seconds,
        cache_bytes: 1 << 21,
        ..LatencyMeasurement::default()
    };
    let cell = |arm: &str, n: usize, seconds: f64| LatencyGroup {
        run: arm.to_owned(),
        arm: arm.to_owned(),
        n,
        rounds: [1.0, 1.0, 1.5].map(|times| round(times * seconds)).to_vec(),
    };
    let study = Latencies {
        cells: vec![cell("ls", 512, 0.5), cell("mhsa", 512, 1.0), cell("mhsa", 1024, 2.0)],
    };
    let figure = latency::figures::latency(&study).remove(0);
    let mhsa = |panel: usize| figure.panels[panel].series[3].points.clone();
    assert_eq!(mhsa(0), [(512.0, 1.0), (1024.0, 2.0)], "medians");
    let rounds = &figure.panels[0].series[2];
    assert_eq!((rounds.shape, rounds.points.len(), rounds.points[2].1), (Shape::Seeds, 6, 1.5));
    assert!(figure.panels[0].y.range.1 > 3.0, "the slowest round is inside");
    assert_eq!((mhsa(1)[0].1, figure.panels[1].y.label.as_str()), (10.0, "time (ms)"));
    assert_eq!((mhsa(2)[0].1, figure.panels[2].y.label.as_str()), (2.0, "size (MiB)"));
    let table = &study.tables()[0].to_markdown();
    assert!(
        table.contains("| ls | 512 | 0.500 (0.500–0.750) | 0.00500 (0.00500–0.00750) | 2097152 | 0.500 | 0.500 | 1.00 | 3 |"),
        "{table}"
    );
}

fn run(arm: &str, loss: f64) -> TrainingRun {
    let mut run = TrainingRun::default();
    (run.of.model.run, run.of.model.arm) = (arm.to_owned(), arm.to_owned());
    (run.of.recall, run.found.corpus_entropy_nats) = (Some(0.5), Some(1.0));
    run.found.valid_loss_nats = Some(loss);
    run
}

#[test]
fn the_dial_subtracts_the_entropy() {
    let runs = vec![run("local-only", 1.4), run("ls", 1.2), run("mhsa", 1.3)];
    let study = Trainings { runs, failed: 0 };
    let dial = training::figures::across_runs::dial(&study).remove(0);
    let ls =
        dial.panels[0].series.iter().find(|s| s.label.as_deref() == Some("LS-attention")).unwrap();
    assert!((ls.points[0].1 - 0.2).abs() < 1e-12 && ls.points[0].0 == 0.5, "{:?}", ls.points);
}

fn head(arm: &str, kind: HeadKind, seed: u64, step: usize, input_factor: f64) -> HeadRow {
    let model = ModelKey {
        of: Some("runs".to_owned()),
        seed: Some(seed),
        ..ModelKey::of_published(&format!("{arm}-64"), arm, None, [1, 1, 64], Some(step))
    };
    HeadRow {
        study: "predictions".to_owned(),
        cell: String::new(),
        of: HeadKey { model, layer: 0 },
        found: HeadMeasurement {
            kind,
            n: 64,
            rank: 8,
            epsilon: 0.01,
            actual: 8.0 * input_factor,
            spread: 12.0 * input_factor,
            needed: Some(4.0),
            needed_from_input: Some(4.0 * input_factor),
            floor: Some(3.0),
            ..HeadMeasurement::default()
        },
        settings: String::new(),
    }
}

#[test]
fn trained_heads_are_drawn_level_by_level_and_point_by_point() {
    let heads = ["mhsa", "ls"].into_iter().flat_map(|arm| {
        let kind = if arm == "ls" { HeadKind::Local { window: 4 } } else { HeadKind::Global };
        (0..3).flat_map(move |seed| {
            [(100, 1.5), (400, 4.0 + seed as f64)]
                .map(|(step, input_factor)| head(arm, kind, seed, step, input_factor))
        })
    });
    let study = TrainedHeads { heads: heads.collect(), failed: 0 };
    let [figure] = &heads::figures::heads::decomposition(&study)[..] else { panic!("one figure") };
    let titles: Vec<&str> = figure.panels.iter().map(|panel| panel.title.as_str()).collect();
    assert_eq!(titles, ["multi-head: n = 64, d_head = 8", "LS-attention: n = 64, d_head = 8"]);
    let line = |name: &str| {
        let lines = figure.panels[0].series.iter().filter(|s| s.shape == Shape::LineMarkers);
        lines.filter(|s| s.name == name).flat_map(|s| s.points.clone()).collect::<Vec<_>>()
    };
    assert_eq!(line("floor: needed at unlimited rank"), [(100.0, 3.0), (400.0, 3.0)]);
    assert_eq!(line("needed from the layer inputs"), [(100.0, 6.0), (400.0, 20.0)], "medians");
    assert_eq!(line("max |logit|"), [(100.0, 12.0), (400.0, 40.0)]);
    assert!(figure.alt().contains("max |logit|: 12.0 at 100, 40.0 at 400."), "{}", figure.alt());

    let figures = heads::figures::prediction::prediction(&study, &[]);
    let names: Vec<&str> = figures.iter().map(|figure| figure.name.as_str()).collect();
    assert_eq!(names, ["needed-against-actual", "from-input-against-actual"]);
    let tied = &figures[1].panels[0];
    let points = |name: &str| {
        let found = tied.series.iter().find(|series| series.name == name);
        found.map(|series| series.points.clone())
    };
    let expected: Vec<_> =
        [4.0, 5.0, 6.0].map(|input_factor| (4.0 * input_factor, 8.0 * input_factor)).to_vec();
    assert_eq!(points("LS-attention, local heads").unwrap(), expected, "the last step alone");
    assert_eq!(points("multi-head").unwrap(), expected);
    for figure in figures.iter().chain([figure]) {
        assert!(figure.svg().unwrap().contains("</svg>"));
    }
}

#[test]
fn the_first_run_of_each_arm_leads_and_no_more_than_a_row() {
    let heads = [("mhsa", 64), ("mhsa", 1024), ("ls", 64)].into_iter().flat_map(|(arm, n)| {
        [100, 400].map(|step| {
            let mut head = head(arm, HeadKind::Global, 0, step, 2.0);
            head.of.model.run = format!("{arm}-{n}");
            head.found.n = n;
            head
        })
    });
    let study = TrainedHeads { heads: heads.collect(), failed: 0 };
    let titles = heads::figures::heads::decomposition(&study).into_iter().map(|figure| {
        let panels = figure.panels.iter();
        (figure.name.clone(), panels.map(|panel| panel.title.clone()).collect::<Vec<_>>())
    });
    let titles: Vec<(String, Vec<String>)> = titles.collect();
    let [(lead, leading), (rest, others)] = &titles[..] else { panic!("{titles:?}") };
    assert_eq!([lead, rest], ["decomposition", "decomposition-others"]);
    assert_eq!(leading[..], ["multi-head: n = 64, d_head = 8", "LS-attention: n = 64, d_head = 8"]);
    assert_eq!(others[..], ["multi-head: n = 1,024, d_head = 8"]);
}

//! `rank-study fit` through the binary: what it writes, what can be computed again from it, and
//! what it refuses.

use std::path::Path;

use crate::common::binary;
use crate::common::binary::{Folder, Record, number};
use ndarray::{Array1, Array3};
use rank_study::targets::{Family, HeadKind, Layout, Target, Visibility};

/// The columns of frontier.csv that others rely on, in their order.
const COLUMNS: [&str; 18] = [
    "target", "n", "rank", "layout", "seed", "cap", "kl_nats", "max_abs_logit", "logit_spread",
    "norm_product", "floor_kl_nats", "floor_max_abs_logit", "inflation", "outcome", "iterations",
    "evaluations", "wall_time_s", "factors",
];
const BAND: [&str; 11] = [
    "fit", "--family", "dirichlet-band", "--window", "5", "--n", "14", "--rank", "3", "--starts",
    "2",
];
const LANDMARK: [&str; 7] = ["fit", "--family", "landmark", "--m", "3", "--n", "12"];

fn band(visibility: Visibility) -> Target {
    Family::DirichletBand { window: 5, alpha: 1.0 }.build(14, 0, visibility).unwrap()
}

fn read<D: ndarray::Dimension>(path: &Path) -> ndarray::Array<f64, D> {
    ndarray_npy::read_npy(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// kl_nats and max_abs_logit of a row's stored factors, by dense softmax from their definitions.
fn recomputed(folder: &Path, row: &Record, target: &Target) -> (f64, f64) {
    let factors = folder.join(&row["factors"]);
    let q: Array3<f64> = read(&factors.join("q.npy"));
    let k: Array3<f64> = read(&factors.join("k.npy"));
    let weights: Array1<f64> = read(&factors.join("weights.npy"));
    let layout: Layout = row["layout"].parse().unwrap();
    let (n, rank) = (number(row, "n") as usize, number(row, "rank") as usize);
    let shape = (layout.heads().len(), n, rank);
    assert_eq!((q.dim(), k.dim(), weights.len()), (shape, shape, shape.0));
    let causal = target.visibility() == Visibility::Causal;
    let sees = |kind: HeadKind, i: usize, j: usize| {
        (!causal || j <= i)
            && match kind {
                HeadKind::Global => true,
                HeadKind::Local { window } => i.abs_diff(j) < window,
            }
    };
    let attention = target.dense();
    let (mut kl, mut largest) = (0.0, 0.0_f64);
    for i in 0..n {
        let mut p = vec![0.0; n];
        for (head, &kind) in layout.heads().iter().enumerate() {
            let logit = |j: usize| {
                let dot: f64 = (0..rank).map(|c| q[[head, i, c]] * k[[head, j, c]]).sum();
                dot / (rank as f64).sqrt()
            };
            let seen: Vec<usize> = (0..n).filter(|&j| sees(kind, i, j)).collect();
            largest = seen.iter().fold(largest, |l, &j| l.max(logit(j).abs()));
            let whole: f64 = seen.iter().map(|&j| logit(j).exp()).sum();
            seen.iter().for_each(|&j| p[j] += weights[head] * logit(j).exp() / whole);
        }
        let row = (0..n).map(|j| attention[[i, j]]).zip(&p).filter(|(a, _)| *a > 0.0);
        kl += row.map(|(a, p)| a * (a / p).ln()).sum::<f64>() / n as f64;
    }
    (kl, largest)
}

/// Holds a row against its own factors and its cap.
fn check(folder: &Folder, out: &str, row: &Record, target: &Target) {
    let (kl, largest) = recomputed(&folder.path(out), row, target);
    let kl_off = (kl - number(row, "kl_nats")).abs();
    let is_missed = row["max_abs_logit"].is_empty();
    let column = if is_missed { "unreached_max_abs_logit" } else { "max_abs_logit" };
    let largest_off = (largest - number(row, column)).abs();
    assert!(kl_off < 1e-9, "kl_nats off by {kl_off}: {row:?}");
    assert!(largest_off < 1e-9, "{column} off by {largest_off}: {row:?}");
    let is_within = is_missed || number(row, column) <= number(row, "cap");
    assert!(is_within, "above its cap: {row:?}");
}

#[test]
fn a_frontier_has_one_certified_row_a_cap() {
    let folder = Folder::new();
    folder.done(&[&BAND[..], &["--max-logit", "4,2", "--out", "f"]].concat());
    let (header, rows) = folder.csv("f/frontier.csv");
    assert!(header.len() >= COLUMNS.len(), "{header:?}");
    assert_eq!(header[..COLUMNS.len()], COLUMNS);
    assert_eq!(rows.iter().map(|row| row["cap"].as_str()).collect::<Vec<_>>(), ["2", "4"]);
    for row in &rows {
        assert_eq!(row["target"], "dirichlet-band(window=5,alpha=1)");
        check(&folder, "f", row, &band(Visibility::Causal));
        let inflation = number(row, "max_abs_logit") / number(row, "floor_max_abs_logit");
        let off = (inflation - number(row, "inflation")).abs();
        assert!(off < 1e-12 * inflation, "inflation off by {off}: {row:?}");
        assert!(number(row, "floor_kl_nats") <= number(row, "kl_nats"), "{row:?}");
        let bound = number(row, "lower_bound_max_abs_logit");
        assert!(bound >= number(row, "floor_max_abs_logit"), "under the floor: {row:?}");
        assert!(bound <= number(row, "max_abs_logit"), "above the fit: {row:?}");
        assert!(!row["lower_bound_by"].is_empty(), "{row:?}");
        assert!(["converged", "step-limit"].contains(&row["outcome"].as_str()), "{row:?}");
    }
    assert!(number(&rows[1], "kl_nats") < number(&rows[0], "kl_nats"), "{rows:?}");
    let manifest: toml::Table = folder.read("f/manifest.toml").parse().unwrap();
    let command = "rank-study fit --family dirichlet-band --window 5 --n 14 --rank 3 --starts 2 \
                   --max-logit 4,2 --out f";
    assert_eq!(manifest["command"].as_str(), Some(command));
}

#[test]
fn a_tolerance_gives_the_one_row_that_reaches_it() {
    let folder = Folder::new();
    folder.done(&[&BAND[..], &["--tolerance", "0.1", "--out", "f"]].concat());
    let (_, rows) = folder.csv("f/frontier.csv");
    let [row] = rows.as_slice() else { panic!("{rows:?}") };
    check(&folder, "f", row, &band(Visibility::Causal));
    assert!(number(row, "kl_nats") <= 0.1, "{row:?}");
    let floor = number(row, "floor_max_abs_logit");
    let off = (number(row, "max_abs_logit") / floor - number(row, "inflation")).abs();
    assert!(off < 1e-12, "inflation off by {off}: {row:?}");
    assert!(number(row, "inflation") >= 1.0 && floor > 0.0, "{row:?}");
}

#[test]
fn json_says_what_the_file_says() {
    let folder = Folder::new();
    let printed = folder.done(&[&BAND[..], &["--max-logit", "3", "--json", "--out", "f"]].concat());
    let rows: Vec<serde_json::Map<String, serde_json::Value>> =
        serde_json::from_str(&printed).unwrap();
    let (_, records) = folder.csv("f/frontier.csv");
    assert_eq!((rows.len(), records.len()), (1, 1), "{printed}");
    assert_eq!(rows[0]["n"], 14, "a whole number: {printed}");
    assert_eq!(rows[0]["cap"].as_f64(), Some(3.0), "{printed}");
    for column in ["kl_nats", "max_abs_logit", "inflation"] {
        assert_eq!(rows[0][column].as_f64(), Some(number(&records[0], column)), "{column}");
    }
    assert_eq!(rows[0]["outcome"], records[0]["outcome"]);
}

#[test]
fn several_heads_and_both_visibilities_are_certified_too() {
    let folder = Folder::new();
    for (visibility, name) in
        [(Visibility::Causal, "causal"), (Visibility::Bidirectional, "bidirectional")]
    {
        let goal = ["--layout", "local:4+global", "--max-logit", "3", "--mask", name];
        folder.done(&[&BAND[..], &goal, &["--out", name]].concat());
        let (_, rows) = folder.csv(&format!("{name}/frontier.csv"));
        assert_eq!(rows[0]["layout"], "local:4+global");
        check(&folder, name, &rows[0], &band(visibility));
    }
}

#[test]
fn a_target_from_a_file_is_fitted() {
    let folder = Folder::new();
    folder.write("a.csv", "1,0,0\n0.25,0.75,0\n0.5,0.25,0.25\n");
    let goal = ["--rank", "3", "--max-logit", "6", "--starts", "2", "--out", "f", "--quiet"];
    let ended = folder.run(&[&["fit", "--target", "a.csv"][..], &goal].concat());
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    let (_, rows) = folder.csv("f/frontier.csv");
    let target = Target::read(&folder.path("a.csv"), Visibility::Causal).unwrap();
    check(&folder, "f", &rows[0], &target);
    assert!(number(&rows[0], "kl_nats") < 1e-3, "full rank reaches it: {rows:?}");
}

#[test]
fn heads_that_cannot_see_the_target_are_an_outcome() {
    for goal in [["--max-logit", "2,4"], ["--tolerance", "0.1"]] {
        let folder = Folder::new();
        let heads = ["--rank", "2", "--layout", "local:4", "--out", "f"];
        folder.done(&[&LANDMARK[..], &heads, &goal].concat());
        let (_, rows) = folder.csv("f/frontier.csv");
        assert_eq!(rows.len(), if goal[0] == "--max-logit" { 2 } else { 1 });
        for row in rows {
            assert_eq!(row["outcome"], "infeasible");
            assert_eq!((row["kl_nats"].as_str(), row["factors"].as_str()), ("", ""), "{row:?}");
        }
    }
}

#[test]
fn bad_input_is_one_line_and_leaves_nothing() {
    let folder = Folder::new();
    folder.write("file", "");
    let out = ["--out", "x"];
    for (arguments, part) in [
        (&["--rank", "2", "--max-logit", "0"][..], "--max-logit"),
        (&["--rank", "2", "--max-logit=-1"], "--max-logit"),
        (&["--rank", "2", "--max-logit", "4,nan"], "--max-logit"),
        (&["--rank", "2", "--max-logit", "inf"], "--max-logit"),
        (&["--rank", "2", "--tolerance", "0"], "--tolerance"),
        (&["--rank", "2", "--tolerance=-0.1"], "--tolerance"),
        (&["--rank", "2", "--max-logit", "4", "--starts", "0"], "--starts"),
        (
            &["--rank", "2", "--max-logit", "4", "--layout", "globl"],
            "\"globl\" is neither global nor",
        ),
        (&["--rank", "2", "--max-logit", "4", "--mask", "casual"], "\"causal\""),
        (&["--rank", "2"], "--tolerance <EPS>"),
        (&["--rank", "2", "--max-logit", "4", "--stop-at", "0"], "--stop-at"),
        (&["--rank", "2", "--max-logit", "4,8", "--stop-at", "0.1"], "--stop-at"),
    ] {
        let error = folder.refused(&[&LANDMARK[..], arguments, &out].concat());
        assert!(error.contains(part), "{arguments:?}: {error}");
    }
    let goal = ["--rank", "2", "--max-logit", "4"];
    let family = ["fit", "--family", "landmrk", "--m", "3", "--n", "12"];
    let error = folder.refused(&[&family[..], &goal, &out].concat());
    assert!(error.contains("--family") && error.contains("landmark"), "{error}");
    let error = folder.refused(&[&["fit", "--target", "none.npy"][..], &goal, &out].concat());
    assert!(error.contains("--target") && error.contains("none.npy"), "{error}");
    for place in ["file", "file/below"] {
        let error = folder.refused(&[&LANDMARK[..], &goal, &["--out", place]].concat());
        assert!(error.contains(&format!("--out {place}")), "{error}");
    }
}

#[test]
fn wrong_usage_is_one_line_that_names_flag_and_value() {
    let folder = Folder::new();
    for (arguments, parts) in [
        (&["--rank", "0", "--max-logit", "4"][..], ["--rank", "\"0\""]),
        (&["--rank", "abc", "--max-logit", "4"], ["--rank", "\"abc\""]),
        (&["--rank", "-2", "--max-logit", "4"], ["--rank", "\"-2\""]),
        (&["--rank", "2", "--max-logit", "4,x"], ["--max-logit", "\"x\""]),
        (&["--rank", "2", "--treads", "4"], ["--treads", "--threads"]),
        (&["--rank", "2", "--rank", "4"], ["--rank", "multiple times"]),
        (&["--rank", "2", "--max-logit", "4", "--tolerance", "1"], ["--max-logit", "--tolerance"]),
    ] {
        let ended = folder.run(&[&LANDMARK[..], arguments, &["--out", "x"]].concat());
        assert_eq!(ended.code, Some(2), "{arguments:?}: {}", ended.stderr);
        assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
        let has = |part: &str| ended.stderr.contains(part);
        assert!(parts.into_iter().all(has), "{arguments:?}: {}", ended.stderr);
    }
    for rest in [
        &["--rank", "2", "--max-logit", "4"][..],
        &["--max-logit", "4", "--out", "x"],
        &["--rank", "2", "--max-logit", "4", "--dtype", "f16", "--out", "x"],
    ] {
        let ended = folder.run(&[&LANDMARK[..], rest].concat());
        assert_eq!(ended.code, Some(2), "{rest:?}: {}", ended.stderr);
        assert!(ended.stderr.starts_with("error: "), "{rest:?}: {}", ended.stderr);
    }
    assert!(folder.tree().is_empty(), "{:?}", folder.tree());
    let ended = folder.run(&["fit"]);
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    let names = ["--rank", "--out", "--family", "--target", "rank-study fit --help"];
    assert!(names.iter().all(|name| ended.stderr.contains(name)), "{}", ended.stderr);
}

#[test]
fn float32_finds_rows_that_hold_in_float64() {
    let folder = Folder::new();
    folder.done(&[&BAND[..], &["--max-logit", "2,4", "--dtype", "f32", "--out", "f32"]].concat());
    folder.done(&[&BAND[..], &["--max-logit", "2,4", "--out", "f64"]].concat());
    let ((_, single), (_, double)) =
        (folder.csv("f32/frontier.csv"), folder.csv("f64/frontier.csv"));
    for (single, double) in single.iter().zip(&double) {
        check(&folder, "f32", single, &band(Visibility::Causal));
        let (single, double) = (number(single, "kl_nats"), number(double, "kl_nats"));
        assert!((single / double - 1.0).abs() < 0.05, "{single} against {double}");
    }
}

#[test]
fn a_search_that_has_found_enough_ends() {
    let folder = Folder::new();
    folder.done(&[&BAND[..], &["--max-logit", "4", "--out", "whole"]].concat());
    let (_, whole) = folder.csv("whole/frontier.csv");
    let asked = (1.5 * number(&whole[0], "kl_nats")).to_string();
    folder.done(&[&BAND[..], &["--max-logit", "4", "--stop-at", &asked, "--out", "part"]].concat());
    let (_, part) = folder.csv("part/frontier.csv");
    check(&folder, "part", &part[0], &band(Visibility::Causal));
    assert!(number(&part[0], "kl_nats") <= asked.parse().unwrap(), "{part:?}");
    assert_eq!(part[0]["outcome"], "stopped");
    assert!(number(&part[0], "evaluations") < number(&whole[0], "evaluations"), "{part:?}");
    assert!(!folder.path("part/unfinished").exists());
}

/// A search of some seconds.
const LONG: [&str; 13] = [
    "fit", "--family", "dirichlet-band", "--window", "24", "--n", "128", "--rank", "6", "--starts",
    "2", "--out", "f",
];

#[cfg(unix)]
#[test]
fn a_search_interrupted_keeps_what_it_had_and_goes_on() {
    let [interrupt, terminate, hang_up] = binary::SIGNALS;
    for (goal, signal) in [
        (["--max-logit", "4,16"], interrupt),
        (["--tolerance", "0.2"], terminate),
        (["--max-logit", "4,16"], hang_up),
    ] {
        let folder = Folder::new();
        let arguments = [&LONG[..], &goal].concat();
        let child =
            folder.command(&arguments).stderr(std::process::Stdio::piped()).spawn().unwrap();
        while !folder.path("f/unfinished/search.toml").exists() {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        // Starts begin after the search is written down.
        std::thread::sleep(std::time::Duration::from_millis(300));
        binary::send(signal, &child);
        let ended = binary::Ended::of(&child.wait_with_output().unwrap());
        assert_eq!(ended.code, binary::STOPPED, "{signal}: {}", ended.stderr);
        assert!(ended.stderr.contains("run the same command"), "{}", ended.stderr);
        let (_, rows) = folder.csv("f/frontier.csv");
        let target = Family::DirichletBand { window: 24, alpha: 1.0 };
        let target = target.build(128, 0, Visibility::Causal).unwrap();
        for row in &rows {
            check(&folder, "f", row, &target);
        }
        let kept = std::fs::read_dir(folder.path("f/unfinished/fits")).unwrap().count();
        assert!(kept > 0, "no fit was kept");
        let another = [&LONG[..], &["--max-logit", "4,17"]].concat();
        let error = folder.refused(&another);
        assert!(error.contains("unfinished search has caps"), "{error}");
        // A row that no search beats.
        let unbeaten = ["kl_nats", "0.0000001"];
        let is_frontier = goal[0] == "--max-logit";
        if is_frontier {
            let text = folder.read("f/frontier.csv");
            folder.write("f/frontier.csv", text.replacen(&rows[0][unbeaten[0]], unbeaten[1], 1));
        }
        folder.done(&arguments);
        let (_, mut rows) = folder.csv("f/frontier.csv");
        assert!(rows.iter().all(|row| row["outcome"] != "stopped"), "{rows:?}");
        if is_frontier {
            let kept = rows.remove(0);
            assert_eq!(number(&kept, unbeaten[0]), 1e-7, "a resumed search replaced a better row");
        }
        rows.iter().for_each(|row| check(&folder, "f", row, &target));
        assert!(!folder.path("f/unfinished").exists());
    }
}

#[test]
fn a_folder_that_holds_a_frontier_is_left_as_it_is() {
    let folder = Folder::new();
    folder.write("f/frontier.csv", "measured before\n");
    let rest = ["--rank", "2", "--max-logit", "4", "--out", "f"];
    let error = folder.refused(&[&LANDMARK[..], &rest].concat());
    assert!(error.contains("--out f already has a frontier.csv"), "{error}");
    assert_eq!(folder.read("f/frontier.csv"), "measured before\n");
}

/// A number as sentences have it.
fn said(row: &Record, column: &str) -> String {
    rank_study::table::significant(number(row, column), 3)
}

#[test]
fn a_frontier_ends_with_what_it_came_to_and_marks_bounds() {
    let folder = Folder::new();
    let printed = folder
        .done(&[&BAND[..], &["--max-logit", "2,8", "--iterations", "20", "--out", "f"]].concat());
    let (_, rows) = folder.csv("f/frontier.csv");
    let [least, most] = [&rows[0], &rows[1]];
    let numbers = [said(least, "kl_nats"), said(most, "kl_nats"), said(most, "floor_kl_nats")];
    assert!(numbers.iter().all(|number| printed.contains(number)), "{numbers:?}\n{printed}");
    assert!(printed.contains("f/frontier.csv"), "{printed}");
    assert_eq!(least["outcome"], "step-limit", "twenty iterations are too few: {least:?}");
    assert!(printed.contains("20 iterations") && printed.contains("--iterations 80"), "{printed}");
    for row in &rows {
        let at_cap = number(row, "max_abs_logit") >= number(row, "cap") * (1.0 - 1e-6);
        let penalty = rank_study::table::significant(number(row, "inflation"), 4);
        let marked = printed.contains(&format!("≤{penalty}"));
        assert_eq!(marked, at_cap, "{row:?}\n{printed}");
    }
    let json = folder.done(&[&BAND[..], &["--max-logit", "2", "--json", "--out", "j"]].concat());
    assert!(serde_json::from_str::<serde_json::Value>(&json).is_ok(), "no JSON");
}

#[test]
fn a_tolerance_ends_with_what_it_needs() {
    let folder = Folder::new();
    let printed = folder.done(&[&BAND[..], &["--tolerance", "0.2", "--out", "f"]].concat());
    let (_, rows) = folder.csv("f/frontier.csv");
    let needs = [
        "0.200".to_owned(),
        said(&rows[0], "max_abs_logit"),
        said(&rows[0], "inflation"),
        said(&rows[0], "floor_max_abs_logit"),
    ];
    assert!(needs.iter().all(|part| printed.contains(part)), "{needs:?}\n{printed}");
    let tight = ["fit", "--family", "random-sparse", "--k", "6", "--n", "24", "--rank", "1"];
    let printed = folder
        .done(&[&tight[..], &["--starts", "1", "--tolerance", "0.001", "--out", "g"]].concat());
    let (_, rows) = folder.csv("g/frontier.csv");
    assert_eq!(rows[0]["outcome"], "infeasible");
    // Its logits are those of the search's end, not logits that reach the error.
    for column in ["cap", "max_abs_logit", "logit_spread", "norm_product", "inflation"] {
        assert_eq!(rows[0][column], "", "{column}");
    }
    assert!(number(&rows[0], "unreached_max_abs_logit") > 0.0);
    let found = format!("The smallest KL found is {} nats", said(&rows[0], "kl_nats"));
    assert!(
        printed.contains("did not reach KL 0.00100 nats") && printed.contains(&found),
        "{printed}"
    );
}

#[test]
fn a_head_of_a_stack_of_logits_is_fitted_as_its_softmax() {
    let folder = Folder::new();
    let logits = Array3::from_shape_fn((2, 10, 10), |(h, i, j)| ((h + 2 * i + 3 * j) % 5) as f64);
    ndarray_npy::write_npy(folder.path("heads.npy"), &logits).unwrap();
    let flags =
        ["fit", "--target", "heads.npy", "--rank", "9", "--starts", "2", "--max-logit", "8"];
    let said = folder.refused(&[&flags[..], &["--out", "f"]].concat());
    assert!(said.contains("--head 0 to --head 1"), "{said}");
    let said = folder.refused(&[&flags[..], &["--head", "1", "--out", "f"]].concat());
    assert!(said.contains("give --softmax"), "{said}");
    folder.done(&[&flags[..], &["--head", "1", "--softmax", "--out", "f"]].concat());
    let (_, rows) = folder.csv("f/frontier.csv");
    assert_eq!(rows[0]["target"], "heads.npy, head 1, softmax");
    // Within the logits' own size their softmax is reached at nearly their rank.
    assert!(number(&rows[0], "kl_nats") < 1e-3, "{rows:?}");
}

//! `rank-study fit` through the binary: what it writes, what can be computed again from it, and
//! what it refuses.

use std::path::Path;

use crate::common::binary::{self, Ended, Folder, Record, number, words};
use crate::dense;
use ndarray::{Array, Array1, Array3, Dimension};
use rank_study::solver::Factors;
use rank_study::targets::{Family, Layout, Target, Visibility};

/// The columns of frontier.csv that others rely on, in their order.
const COLUMNS: [&str; 18] = [
    "target", "n", "rank", "layout", "seed", "cap", "kl_nats", "max_abs_logit", "logit_spread",
    "norm_product", "floor_kl_nats", "floor_max_abs_logit", "inflation", "outcome", "iterations",
    "evaluations", "wall_time_s", "factors",
];
const BAND: &str = "fit --family dirichlet-band --window 5 --n 14 --rank 3 --starts 2";
const LANDMARK: &str = "fit --family landmark --m 3 --n 12";

fn band(visibility: Visibility) -> Target {
    Family::DirichletBand { window: 5, alpha: 1.0 }.build(14, 0, visibility).unwrap()
}

/// What a fit of the band prints that is written to `out`, and its rows.
fn fitted(folder: &Folder, flags: &str, out: &str) -> (String, Vec<Record>) {
    let printed = folder.done(&words(&format!("{BAND} {flags} --out {out}")));
    (printed, folder.csv(&format!("{out}/frontier.csv")).1)
}

/// kl_nats and max_abs_logit of a row's stored factors.
fn recomputed(folder: &Path, row: &Record, target: &Target) -> (f64, f64) {
    fn read<D: Dimension>(path: &Path) -> Array<f64, D> {
        ndarray_npy::read_npy(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
    }
    let [q, k, weights] =
        ["q", "k", "weights"].map(|name| folder.join(&row["factors"]).join(format!("{name}.npy")));
    let (q, k, weights): (Array3<f64>, Array3<f64>, Array1<f64>) =
        (read(&q), read(&k), read(&weights));
    let layout: Layout = row["layout"].parse().unwrap();
    let shape = (layout.heads().len(), number(row, "n") as usize, number(row, "rank") as usize);
    assert_eq!((q.dim(), k.dim(), weights.len()), (shape, shape, shape.0));
    dense::reached(target, &layout, &Factors::new(q, k, weights).unwrap())
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
    folder.done(&words(&format!("{BAND} --max-logit 4,2 --out f")));
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
    let command = format!("rank-study {BAND} --max-logit 4,2 --out f");
    assert_eq!(manifest["command"].as_str(), Some(&*command));
}

#[test]
fn a_tolerance_gives_the_one_row_that_reaches_it_and_says_what_it_needs() {
    let folder = Folder::new();
    let (printed, rows) = fitted(&folder, "--tolerance 0.1", "f");
    let [row] = rows.as_slice() else { panic!("{rows:?}") };
    check(&folder, "f", row, &band(Visibility::Causal));
    assert!(number(row, "kl_nats") <= 0.1, "{row:?}");
    let floor = number(row, "floor_max_abs_logit");
    let off = (number(row, "max_abs_logit") / floor - number(row, "inflation")).abs();
    assert!(off < 1e-12, "inflation off by {off}: {row:?}");
    assert!(number(row, "inflation") >= 1.0 && floor > 0.0, "{row:?}");
    for column in ["max_abs_logit", "inflation", "floor_max_abs_logit"] {
        assert!(printed.contains(&said(row, column)), "{column}: {row:?}\n{printed}");
    }
}

#[test]
fn a_tolerance_that_is_not_reached_is_an_outcome_without_logits() {
    let folder = Folder::new();
    let tight = "fit --family random-sparse --k 6 --n 24 --rank 1 --starts 1 --tolerance 0.001";
    let printed = folder.done(&words(&format!("{tight} --out g")));
    let (_, rows) = folder.csv("g/frontier.csv");
    assert_eq!(rows[0]["outcome"], "infeasible");
    // Its logits are those of the search's end, not logits that reach the error.
    for column in ["cap", "max_abs_logit", "logit_spread", "norm_product", "inflation"] {
        assert_eq!(rows[0][column], "", "{column}");
    }
    assert!(number(&rows[0], "unreached_max_abs_logit") > 0.0);
    assert!(printed.contains(&said(&rows[0], "kl_nats")), "{rows:?}\n{printed}");
}

#[test]
fn json_says_what_the_file_says() {
    let folder = Folder::new();
    let (printed, records) = fitted(&folder, "--max-logit 3 --json", "f");
    let rows: Vec<serde_json::Map<String, serde_json::Value>> =
        serde_json::from_str(&printed).unwrap();
    assert_eq!((rows.len(), records.len()), (1, 1), "{printed}");
    assert_eq!(rows[0]["n"], 14, "a whole number: {printed}");
    assert_eq!(rows[0]["cap"].as_f64(), Some(3.0), "{printed}");
    for column in ["kl_nats", "max_abs_logit", "inflation"] {
        assert_eq!(rows[0][column].as_f64(), Some(number(&records[0], column)), "{column}");
    }
    assert_eq!(rows[0]["outcome"], records[0]["outcome"]);
}

#[test]
fn several_heads_without_a_mask_are_certified_too() {
    let folder = Folder::new();
    let flags = "--layout local:4+global --max-logit 3 --mask bidirectional";
    let (_, rows) = fitted(&folder, flags, "f");
    assert_eq!(rows[0]["layout"], "local:4+global");
    check(&folder, "f", &rows[0], &band(Visibility::Bidirectional));
}

#[test]
fn heads_that_cannot_see_the_target_are_an_outcome() {
    for (goal, count) in [("--max-logit 2,4", 2), ("--tolerance 0.1", 1)] {
        let folder = Folder::new();
        let fit = format!("{LANDMARK} --rank 2 --layout local:4 {goal} --out f");
        folder.done(&words(&fit));
        let (_, rows) = folder.csv("f/frontier.csv");
        assert_eq!(rows.len(), count);
        for row in rows {
            assert_eq!(row["outcome"], "infeasible");
            assert_eq!((row["kl_nats"].as_str(), row["factors"].as_str()), ("", ""), "{row:?}");
        }
    }
}

#[test]
fn wrong_values_and_files_are_refused_by_name_and_leave_nothing() {
    let folder = Folder::new();
    folder.write("file", "");
    folder.write("f/frontier.csv", "measured before\n");
    for (arguments, part) in [
        ("--max-logit 0 --out x", "--max-logit"),
        ("--max-logit=-1 --out x", "--max-logit"),
        ("--max-logit 4,nan --out x", "--max-logit"),
        ("--max-logit inf --out x", "--max-logit"),
        ("--tolerance 0 --out x", "--tolerance"),
        ("--tolerance=-0.1 --out x", "--tolerance"),
        ("--max-logit 4 --starts 0 --out x", "--starts"),
        ("--max-logit 4 --layout globl --out x", "\"globl\""),
        ("--max-logit 4 --mask casual --out x", "casual"),
        ("--out x", "--tolerance"),
        ("--max-logit 4 --stop-at 0 --out x", "--stop-at"),
        ("--max-logit 4,8 --stop-at 0.1 --out x", "--stop-at"),
        ("--max-logit 4 --out file", "--out file"),
        ("--max-logit 4 --out file/below", "--out file/below"),
        ("--max-logit 4 --out f", "--out f "),
    ] {
        let error = folder.refused(&words(&format!("{LANDMARK} --rank 2 {arguments}")));
        assert!(error.contains(part), "{arguments}: {error}");
    }
    assert_eq!(folder.read("f/frontier.csv"), "measured before\n");
    for (target, parts) in [
        ("--family landmrk --m 3 --n 12", ["--family", "landmark"]),
        ("--target none.npy", ["--target", "none.npy"]),
    ] {
        let fit = format!("fit {target} --rank 2 --max-logit 4 --out x");
        let error = folder.refused(&words(&fit));
        assert!(parts.iter().all(|part| error.contains(part)), "{error}");
    }
}

#[test]
fn wrong_usage_is_one_line_that_names_flag_and_value() {
    let folder = Folder::new();
    for (arguments, parts) in [
        ("--rank 0 --max-logit 4 --out x", ["--rank", "\"0\""]),
        ("--rank abc --max-logit 4 --out x", ["--rank", "\"abc\""]),
        ("--rank -2 --max-logit 4 --out x", ["--rank", "\"-2\""]),
        ("--rank 2 --max-logit 4,x --out x", ["--max-logit", "\"x\""]),
        ("--rank 2 --treads 4 --out x", ["--treads", "--threads"]),
        ("--rank 2 --rank 4 --out x", ["--rank", ""]),
        ("--rank 2 --max-logit 4 --tolerance 1 --out x", ["--max-logit", "--tolerance"]),
        ("--rank 2 --max-logit 4", ["--out", ""]),
        ("--max-logit 4 --out x", ["--rank", ""]),
        ("--rank 2 --max-logit 4 --dtype f16 --out x", ["--dtype", "f16"]),
    ] {
        let error = folder.wrong_usage(&words(&format!("{LANDMARK} {arguments}")));
        assert!(parts.iter().all(|part| error.contains(part)), "{arguments}: {error}");
    }
    let ended = folder.run(&["fit"]);
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    let names = ["--rank", "--out", "--family", "--target"];
    assert!(names.iter().all(|name| ended.stderr.contains(name)), "{}", ended.stderr);
}

#[test]
fn float32_finds_rows_that_hold_in_float64() {
    let folder = Folder::new();
    let [single, double] = ["f32", "f64"]
        .map(|dtype| fitted(&folder, &format!("--max-logit 2,4 --dtype {dtype}"), dtype).1);
    for (single, double) in single.iter().zip(&double) {
        check(&folder, "f32", single, &band(Visibility::Causal));
        let (single, double) = (number(single, "kl_nats"), number(double, "kl_nats"));
        assert!((single / double - 1.0).abs() < 0.05, "{single} against {double}");
    }
}

#[test]
fn a_search_that_has_found_enough_ends() {
    let folder = Folder::new();
    let (_, whole) = fitted(&folder, "--max-logit 4", "whole");
    let asked = 1.5 * number(&whole[0], "kl_nats");
    let (_, part) = fitted(&folder, &format!("--max-logit 4 --stop-at {asked}"), "part");
    check(&folder, "part", &part[0], &band(Visibility::Causal));
    assert!(number(&part[0], "kl_nats") <= asked, "{part:?}");
    assert_eq!(part[0]["outcome"], "stopped");
    assert!(number(&part[0], "evaluations") < number(&whole[0], "evaluations"), "{part:?}");
    assert!(!folder.path("part/unfinished").exists());
}

/// A search of some seconds.
const LONG: &str = "fit --family dirichlet-band --window 24 --n 128 --rank 6 --starts 2 --out f";

#[cfg(unix)]
#[test]
fn a_search_interrupted_keeps_what_it_had_and_goes_on() {
    let [interrupt, terminate, hang_up] = binary::SIGNALS;
    for (goal, signal) in [
        ("--max-logit 4,16", interrupt),
        ("--tolerance 0.2", terminate),
        ("--max-logit 4,16", hang_up),
    ] {
        let folder = Folder::new();
        let fit = format!("{LONG} {goal}");
        let arguments = words(&fit);
        let child =
            folder.command(&arguments).stderr(std::process::Stdio::piped()).spawn().unwrap();
        while !folder.path("f/unfinished/search.toml").exists() {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        // Starts begin after the search is written down.
        std::thread::sleep(std::time::Duration::from_millis(300));
        binary::send(signal, &child);
        let ended = Ended::of(&child.wait_with_output().unwrap());
        assert_eq!(ended.code, binary::STOPPED, "{signal}: {}", ended.stderr);
        let (_, rows) = folder.csv("f/frontier.csv");
        let target = Family::DirichletBand { window: 24, alpha: 1.0 };
        let target = target.build(128, 0, Visibility::Causal).unwrap();
        for row in &rows {
            check(&folder, "f", row, &target);
        }
        let kept = std::fs::read_dir(folder.path("f/unfinished/fits")).unwrap().count();
        assert!(kept > 0, "no fit was kept");
        let another = format!("{LONG} --max-logit 4,17");
        assert!(folder.refused(&words(&another)).contains("unfinished"));
        // A row that no search beats.
        let is_frontier = goal.starts_with("--max-logit");
        if is_frontier {
            let text = folder.read("f/frontier.csv");
            folder.write("f/frontier.csv", text.replacen(&rows[0]["kl_nats"], "0.0000001", 1));
        }
        folder.done(&arguments);
        let (_, mut rows) = folder.csv("f/frontier.csv");
        assert!(rows.iter().all(|row| row["outcome"] != "stopped"), "{rows:?}");
        if is_frontier {
            let kept = rows.remove(0);
            assert_eq!(number(&kept, "kl_nats"), 1e-7, "a resumed search replaced a better row");
        }
        rows.iter().for_each(|row| check(&folder, "f", row, &target));
        assert!(!folder.path("f/unfinished").exists());
    }
}

/// A number as sentences have it.
fn said(row: &Record, column: &str) -> String {
    rank_study::table::significant(number(row, column), 3)
}

#[test]
fn a_frontier_ends_with_what_it_came_to_and_marks_bounds() {
    let folder = Folder::new();
    let (printed, rows) = fitted(&folder, "--max-logit 2,8 --iterations 20", "f");
    let [least, most] = [&rows[0], &rows[1]];
    let numbers = [said(least, "kl_nats"), said(most, "kl_nats"), said(most, "floor_kl_nats")];
    assert!(numbers.iter().all(|number| printed.contains(number)), "{numbers:?}\n{printed}");
    assert!(printed.contains("f/frontier.csv"), "{printed}");
    assert_eq!(least["outcome"], "step-limit", "twenty iterations are too few: {least:?}");
    assert!(printed.contains("--iterations"), "{printed}");
    for row in &rows {
        let at_cap = number(row, "max_abs_logit") >= number(row, "cap") * (1.0 - 1e-6);
        let penalty = rank_study::table::significant(number(row, "inflation"), 4);
        let marked = printed.contains(&format!("≤{penalty}"));
        assert_eq!(marked, at_cap, "{row:?}\n{printed}");
    }
}

#[test]
fn a_head_of_a_stack_of_logits_is_fitted_as_its_softmax() {
    let folder = Folder::new();
    let logits = Array3::from_shape_fn((2, 10, 10), |(h, i, j)| ((h + 2 * i + 3 * j) % 5) as f64);
    ndarray_npy::write_npy(folder.path("heads.npy"), &logits).unwrap();
    let fit = "fit --target heads.npy --rank 9 --starts 2 --max-logit 8 --out f";
    assert!(folder.refused(&words(fit)).contains("--head"));
    assert!(folder.refused(&words(&format!("{fit} --head 1"))).contains("--softmax"));
    let Ended { code, stderr, .. } =
        folder.run(&words(&format!("{fit} --head 1 --softmax --quiet")));
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    let (_, rows) = folder.csv("f/frontier.csv");
    assert_eq!(rows[0]["target"], "heads.npy, head 1, softmax");
    // Within the logits' own size their softmax is reached at nearly their rank.
    assert!(number(&rows[0], "kl_nats") < 1e-3, "{rows:?}");
}

//! Runs docs/tutorial.md in an empty folder: every command works, and its results are those of the rows.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::binary::{Folder, number};
use rank_study::table::significant;

/// The shell blocks of a page.
fn commands(page: &str) -> Vec<&str> {
    let blocks = page.split("```sh\n").skip(1);
    blocks.map(|rest| rest.split_once("```").expect("a closed block").0).collect()
}

/// The folder of a python3 that has NumPy: a virtual environment, made once.
fn python_with_numpy() -> Option<PathBuf> {
    let venv = Path::new(env!("CARGO_TARGET_TMPDIR")).join("numpy");
    let bin = venv.join("bin");
    let succeeds = |command: &mut Command| command.output().is_ok_and(|o| o.status.success());
    let has_numpy = || succeeds(Command::new(bin.join("python3")).args(["-c", "import numpy"]));
    let is_made = has_numpy()
        || succeeds(Command::new("python3").args(["-m", "venv"]).arg(&venv))
            && succeeds(Command::new(bin.join("pip")).args(["install", "--quiet", "numpy"]));
    is_made.then_some(bin)
}

#[test]
fn tutorial_commands_work_and_print_what_the_page_shows() {
    let Some(python) = python_with_numpy() else {
        assert!(std::env::var_os("CI").is_none(), "the tutorial needs Python with NumPy");
        eprintln!("skipped: the tutorial needs Python with NumPy");
        return;
    };
    let program = Path::new(env!("CARGO_BIN_EXE_rank-study"));
    let path = std::env::var("PATH").unwrap();
    let program = program.parent().unwrap();
    let path = format!("{}:{}:{path}", python.display(), program.display());
    let page = include_str!("../../docs/tutorial.md");
    let folder = Folder::new();
    let mut printed = String::new();
    let commands = commands(page);
    assert!(commands.len() >= 5, "{commands:?}");
    for command in commands {
        let output = Command::new("bash")
            .args(["-euc", command])
            .env("PATH", &path)
            .current_dir(folder.path(""))
            .output()
            .unwrap();
        let [out, err] = [&output.stdout, &output.stderr].map(|b| String::from_utf8_lossy(b));
        assert!(output.status.success(), "{command}\n{out}{err}");
        printed.push_str(&out);
    }
    let row = |name: &str| folder.csv(&format!("fits/{name}/frontier.csv")).1.remove(0);
    let [two, four, eight] = ["rank-2", "rank-4", "rank-8"].map(row);
    let has_line =
        |parts: &[&str]| printed.lines().any(|line| parts.iter().all(|part| line.contains(part)));
    assert_eq!(two["outcome"], "infeasible");
    assert!(has_line(&["ank 2 ", "128"]), "{printed}");
    assert!(number(&four, "inflation") > number(&eight, "inflation"));
    for (rank, row) in [("ank 4 ", &four), ("ank 8 ", &eight)] {
        let needs = significant(number(row, "max_abs_logit"), 3);
        assert!(has_line(&[rank, &needs]), "{rank}: {needs}\n{printed}");
        // The page shows the same number, up to what machines differ by.
        let start = format!("R{rank}reaches KL 0.0200 nats with max |logit| ");
        let (_, rest) =
            page.split_once(&start).unwrap_or_else(|| panic!("the page has no {start}"));
        let shown: f64 = rest.split(':').next().unwrap().parse().unwrap();
        assert!(
            (shown / number(row, "max_abs_logit") - 1.0).abs() < 0.05,
            "{start}{shown}: {needs}"
        );
    }
    // What the Python script of the page recomputes.
    let [least, found] = ["lower_bound_max_abs_logit", "max_abs_logit"].map(|of| number(&four, of));
    let sentence = format!("max |logit| {found:.2}; no less than {least:.2} is possible");
    assert!(printed.contains(&sentence), "{sentence}\n{printed}");
    // One row per head of the trained model.
    assert!(has_line(&["small", "8 heads"]), "{printed}");
    assert_eq!(folder.csv("looked/small/rows.csv").1.len(), 8);
    assert!(folder.path("looked/small/index.html").is_file());
}

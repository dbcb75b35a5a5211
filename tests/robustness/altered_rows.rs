//! Rows and curves with a digit changed are told from those that were measured, wherever they are used.

use std::fs;
use std::sync::LazyLock;

use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use crate::common::binary::{Ended, Folder};
use crate::common::tiny;
use crate::common::tries::{Tries, share_of};

static FITS: LazyLock<String> = LazyLock::new(|| tiny::fits("study = \"fits\""));

/// Ways to alter a file, each tried so often.
const ALTERATIONS: usize = 400;

fn measured(study: &str, definition: &str) -> Folder {
    let folder = Folder::new();
    let path = format!("analysis/{study}.toml");
    folder.write(&path, definition);
    folder.done(&["sweep", &path, "--quiet"]);
    folder
}

/// The text with one of its digits changed, none of the header's.
fn with_a_digit_changed(text: &str, rng: &mut ChaCha8Rng) -> String {
    let start = text.find('\n').unwrap();
    let mut bytes = text.as_bytes().to_vec();
    let digits: Vec<usize> =
        (start..bytes.len()).filter(|&at| bytes[at].is_ascii_digit()).collect();
    let at = digits[rng.random_range(0..digits.len())];
    bytes[at] = b'0' + (bytes[at] - b'0' + rng.random_range(1..10u8)) % 10;
    String::from_utf8(bytes).unwrap()
}

/// Why a command did not refuse altered rows in a line that says what to do; none where it did.
fn not_refused(folder: &Folder, arguments: &[&str], parts: &[&str]) -> Option<String> {
    let Ended { code, stdout, stderr } = folder.run(arguments);
    let is_one_line = stderr.lines().count() == 1 && stderr.starts_with("error: ");
    let is_told = parts.iter().all(|part| stderr.contains(part));
    let is_refused = code == Some(1) && stdout.is_empty() && is_one_line && is_told;
    (!is_refused).then(|| format!("{arguments:?}: {code:?}, {stdout}{stderr}"))
}

/// Whether `verify` finds the alteration, and says in which file.
fn not_found(folder: &Folder, study: &str, part: &str) -> Option<String> {
    let Ended { code, stdout, stderr } = folder.run(&["verify", study]);
    let is_found = code == Some(3) && stdout.contains(part);
    (!is_found).then(|| format!("verify: {code:?}, {stdout}{stderr}"))
}

#[test]
fn altered_rows_are_neither_drawn_nor_tabulated() {
    let folder = measured("fits", &FITS);
    let path = "data/fits/rows.csv";
    let whole = folder.read(path);
    let mut rng = ChaCha8Rng::seed_from_u64(23);
    let mut tries = Tries::of("altered-rows");
    let commands = [
        &["report", "fits", "--quiet"][..],
        &["table", "fits", "--quiet"],
        &["figure", "fits", "--quiet"],
        &["show", "data/fits", "--quiet"],
    ];
    let parts =
        ["data/fits/rows.csv: the rows have changed", "`rank-study sweep analysis/fits.toml`"];
    for _ in 0..share_of(ALTERATIONS) {
        let altered = with_a_digit_changed(&whole, &mut rng);
        folder.write(path, &altered);
        let wrong = commands.iter().find_map(|command| not_refused(&folder, command, &parts));
        let wrong =
            wrong.or_else(|| not_found(&folder, "fits", "has changed since it was measured"));
        tries.tried(wrong.map_or(Ok(()), |wrong| Err(format!("{wrong}{altered}"))));
    }
    folder.write(path, &whole);
    for command in commands {
        folder.done(command);
    }
    tries.end();
}

#[test]
fn altered_curves_and_evaluations_are_found() {
    let study = tiny::trainings("train.context = 16\ntrain.steps = 20\ntrain.eval_every = 10");
    let folder = measured("runs", &study);
    folder.done(&["verify", "runs"]);
    let mut rng = ChaCha8Rng::seed_from_u64(24);
    let mut tries = Tries::of("altered-runs");
    let manifest = folder.read("data/runs/ls/s0/manifest.toml");
    assert!(manifest.contains("[files_sha256]"), "{manifest}");
    for file in ["curve.csv", "eval.csv"] {
        for _ in 0..share_of(ALTERATIONS) {
            let run = ["ls/s0", "ls/s1", "mhsa/s0", "mhsa/s1"][rng.random_range(0..4)];
            let path = format!("data/runs/{run}/{file}");
            let whole = folder.read(&path);
            let altered = with_a_digit_changed(&whole, &mut rng);
            folder.write(&path, &altered);
            let found = format!("{file} has changed since the run wrote it");
            let told = format!("{path}: the file has changed since the run wrote it");
            let wrong = not_found(&folder, "runs", &found)
                .or_else(|| not_refused(&folder, &["figure", "runs", "--quiet"], &[&told]));
            tries.tried(wrong.map_or(Ok(()), |wrong| Err(format!("{path}: {wrong}{altered}"))));
            folder.write(&path, &whole);
        }
    }
    folder.done(&["verify", "runs"]);
    folder.done(&["figure", "runs", "--quiet"]);
    tries.end();
}

#[test]
fn a_report_leaves_out_what_was_altered_and_says_so() {
    let folder = measured("fits", &FITS);
    folder.write("analysis/other.toml", FITS.replace("\"fits\"", "\"other\""));
    folder.done(&["sweep", "analysis/other.toml", "--quiet"]);
    let rows = folder.read("data/other/rows.csv");
    let altered = with_a_digit_changed(&rows, &mut ChaCha8Rng::seed_from_u64(25));
    folder.write("data/other/rows.csv", &altered);
    let Ended { code, stdout, stderr } = folder.run(&["report"]);
    assert_eq!(code, Some(1), "{stdout}{stderr}");
    assert!(stderr.starts_with("left out: other: data/other/rows.csv: "), "{stderr}");
    let page = folder.read("figures/report.html");
    assert!(page.contains("\"fits\"") && !page.contains("\"other\""), "the page has the one");
    // A sweep takes them as they stand, notes it, and they are drawn.
    folder.done(&["sweep", "analysis/other.toml", "--quiet"]);
    assert_eq!(folder.read("data/other/rows.csv"), altered);
    folder.done(&["report", "--quiet"]);
    let said = folder.done(&["verify", "other"]);
    assert!(said.contains("other: unknown: ") && said.contains("rows_sha256"), "{said}");
}

/// Rows from before manifests recorded their hash are drawn with a warning.
#[test]
fn rows_that_nobody_can_tell_of_are_drawn_with_a_warning() {
    let folder = measured("fits", &FITS);
    let path = "data/fits/manifest.toml";
    let manifest = folder.read(path);
    let hash = manifest.lines().find(|line| line.starts_with("rows_sha256 = ")).unwrap();
    folder.write(path, manifest.replace(&format!("{hash}\n"), ""));
    for command in ["table", "figure", "report"] {
        let Ended { code, stderr, .. } = folder.run(&[command, "fits"]);
        assert_eq!(code, Some(0), "{stderr}");
        let warning = "warning: data/fits/manifest.toml: no rows_sha256";
        assert_eq!(stderr.matches(warning).count(), 1, "{stderr}");
        assert!(!folder.run(&[command, "fits", "--quiet"]).stderr.contains("warning"));
    }
    assert!(folder.done(&["show", "data/fits"]).contains("no rows_sha256"));
}

/// What tells of a run's files is taken away while they grow, and an altered one is not gone on with.
#[test]
fn a_run_that_goes_on_is_told_of_anew_and_never_from_an_altered_file() {
    let folder = Folder::new();
    folder.write("run.toml", tiny::training("context = 16\nsteps = 20\neval_every = 10"));
    let train = ["train", "run.toml", "--out", "r", "--quiet"];
    folder.done(&train);
    let hash = |folder: &Folder| {
        let manifest: toml::Table = folder.read("r/manifest.toml").parse().unwrap();
        manifest["files_sha256"]["eval.csv"].as_str().unwrap().to_owned()
    };
    let before = hash(&folder);
    let whole = folder.read("r/eval.csv");
    folder.write("r/eval.csv", with_a_digit_changed(&whole, &mut ChaCha8Rng::seed_from_u64(26)));
    let more = [&train[..], &["--resume", "--set", "steps=30"]].concat();
    let error = folder.refused(&more);
    assert!(error.contains("r/eval.csv: the file has changed since the run wrote it"), "{error}");
    let shown = folder.run(&["show", "r", "--out", "page"]);
    assert_eq!(shown.code, Some(1), "{}", shown.stderr);
    folder.write("r/eval.csv", &whole);
    folder.done(&more);
    assert_ne!(hash(&folder), before, "more evaluations");
    folder.done(&["show", "r", "--out", "page"]);
    assert!(fs::metadata(folder.path("page/index.html")).unwrap().len() > 0);
}

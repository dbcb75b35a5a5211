//! However a sweep ends, killed at any moment or out of disk, the next one leaves the study whole: rows, what tells of
//! them, and their Parquet file.

use std::fs;
use std::process::Stdio;
use std::sync::LazyLock;
use std::thread::sleep;
use std::time::Instant;

use crate::common::binary::{Ended, Folder, Record};
use crate::common::{binary, tiny};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

static STUDY: LazyLock<String> = LazyLock::new(|| tiny::fits("grid.n = [16, 24]"));

const SWEEP: [&str; 2] = ["sweep", "analysis/tiny.toml"];
const ROWS: &str = "data/tiny/rows.csv";
const MANIFEST: &str = "data/tiny/manifest.toml";
const PARQUET: &str = "data/tiny/rows.parquet";

fn with_definition() -> Folder {
    let folder = Folder::new();
    folder.write("analysis/tiny.toml", STUDY.as_str());
    folder
}

fn manifest(folder: &Folder) -> toml::Table {
    folder.read(MANIFEST).parse().unwrap()
}

/// What the manifest does not know of its rows.
fn not_known(folder: &Folder) -> Vec<String> {
    let manifest = manifest(folder);
    let notes = manifest.get("not_known").and_then(toml::Value::as_array);
    notes.into_iter().flatten().map(|note| note.as_str().unwrap().to_owned()).collect()
}

fn rows_without_time(folder: &Folder) -> Vec<Record> {
    let mut rows = folder.csv(ROWS).1;
    rows.iter_mut().for_each(|row| assert!(row.remove("wall_time_s").is_some()));
    rows
}

/// Every file below `data`, with its bytes.
fn files(folder: &Folder) -> Vec<(String, Vec<u8>)> {
    let names = folder.tree().into_iter().filter(|name| folder.path(name).is_file());
    names.map(|name| (name.clone(), fs::read(folder.path(&name)).unwrap())).collect()
}

/// The study is whole: its checks hold, and there is nothing left to do.
fn assert_whole(folder: &Folder, expected: &[Record], how: &str) {
    assert_eq!(rows_without_time(folder), expected, "{how}");
    folder.done(&["verify", "tiny"]);
    assert!(!manifest(folder).contains_key("rows_sha256_before"), "{how}: not ended");
    let before = files(folder);
    assert!(folder.done(&SWEEP).contains("0 configurations measured, 8 done before"), "{how}");
    assert!(files(folder) == before, "{how}: a sweep with nothing to do changed a file");
}

/// Of a study that is not whole, every command that cannot do without says so in a line, with the command that makes
/// it whole.
fn assert_said(folder: &Folder, how: &str) {
    let says = |line: &str| line.contains("`rank-study sweep analysis/tiny.toml`");
    let Ended { code, stdout, stderr } = folder.run(&["verify", "tiny"]);
    assert_eq!(code, Some(3), "{how}: {stdout}{stderr}");
    assert!(stdout.lines().any(says), "{how}: {stdout}{stderr}");
    for command in ["table", "figure", "report"] {
        let cause = match (how.contains("manifest missing"), how.contains("manifest older")) {
            (true, _) => "manifest.toml is missing",
            (_, true) => "the rows have changed",
            _ => {
                folder.done(&[command, "tiny"]);
                continue;
            }
        };
        let error = folder.refused(&[command, "tiny"]);
        assert!(error.contains(cause) && says(&error), "{how}: {error}");
    }
}

#[test]
fn what_is_missing_or_older_is_made_up_for() {
    let folder = with_definition();
    folder.done(&[&SWEEP[..], &["--filter", "s0$"]].concat());
    let read = || [MANIFEST, PARQUET].map(|name| fs::read(folder.path(name)).unwrap());
    let older = read();
    folder.done(&SWEEP);
    let newest = read();
    let rows = rows_without_time(&folder);
    let bytes = folder.read(ROWS);
    let put = |name: &str, bytes: Option<&Vec<u8>>| match bytes {
        Some(bytes) => folder.write(name, bytes),
        None => fs::remove_file(folder.path(name)).unwrap(),
    };
    let states =
        |at: usize| [("newest", Some(&newest[at])), ("older", Some(&older[at])), ("missing", None)];
    let reproduce = ["reproduce", "--preset", "paper", "--only", "tiny"];
    for command in [&SWEEP[..], &reproduce] {
        for (state, told) in states(0) {
            for (of_parquet, parquet) in states(1) {
                let how = format!("{}: manifest {state}, parquet {of_parquet}", command[0]);
                put(MANIFEST, told);
                put(PARQUET, parquet);
                if !how.ends_with("manifest newest, parquet newest") {
                    assert_said(&folder, &how);
                }
                let Ended { code, stdout, stderr } = folder.run(command);
                assert_eq!(code, Some(0), "{how}: {stdout}{stderr}");
                assert_eq!(folder.read(ROWS), bytes, "{how}");
                assert_whole(&folder, &rows, &how);
                let (notes, manifest) = (not_known(&folder), manifest(&folder));
                match (state, told) {
                    (_, None) => {
                        assert!(notes.len() == 1 && notes[0].contains("was missing"), "{notes:?}");
                        for key in ["command", "started", "ended", "cpu", "blas"] {
                            assert_eq!(manifest[key].as_str(), Some(""), "{how}: {key}");
                        }
                    }
                    ("older", Some(there)) => {
                        assert!(notes.len() == 1 && notes[0].contains("rows_sha256"), "{notes:?}");
                        let before: toml::Table = str::from_utf8(there).unwrap().parse().unwrap();
                        for key in ["command", "started", "ended", "wall_time_s"] {
                            assert_eq!(manifest[key], before[key], "{how}: {key}");
                        }
                    }
                    (_, Some(there)) => {
                        assert_eq!(folder.read(MANIFEST).as_bytes(), there, "{how}")
                    }
                }
                let said = folder.done(&["verify", "tiny"]);
                assert_eq!(said.contains("tiny: unknown: "), !notes.is_empty(), "{how}: {said}");
            }
        }
    }
}

#[test]
fn what_was_not_known_stays_so_when_more_is_measured() {
    let folder = with_definition();
    folder.done(&[&SWEEP[..], &["--filter", "s0$"]].concat());
    fs::remove_file(folder.path(MANIFEST)).unwrap();
    assert!(folder.done(&SWEEP).contains("4 configurations measured, 4 done before"));
    let manifest = manifest(&folder);
    assert_eq!(manifest["started"].as_str(), Some(""), "when the first rows were begun");
    assert_eq!(manifest["command"].as_str(), Some("rank-study sweep analysis/tiny.toml"));
    assert_eq!(not_known(&folder).len(), 1);
    assert_whole(&folder, &rows_without_time(&folder), "measured on");
    folder.done(&["report", "tiny"]);
    let page = folder.read("figures/report.html");
    assert!(page.contains("rank-study sweep analysis/tiny.toml"), "the command is missing");
}

#[test]
fn a_manifest_ahead_of_its_rows_is_known_for_one() {
    let folder = with_definition();
    // As a kill between the two writes of a cell leaves them.
    folder.done(&[&SWEEP[..], &["--filter", "s0$"]].concat());
    let (rows, hash) = (folder.read(ROWS), manifest(&folder)["rows_sha256"].clone());
    folder.done(&SWEEP);
    let expected = rows_without_time(&folder);
    let mut ahead = manifest(&folder);
    ahead.insert("rows_sha256_before".to_owned(), hash);
    folder.write(ROWS, &rows);
    folder.write(MANIFEST, toml::to_string(&ahead).unwrap());
    let said = folder.run(&["verify", "tiny"]).stdout;
    assert!(!said.contains("has changed since it was measured"), "{said}");
    folder.done(&["table", "tiny"]);
    // Rows of neither hash are others.
    let fewer: String = rows.lines().take(2).map(|line| format!("{line}\n")).collect();
    folder.write(ROWS, fewer);
    assert!(folder.refused(&["table", "tiny"]).contains("the rows have changed"));
    folder.write(ROWS, &rows);
    assert!(folder.done(&SWEEP).contains("4 configurations measured, 4 done before"));
    assert_eq!(not_known(&folder), Vec::<String>::new());
    assert_whole(&folder, &expected, "ahead");
}

#[test]
fn rows_that_are_replaced_outlive_a_kill() {
    let seed = 20_261_123;
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let folder = with_definition();
    let started = Instant::now();
    folder.done(&SWEEP);
    let longest = started.elapsed();
    let (_, before) = folder.csv(ROWS);
    folder.write("analysis/tiny.toml", STUDY.replace("= 120", "= 140"));
    for kill in 0.. {
        let pause = longest.mul_f64(rng.random());
        let mut command = folder.command(&[&SWEEP[..], &["--threads", "1"]].concat());
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        sleep(pause);
        let ended = child.try_wait().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        let aside = "data/tiny/rows-set-aside.csv";
        let aside = if folder.path(aside).exists() { folder.csv(aside).1 } else { Vec::new() };
        let (_, rows) = folder.csv(ROWS);
        for row in &before {
            let how = format!("seed {seed}, kill {kill}: {row:?} is lost");
            assert!(rows.contains(row) || aside.contains(row), "{how}");
        }
        assert_eq!(rows.len(), before.len(), "seed {seed}, kill {kill}");
        if let Some(status) = ended {
            assert!(status.success(), "{status}");
            assert!(rows.iter().all(|row| aside.iter().all(|other| other != row)));
            break;
        }
    }
    assert_whole(&folder, &rows_without_time(&folder), "replaced");
}

#[test]
fn a_signal_stops_everything_and_the_same_command_goes_on() {
    let study = tiny::fits("grid.n = [16, 24]\ngrid.seed = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]");
    let reproduce = ["reproduce", "--preset", "paper", "--threads", "1"];
    for signal in binary::SIGNALS {
        let folder = Folder::new();
        folder.write("analysis/tiny.toml", &study);
        let mut command = folder.command(&reproduce);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        while !folder.path(ROWS).exists() {
            assert!(child.try_wait().unwrap().is_none(), "ended before it could be stopped");
            sleep(std::time::Duration::from_millis(1));
        }
        binary::send(signal, &child);
        let Ended { code, stdout, stderr } = Ended::of(&child.wait_with_output().unwrap());
        assert_eq!(code, binary::STOPPED, "{signal}: {stdout}{stderr}");
        let last = stderr.lines().last().unwrap_or_default();
        assert!(last.starts_with("error: stopped; "), "{signal}: {last}");
        assert!(!folder.path("figures").exists(), "{signal}: a report of what is not there");
        let before = folder.csv(ROWS).1;
        folder.done(&reproduce);
        let after = folder.csv(ROWS).1;
        assert!(before.len() < after.len(), "{signal}: it was all there");
        assert!(before.iter().all(|row| after.contains(row)), "{signal}: a finished row was lost");
        folder.done(&["verify", "tiny"]);
    }
}

//! However a sweep ends, killed at any moment or out of disk, the next one leaves the study whole: rows, what tells of
//! them, and their Parquet file.

use std::fs;
use std::process::{Command, Stdio};
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

/// How often sweeps are killed in all.
const KILLS: usize = 30;

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
    let held = folder.run(&["verify", "tiny"]);
    assert_eq!(held.code, Some(0), "{how}: {}{}", held.stdout, held.stderr);
    assert!(!manifest(folder).contains_key("rows_sha256_before"), "{how}: not ended");
    let before = files(folder);
    assert!(folder.done(&SWEEP).contains("0 configurations measured, 8 done before"), "{how}");
    assert!(files(folder) == before, "{how}: a sweep with nothing to do changed a file");
}

/// Of a study that is not whole, every command that cannot do without says so in a line, with the command that makes
/// it whole.
fn assert_said(folder: &Folder, how: &str) {
    let says = |line: &str| line.contains("`rank-study sweep analysis/tiny.toml`");
    if !folder.path(MANIFEST).exists() {
        let Ended { code, stdout, stderr } = folder.run(&["verify", "tiny"]);
        assert_eq!(code, Some(3), "{how}: {stdout}{stderr}");
        assert!(stdout.lines().any(says), "{how}: {stdout}{stderr}");
        for command in ["table", "figure", "report"] {
            let error = folder.refused(&[command, "tiny"]);
            assert!(error.contains("manifest.toml is missing") && says(&error), "{how}: {error}");
        }
        return;
    }
    let Ended { code, stdout, stderr } = folder.run(&["verify", "tiny"]);
    assert_eq!(code, Some(3), "{how}: {stdout}{stderr}");
    assert!(stdout.lines().any(says), "{how}: {stdout}{stderr}");
    for command in ["table", "figure", "report"] {
        if !how.contains("manifest older") {
            folder.done(&[command, "tiny"]);
            continue;
        }
        let error = folder.refused(&[command, "tiny"]);
        assert!(error.contains("the rows have changed") && says(&error), "{how}: {error}");
    }
}

#[test]
fn what_is_missing_or_older_is_made_up_for() {
    let folder = with_definition();
    folder.done(&[&SWEEP[..], &["--filter", "s0$"]].concat());
    let older = [MANIFEST, PARQUET].map(|name| fs::read(folder.path(name)).unwrap());
    folder.done(&SWEEP);
    let newest = [MANIFEST, PARQUET].map(|name| fs::read(folder.path(name)).unwrap());
    let rows = rows_without_time(&folder);
    let bytes = folder.read(ROWS);
    let put = |name: &str, bytes: Option<&Vec<u8>>| match bytes {
        Some(bytes) => folder.write(name, bytes),
        None => fs::remove_file(folder.path(name)).unwrap(),
    };
    let states = |at: usize| [Some(&newest[at]), Some(&older[at]), None];
    let reproduce = ["reproduce", "--preset", "paper", "--only", "tiny"];
    for command in [&SWEEP[..], &reproduce] {
        for told in states(0) {
            for parquet in states(1) {
                let state = |found: Option<&Vec<u8>>, at: usize| match found {
                    None => "missing",
                    Some(bytes) if *bytes == older[at] => "older",
                    Some(_) => "newest",
                };
                let how = format!(
                    "{}: manifest {}, parquet {}",
                    command[0],
                    state(told, 0),
                    state(parquet, 1)
                );
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
                match told {
                    None => {
                        assert!(notes.len() == 1 && notes[0].contains("was missing"), "{notes:?}");
                        for key in ["command", "started", "ended", "cpu", "blas"] {
                            assert_eq!(manifest[key].as_str(), Some(""), "{how}: {key}");
                        }
                    }
                    Some(there) if *there == older[0] => {
                        assert!(notes.len() == 1 && notes[0].contains("rows_sha256"), "{notes:?}");
                        let before: toml::Table =
                            String::from_utf8(older[0].clone()).unwrap().parse().unwrap();
                        for key in ["command", "started", "ended", "wall_time_s"] {
                            assert_eq!(manifest[key], before[key], "{how}: {key}");
                        }
                    }
                    Some(there) => assert_eq!(folder.read(MANIFEST).as_bytes(), there, "{how}"),
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
    assert!(folder.done(&SWEEP).contains("4 configurations measured, 4 done before"));
    assert_eq!(not_known(&folder), Vec::<String>::new());
    assert_whole(&folder, &expected, "ahead");
}

#[test]
fn a_study_killed_at_any_moment_is_made_whole() {
    let seed = 20_261_122;
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let whole = with_definition();
    let started = Instant::now();
    whole.done(&SWEEP);
    let longest = started.elapsed();
    let expected = rows_without_time(&whole);
    let mut kills = 0;
    while kills < KILLS {
        let folder = with_definition();
        loop {
            let pause = longest.mul_f64(rng.random());
            let mut command = folder.command(&SWEEP);
            let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            sleep(pause);
            if let Some(status) = child.try_wait().unwrap() {
                assert!(status.success(), "a killed study could not be gone on with: {status}");
                break;
            }
            child.kill().unwrap();
            child.wait().unwrap();
            kills += 1;
            let rows = fs::read_to_string(folder.path(ROWS)).map_or(0, |text| text.lines().count());
            println!("seed {seed}: killed after {pause:?} with {rows} lines");
            if rows > 0 {
                // Rows are never there without what tells of them.
                let said = folder.run(&["verify", "tiny"]);
                assert_eq!(said.stderr.matches("cannot read").count(), 0, "{}", said.stderr);
                assert!(
                    !said.stdout.contains("has changed since it was measured"),
                    "{}",
                    said.stdout
                );
            }
        }
        assert_eq!(not_known(&folder), Vec::<String>::new(), "everything was told in time");
        assert_whole(&folder, &expected, "killed");
    }
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
        let aside = folder.path("data/tiny/rows-set-aside.csv");
        let aside =
            if aside.exists() { folder.csv("data/tiny/rows-set-aside.csv").1 } else { Vec::new() };
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

/// Lets no file grow over some blocks, as a disk does that is full.
#[cfg(unix)]
#[test]
fn a_study_out_of_disk_at_any_write_is_made_whole() {
    let whole = with_definition();
    whole.done(&SWEEP);
    let expected = rows_without_time(&whole);
    // The signal at the limit ends a process that does not ignore it: in the middle of a write.
    for (ignored, code) in [("trap '' XFSZ; ", Some(1)), ("", None)] {
        let mut full = 0;
        for blocks in 1.. {
            let folder = with_definition();
            let limited = format!("ulimit -c 0; ulimit -f {blocks}; {ignored}exec \"$0\" \"$@\"");
            let sweep = folder.command(&SWEEP);
            let mut command = Command::new("sh");
            command.args(["-c", &limited]).arg(sweep.get_program()).args(sweep.get_args());
            let output = command.current_dir(folder.path("")).output().unwrap();
            let Ended { code: found, stderr, .. } = Ended::of(&output);
            if found == Some(0) {
                break;
            }
            full += 1;
            let how = format!("{blocks} blocks, {ignored:?}");
            assert_eq!(found, code, "{how}: {stderr}");
            if code.is_some() {
                let last = stderr.lines().last().unwrap_or_default();
                assert!(last.starts_with("error: cannot write "), "{how}: {last}");
            }
            folder.done(&SWEEP);
            assert_eq!(not_known(&folder), Vec::<String>::new(), "{how}");
            assert_whole(&folder, &expected, &how);
        }
        assert!(full > 5, "the disk was full {full} times only");
    }
}

#[cfg(unix)]
#[test]
fn a_signal_stops_everything_and_the_same_command_goes_on() {
    let seeds: Vec<String> = (0..10).map(|seed| seed.to_string()).collect();
    let study = STUDY.replace("seed = [0, 1]", &format!("seed = [{}]", seeds.join(", ")));
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
        assert!(stderr.contains("stopping after the configurations"), "{signal}: {stderr}");
        let last = stderr.lines().last().unwrap_or_default();
        assert!(last.starts_with("error: stopped; "), "{signal}: {last}");
        assert!(!folder.path("figures").exists(), "{signal}: a report of what is not there");
        let before = folder.csv(ROWS).1;
        folder.done(&reproduce);
        let after = folder.csv(ROWS).1;
        assert!(before.len() < after.len(), "{signal}: it was all there");
        assert!(before.iter().all(|row| after.contains(row)), "{signal}: a finished row was lost");
        assert_eq!(folder.run(&["verify", "tiny"]).code, Some(0), "{signal}");
    }
}

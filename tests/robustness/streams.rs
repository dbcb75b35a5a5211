//! Whoever listens may go away: standard error without a reader ends nothing, standard output without one or without room
//! ends a command, after its files are whole.

use std::fs::File;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{ExitStatus, Output, Stdio};

use crate::common::binary::Folder;
use crate::common::tiny;

const SWEEP: &[&str] = &["sweep", "analysis/tiny.toml"];
const TRAIN: &[&str] = &["train", "run.toml", "--out", "run"];
const FIT: &[&str] = &[
    "fit", "--family", "dirichlet-band", "--window", "4", "--n", "16", "--rank", "2",
    "--max-logit", "2,4", "--starts", "2", "--out", "fit",
];
const PREDICT: &[&str] = &["predict", "run", "--tolerance", "0.1", "--out", "predicted"];
const REPRODUCE: &[&str] = &["reproduce", "--preset", "quick", "--only", "tiny"];

/// Commands that work for a while, in an order in which each finds what it needs, and a file that each leaves.
const AT_WORK: [(&[&str], &str); 5] = [
    (SWEEP, "data/tiny/rows.parquet"),
    (TRAIN, "run/heads.parquet"),
    (FIT, "fit/frontier.csv"),
    (PREDICT, "predicted/rows.parquet"),
    (REPRODUCE, "figures/quick/report.html"),
];

fn with_definitions() -> Folder {
    let folder = Folder::new();
    folder.write("analysis/tiny.toml", tiny::fits("grid.rank = [2]"));
    folder.write("run.toml", tiny::training("steps = 10\neval_every = 5\nkeep_checkpoints = [10]"));
    folder
}

/// The writing end of a pipe whose reader is gone.
fn without_a_reader() -> Stdio {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    writer.into()
}

fn full() -> Stdio {
    File::options().write(true).open("/dev/full").unwrap().into()
}

fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn whoever_read_standard_error_may_go_away() {
    let folder = with_definitions();
    for (arguments, left) in AT_WORK {
        let ended: ExitStatus = folder
            .command(arguments)
            .stderr(without_a_reader())
            .stdout(Stdio::null())
            .status()
            .unwrap();
        assert_eq!(ended.code(), Some(0), "{arguments:?}: {ended}");
        assert!(folder.path(left).exists(), "{arguments:?} left no {left}");
    }
    // Nor does an error end otherwise than with its code, nor what clap has to say.
    for (arguments, code) in [
        (&["sweep", "analysis/none.toml"][..], 1),
        (&["verify", "none"], 1),
        (&["sweep", "--no-such-flag"], 2),
    ] {
        let ended =
            folder.command(arguments).stderr(without_a_reader()).stdout(Stdio::null()).status();
        assert_eq!(ended.unwrap().code(), Some(code), "{arguments:?}");
    }
}

/// What prints something on standard output when its files are there.
fn that_print() -> Vec<Vec<&'static str>> {
    let at_work = AT_WORK.iter().map(|(arguments, _)| [*arguments, &["--quiet"]].concat());
    let others: [&[&str]; 17] = [
        &["--version"],
        &["--version", "--verbose"],
        &["--help"],
        &["help", "sweep"],
        &["list"],
        &["list", "--json"],
        &["list", "--columns", "fit"],
        &["sweep", "analysis/tiny.toml", "--list"],
        &["table", "tiny", "--quiet"],
        &["figure", "tiny"],
        &["report", "tiny"],
        &["verify", "tiny"],
        &["merge"],
        &["show", "fit", "--quiet"],
        &["train", "run.toml", "--out", "run", "--resume", "--json", "--quiet"],
        &["target", "--family", "dirichlet-band", "--window", "4", "--n", "16", "--json"],
        &["bench", "fit", "--n", "64", "--rank", "4", "--repeats", "1", "--json", "--quiet"],
    ];
    at_work.chain(others.map(<[&str]>::to_vec)).collect()
}

#[test]
fn a_full_standard_output_is_an_error_of_one_line() {
    let folder = with_definitions();
    for arguments in that_print() {
        let output = folder.command(&arguments).stdout(full()).output().unwrap();
        let error = told(&output);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {error}");
        assert_eq!(error.lines().count(), 1, "{arguments:?}: {error}");
        let says = "error: cannot write the result to standard output: No space left on device";
        assert!(error.starts_with(says), "{arguments:?}: {error}");
    }
    for (_, left) in AT_WORK {
        assert!(folder.path(left).exists(), "no {left}");
    }
}

#[test]
fn a_standard_output_without_a_reader_ends_a_command_quietly() {
    let folder = with_definitions();
    for arguments in that_print() {
        let output = folder.command(&arguments).stdout(without_a_reader()).output().unwrap();
        assert_eq!(told(&output), "", "{arguments:?}");
        // As other tools, by which `head` may stand behind any of them.
        assert_eq!(output.status.signal(), Some(libc::SIGPIPE), "{arguments:?}: {}", output.status);
    }
    for (_, left) in AT_WORK {
        assert!(folder.path(left).exists(), "no {left}");
    }
}

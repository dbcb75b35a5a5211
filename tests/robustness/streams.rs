//! Whoever listens may go away: standard error without a reader ends nothing, standard output without one or without room
//! ends a command, after its files are whole.

use std::fs::File;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Output, Stdio};

use crate::common::binary::{Folder, words};
use crate::common::tiny;

/// Commands that work for a while, in an order in which each finds what it needs, and a file that each leaves.
const AT_WORK: [(&str, &str); 5] = [
    ("sweep analysis/tiny.toml", "data/tiny/rows.parquet"),
    ("train run.toml --out run", "run/heads.parquet"),
    (
        "fit --family dirichlet-band --window 4 --n 16 --rank 2 --max-logit 2,4 --starts 2 --out fit",
        "fit/frontier.csv",
    ),
    ("predict run --tolerance 0.1 --out predicted", "predicted/rows.parquet"),
    ("reproduce --preset quick --only tiny", "figures/quick/report.html"),
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
    let code = |line: &str| {
        let mut command = folder.command(&words(line));
        let ended = command.stderr(without_a_reader()).stdout(Stdio::null()).status().unwrap();
        ended.code()
    };
    for (line, left) in AT_WORK {
        assert_eq!(code(line), Some(0), "{line}");
        assert!(folder.path(left).exists(), "{line} left no {left}");
    }
    // Nor does an error end otherwise than with its code, nor what clap has to say.
    assert_eq!(code("sweep analysis/none.toml"), Some(1));
    assert_eq!(code("verify none"), Some(1));
    assert_eq!(code("sweep --no-such-flag"), Some(2));
}

/// What prints something on standard output when its files are there.
fn that_print() -> Vec<String> {
    let others = [
        "--version", "--version --verbose", "--help", "help sweep", "list", "list --json",
        "list --columns fit", "table tiny --quiet", "figure tiny", "report tiny", "verify tiny",
        "merge", "show fit --quiet",
    ];
    let longer = [
        "sweep analysis/tiny.toml --list",
        "train run.toml --out run --resume --json --quiet",
        "target --family dirichlet-band --window 4 --n 16 --json",
        "bench fit --n 64 --rank 4 --repeats 1 --json --quiet",
    ];
    let at_work = AT_WORK.iter().map(|(line, _)| format!("{line} --quiet"));
    at_work.chain(others.into_iter().chain(longer).map(str::to_owned)).collect()
}

/// What becomes of each command that prints, with such a standard output; their files are whole all the same.
fn ended_with(stdout: fn() -> Stdio) -> Vec<(String, Output)> {
    let folder = with_definitions();
    let run = |line: String| {
        let output = folder.command(&words(&line)).stdout(stdout()).output().unwrap();
        (line, output)
    };
    let ended = that_print().into_iter().map(run).collect();
    for (_, left) in AT_WORK {
        assert!(folder.path(left).exists(), "no {left}");
    }
    ended
}

#[test]
fn a_full_standard_output_is_an_error_of_one_line() {
    for (line, output) in ended_with(full) {
        let error = told(&output);
        assert_eq!(output.status.code(), Some(1), "{line}: {error}");
        assert_eq!(error.lines().count(), 1, "{line}: {error}");
        let is_told = error.starts_with("error: ") && error.contains("No space left on device");
        assert!(is_told, "{line}: {error}");
    }
}

#[test]
fn a_standard_output_without_a_reader_ends_a_command_quietly() {
    for (line, output) in ended_with(without_a_reader) {
        assert_eq!(told(&output), "", "{line}");
        // As other tools, by which `head` may stand behind any of them.
        assert_eq!(output.status.signal(), Some(libc::SIGPIPE), "{line}: {}", output.status);
    }
}

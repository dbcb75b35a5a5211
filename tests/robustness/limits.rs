//! What cannot fit is refused in a line before it begins, and where memory is short every command works or says so.

use std::process::{Command, Stdio};
use std::sync::LazyLock;

use crate::common::binary::{Ended, Folder, words};
use crate::common::tiny;
use crate::common::tries::{Tries, share_of};

static STUDY: LazyLock<String> = LazyLock::new(|| {
    tiny::fits("grid.n = [12]\ngrid.rank = [2]\ngrid.seed = [0]\nsearch.iterations = 40")
});

const TEXT: &str = "the quick brown fox jumps over the lazy dog\n";

/// The longest that a command may take, in seconds: none of these does anything of size.
const PATIENCE: &str = "120";
/// What the refused may have of memory, in MiB: the same on every machine.
const HELD: usize = 4096;

/// A folder with a trained run, a study, its rows and a text.
fn with_all() -> Folder {
    let folder = Folder::new();
    folder.write("run.toml", tiny::training("checkpoint_every = 2\nkeep_checkpoints = [2]"));
    folder.write("analysis/tiny.toml", STUDY.as_str());
    folder.write("text.txt", TEXT.repeat(30));
    let of_text = ["--text", "text.txt", "--set", "vocabulary=byte", "--quiet"];
    folder.done(&[&["train", "run.toml", "--out", "r"], &of_text[..]].concat());
    folder.done(&["sweep", "analysis/tiny.toml", "--quiet"]);
    folder
}

/// Runs a command under `ulimit -v` of `mebibytes`. A command that does not end is killed.
fn within(folder: &Folder, mebibytes: usize, arguments: &[&str]) -> Ended {
    let limit = format!("ulimit -c 0; ulimit -v {}; exec \"$@\"", mebibytes * 1024);
    let output = Command::new("timeout")
        .args(["--signal=KILL", PATIENCE, "sh", "-c", &limit, "sh"])
        .arg(assert_cmd::cargo::cargo_bin!("rank-study"))
        .args(arguments)
        .current_dir(folder.path(""))
        .stdin(Stdio::null())
        .output();
    Ended::of(&output.unwrap())
}

/// A command that is to be refused: in one line, with exit 1, and not for want of memory that it had asked for.
fn is_refused(folder: &Folder, arguments: &[&str]) -> Result<(), String> {
    let before = folder.tree();
    let Ended { code, stderr, .. } = within(folder, HELD, arguments);
    let told = || format!("{arguments:?}: {code:?}, {stderr}");
    let is_a_line = stderr.lines().count() == 1 && stderr.starts_with("error: ");
    let is_late = stderr.contains("out of memory") || stderr.contains("internal error");
    if !matches!(code, Some(1 | 2)) || !is_a_line || is_late {
        return Err(told());
    }
    // The folder of what was asked for may have been made.
    let after = folder.tree();
    match after.iter().find(|file| !before.contains(file) && folder.path(file).is_file()) {
        None => Ok(()),
        Some(left) => Err(format!("{}: left {left}", told())),
    }
}

/// A command that may work or not: it ends, and where it fails with a line, be it the loader's of the libraries.
fn ends_well(folder: &Folder, mebibytes: usize, arguments: &[&str]) -> Result<(), String> {
    let Ended { code, stderr, .. } = within(folder, mebibytes, arguments);
    let is_error =
        |line: &&str| line.starts_with("error: ") || line.contains(": error while loading");
    let is_a_line = stderr.lines().filter(is_error).count() == 1 && !stderr.contains("panicked");
    match code {
        Some(0) => Ok(()),
        Some(1 | 127) if is_a_line => Ok(()),
        code => Err(format!("{arguments:?} within {mebibytes} MiB: {code:?}, {stderr}")),
    }
}

/// Every request that asks for too much.
fn too_much() -> Vec<String> {
    let huge = ["3000000000", "1000000000000", "9223372036854775807", "18446744073709551615"];
    let mut all: Vec<String> = Vec::new();
    let band = "--family dirichlet-band --window 8";
    for n in huge {
        let families = [
            "uniform-band --window 8", "decay-band --window 8", "dirichlet-band --window 8",
            "lognormal-band --window 8", "previous-token --k 1", "landmark --m 3",
            "random-sparse --k 3", "clustered --c 3", "induction --vocabulary 5", "prefix",
        ];
        let composed = [
            "mixture --local previous-token --global prefix --k 1",
            "permuted --of prefix --mask bidirectional",
        ];
        for family in families.into_iter().chain(composed) {
            all.push(format!("target --family {family} --n {n} --stats"));
        }
        let fit = format!("fit {band} --max-logit 4 --out f");
        for (command, flags) in [
            (format!("{fit} --rank 4").as_str(), "n"),
            (&format!("{fit} --n 64"), "rank"),
            (&format!("{fit} --n 64 --rank 4"), "starts threads"),
            ("bench fit --rank 4", "n"),
            ("bench fit --n 64", "rank"),
            ("bench fit --n 64 --rank 4", "threads"),
            ("bench attention", "batch context d-head"),
            ("bench step --context 64", "layers d-model heads vocab batch"),
            ("bench step", "context"),
            ("bench decode --cache 64", "layers d-model heads vocab"),
            ("bench decode", "cache"),
            ("train run.toml --out x", "threads"),
            ("dump r --text text.txt --out d", "tokens first"),
            ("evaluate r --text text.txt", "threads"),
            ("predict r --text text.txt --out p", "tokens"),
            ("diagnose r --text text.txt --out p", "passages tokens threads"),
            ("sweep analysis/tiny.toml", "threads"),
            ("slurm --out job.sh", "tasks"),
        ] {
            all.extend(flags.split(' ').map(|flag| format!("{command} --{flag} {n}")));
        }
        for key in [
            "layers", "d_model", "batch", "accumulation", "eval_batches", "context",
            "corpus.tokens", "corpus.order", "corpus.window", "corpus.segment", "corpus.keys",
            "corpus.values", "corpus.alphabet",
        ] {
            all.push(format!("train run.toml --out x --set {key}={n}"));
        }
        all.push(format!("train run.toml --out x --set vocabulary=bpe:{n} --text text.txt"));
        all.push(format!("{fit} --n 64 --rank 4 --layout {n}xglobal"));
        all.push(format!("bench attention --layout {n}xglobal"));
    }
    all.extend([
        format!("target {band} --n 200000 --out x.npy"),
        "target --family prefix --n 32000 --stats".to_owned(),
        "target --family landmark --m 30000 --n 30000".to_owned(),
        format!("fit {band} --n 100000 --rank 4096 --max-logit 4 --out f"),
        format!("fit {band} --n 20000 --rank 64 --starts 48 --max-logit 2,4,8,16,32,64 --out f"),
        "bench fit --n 100000 --rank 8192".to_owned(),
        "bench attention --batch 64 --context 65536 --d-head 128".to_owned(),
        "bench step --layers 1000 --d-model 4096 --heads 8 --context 64".to_owned(),
        "bench step --batch 4096 --context 2048".to_owned(),
        "bench decode --layers 1000 --d-model 4096 --heads 8 --cache 64".to_owned(),
        "train run.toml --out x --set layers=2000000000".to_owned(),
        "train run.toml --out x --set d_model=1000000".to_owned(),
        "train run.toml --out x --set batch=1000000000".to_owned(),
        "train run.toml --out x --set layers=100000 --set d_model=512".to_owned(),
        "train run.toml --out x --set corpus.tokens=1000000000".to_owned(),
    ]);
    // A benchmark says what it times, before it does.
    let quiet = |line: &mut String| line.push_str(" --quiet");
    all.iter_mut().filter(|line| line.starts_with("bench ")).for_each(quiet);
    all
}

/// Commands of every kind, small ones.
const COMMANDS: [&str; 19] = [
    "--version",
    "--version --verbose",
    "target --family dirichlet-band --window 8 --n 64 --stats --out OUT.npy",
    "target --family prefix --n 300 --stats",
    "fit --family dirichlet-band --window 4 --n 24 --rank 2 --max-logit 4 --starts 2 --out OUT",
    "train run.toml --out OUT",
    "train run.toml --text text.txt --set vocabulary=bpe:260 --out OUT",
    "evaluate r --text text.txt",
    "dump r --text text.txt --out OUT",
    "predict r --text text.txt --passages 1 --screen --out OUT",
    "diagnose r --text text.txt --passages 1 --most 1 --out OUT",
    "sweep analysis/tiny.toml",
    "table tiny",
    "figure tiny",
    "verify tiny",
    "list",
    "show r",
    "bench fit --n 64 --rank 4 --repeats 1",
    "bench step --layers 1 --d-model 16 --heads 2 --context 32 --vocab 64 --repeats 1",
];

/// In MiB, above what the program and its libraries take before it begins.
const SMALL: [usize; 12] = [16, 20, 24, 32, 40, 56, 80, 120, 200, 300, 500, 900];

/// The least, in MiB, within which the program begins. With less the loader, or the language's own start, ends it.
fn least(folder: &Folder) -> usize {
    let begins = |mebibytes: &usize| within(folder, *mebibytes, &["--version"]).code == Some(0);
    (64..4096).step_by(4).find(begins).expect("it begins in 4 GiB")
}

#[test]
fn what_cannot_fit_is_refused_and_what_is_short_of_memory_ends_in_a_line() {
    let folder = with_all();
    let mut tries = Tries::of("limits");
    let refused = too_much();
    for request in spread(&refused) {
        tries.tried(is_refused(&folder, &words(request)));
    }
    let least = least(&folder);
    let small: Vec<(usize, &str)> =
        SMALL.iter().flat_map(|more| COMMANDS.map(|line| (least + more, line))).collect();
    for (at, &&(mebibytes, line)) in spread(&small).iter().enumerate() {
        let line = line.replace("OUT", &format!("o{at}"));
        tries.tried(ends_well(&folder, mebibytes, &words(&line)));
    }
    tries.end();
}

/// As many of them as are tried, evenly.
fn spread<T>(all: &[T]) -> Vec<&T> {
    let share = share_of(all.len());
    (0..share).map(|at| &all[(2 * at + 1) * all.len() / (2 * share)]).collect()
}

#[test]
fn a_cell_that_cannot_fit_costs_no_other_cell() {
    let folder = with_all();
    // Passages that the text does not have are what is wrong with each cell.
    let predict =
        ["predict", "r", "--text", "text.txt", "--passages", "9223372036854775807", "--quiet"];
    let Ended { code, stderr, .. } =
        within(&folder, HELD, &[&predict[..], &["--groups", "3", "--out", "p"]].concat());
    let lines: Vec<&str> = stderr.lines().filter(|line| line.contains("tokens needed")).collect();
    assert!(code == Some(1) && lines.len() >= 2 && !stderr.contains("internal"), "{stderr}");
    // The cell of a study that cannot fit has a row that says so, and the others are measured.
    let study = STUDY.replace("rank = [2]", "rank = [2, 100000000000]").replace("tiny", "wide");
    folder.write("analysis/wide.toml", study);
    let ended = within(&folder, HELD, &["sweep", "analysis/wide.toml", "--quiet"]);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    let (_, rows) = folder.csv("data/wide/rows.csv");
    let errors: Vec<&str> = rows.iter().map(|row| row["err"].as_str()).collect();
    let [none, error] = errors[..] else { panic!("{errors:?}") };
    assert!(none.is_empty() && error.contains("rank 100000000000"), "{errors:?}");
}

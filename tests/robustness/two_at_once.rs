//! Two processes on one study, part, run, fit, token cache or page: one waits, or is told in a line that another is at work,
//! and what they leave is what one of them leaves alone. Whoever was killed holds nobody up.

use std::fs;
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::common::binary::{Ended, Folder};
use crate::common::tiny;
use crate::common::tries::{Tries, share_of};
use crate::whole::Whole;
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

/// How often each pair is begun, as the README tells it.
const PAIRS: usize = 25;

const SWEEP: &[&str] = &["sweep", "analysis/tiny.toml"];
const FIRST_PART: &[&str] = &["sweep", "analysis/tiny.toml", "--shard", "1/2"];
const SECOND_PART: &[&str] = &["sweep", "analysis/tiny.toml", "--shard", "2/2"];
const TRAIN: &[&str] = &["train", "run.toml", "--out", "run", "--resume", "--quiet"];
const OF_TEXT: &[&str] = &[
    "train", "run.toml", "--text", "text.txt", "--set", "vocabulary=byte", "--quiet", "--out",
    "one",
];
const OF_TEXT_TOO: &[&str] = &[
    "train", "run.toml", "--text", "text.txt", "--set", "vocabulary=byte", "--quiet", "--out",
    "two",
];
const FIT: &[&str] = &[
    "fit", "--family", "dirichlet-band", "--window", "4", "--n", "24", "--rank", "3",
    "--max-logit", "2,4", "--starts", "2", "--iterations", "200", "--quiet", "--out", "fit",
];

/// Two commands at once, and those before them.
struct Pair {
    what: &'static str,
    before: &'static [&'static [&'static str]],
    both: [&'static [&'static str]; 2],
    /// What one of them may be told, where it is not done.
    told: &'static [&'static str],
}

const AT_WORK: &str = "is writing to";
const ALL: [Pair; 7] = [
    Pair { what: "one study", before: &[], both: [SWEEP, SWEEP], told: &[AT_WORK] },
    Pair { what: "one part", before: &[], both: [FIRST_PART, FIRST_PART], told: &[AT_WORK] },
    Pair { what: "one run", before: &[], both: [TRAIN, TRAIN], told: &[AT_WORK] },
    Pair {
        what: "one fit",
        before: &[],
        both: [FIT, FIT],
        told: &[AT_WORK, "already has a frontier.csv"],
    },
    Pair { what: "one token cache", before: &[], both: [OF_TEXT, OF_TEXT_TOO], told: &[] },
    Pair {
        what: "one page",
        before: &[SWEEP],
        both: [&["report", "tiny"], &["report", "tiny"]],
        told: &[],
    },
    Pair {
        what: "one merge",
        before: &[FIRST_PART, SECOND_PART],
        both: [&["merge"], &["merge"]],
        told: &[AT_WORK],
    },
];

/// Commands that hold a folder.
const HOLDERS: [&[&str]; 4] = [SWEEP, FIRST_PART, TRAIN, FIT];

fn laid_out() -> Folder {
    let folder = Folder::new();
    folder.write("analysis/tiny.toml", tiny::fits("grid.n = [16, 24]\ngrid.seed = [0]"));
    folder.write("run.toml", tiny::training("steps = 60\neval_every = 20\ncheckpoint_every = 10"));
    // Long enough for its tokens to be kept.
    folder.write("text.txt", "the quick brown fox jumps over the lazy dog\n".repeat(30_000));
    folder
}

fn prepared(before: &[&[&str]]) -> Folder {
    let folder = laid_out();
    before.iter().for_each(|arguments| drop(folder.done(arguments)));
    folder
}

/// A folder with the same files.
fn copied(folder: &Folder) -> Folder {
    let copy = Folder::new();
    for name in folder.tree() {
        match folder.path(&name) {
            path if path.is_dir() => fs::create_dir_all(copy.path(&name)).unwrap(),
            path => copy.write(&name, fs::read(path).unwrap()),
        }
    }
    copy
}

fn begun(folder: &Folder, arguments: &[&str]) -> Child {
    let mut command = folder.command(arguments);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// One pair, the second begun so long after the first.
fn at_once(
    pair: &Pair,
    prepared: &Folder,
    expected: &Whole,
    pause: Duration,
) -> Result<(), String> {
    let folder = copied(prepared);
    let children = pair.both.map(|arguments| {
        let child = begun(&folder, arguments);
        sleep(pause);
        child
    });
    let ended = children.map(|child| Ended::of(&child.wait_with_output().unwrap()));
    let done = ended.iter().filter(|ended| ended.code == Some(0)).count();
    for Ended { code, stdout, stderr } in &ended {
        let is_told = stderr.lines().any(|line| pair.told.iter().any(|word| line.contains(word)));
        let last = stderr.lines().last().unwrap_or_default();
        let is_in_a_line = last.starts_with("error: ") && !stderr.contains("panicked");
        if !(*code == Some(0) || (*code == Some(1) && is_told && is_in_a_line)) {
            return Err(format!("{code:?}: {stdout}{stderr}"));
        }
    }
    match done {
        0 => Err(format!("neither was done: {}{}", ended[0].stderr, ended[1].stderr)),
        _ => expected.check(&folder),
    }
}

/// A command that is killed at a moment, and begun anew before anyone has waited for the end of the killed one.
fn killed(arguments: &[&str], expected: &Whole, moment: Duration) -> Result<(), String> {
    let folder = laid_out();
    let mut child = begun(&folder, arguments);
    sleep(moment);
    child.kill().unwrap();
    let Ended { code, stdout, stderr } = folder.run(arguments);
    child.wait().unwrap();
    // It had ended before.
    let is_done = code == Some(0) || stderr.contains("already has a frontier.csv");
    if !is_done {
        return Err(format!("{code:?}: {stdout}{stderr}"));
    }
    expected.check(&folder)
}

#[test]
fn two_at_once_leave_what_one_does() {
    let mut rng = ChaCha8Rng::seed_from_u64(20_261_128);
    let mut tries = Tries::of("two-at-once");
    for pair in &ALL {
        let prepared = prepared(pair.before);
        let alone = copied(&prepared);
        let began = Instant::now();
        pair.both.iter().for_each(|arguments| {
            // The second may find nothing left to do, and a fit that has ended is not begun again.
            let ended = alone.run(arguments);
            assert!(
                ended.code == Some(0) || ended.stderr.contains("already has"),
                "{arguments:?}: {}",
                ended.stderr
            );
        });
        let length = began.elapsed() / 2;
        let expected = Whole::of(&alone).unwrap();
        for _ in 0..share_of(PAIRS) {
            let pause = length.mul_f64(rng.random::<f64>().powi(2));
            let result = at_once(pair, &prepared, &expected, pause);
            tries.tried(result.map_err(|why| format!("{}, {pause:?} apart: {why}", pair.what)));
        }
    }
    for arguments in HOLDERS {
        let alone = laid_out();
        let began = Instant::now();
        alone.done(arguments);
        let length = began.elapsed();
        let expected = Whole::of(&alone).unwrap();
        for _ in 0..share_of(PAIRS) {
            let moment = length.mul_f64(rng.random());
            let result = killed(arguments, &expected, moment);
            tries
                .tried(result.map_err(|why| format!("{arguments:?}, killed at {moment:?}: {why}")));
        }
    }
    tries.end();
}

#[test]
fn who_comes_second_is_told_so_in_a_line() {
    let folder = laid_out();
    folder.write("long.toml", tiny::training("steps = 1000000\ncheckpoint_every = 10"));
    folder.write(
        "analysis/tiny.toml",
        tiny::fits(
            "search = { rough_iterations = 600000, iterations = 1200000, relative_decrease = 0 }",
        ),
    );
    let longer = |word: &&'static str| match *word {
        "24" => "512",
        "200" => "1000000",
        word => word,
    };
    let long_fit: Vec<&str> = FIT.iter().map(longer).collect();
    let long_run = ["train", "long.toml", "--out", "run", "--resume", "--quiet"];
    for (arguments, place) in [
        (SWEEP, "data/tiny"),
        (FIRST_PART, "data/tiny/shards/1-of-2"),
        (&long_run[..], "run"),
        (&long_fit, "fit"),
    ] {
        let mut first = begun(&folder, arguments);
        // Who holds a folder says so in it.
        let words = format!("process {} ", first.id());
        let is_held = || {
            let holder = fs::read_to_string(folder.path(place).join(".lock"));
            holder.is_ok_and(|holder| holder.contains(&words))
        };
        while !is_held() {
            assert!(first.try_wait().unwrap().is_none(), "{arguments:?} ended at once");
            sleep(Duration::from_millis(1));
        }
        let Ended { code, stderr, .. } = folder.run(arguments);
        first.kill().unwrap();
        first.wait().unwrap();
        assert_eq!(code, Some(1), "{arguments:?}: {stderr}");
        assert!(stderr.lines().last().is_some_and(|line| line.starts_with("error: ")), "{stderr}");
        let told = stderr.lines().find(|line| line.contains(AT_WORK)).unwrap_or_default();
        assert!(told.contains(place) && told.contains("wait for it, or stop it"), "{stderr}");
    }
}

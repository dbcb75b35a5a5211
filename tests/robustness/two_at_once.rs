//! Two processes on one study, part, run, fit, token cache or page: one waits, or is told in a line that another is at work,
//! and what they leave is what one of them leaves alone. Whoever was killed holds nobody up.

use std::fs;
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::common::binary::{Ended, Folder, words};
use crate::common::tiny;
use crate::common::tries::{Tries, share_of};
use crate::whole::Whole;
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

/// How often each pair is begun, as the README tells it.
const PAIRS: usize = 25;

const SWEEP: &str = "sweep analysis/tiny.toml";
const FIRST_PART: &str = "sweep analysis/tiny.toml --shard 1/2";
const SECOND_PART: &str = "sweep analysis/tiny.toml --shard 2/2";
const TRAIN: &str = "train run.toml --out run --resume --quiet";
const OF_TEXT: &str = "train text.toml --text text.txt --quiet --out one";
const OF_TEXT_TOO: &str = "train text.toml --text text.txt --quiet --out two";
const FIT: &str = "fit --family dirichlet-band --window 4 --n 24 --rank 3 --max-logit 2,4 --starts 2 --iterations 200 --quiet --out fit";
const REPORT: &str = "report tiny";
const MERGE: &str = "merge";

const AT_WORK: &str = "is writing to";
const HAS_ENDED: &str = "already has a frontier.csv";

/// Two commands at once: what they share, those before them, and what one of them may be told where it is not done.
type Pair = (&'static str, &'static [&'static str], [&'static str; 2], &'static [&'static str]);

const ALL: [Pair; 7] = [
    ("one study", &[], [SWEEP, SWEEP], &[AT_WORK]),
    ("one part", &[], [FIRST_PART, FIRST_PART], &[AT_WORK]),
    ("one run", &[], [TRAIN, TRAIN], &[AT_WORK]),
    ("one fit", &[], [FIT, FIT], &[AT_WORK, HAS_ENDED]),
    ("one token cache", &[], [OF_TEXT, OF_TEXT_TOO], &[]),
    ("one page", &[SWEEP], [REPORT, REPORT], &[]),
    ("one merge", &[FIRST_PART, SECOND_PART], [MERGE, MERGE], &[AT_WORK]),
];

/// Commands that hold a folder.
const HOLDERS: [&str; 4] = [SWEEP, FIRST_PART, TRAIN, FIT];

fn laid_out() -> Folder {
    let folder = Folder::new();
    folder.write("analysis/tiny.toml", tiny::fits("grid.n = [16, 24]\ngrid.seed = [0]"));
    let steps = "steps = 60\neval_every = 20\ncheckpoint_every = 10";
    folder.write("run.toml", tiny::training(steps));
    folder.write("text.toml", tiny::training(&format!("{steps}\nvocabulary = \"byte\"")));
    // Long enough for its tokens to be kept.
    folder.write("text.txt", "the quick brown fox jumps over the lazy dog\n".repeat(30_000));
    folder
}

fn begun(folder: &Folder, line: &str) -> Child {
    let mut command = folder.command(&words(line));
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// One pair, the second begun so long after the first.
fn at_once(
    (_, _, both, may_be_told): Pair,
    prepared: &Folder,
    expected: &Whole,
    pause: Duration,
) -> Result<(), String> {
    let folder = prepared.copied();
    let children = both.map(|line| {
        let child = begun(&folder, line);
        sleep(pause);
        child
    });
    let ended = children.map(|child| Ended::of(&child.wait_with_output().unwrap()));
    for Ended { code, stdout, stderr } in &ended {
        let is_told = stderr.lines().any(|line| may_be_told.iter().any(|word| line.contains(word)));
        let last = stderr.lines().last().unwrap_or_default();
        let is_in_a_line = last.starts_with("error: ") && !stderr.contains("panicked");
        if !(*code == Some(0) || (*code == Some(1) && is_told && is_in_a_line)) {
            return Err(format!("{code:?}: {stdout}{stderr}"));
        }
    }
    match ended.iter().any(|ended| ended.code == Some(0)) {
        true => expected.check(&folder),
        false => Err(format!("neither was done: {}{}", ended[0].stderr, ended[1].stderr)),
    }
}

/// A command that is killed at a moment, and begun anew before anyone has waited for the end of the killed one.
fn killed(line: &str, expected: &Whole, moment: Duration) -> Result<(), String> {
    let folder = laid_out();
    let mut child = begun(&folder, line);
    sleep(moment);
    child.kill().unwrap();
    let Ended { code, stdout, stderr } = folder.run(&words(line));
    child.wait().unwrap();
    // It had ended before.
    let is_done = code == Some(0) || stderr.contains(HAS_ENDED);
    if !is_done {
        return Err(format!("{code:?}: {stdout}{stderr}"));
    }
    expected.check(&folder)
}

#[test]
fn two_at_once_leave_what_one_does() {
    let mut rng = ChaCha8Rng::seed_from_u64(20_261_128);
    let mut tries = Tries::of("two-at-once");
    for pair in ALL {
        let (what, before, both, _) = pair;
        let prepared = laid_out();
        before.iter().for_each(|line| drop(prepared.done(&words(line))));
        let alone = prepared.copied();
        let began = Instant::now();
        for line in both {
            // The second may find nothing left to do, and a fit that has ended is not begun again.
            let ended = alone.run(&words(line));
            let is_done = ended.code == Some(0) || ended.stderr.contains(HAS_ENDED);
            assert!(is_done, "{line}: {}", ended.stderr);
        }
        let length = began.elapsed() / 2;
        let expected = Whole::of(&alone).unwrap();
        for _ in 0..share_of(PAIRS) {
            let pause = length.mul_f64(rng.random::<f64>().powi(2));
            let result = at_once(pair, &prepared, &expected, pause);
            tries.tried(result.map_err(|why| format!("{what}, {pause:?} apart: {why}")));
        }
    }
    for line in HOLDERS {
        let alone = laid_out();
        let began = Instant::now();
        alone.done(&words(line));
        let length = began.elapsed();
        let expected = Whole::of(&alone).unwrap();
        for _ in 0..share_of(PAIRS) {
            let moment = length.mul_f64(rng.random());
            let result = killed(line, &expected, moment);
            tries.tried(result.map_err(|why| format!("{line}, killed at {moment:?}: {why}")));
        }
    }
    tries.end();
}

#[test]
fn who_comes_second_is_told_so_in_a_line() {
    let folder = laid_out();
    folder.write("long.toml", tiny::training("steps = 1000000\ncheckpoint_every = 10"));
    let search =
        "search = { rough_iterations = 600000, iterations = 1200000, relative_decrease = 0 }";
    folder.write("analysis/tiny.toml", tiny::fits(search));
    for (line, place) in [
        (SWEEP, "data/tiny"),
        (FIRST_PART, "data/tiny/shards/1-of-2"),
        (&TRAIN.replace("run.toml", "long.toml"), "run"),
        (&FIT.replace("24", "512").replace("200", "1000000"), "fit"),
    ] {
        let mut first = begun(&folder, line);
        // Who holds a folder says so in it.
        let held_by = format!("process {} ", first.id());
        let is_held = || {
            let holder = fs::read_to_string(folder.path(place).join(".lock"));
            holder.is_ok_and(|holder| holder.contains(&held_by))
        };
        while !is_held() {
            assert!(first.try_wait().unwrap().is_none(), "{line} ended at once");
            sleep(Duration::from_millis(1));
        }
        let Ended { code, stderr, .. } = folder.run(&words(line));
        first.kill().unwrap();
        first.wait().unwrap();
        assert_eq!(code, Some(1), "{line}: {stderr}");
        assert!(stderr.lines().last().is_some_and(|line| line.starts_with("error: ")), "{stderr}");
        let told = stderr.lines().find(|line| line.contains(AT_WORK)).unwrap_or_default();
        assert!(told.contains(place), "{stderr}");
    }
}

//! Real kills of the real program, at moments spread evenly over what it does: whatever it had finished is there after each,
//! once and whole, and the same command goes on from there to what it comes to when nobody kills it.

use std::collections::BTreeMap;
use std::fs;
use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::common::binary::{Ended, Folder, number, words};
use crate::common::tries::{Tries, share_of};
use crate::common::{binary, tiny};
use crate::whole::{Whole, rows};
use rand::seq::SliceRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use rank_study::solver::{Measured, Problem, read_factors};
use rank_study::targets::{Family, Layout, Visibility};

/// How often each command is killed, as the README tells it.
const KILLS: usize = 100;
/// After so many kills in one folder the command is left to its end.
const MOST_IN_A_FOLDER: usize = 5;
/// One kill in so many comes soon after a signal that asks to stop, as from a scheduler.
const AFTER_A_STOP: usize = 3;

/// What is said of a fit that has ended, where it is begun again.
const HAS_ENDED: &str = "already has a frontier.csv";

/// A command, and how what it leaves is known.
struct Work {
    promise: &'static str,
    line: &'static str,
    /// What it has finished, by name.
    finished: fn(&Folder) -> Result<Finished, String>,
    /// What has to hold in the end where it was stopped by a signal before it was killed.
    after_a_stop: fn(&Folder, &Whole) -> Result<(), String>,
    /// A command that fails where the work is not whole.
    check: &'static str,
}

type Finished = BTreeMap<String, String>;

const SWEEP: Work = Work {
    promise: "kills-sweep",
    line: "sweep analysis/tiny.toml",
    finished: |folder| finished_rows(folder, "data/tiny/rows.csv", "verify tiny"),
    after_a_stop: |folder, expected| expected.check(folder),
    check: "verify tiny",
};

const TRAIN: Work = Work {
    promise: "kills-train",
    line: "train run.toml --quiet --resume --out run",
    finished: finished_steps,
    check: "train run.toml --quiet --resume --out run",
    ..SWEEP
};

const FIT: Work = Work {
    promise: "kills-fit",
    line: "fit --family dirichlet-band --window 4 --n 24 --rank 3 --max-logit 2,4,8 --starts 3 --iterations 300 --out fit",
    finished: finished_fit,
    after_a_stop: rows_hold,
    check: "show fit --out shown",
};

const REPRODUCE: Work = Work {
    promise: "kills-reproduce",
    line: "reproduce --preset quick --only tiny",
    finished: |folder| finished_rows(folder, "data/quick/tiny/rows.csv", "verify --preset quick"),
    check: "verify --preset quick",
    ..SWEEP
};

fn laid_out() -> Folder {
    let folder = Folder::new();
    folder.write("analysis/tiny.toml", tiny::fits("grid.n = [16, 24]\ngrid.seed = [0, 1, 2]"));
    folder.write("run.toml", tiny::training("layers = 2\nsteps = 300\neval_every = 50\ncheckpoint_every = 11\nkeep_checkpoints = [50, 100, 200, 300]"));
    folder
}

/// The rows of a study, with their times: what was measured is not measured again. They are never there without the
/// manifest that tells of them, by which `verify` checks them.
fn finished_rows(folder: &Folder, name: &str, verify: &str) -> Result<Finished, String> {
    let Ok(bytes) = fs::read(folder.path(name)) else { return Ok(Finished::new()) };
    rows(&bytes).map_err(|why| format!("{name} {why}"))?;
    let text = String::from_utf8_lossy(&bytes);
    let mut finished = Finished::new();
    for line in text.lines().skip(1) {
        let cell = line.split(',').nth(1).unwrap_or_default();
        if finished.insert(cell.to_owned(), line.to_owned()).is_some() {
            return Err(format!("{cell} is there twice"));
        }
    }
    let Ended { stdout, stderr, .. } = folder.run(&words(verify));
    match stderr.contains("cannot read") || stdout.contains("has changed since it was measured") {
        true => Err(format!("{verify}: {stdout}{stderr}")),
        false => Ok(finished),
    }
}

/// The steps of a run up to its checkpoint, without times, and the weights that it keeps.
fn finished_steps(folder: &Folder) -> Result<Finished, String> {
    let mut finished = Finished::new();
    for step in [50, 100, 200, 300] {
        let name = format!("run/checkpoint/step-{step:06}.safetensors");
        if let Ok(bytes) = fs::read(folder.path(&name)) {
            finished.insert(name, format!("{bytes:?}"));
        }
    }
    let Ok(checkpoint) = fs::read(folder.path("run/checkpoint/training.safetensors")) else {
        return Ok(finished);
    };
    let (_, tensors) = safetensors::SafeTensors::read_metadata(&checkpoint)
        .map_err(|e| format!("the checkpoint is torn: {e}"))?;
    let told = tensors.metadata().as_ref().and_then(|told| told.get("steps")?.parse().ok());
    let steps: usize = told.ok_or("the checkpoint does not tell its step")?;
    let text = fs::read_to_string(folder.path("run/steps.csv")).map_err(|e| e.to_string())?;
    // What comes after the checkpoint is made again, and may be torn.
    for (at, line) in text.lines().skip(1).take(steps).enumerate() {
        let (numbers, _time) = line.rsplit_once(',').unwrap_or_default();
        finished.insert(format!("step {}", at + 1), numbers.to_owned());
    }
    // A run stopped before its first step leaves a checkpoint of step 0.
    match (1..=steps).all(|step| finished.contains_key(&format!("step {step}"))) {
        true => Ok(finished),
        false => Err(format!("steps.csv ends before the checkpoint of step {steps}")),
    }
}

/// The rows of a fit that has ended.
fn finished_fit(folder: &Folder) -> Result<Finished, String> {
    let Ok(bytes) = fs::read(folder.path("fit/frontier.csv")) else { return Ok(Finished::new()) };
    let rows = rows(&bytes).map_err(|why| format!("frontier.csv {why}"))?;
    if folder.path("fit/unfinished").exists() {
        return Ok(Finished::new());
    }
    Ok(rows.iter().map(|row| (row["cap"].clone(), format!("{row:?}"))).collect())
}

/// A fit that was stopped goes on from where it stood, but without what the search remembered of the way there: it may end
/// elsewhere, as well. Each row is what its factors come to.
fn rows_hold(folder: &Folder, expected: &Whole) -> Result<(), String> {
    expected.check_names(folder)?;
    let band = Family::DirichletBand { window: 4, alpha: 1.0 };
    let target = band.build(24, 0, Visibility::Causal).map_err(|e| e.to_string())?;
    let problem = Problem::new(target, Layout::global(), 3).map_err(|e| e.to_string())?;
    let (_, rows) = folder.csv("fit/frontier.csv");
    for row in &rows {
        let factors = read_factors(&folder.path("fit").join(&row["factors"]));
        let factors = factors.map_err(|e| e.to_string())?;
        let found = Measured::of(&problem, &factors).map_err(|e| e.to_string())?;
        let off = (found.kl_nats - number(row, "kl_nats")).abs();
        let is_within = found.max_abs_logit <= number(row, "cap");
        if off > 1e-9 || !is_within || row["outcome"] == "stopped" {
            return Err(format!("kl_nats off by {off}, within its cap: {is_within}: {row:?}"));
        }
    }
    match rows.len() {
        3 => Ok(()),
        other => Err(format!("{other} rows")),
    }
}

/// Time and folder of the undisturbed run with the median time of three.
fn undisturbed(work: &Work) -> (Duration, Folder) {
    let mut all = [(); 3].map(|()| {
        let folder = laid_out();
        let began = Instant::now();
        folder.done(&words(work.line));
        (began.elapsed(), folder)
    });
    all.sort_by_key(|(took, _)| *took);
    let [_, median, _] = all;
    median
}

/// Moments as shares of a run, one at a random place of each of so many equal parts, in a random order.
fn moments(count: usize, rng: &mut ChaCha8Rng) -> Vec<f64> {
    let moment = |at: usize| (at as f64 + rng.random::<f64>()) / count as f64;
    let mut all: Vec<f64> = (0..count).map(moment).collect();
    all.shuffle(rng);
    all
}

/// Kills the command at a moment, `pause` after a signal that asks it to stop where there is one. Its exit code where it
/// ended before.
fn kill(folder: &Folder, work: &Work, moment: Duration, pause: Option<Duration>) -> Option<i32> {
    let mut command = folder.command(&words(work.line));
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    sleep(moment);
    if let Some(pause) = pause.filter(|_| child.try_wait().unwrap().is_none()) {
        binary::send("-TERM", &child);
        sleep(pause);
    }
    child.kill().unwrap();
    child.wait().unwrap().code()
}

/// A folder in which a command is killed again and again.
struct Chain<'a> {
    work: &'a Work,
    expected: &'a Whole,
    folder: Folder,
    finished: Finished,
    kills: usize,
    was_stopped: bool,
}

impl<'a> Chain<'a> {
    fn new(work: &'a Work, expected: &'a Whole) -> Self {
        let (folder, finished) = (laid_out(), Finished::new());
        Self { work, expected, folder, finished, kills: 0, was_stopped: false }
    }

    /// What was finished before is there, as it was; what is finished now is whole.
    fn check(&mut self) -> Result<(), String> {
        let now = (self.work.finished)(&self.folder)?;
        if let Some((name, what)) =
            self.finished.iter().find(|(name, what)| now.get(*name) != Some(what))
        {
            return Err(format!("{name} was {what} and is {:?}", now.get(name)));
        }
        self.finished = now;
        Ok(())
    }

    /// It was not killed in time, and ended with this code.
    fn ended(self, code: i32) -> Result<(), String> {
        match code {
            // What a fit has ended is not begun again.
            1 if self.folder.run(&words(self.work.line)).stderr.contains(HAS_ENDED) => self.end(),
            0 | 4 => self.end(),
            code => Err(format!("ended with {code}")),
        }
    }

    /// Left to its end, it comes to what it does when nobody kills it.
    fn end(mut self) -> Result<(), String> {
        let Ended { code, stdout, stderr } = self.folder.run(&words(self.work.line));
        if code != Some(0) && !stderr.contains(HAS_ENDED) {
            return Err(format!("could not be gone on with: {stdout}{stderr}"));
        }
        self.check()?;
        match self.was_stopped {
            true => (self.work.after_a_stop)(&self.folder, self.expected)?,
            false => self.expected.check(&self.folder)?,
        }
        let Ended { code, stdout, stderr } = self.folder.run(&words(self.work.check));
        match code {
            Some(0) => Ok(()),
            _ => Err(format!("{}: {stdout}{stderr}", self.work.check)),
        }
    }
}

fn kill_often(work: &Work, seed: u64) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let (mut length, undisturbed) = undisturbed(work);
    let expected = Whole::of(&undisturbed).unwrap();
    let mut tries = Tries::of(work.promise);
    let mut chain = Chain::new(work, &expected);
    for (at, share) in moments(share_of(KILLS), &mut rng).into_iter().enumerate() {
        let mut failure = None;
        let stop = at.is_multiple_of(AFTER_A_STOP).then(|| 0.05 * rng.random::<f64>());
        let mut after_stop = stop.map(|share| length.mul_f64(share));
        chain.was_stopped |= after_stop.is_some();
        while let Some(code) = kill(&chain.folder, work, length.mul_f64(share), after_stop.take()) {
            // It ended before: the same moment in a folder of its own, of a run that is quicker than the one that was timed.
            if chain.kills == 0 && code == 0 {
                length = length.mul_f64(0.8);
            }
            let ended = std::mem::replace(&mut chain, Chain::new(work, &expected));
            failure = failure.or(ended.ended(code).err());
        }
        chain.kills += 1;
        failure = failure.or(chain.check().err());
        if chain.kills == MOST_IN_A_FOLDER {
            let ended = std::mem::replace(&mut chain, Chain::new(work, &expected));
            failure = failure.or(ended.end().err());
        }
        let told = |why| format!("seed {seed}, kill {at} at {share:.3} of {length:?}: {why}");
        tries.tried(failure.map_or(Ok(()), |why| Err(told(why))));
    }
    tries.add(0, chain.end().err().into_iter().collect());
    tries.end();
}

#[test]
fn a_sweep_outlives_kills() {
    kill_often(&SWEEP, 20_261_124);
}

#[test]
fn a_training_outlives_kills() {
    kill_often(&TRAIN, 20_261_125);
}

#[test]
fn a_fit_outlives_kills() {
    kill_often(&FIT, 20_261_126);
}

#[test]
fn a_reproduction_outlives_kills() {
    kill_often(&REPRODUCE, 20_261_127);
}

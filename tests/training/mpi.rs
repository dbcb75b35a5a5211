//! `mpirun -n W rank-study train`: several workers that train one model. Built with the feature `mpi`: `make test-mpi`.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::common::binary::{Ended, Folder, number};
use crate::common::{binary, tiny};

/// More steps than are taken before a test has done what it does to the run.
const LONG: [&str; 2] = ["--set", "steps=100000"];

/// A run whose steps are of eight sequences, in two batches.
fn with_run() -> Folder {
    let folder = Folder::new();
    let run = tiny::training(
        "layers = 2\nd_model = 16\ncontext = 16\nbatch = 4\naccumulation = 2\nsteps = 100\nwarmup_steps = 5\n\
         learning_rate = 1e-3\neval_every = 20\neval_batches = 3\ncheckpoint_every = 20\nkeep_checkpoints = [40]",
    );
    folder.write("run.toml", run);
    folder
}

fn train<'a>(out: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["train", "run.toml", "--out", out, "--quiet", "--threads", "1"], more].concat()
}

/// A command started as several workers.
fn workers(folder: &Folder, count: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new("mpirun");
    command.args(["--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", count]);
    command.arg(env!("CARGO_BIN_EXE_rank-study")).args(arguments).current_dir(folder.path(""));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn ended(mut command: Command) -> Ended {
    Ended::of(&command.output().expect("mpirun; make test-mpi installs it"))
}

fn done(folder: &Folder, count: &str, arguments: &[&str]) -> String {
    let Ended { code, stdout, stderr } = ended(workers(folder, count, arguments));
    assert_eq!(code, Some(0), "{arguments:?}: {stdout}{stderr}");
    stdout
}

/// The largest difference between two runs in a column of a file of theirs, which must have as many rows.
fn off(folder: &Folder, file: &str, column: &str, [one, other]: [&str; 2]) -> f64 {
    let numbers = |out: &str| -> Vec<f64> {
        let (_, rows) = folder.csv(&format!("{out}/{file}"));
        rows.iter().map(|row| number(row, column)).collect()
    };
    let (one, other) = (numbers(one), numbers(other));
    assert_eq!(one.len(), other.len(), "{file}");
    one.iter().zip(&other).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

/// Compares a run with one of the same steps: losses, evaluations, logits and files.
fn assert_same(folder: &Folder, whole: &str, other: &str) {
    assert_eq!(folder.csv(&format!("{whole}/steps.csv")).1.len(), 100);
    let both = [whole, other];
    for (file, column, most) in [
        ("steps.csv", "loss_nats", 1e-5),
        ("steps.csv", "grad_norm", 1e-4),
        ("eval.csv", "loss_nats", 1e-5),
    ] {
        let off = off(folder, file, column, both);
        assert!(off <= most, "{column} of {file} of {other} differs by {off:e}");
    }
    let [a, b] = both.map(|out| {
        let manifest: toml::Table = folder.read(&format!("{out}/manifest.toml")).parse().unwrap();
        manifest["result"]["max_abs_logit"].as_float().unwrap()
    });
    assert!((a - b).abs() <= 1e-4 * a, "the largest logit of {other} is {b}, not {a}");
    let tree = |out: &str| {
        let files = folder.tree().into_iter();
        files.filter_map(|file| Some(file.strip_prefix(out)?.to_owned())).collect::<Vec<_>>()
    };
    assert_eq!(tree(&format!("{whole}/")), tree(&format!("{other}/")));
}

#[test]
fn workers_train_as_one_does() {
    let folder = with_run();
    let kinds: [&[&str]; 3] = [
        &[],
        &["--set", "stabilisers=[\"sigma-reparam\", \"z-loss\"]"],
        &["--set", "stabilisers=[\"qk-clip\"]", "--set", "qk_clip=0.5"],
    ];
    for (at, sets) in kinds.into_iter().enumerate() {
        let one = format!("one-{at}");
        folder.done(&train(&one, sets));
        for &count in if at == 0 { &["2", "4"][..] } else { &["2"] } {
            let several = format!("{count}-{at}");
            let said = done(&folder, count, &train(&several, sets));
            assert_eq!(said.matches("outcome").count(), 1, "{said}");
            assert_same(&folder, &one, &several);
            if count == "2" {
                // Of two batches each worker has one, and two numbers have one sum.
                assert_eq!(off(&folder, "steps.csv", "loss_nats", [&one, &several]), 0.0);
            }
            let manifest = folder.read(&format!("{several}/manifest.toml"));
            assert!(manifest.contains(&format!("workers = {count}\n")), "{manifest}");
        }
    }
}

/// Waits until a run has taken this number of steps.
fn wait_for(folder: &Folder, out: &str, steps: usize) {
    let began = Instant::now();
    let path = folder.path(&format!("{out}/steps.csv"));
    while std::fs::read_to_string(&path).map_or(0, |text| text.lines().count()) <= steps {
        assert!(began.elapsed() < Duration::from_secs(60), "no {steps} steps");
        sleep(Duration::from_millis(5));
    }
}

/// The processes of the workers that an mpirun started, in the order of their start.
fn pids(mpirun: &Child) -> Vec<String> {
    let found = Command::new("pgrep").args(["-P", &mpirun.id().to_string()]).output().unwrap();
    let found = String::from_utf8(found.stdout).unwrap();
    let mut pids: Vec<u32> = found.lines().map(|line| line.parse().unwrap()).collect();
    pids.retain(|pid| Path::new(&format!("/proc/{pid}")).exists());
    pids.sort_unstable();
    pids.iter().map(u32::to_string).collect()
}

fn kill(signal: &str, pid: &str) {
    assert!(Command::new("kill").args([signal, pid]).status().unwrap().success());
}

#[test]
fn a_stop_signal_to_one_worker_stops_all_after_the_same_step() {
    let folder = with_run();
    for (told, then) in [(0, None), (1, Some("4"))] {
        let out = format!("told-{told}");
        let mpirun = workers(&folder, "2", &train(&out, &LONG)).spawn().unwrap();
        wait_for(&folder, &out, 3);
        kill("-TERM", &pids(&mpirun)[told]);
        let Ended { code, stdout, stderr } = Ended::of(&mpirun.wait_with_output().unwrap());
        assert_eq!(code, binary::STOPPED, "{stdout}{stderr}");
        assert_eq!(stdout.matches("outcome").count(), 1, "{stdout}");
        assert!(stdout.contains("stopped"), "{stdout}");
        // Other workers, as many or as few as there are, take the run up at that step.
        let steps = folder.csv(&format!("{out}/steps.csv")).1.len() + 20;
        let to = format!("steps={steps}");
        let resumed = train(&out, &["--resume", "--set", &to]);
        match then {
            None => folder.done(&resumed),
            Some(count) => done(&folder, count, &resumed),
        };
        assert_eq!(folder.csv(&format!("{out}/steps.csv")).1.len(), steps);
    }
}

#[test]
fn a_killed_worker_ends_all_and_the_run_resumes() {
    let folder = with_run();
    for killed in [0, 1] {
        let out = format!("killed-{killed}");
        let mpirun = workers(&folder, "2", &train(&out, &LONG)).spawn().unwrap();
        wait_for(&folder, &out, 45);
        let pids = pids(&mpirun);
        kill("-KILL", &pids[killed]);
        let Ended { code, .. } = Ended::of(&mpirun.wait_with_output().unwrap());
        assert_ne!(code, Some(0));
        for pid in &pids {
            // A killed process needs a moment to end; whoever adopts it takes its number away later.
            let stat = || std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            let has_ended = || stat().is_empty() || stat().contains(") Z ");
            let begun = Instant::now();
            while !has_ended() {
                assert!(begun.elapsed() < Duration::from_secs(20), "{pid} runs on: {}", stat());
                sleep(Duration::from_millis(20));
            }
        }
        let steps = folder.csv(&format!("{out}/steps.csv")).1.len().next_multiple_of(20) + 20;
        let steps = format!("steps={steps}");
        done(&folder, "2", &train(&out, &["--resume", "--set", &steps]));
    }
}

#[test]
fn an_error_of_one_worker_ends_all() {
    let folder = with_run();
    let refused = |command: Command, parts: &[&str]| {
        let Ended { code, stderr, .. } = ended(command);
        assert_eq!(code, Some(1), "{stderr}");
        assert!(parts.iter().all(|part| stderr.contains(part)), "{stderr}");
    };
    // A folder in which another is at work, of which worker 0 alone knows.
    let lock = std::fs::create_dir_all(folder.path("held"))
        .and_then(|()| std::fs::File::create(folder.path("held/.lock")))
        .unwrap();
    lock.lock().unwrap();
    refused(workers(&folder, "2", &train("held", &[])), &["worker 0: --out: ", "held"]);
    drop(lock);

    refused(workers(&folder, "3", &train("uneven", &[])), &["3 workers"]);

    // Two commands that differ, as two hosts may have two versions of a definition.
    let mut differ = workers(&folder, "1", &train("differ", &[]));
    differ.args([":", "-n", "1", env!("CARGO_BIN_EXE_rank-study")]);
    differ.args(train("differ", &["--set", "steps=7"]));
    refused(differ, &["worker 1 has definition.steps = 7", "worker 0 has 100"]);
}

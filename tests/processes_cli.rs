//! `rank-study train --processes`: several processes that train one model.

#![cfg(all(feature = "cli", unix))]

mod binary;

use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use binary::{Ended, Folder, number};

/// A step of eight sequences, in two batches.
const RUN: &str = r#"
arm = "ls"
layers = 2
d_model = 16
heads = 2
global_heads = 1
window = 3
context = 16
batch = 4
accumulation = 2
steps = 100
warmup_steps = 5
learning_rate = 0.001
eval_every = 20
eval_batches = 3
checkpoint_every = 20
keep_checkpoints = [40]
corpus = { tokens = 4000 }
"#;

fn with_run() -> Folder {
    let folder = Folder::new();
    folder.write("run.toml", RUN);
    folder
}

fn train<'a>(out: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["train", "run.toml", "--out", out, "--quiet"], more].concat()
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

/// Holds a run to one of the same steps: losses, evaluations and logits.
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
fn several_processes_train_as_one_does() {
    let folder = with_run();
    let kinds: [&[&str]; 4] = [
        &[],
        &["--set", "objective=masked", "--set", "visibility=bidirectional"],
        &["--set", "stabilisers=[\"sigma-reparam\", \"z-loss\"]"],
        &["--set", "stabilisers=[\"qk-clip\"]", "--set", "qk_clip=0.5"],
    ];
    for (at, sets) in kinds.into_iter().enumerate() {
        let one = format!("one-{at}");
        folder.done(&train(&one, sets));
        // Each process has one batch of four, two of one batch and one of less than a batch.
        for processes in ["2", "4", "8"].into_iter().take(if at == 0 { 3 } else { 1 }) {
            let several = format!("{processes}-{at}");
            let said = folder.done(&train(&several, &[sets, &["--processes", processes]].concat()));
            assert_eq!(said.matches("outcome").count(), 1, "{said}");
            assert_same(&folder, &one, &several);
            if processes == "2" {
                // Of two batches each process has one, and two numbers have one sum.
                assert_eq!(off(&folder, "steps.csv", "loss_nats", [&one, &several]), 0.0);
            }
            let manifest = folder.read(&format!("{several}/manifest.toml"));
            assert!(manifest.contains(&format!("processes = {processes}\n")), "{manifest}");
        }
    }
}

/// Process `process` of `of`, started by itself.
fn start(folder: &Folder, out: &str, process: usize, of: usize, more: &[&str]) -> Child {
    let (process, of) = (process.to_string(), of.to_string());
    let places = ["--processes", &of, "--process", &process, "--threads", "1"];
    let mut command = folder.command(&train(out, &[&places, more].concat()));
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn ended(child: Child) -> Ended {
    Ended::of(&child.wait_with_output().unwrap())
}

/// Waits until a run has taken so many steps.
fn wait_for(folder: &Folder, out: &str, steps: usize) {
    let began = Instant::now();
    let path = folder.path(&format!("{out}/steps.csv"));
    while std::fs::read_to_string(&path).map_or(0, |text| text.lines().count()) <= steps {
        assert!(began.elapsed() < Duration::from_secs(60), "no {steps} steps");
        sleep(Duration::from_millis(5));
    }
}

/// More steps than are taken before a test has done what it does to the run.
const LONG: [&str; 2] = ["--set", "steps=100000"];

#[test]
fn all_stop_after_the_same_step_whichever_is_told_to() {
    let folder = with_run();
    folder.done(&train("whole", &[]));
    let of_hundred = |out: &str, more: &[&str]| folder.done(&train(out, more));
    for (told, of) in [(1, 2), (0, 2), (2, 3)] {
        let out = format!("told-{told}-of-{of}");
        // Three processes share nine sequences.
        let more: &[&str] =
            if of == 3 { &["--set", "accumulation=3", "--set", "batch=3"] } else { &[] };
        let more = &[&LONG, more].concat()[..];
        let children: Vec<_> =
            (0..of).map(|process| start(&folder, &out, process, of, more)).collect();
        wait_for(&folder, &out, 3);
        binary::send("-TERM", &children[told]);
        let all: Vec<_> = children.into_iter().map(ended).collect();
        for (process, Ended { code, stdout, stderr }) in all.iter().enumerate() {
            assert_eq!(*code, binary::STOPPED, "{process}: {stderr}");
            assert_eq!(stdout.contains("outcome           stopped"), process == 0, "{stdout}");
            assert_eq!(stderr.contains("stopping after this step"), process == told, "{stderr}");
        }
        let step = |ended: &Ended| {
            let (_, rest) = ended.stderr.split_once("stopped at step ").unwrap();
            rest.split(' ').next().unwrap().parse::<usize>().unwrap()
        };
        let steps: Vec<usize> = all.iter().map(step).collect();
        assert!(steps.iter().all(|&step| step == steps[0]), "{steps:?}");
    }

    // What two processes began one ends, and four, and the other way round.
    for (first, then) in [("2", "1"), ("1", "4"), ("4", "2")] {
        let out = format!("{first}-then-{then}");
        let child =
            folder.command(&train(&out, &["--processes", first])).stderr(Stdio::piped()).spawn();
        let child = child.unwrap();
        wait_for(&folder, &out, 3);
        binary::send("-INT", &child);
        let Ended { code, stderr, .. } = ended(child);
        // A fast machine may have taken all steps before it heard.
        if code != Some(0) {
            assert_eq!(code, binary::STOPPED, "{stderr}");
            assert_eq!(stderr.lines().count(), 2, "one process speaks: {stderr}");
        }
        of_hundred(&out, &["--processes", then, "--resume"]);
        assert_same(&folder, "whole", &out);
    }
}

#[test]
fn a_process_that_is_killed_ends_all_with_one_line() {
    let folder = with_run();
    folder.done(&train("whole", &[]));
    for killed in [0, 1, 3] {
        let out = format!("killed-{killed}");
        let mut children: Vec<_> = (0..4)
            .map(|process| start(&folder, &out, process, 4, &["--set", "steps=100000"]))
            .collect();
        wait_for(&folder, &out, 45);
        children[killed].kill().unwrap();
        for (process, child) in children.into_iter().enumerate() {
            let Ended { code, stderr, .. } = ended(child);
            if process != killed {
                assert_eq!(code, Some(1), "{process}: {stderr}");
                let line = format!("error: --out: process {killed} is gone: it was killed");
                assert!(
                    stderr.starts_with(&line) && stderr.lines().count() == 1,
                    "{process}: {stderr}"
                );
            }
        }
        // From its last checkpoint on, with others, to another number of steps.
        let (_, rows) = folder.csv(&format!("{out}/steps.csv"));
        let steps = rows.len().next_multiple_of(20) + 20;
        let steps = format!("steps={steps}");
        folder.done(&train(&out, &["--resume", "--set", &steps, "--processes", "2"]));
    }

    // Of processes that one started, that one alone speaks.
    let child = folder.command(&train("local", &["--processes", "4", "--set", "steps=100000"]));
    let mut child = { child }.stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    wait_for(&folder, "local", 25);
    let id = child.id().to_string();
    let others = std::process::Command::new("pgrep").args(["-P", &id]).output().unwrap();
    let others = String::from_utf8(others.stdout).unwrap();
    let others: Vec<_> = others.lines().collect();
    assert_eq!(others.len(), 3, "{others:?}");
    assert!(
        std::process::Command::new("kill").args(["-KILL", others[0]]).status().unwrap().success()
    );
    child.wait().unwrap();
    let Ended { code, stderr, .. } = ended(child);
    assert_eq!((code, stderr.lines().count()), (Some(1), 1), "{stderr}");
    assert!(stderr.contains("is gone: it was killed"), "{stderr}");
}

#[test]
fn what_one_process_fails_at_all_say() {
    let folder = with_run();
    // A folder in which another is at work, of which process 0 alone knows.
    let lock = std::fs::create_dir_all(folder.path("held"))
        .and_then(|()| std::fs::File::create(folder.path("held/.lock")))
        .unwrap();
    lock.lock().unwrap();
    let children = [0, 1].map(|process| start(&folder, "held", process, 2, &[]));
    let [first, second] = children.map(ended);
    let why = "another process is writing to held; wait for it, or stop it";
    assert_eq!(first.stderr, format!("error: --out: {why}\n"));
    assert_eq!(second.stderr, format!("error: --out: process 0 ended: {why}\n"));
    assert_eq!((first.code, second.code), (Some(1), Some(1)));
    drop(lock);

    let differing = [&[][..], &["--set", "steps=7"]];
    let children = [0, 1].map(|process| start(&folder, "differ", process, 2, differing[process]));
    for Ended { code, stderr, .. } in children.map(ended) {
        let line =
            "error: --out: process 1 has definition.steps = 7, but process 0 has 100; start all";
        assert_eq!((code, stderr.starts_with(line)), (Some(1), true), "{stderr}");
    }
    let children = [(0, 2), (1, 3)].map(|(process, of)| start(&folder, "number", process, of, &[]));
    for Ended { code, stderr, .. } in children.map(ended) {
        assert!(
            stderr.contains("process 1 was started as one of 3, process 0 as one of 2"),
            "{stderr}"
        );
        assert_eq!((code, stderr.lines().count()), (Some(1), 1));
    }
}

#[test]
fn what_cannot_be_is_refused_in_one_line() {
    let folder = with_run();
    let says = |more: &[&str]| {
        let Ended { code, stderr, .. } = folder.run(&train("out", more));
        assert_eq!((code, stderr.lines().count()), (Some(1), 1), "{more:?}: {stderr}");
        stderr
    };
    let why = says(&["--processes", "3"]);
    let uneven = "batch = 4; batch × accumulation is 8";
    assert!(why.contains(uneven), "{why}");
    assert!(says(&["--processes", "0"]).contains("--processes must be at least 1"));
    assert!(says(&["--processes", "2", "--process", "2"]).contains("--process must be 0 to 1"));
    let alone = ["--processes", "2", "--process", "0", "--patience", "1"];
    let why = says(&alone);
    assert!(why.contains("--patience: process 1 of 2 processes"), "{why}");
    let lost = ["--processes", "2", "--process", "1", "--patience", "1"];
    assert!(says(&lost).contains("process 0 was not found within 1 s"));
}

/// What srun tells each process of a step is enough; what a batch script has is not taken for it.
#[test]
fn processes_of_a_slurm_step_find_each_other() {
    let folder = with_run();
    folder.done(&train("whole", &[]));
    let of_step = |process: &str, command: &mut std::process::Command| {
        command.env("SLURM_PROCID", process).env("SLURM_JOB_ID", "17").env("SLURM_NTASKS", "2");
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
    };
    let children = ["0", "1"].map(|process| {
        let mut command = folder.command(&train("step", &[]));
        of_step(process, &mut command);
        command.env("SLURM_STEP_NUM_TASKS", "2").env("SLURM_STEP_ID", "0").spawn().unwrap()
    });
    let [first, second] = children.map(ended);
    assert_eq!((first.code, second.code), (Some(0), Some(0)), "{}{}", first.stderr, second.stderr);
    assert!(first.stdout.contains("outcome           completed") && second.stdout.is_empty());
    assert_same(&folder, "whole", "step");

    let mut command = folder.command(&train("batch", &[]));
    of_step("0", &mut command);
    assert_eq!(ended(command.spawn().unwrap()).code, Some(0));
    assert!(!folder.read("batch/manifest.toml").contains("processes"));
}

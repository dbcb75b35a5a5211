//! A run that is stopped and resumed is the run left alone: by signals, after torn files, and to more steps. Kills at any
//! moment are in tests/robustness.

use std::fs::File;
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;
use std::thread::sleep;
use std::time::Duration;

use crate::common::binary::{Ended, Folder, number};
use crate::common::{binary, tiny};

static RUN: LazyLock<String> = LazyLock::new(|| {
    tiny::training(
        "layers = 2\nsteps = 400\neval_every = 50\ncheckpoint_every = 23\nkeep_checkpoints = [100, 300]",
    )
});

fn resume(out: &str) -> Vec<&str> {
    vec!["train", "run.toml", "--quiet", "--resume", "--out", out]
}

/// The rows of `steps.csv` without their times, which must never go back.
fn steps(folder: &Folder, out: &str) -> Vec<Vec<String>> {
    let (header, rows) = folder.csv(&format!("{out}/steps.csv"));
    let times: Vec<f64> = rows.iter().map(|row| number(row, "wall_time_s")).collect();
    assert!(times.is_sorted(), "the time of {out} goes back: {times:?}");
    let kept: Vec<&String> = header.iter().filter(|column| *column != "wall_time_s").collect();
    rows.iter().map(|row| kept.iter().map(|column| row[*column].clone()).collect()).collect()
}

fn assert_same(folder: &Folder, whole: &str, killed: &str) {
    assert_eq!(steps(folder, killed), steps(folder, whole), "steps.csv of {killed}");
    let eval = |out: &str| folder.read(&format!("{out}/eval.csv"));
    assert_eq!(eval(killed), eval(whole), "eval.csv of {killed}");
    let weights = [100, 300].map(|step| format!("checkpoint/step-{step:06}.safetensors"));
    for name in ["heads.parquet", &weights[0], &weights[1]] {
        let bytes = |out: &str| std::fs::read(folder.path(&format!("{out}/{name}"))).unwrap();
        assert!(bytes(killed) == bytes(whole), "{name} of {killed} differs");
    }
    assert!(!folder.path(&format!("{killed}/heads.log")).exists());
}

/// Starts the run in `out` and kills it after its first checkpoint.
fn killed(folder: &Folder, out: &str) {
    let mut child = with_a_checkpoint(folder, out, folder.command(&resume(out)));
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Starts the run in `out` and waits for its first checkpoint.
fn with_a_checkpoint(folder: &Folder, out: &str, mut command: Command) -> Child {
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    while !folder.path(&format!("{out}/checkpoint/training.safetensors")).exists() {
        assert!(child.try_wait().unwrap().is_none(), "the run ended without a checkpoint");
        sleep(Duration::from_millis(1));
    }
    child
}

#[test]
#[cfg(target_os = "linux")]
fn a_run_stopped_by_a_signal_says_so_and_is_resumed_exactly() {
    let folder = Folder::new();
    folder.write("run.toml", RUN.as_str());
    folder.done(&resume("whole"));
    let outcome = |out: &str| {
        let manifest: toml::Table = folder.read(&format!("{out}/manifest.toml")).parse().unwrap();
        assert_ne!(manifest["ended"].as_str(), Some(""), "{out}");
        manifest["outcome"].as_str().unwrap().to_owned()
    };
    for (signal, error) in [
        ("-INT", Stdio::piped()),
        ("-TERM", Stdio::piped()),
        ("-HUP", Stdio::piped()),
        // As of a terminal that is gone: every line to it fails.
        ("-HUP", File::create("/dev/full").unwrap().into()),
    ] {
        let out = format!("stopped{signal}-{}", folder.tree().len());
        let mut command = folder.command(&resume(&out));
        command.stderr(error);
        let child = with_a_checkpoint(&folder, &out, command);
        binary::send(signal, &child);
        let Ended { code, stdout, stderr } = Ended::of(&child.wait_with_output().unwrap());
        assert_eq!(code, binary::STOPPED, "{signal}: {stderr}");
        assert!(stdout.contains("stopped"), "{signal}: {stdout}");
        assert_eq!(outcome(&out), "stopped");
        folder.done(&resume(&out));
        assert_eq!(outcome(&out), "completed");
        assert_same(&folder, "whole", &out);
    }
}

#[test]
#[cfg(unix)]
fn a_hangup_that_was_ignored_stays_ignored() {
    let folder = Folder::new();
    folder.write("run.toml", RUN.as_str());
    let mut nohup = Command::new("nohup");
    let command = folder.command(&resume("r"));
    nohup.arg(command.get_program()).args(command.get_args()).stdin(Stdio::null());
    nohup.current_dir(folder.path("")).stderr(Stdio::null());
    let child = with_a_checkpoint(&folder, "r", nohup);
    binary::send("-HUP", &child);
    let ended = Ended::of(&child.wait_with_output().unwrap());
    assert_eq!(ended.code, Some(0));
    assert!(ended.stdout.contains("completed"), "{}", ended.stdout);
}

#[test]
fn torn_files_are_mended_and_foreign_ones_refused() {
    let folder = Folder::new();
    folder.write("run.toml", RUN.as_str());
    folder.done(&resume("whole"));
    // As a crash just after the checkpoint of step 391 leaves them: every log ahead of it and torn.
    killed(&folder, "r");
    for (name, torn) in [
        ("steps.csv", &b"999,5"[..]),
        ("eval.csv", b"400,valid,1"),
        ("heads.log", &[1; 30]),
        ("events.out.tfevents.rank-study", &[0; 7]),
    ] {
        let path = folder.path(&format!("r/{name}"));
        let mut bytes = std::fs::read(&path).unwrap();
        bytes.extend(torn);
        std::fs::write(path, bytes).unwrap();
    }
    for (more, part) in [
        (["--set", "seed=4"], "seed is 0 in this run, but 4"),
        (["--set", "corpus.recall=0.5"], "corpus.recall is 0.1 in this run, but 0.5"),
    ] {
        let error = folder.refused(&[resume("r"), more.to_vec()].concat());
        assert!(error.contains(part), "{error}");
    }
    folder.write("text.txt", "some words of text, and some more of them. ".repeat(20));
    let error = folder.refused(&[resume("r"), vec!["--text", "text.txt"]].concat());
    assert!(error.contains("corpus.sha256 "), "{error}");
    folder.done(&resume("r"));
    assert_same(&folder, "whole", "r");
}

/// A line of too few fields, among those before the checkpoint.
#[test]
fn a_short_line_in_a_log_is_told_in_a_line_and_costs_nothing() {
    let folder = Folder::new();
    folder.write("run.toml", RUN.replace("eval_every = 50", "eval_every = 5"));
    killed(&folder, "r");
    for name in ["r/steps.csv", "r/eval.csv"] {
        let whole = folder.read(name);
        let line = whole.lines().nth(2).unwrap();
        let fields: Vec<&str> = line.split(',').collect();
        for kept in 1..fields.len() {
            let short = fields[..kept].join(",");
            folder.write(name, whole.replacen(&format!("\n{line}\n"), &format!("\n{short}\n"), 1));
            let error = folder.refused(&resume("r"));
            assert!(error.contains(name) && error.contains("move the file away"), "{error}");
        }
        folder.write(name, whole);
    }
    folder.done(&resume("r"));
    assert_eq!(steps(&folder, "r").len(), 400);
}

#[test]
fn an_ended_run_tells_its_result_again_and_one_without_a_checkpoint_starts() {
    let folder = Folder::new();
    folder.write("run.toml", RUN.as_str());
    let json = |more: &[&str]| folder.done(&[resume("r"), vec!["--json"], more.to_vec()].concat());
    let first = json(&[]);
    let files = folder.tree();
    let steps = folder.read("r/steps.csv");
    assert_eq!(json(&[]), first);
    assert_eq!(folder.tree(), files);
    assert_eq!(folder.read("r/steps.csv"), steps);
    std::fs::remove_file(folder.path("r/checkpoint/training.safetensors")).unwrap();
    let again: serde_json::Value = serde_json::from_str(&json(&[])).unwrap();
    let first: serde_json::Value = serde_json::from_str(&first).unwrap();
    assert_eq!(again["valid_loss_nats"], first["valid_loss_nats"]);
}

#[test]
fn a_diverged_run_says_so_and_stays_diverged() {
    let folder = Folder::new();
    folder.write("run.toml", RUN.as_str());
    let more = vec!["--set", "diverged_above=0.5", "--set", "keep_checkpoints=[]"];
    let printed = folder.done(&[resume("r"), more.clone()].concat());
    assert!(printed.contains("diverged") && printed.contains("3 of 400"), "{printed}");
    let manifest: toml::Table = folder.read("r/manifest.toml").parse().unwrap();
    assert_eq!(manifest["outcome"].as_str(), Some("diverged"));
    assert!(folder.path("r/checkpoint/training.safetensors").exists());
    assert_eq!(folder.done(&[resume("r"), more].concat()), printed);
    assert_eq!(folder.csv("r/steps.csv").1.len(), 3);
}

#[test]
fn a_run_goes_on_to_more_steps_and_its_manifest_tells_both_numbers() {
    let folder = Folder::new();
    // The one schedule that is the same for any number of steps.
    folder.write("run.toml", format!("schedule = \"constant\"\n{}", *RUN));
    let to = |out: &'static str, sets: &[&'static str]| {
        let sets = sets.iter().flat_map(|set| ["--set", set]);
        resume(out).into_iter().chain(sets).collect::<Vec<_>>()
    };
    let manifest = |out: &str| -> toml::Table {
        folder.read(&format!("{out}/manifest.toml")).parse().unwrap()
    };
    folder.done(&resume("whole"));

    folder.done(&to("ended", &["steps=300"]));
    let newest = folder.read("ended/manifest.toml");
    // Manifests of runs from before keys were removed still have these, which must have their defaults.
    let with_records = |count: usize| {
        let keys = format!(
            "[definition]\nmask_share = 0.15\nobjective = \"next-token\"\nrecords = {count}\n"
        );
        newest.replace("[definition]\n", &keys)
    };
    folder.write("ended/manifest.toml", with_records(12));
    assert!(folder.refused(&resume("ended")).contains("records"));
    folder.write("ended/manifest.toml", with_records(0));
    let arguments = ["train", "run.toml", "--resume", "--out", "ended"];
    let Ended { code, stderr, .. } = folder.run(&arguments);
    assert_eq!(code, Some(0), "{stderr}");
    let said = "step 300 of 300: extended to 400";
    assert!(stderr.contains(said), "{stderr}");
    assert_same(&folder, "whole", "ended");
    let told = manifest("ended");
    let numbers: toml::Table = "at_step = 300\nfrom_steps = 300\nto_steps = 400".parse().unwrap();
    assert_eq!(told["extended"].as_array().unwrap(), &[numbers.into()]);
    assert_eq!(told["definition"]["steps"].as_integer(), Some(400));
    assert_eq!(told["result"]["steps"].as_integer(), Some(400));
    assert!(folder.run(&arguments).stderr.is_empty(), "a run that ended is gone on with");
    for (sets, part) in [
        (&["steps=350"][..], "is at step 400; steps = 350 must be above that"),
        (&["steps=500", "seed=4"], "seed is 0 in this run, but 4"),
    ] {
        let error = folder.refused(&to("ended", sets));
        assert!(error.contains(part), "{error}");
    }

    killed(&folder, "killed");
    folder.done(&to("killed", &["steps=450"]));
    assert_eq!(steps(&folder, "killed").len(), 450);
    assert_eq!(manifest("killed")["extended"][0]["from_steps"].as_integer(), Some(400));
}

//! `--shard` and `rank-study merge` through the binary: parts measure what one run would, and their rows become the study's,
//! digit by digit.

use std::fs;
use std::process::Command;
use std::sync::LazyLock;

use crate::common::binary::{Folder, Record, STOPPED};
use crate::common::tiny;

static TINY: LazyLock<String> = LazyLock::new(|| tiny::fits("grid.n = [16, 24]"));

/// Two runs, and a study of their heads.
fn runs() -> String {
    tiny::trainings(
        r#"
presets = ["paper"]
train = { d_model = 16, context = 32, batch = 4, steps = 20, eval_every = 20, keep_checkpoints = [20] }
run = [{ name = "mhsa", arm = "mhsa", seed = [0, 1] }]
"#,
    )
}

const HEADS: &str = r#"
study = "heads"
kind = "ramp"
presets = ["paper"]
[ramp]
of = ["runs"]
steps = [20]
passages = 1
"#;

const PARTS: [&str; 3] = ["1/3", "2/3", "3/3"];

fn tiny() -> Folder {
    let folder = Folder::new();
    folder.write("analysis/tiny.toml", TINY.as_str());
    folder
}

/// As many parts as the study has cells are measured, and are not merged yet.
fn measured_in_parts() -> Folder {
    let folder = tiny();
    PARTS.iter().for_each(|part| drop(folder.done(&sweep(part))));
    folder
}

/// Copies a part's rows and manifest, or what was copied, to another place.
fn copy(folder: &Folder, from: &str, to: &str) {
    for file in ["rows.csv", "manifest.toml"] {
        folder.write(&format!("{to}/{file}"), folder.read(&format!("{from}/{file}")));
    }
}

fn sweep(part: &str) -> [&str; 4] {
    ["sweep", "analysis/tiny.toml", "--shard", part]
}

fn without_times(rows: Vec<Record>) -> Vec<Record> {
    let timeless =
        |row: Record| row.into_iter().filter(|(name, _)| !name.ends_with("_s")).collect();
    rows.into_iter().map(timeless).collect()
}

#[test]
fn parts_come_to_the_rows_of_one_run() {
    let one = tiny();
    one.done(&["sweep", "analysis/tiny.toml"]);
    let folder = tiny();
    for part in PARTS {
        let printed = folder.done(&sweep(part));
        assert!(printed.contains(&format!("shard {part}: ")), "{printed}");
        let again = folder.run(&sweep(part));
        assert!(again.stderr.contains("0 configurations measured"), "{}", again.stderr);
    }
    let listed = folder.done(&["list"]);
    assert!(listed.contains("rows of 3 shards not merged: run rank-study merge"), "{listed}");

    for arguments in [["table", "tiny"], ["sweep", "analysis/tiny.toml"], ["verify", "tiny"]] {
        let error = folder.refused(&arguments);
        assert!(error.contains("rank-study merge tiny"), "{arguments:?}: {error}");
    }
    let merged = folder.done(&["merge"]);
    assert_eq!(merged, "tiny: 8 configurations of 3 shards; 8 rows in total\n");
    assert!(!folder.path("data/tiny/shards").exists());
    let rows = |folder: &Folder| without_times(folder.csv("data/tiny/rows.csv").1);
    assert_eq!(rows(&folder), rows(&one));
    folder.done(&["verify", "tiny"]);
    let there = folder.read("data/tiny/rows.csv");
    let printed = folder.done(&["sweep", "analysis/tiny.toml"]);
    assert!(printed.contains("0 configurations measured, 8 done before"), "{printed}");
    assert_eq!(folder.read("data/tiny/rows.csv"), there);
    assert_eq!(folder.done(&["merge"]), "no study in data/ has rows of shards\n");
    let manifest: toml::Table = folder.read("data/tiny/manifest.toml").parse().unwrap();
    assert_eq!(manifest["parts"].as_array().unwrap().len(), 3, "{manifest}");
    assert!(!manifest.contains_key("shard"));
}

#[test]
fn rows_that_are_there_are_not_measured_by_a_part_of_whatever_number() {
    let folder = tiny();
    folder.done(&["sweep", "analysis/tiny.toml", "--filter", "s0"]);
    folder.done(&sweep("1/3"));
    for part in ["1/2", "2/2"] {
        folder.done(&sweep(part));
    }
    let merged = folder.done(&["merge", "tiny"]);
    assert!(!merged.contains("twice") && merged.contains("8 rows in total"), "{merged}");
}

#[test]
fn a_merge_can_be_begun_again_and_made_while_parts_are_missing() {
    let folder = tiny();
    folder.done(&sweep("1/3"));
    // As after a merge that was killed before it took the part away.
    copy(&folder, "data/tiny/shards/1-of-3", "kept");
    folder.done(&["merge"]);
    let wall_time = |folder: &Folder| {
        let manifest: toml::Table = folder.read("data/tiny/manifest.toml").parse().unwrap();
        manifest["wall_time_s"].as_float().unwrap()
    };
    let before = (folder.read("data/tiny/rows.csv"), wall_time(&folder));
    copy(&folder, "kept", "data/tiny/shards/1-of-3");
    let merged = folder.done(&["merge"]);
    assert!(merged.contains("measured twice, with equal numbers"), "{merged}");
    assert_eq!(folder.read("data/tiny/rows.csv"), before.0);
    assert!(wall_time(&folder) < before.1 + 1.0, "a part's time counts once");
    folder.done(&sweep("2/3"));
    folder.done(&sweep("3/3"));
    folder.done(&["merge"]);
    assert_eq!(folder.csv("data/tiny/rows.csv").1.len(), 8);
}

#[test]
fn other_numbers_of_a_cell_are_refused_by_name_and_nothing_is_changed() {
    let folder = measured_in_parts();
    let [part, other] = ["data/tiny/shards/2-of-3", "data/tiny/shards/4-of-5"];
    copy(&folder, part, other);
    let rows = format!("{other}/rows.csv");
    let (_, records) = folder.csv(&rows);
    folder.write(&rows, folder.read(&rows).replacen(records[0]["kl_nats"].as_str(), "0.125", 1));
    let tree = || -> Vec<String> {
        folder.tree().into_iter().filter(|path| !path.ends_with(".lock")).collect()
    };
    let before = tree();
    let ended = folder.run(&["merge"]);
    assert_eq!(ended.code, Some(1));
    for part in ["1 configurations", records[0]["cell"].as_str(), "4-of-5", "2-of-3"] {
        assert!(ended.stderr.contains(part), "{part} is not in {}", ended.stderr);
    }
    assert_eq!(tree(), before);
}

#[test]
fn failed_configuration_of_a_shard_gives_way_to_a_measured_one() {
    let folder = measured_in_parts();
    copy(&folder, "data/tiny/shards/1-of-3", "data/tiny/shards/1-of-2");
    let (header, records) = folder.csv("data/tiny/shards/1-of-3/rows.csv");
    let failed: Vec<String> = header
        .iter()
        .map(|name| match name.as_str() {
            "study" | "cell" | "settings" => records[0][name].clone(),
            "err" => "no luck".to_owned(),
            _ => String::new(),
        })
        .collect();
    let rows = format!("{}\n{}\n", header.join(","), failed.join(","));
    folder.write("data/tiny/shards/1-of-2/rows.csv", rows);
    folder.done(&["merge"]);
    let (_, rows) = folder.csv("data/tiny/rows.csv");
    assert!(rows.len() == 8 && rows.iter().all(|row| row["err"].is_empty()));
}

#[test]
fn a_stage_is_one_of_a_part() {
    let folder = tiny();
    let error = folder.refused(&["sweep", "analysis/tiny.toml", "--stage", "1"]);
    assert!(error.contains("--shard"), "{error}");
    folder.done(&["sweep", "analysis/tiny.toml", "--stage", "1", "--shard", "1/1"]);
    assert!(folder.path("data/tiny/shards/1-of-1/rows.csv").exists());
    let error = folder.refused(&["sweep", "analysis/tiny.toml", "--stage", "2", "--shard", "1/2"]);
    assert!(error.contains("--stage 2"), "{error}");
}

/// A script for Slurm has an array a stage, of the parts that have something left to do.
#[test]
fn a_batch_script_asks_for_what_is_missing() {
    let folder = tiny();
    let slurm = |more: &[&str]| {
        let told = folder.done(&[&["slurm", "tiny", "--tasks", "3", "--cpus", "2"], more].concat());
        (told, folder.read("rank-study.sbatch"))
    };
    let (told, script) = slurm(&["--partition", "short", "--mem", "2G", "--at-a-time", "2"]);
    assert!(told.contains("8 configurations in 1 stage, 3 tasks"), "{told}");
    for line in [
        "#SBATCH --cpus-per-task=2",
        "#SBATCH --partition=short",
        "#SBATCH --mem=2G",
        "#SBATCH --requeue",
        "#SBATCH --signal=B:TERM@120",
        "--array=1-3%2 \"$0\" 1",
        "reproduce --preset paper --only tiny --shard \"$SLURM_ARRAY_TASK_ID/3\" --stage",
    ] {
        assert!(script.contains(line), "{line} is not in {script}");
    }
    assert!(!script.replace("TERM@120", "").contains('@'), "a word is not filled in: {script}");
    let script = folder.path("rank-study.sbatch");
    assert!(Command::new("bash").arg("-n").arg(script).status().unwrap().success());
    folder.done(&sweep("2/3"));
    assert!(slurm(&[]).1.contains("--array=1,3 "));
    for part in ["1/3", "3/3"] {
        folder.done(&sweep(part));
    }
    let error = folder.refused(&["slurm", "tiny", "--tasks", "3", "--out", "other"]);
    assert!(error.contains("nothing is left"), "{error}");
    let error = folder.refused(&["slurm", "tinny"]);
    assert!(error.contains("no study \"tinny\""), "{error}");
}

/// What a part needs of another's waits for it, is told of, and is not failed.
#[test]
fn what_others_need_comes_before_them() {
    let folder = Folder::new();
    folder.write("analysis/runs.toml", runs());
    folder.write("analysis/heads.toml", HEADS);
    let reproduce = ["reproduce", "--preset", "paper", "--only", "heads"];
    let heads = |part, stage| [&reproduce[..], &["--shard", part, "--stage", stage]].concat();
    let all_parts = || {
        for (part, stage) in [("1/2", "1"), ("2/2", "1"), ("1/2", "2"), ("2/2", "2")] {
            folder.done(&heads(part, stage));
        }
    };
    let waiting = folder.run(&heads("1/2", "2"));
    assert_eq!(waiting.code, STOPPED, "{}", waiting.stderr);
    assert!(waiting.stderr.contains("runs of other shards"), "{}", waiting.stderr);
    all_parts();
    let merged = folder.done(&["merge"]);
    assert!(merged.contains("heads: "), "{merged}");
    assert!(merged.contains("runs: 2 configurations of 2 shards"), "{merged}");
    folder.done(&["verify", "heads", "runs"]);
    // Rows are there and weights are not: they are made again, and found to be the same.
    for seed in ["s0", "s1"] {
        fs::remove_dir_all(folder.path(&format!("data/runs/mhsa/{seed}"))).unwrap();
    }
    fs::remove_dir_all(folder.path("data/heads")).unwrap();
    all_parts();
    let merged = folder.done(&["merge"]);
    assert!(merged.contains("2 configurations measured twice, with equal numbers"), "{merged}");
}

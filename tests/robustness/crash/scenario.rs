//! The commands that are tried, and what has to be there after them.

use std::fs;
use std::path::Path;

use super::model::View;
use crate::common::binary::{Ended, Folder, Record};
use crate::common::tiny;

/// A command that begins in a folder with nothing but its definition, or with what `prepare` makes.
pub struct Scenario {
    pub name: &'static str,
    pub prepare: fn(&Folder),
    pub command: &'static [&'static str],
    /// What goes on where it was ended.
    pub again: &'static [&'static str],
    /// Part of what that may be refused with, since the command had come to its end.
    pub refused: Option<&'static str>,
    /// Whether a try takes long, or tries are many.
    pub is_slow: bool,
    /// Files, by how their paths begin, that are on the disk for good as soon as the next file is begun.
    pub kept: &'static [&'static str],
    /// The rows that are not to be lost: of each, all its digits and times.
    pub rows: &'static str,
    /// How many of the rows in what was left are sure to stay, by the folder after all: all of them where it does not say.
    pub sure: fn(&Folder, &View) -> Option<usize>,
    /// What is wrong with a folder beside one where nothing happened.
    pub wrong: fn(&Folder, &Folder) -> Result<(), String>,
}

impl Scenario {
    pub fn folder(&self) -> Folder {
        let folder = Folder::new();
        (self.prepare)(&folder);
        folder
    }

    /// Runs the program itself on what an ended one left, and says what is wrong then.
    pub fn go_on(&self, folder: &Folder, whole: &Folder) -> Result<(), String> {
        let Ended { code, stdout, stderr } = folder.run(self.again);
        let had_ended = code == Some(1) && self.refused.is_some_and(|why| stderr.contains(why));
        if code != Some(0) && !had_ended {
            return Err(format!("went on with {code:?}: {stdout}{stderr}"));
        }
        let left: Vec<String> =
            folder.tree().into_iter().filter(|name| name.ends_with(".tmp")).collect();
        if !left.is_empty() {
            return Err(format!("left {left:?}"));
        }
        (self.wrong)(folder, whole)
    }
}

fn with_study(folder: &Folder) {
    folder.write(
        "analysis/tiny.toml",
        tiny::fits("grid.n = [12]\ngrid.rank = [2, 3]\nsearch.iterations = 60"),
    );
}

/// Four cells, one after another.
pub const SWEEP: Scenario = Scenario {
    name: "sweep",
    prepare: with_study,
    command: &["sweep", "analysis/tiny.toml", "--threads", "1", "--quiet"],
    again: &["sweep", "analysis/tiny.toml", "--threads", "1", "--quiet"],
    refused: None,
    is_slow: false,
    kept: &["data/tiny/"],
    rows: "data/tiny/rows.csv",
    sure: |_, _| None,
    wrong: |folder, whole| {
        same_rows(folder, whole, "data/tiny/rows.csv")?;
        succeeds(folder, &["verify", "tiny"])
    },
};

const TRAINED: &[&str] = &["train", "run.toml", "--out", "r", "--threads", "1", "--quiet"];

/// Ten steps, with a checkpoint every three and the weights of three steps kept.
pub const TRAIN: Scenario = Scenario {
    name: "train",
    prepare: |folder| {
        folder.write(
            "run.toml",
            tiny::training("steps = 10\ncheckpoint_every = 3\nkeep_checkpoints = [2, 5, 8]"),
        )
    },
    command: TRAINED,
    again: &["train", "run.toml", "--out", "r", "--threads", "1", "--quiet", "--resume"],
    refused: None,
    is_slow: false,
    kept: &["r/manifest.toml", "r/checkpoint/", "r/heads.parquet"],
    rows: "r/steps.csv",
    // Those of the steps up to the checkpoint.
    sure: |folder, view| {
        if !view.contains_key(Path::new("r/checkpoint/training.safetensors")) {
            return Some(0);
        }
        let manifest: toml::Table = folder.read("r/manifest.toml").parse().unwrap();
        let resumed = manifest.get("resumed_at_steps")?.as_array()?.last()?.as_integer()?;
        usize::try_from(resumed).ok()
    },
    wrong: |folder, whole| {
        same_rows(folder, whole, "r/steps.csv")?;
        same_rows(folder, whole, "r/eval.csv")?;
        same_files(folder, whole, "r/", &["events", "manifest.toml", "steps.csv", "eval.csv"])?;
        // Events have the times of their writing, which are as long as any other.
        let length = |folder: &Folder| {
            fs::metadata(folder.path("r/events.out.tfevents.rank-study"))
                .map(|file| file.len())
                .ok()
        };
        let lengths = [folder, whole].map(length);
        (lengths[0] == lengths[1]).then_some(()).ok_or(format!("events of {lengths:?} bytes"))
    },
};

const FITTED: &[&str] = &[
    "fit", "--family", "dirichlet-band", "--window", "4", "--n", "12", "--rank", "2", "--starts",
    "1", "--max-logit", "1,2", "--out", "f", "--threads", "1", "--quiet",
];

/// A frontier of two caps.
pub const FIT: Scenario = Scenario {
    name: "fit",
    prepare: |_| {},
    command: FITTED,
    again: FITTED,
    refused: Some("already has a frontier.csv"),
    is_slow: false,
    kept: &["f/"],
    rows: "f/frontier.csv",
    // They stand for the best so far.
    sure: |_, _| Some(0),
    wrong: |folder, whole| {
        same_rows(folder, whole, "f/frontier.csv")?;
        same_files(folder, whole, "f/", &["manifest.toml", "frontier.csv"])
    },
};

/// Four cells, their tables, figures and the report.
pub const REPRODUCE: Scenario = Scenario {
    name: "reproduce",
    prepare: with_study,
    command: &["reproduce", "--only", "tiny", "--threads", "1", "--quiet"],
    again: &["reproduce", "--only", "tiny", "--threads", "1", "--quiet"],
    refused: None,
    is_slow: true,
    kept: &["data/quick/tiny/", "figures/"],
    rows: "data/quick/tiny/rows.csv",
    sure: |_, _| None,
    wrong: |folder, whole| {
        same_rows(folder, whole, "data/quick/tiny/rows.csv")?;
        same_files(folder, whole, "figures/quick/tiny/", &[])?;
        let report = folder.read("figures/quick/report.html");
        report
            .trim_end()
            .ends_with("</html>")
            .then_some(())
            .ok_or("the report is cut off".to_owned())
    },
};

/// Two parts of two cells each.
pub const MERGE: Scenario = Scenario {
    name: "merge",
    prepare: |folder| {
        with_study(folder);
        for part in ["1/2", "2/2"] {
            folder.done(&["sweep", "analysis/tiny.toml", "--shard", part, "--threads", "1"]);
        }
    },
    command: &["merge", "--quiet"],
    again: &["merge", "--quiet"],
    refused: None,
    is_slow: false,
    kept: &["data/tiny/"],
    rows: "data/tiny/rows.csv",
    sure: |_, _| None,
    wrong: |folder, whole| {
        same_files(folder, whole, "data/tiny/", &["manifest.toml"])?;
        succeeds(folder, &["verify", "tiny"])
    },
};

/// One of two parts: the first, with its lock and the order of the cells beside it.
pub const PART: Scenario = Scenario {
    name: "part",
    prepare: with_study,
    command: &["sweep", "analysis/tiny.toml", "--shard", "1/2", "--threads", "1", "--quiet"],
    again: &["sweep", "analysis/tiny.toml", "--shard", "1/2", "--threads", "1", "--quiet"],
    refused: None,
    is_slow: true,
    kept: &["data/tiny/"],
    rows: "data/tiny/shards/1-of-2/rows.csv",
    sure: |_, _| None,
    wrong: |folder, whole| {
        same_rows(folder, whole, "data/tiny/shards/1-of-2/rows.csv")?;
        same_files(folder, whole, "data/tiny/", &["manifest.toml", "rows.csv"])?;
        let copied = Folder::new();
        copy(&folder.path(""), &copied.path(""));
        copied.done(&["sweep", "analysis/tiny.toml", "--shard", "2/2", "--threads", "1"]);
        succeeds(&copied, &["merge", "--quiet"])?;
        succeeds(&copied, &["verify", "tiny"])?;
        match copied.path("data/tiny/shards").exists() {
            true => Err(format!("joined, and left {:?}", copied.tree())),
            false => Ok(()),
        }
    },
};

const ONE_SEED: &str = "train.checkpoint_every = 3\nrun = [{ name = \"ls\", arm = \"ls\", seed = 0 }, { name = \"mhsa\", seed = 0 }]";

/// Two trainings, one after another.
pub const TRAININGS: Scenario = Scenario {
    name: "trainings",
    prepare: |folder| folder.write("analysis/runs.toml", tiny::trainings(ONE_SEED)),
    command: &["sweep", "analysis/runs.toml", "--threads", "1", "--quiet"],
    again: &["sweep", "analysis/runs.toml", "--threads", "1", "--quiet"],
    refused: None,
    is_slow: true,
    kept: &["data/runs/rows.csv", "data/runs/rows.parquet", "data/runs/manifest.toml"],
    rows: "data/runs/rows.csv",
    sure: |_, _| None,
    wrong: |folder, whole| {
        same_rows(folder, whole, "data/runs/rows.csv")?;
        same_files(folder, whole, "data/runs/", &["events", "manifest.toml", ".csv", ".parquet"])?;
        succeeds(folder, &["verify", "runs"])
    },
};

const READING: &str = r#"
layers = 1
d_model = 8
heads = 2
context = 8
batch = 2
steps = 2
warmup_steps = 2
eval_every = 2
eval_batches = 2
vocabulary = "byte"
"#;
/// What repeats takes little room, packed: long enough for its tokens to be kept.
const LINE: &str = "the quick brown fox jumps over the lazy dog\n";

/// A training on a text whose tokens are kept.
pub const TOKENS: Scenario = Scenario {
    name: "tokens",
    prepare: |folder| {
        folder.write("run.toml", READING);
        let text = LINE.repeat((1 << 20) / LINE.len() + 1);
        folder.write("text.txt.zst", zstd::encode_all(text.as_bytes(), 3).unwrap());
    },
    command: READ,
    again: READ,
    refused: None,
    is_slow: true,
    kept: &["data/tokens/", "r/manifest.toml"],
    rows: "r/steps.csv",
    // Those of a run without a checkpoint are made again.
    sure: |_, _| Some(0),
    wrong: |folder, whole| {
        same_files(folder, whole, "data/tokens/", &[])?;
        same_rows(folder, whole, "r/steps.csv")
    },
};

const READ: &[&str] = &[
    "train", "run.toml", "--text", "text.txt.zst", "--out", "r", "--threads", "1", "--quiet",
    "--resume",
];

fn succeeds(folder: &Folder, arguments: &[&str]) -> Result<(), String> {
    match folder.run(arguments) {
        Ended { code: Some(0), .. } => Ok(()),
        Ended { code, stdout, stderr } => {
            Err(format!("{arguments:?} ended with {code:?}: {stdout}{stderr}"))
        }
    }
}

fn same_rows(folder: &Folder, whole: &Folder, name: &str) -> Result<(), String> {
    let [found, expected] = [folder, whole].map(|folder| match folder.path(name).exists() {
        true => rows(&folder.read(name)),
        false => Vec::new(),
    });
    let timeless = |rows: Vec<Record>| -> Vec<Record> {
        let of = |row: Record| row.into_iter().filter(|(name, _)| !name.ends_with("_s")).collect();
        rows.into_iter().map(of).collect()
    };
    let [found, expected] = [found, expected].map(timeless);
    (found == expected).then_some(()).ok_or(format!("{name}: {found:?}, not {expected:?}"))
}

/// Compares the files below a folder, but for those of some names.
fn same_files(folder: &Folder, whole: &Folder, below: &str, but: &[&str]) -> Result<(), String> {
    let is_other = |name: &str| but.iter().any(|but| name.contains(but));
    let files = |folder: &Folder| -> Vec<String> {
        let is_of = |name: &String| {
            let is_lock = name.contains("/.lock");
            name.starts_with(below) && !is_lock && !is_other(name) && folder.path(name).is_file()
        };
        folder.tree().into_iter().filter(is_of).collect()
    };
    let [found, expected] = [folder, whole].map(files);
    if found != expected {
        return Err(format!("{found:?}, not {expected:?}"));
    }
    let bytes = |folder: &Folder, name: &str| {
        let all = fs::read(folder.path(name)).ok()?;
        // The header of a checkpoint tells how long its steps took, and its own sum.
        let is_timed = name.ends_with("training.safetensors");
        let header = is_timed.then(|| u64::from_le_bytes(all[..8].try_into().unwrap()));
        Some(all[header.map_or(0, |length| 8 + length as usize)..].to_vec())
    };
    match found.iter().find(|name| bytes(folder, name) != bytes(whole, name)) {
        Some(name) => Err(format!("{name} is another")),
        None => Ok(()),
    }
}

/// The whole records of a CSV file's text.
pub fn rows(text: &str) -> Vec<Record> {
    let mut lines = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
    let fields = |line: &str| -> Vec<String> {
        let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(line.as_bytes());
        let record = reader.records().next().and_then(Result::ok).unwrap_or_default();
        record.iter().map(str::to_owned).collect()
    };
    let header = lines.next().map(fields).unwrap_or_default();
    lines
        .map(fields)
        .filter(|record| record.len() == header.len())
        .map(|record| header.iter().cloned().zip(record).collect())
        .collect()
}

/// Every file of a folder into another.
pub fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.path().is_dir() {
            true => {
                fs::create_dir_all(&target).unwrap();
                copy(&entry.path(), &target);
            }
            false => drop(fs::copy(entry.path(), target).unwrap()),
        }
    }
}

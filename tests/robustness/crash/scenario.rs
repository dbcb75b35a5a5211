//! The commands that are tried, and what has to be there after them.

use std::fs;
use std::path::Path;

use super::model::View;
use crate::common::binary::{Ended, Folder, Record, words};
use crate::common::tiny;
use crate::whole::same;

/// A command that begins in a folder with nothing but its definition, or with what `prepare` makes.
pub struct Scenario {
    pub name: &'static str,
    pub prepare: fn(&Folder),
    pub command: &'static str,
    /// The command that continues it; `None` if that is the same command.
    pub again: Option<&'static str>,
    /// Part of the error with which that command may be refused, because the first one had already finished.
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
        let Ended { code, stdout, stderr } = folder.run(&words(self.again.unwrap_or(self.command)));
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
    command: "sweep analysis/tiny.toml --threads 1 --quiet",
    again: None,
    refused: None,
    is_slow: false,
    kept: &["data/tiny/"],
    rows: "data/tiny/rows.csv",
    sure: |_, _| None,
    wrong: |folder, whole| {
        same(folder, whole, "data/tiny/rows.csv", &[])?;
        succeeds(folder, "verify tiny")
    },
};

/// Ten steps, with a checkpoint every three and the weights of three steps kept.
pub const TRAIN: Scenario = Scenario {
    name: "train",
    prepare: |folder| {
        folder.write(
            "run.toml",
            tiny::training("steps = 10\ncheckpoint_every = 3\nkeep_checkpoints = [2, 5, 8]"),
        )
    },
    command: "train run.toml --out r --threads 1 --quiet",
    again: Some("train run.toml --out r --threads 1 --quiet --resume"),
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
        same(folder, whole, "r/", &["events", "manifest.toml"])?;
        // Events have the times of their writing, which are as long as any other.
        let lengths = [folder, whole].map(|folder| {
            let events = fs::metadata(folder.path("r/events.out.tfevents.rank-study"));
            events.map(|file| file.len()).ok()
        });
        (lengths[0] == lengths[1]).then_some(()).ok_or(format!("events of {lengths:?} bytes"))
    },
    ..SWEEP
};

/// A frontier of two caps.
pub const FIT: Scenario = Scenario {
    name: "fit",
    prepare: |_| {},
    command: "fit --family dirichlet-band --window 4 --n 12 --rank 2 --starts 1 --max-logit 1,2 --out f --threads 1 --quiet",
    refused: Some("already has a frontier.csv"),
    kept: &["f/"],
    rows: "f/frontier.csv",
    // They stand for the best so far.
    sure: |_, _| Some(0),
    wrong: |folder, whole| same(folder, whole, "f/", &["manifest.toml"]),
    ..SWEEP
};

/// Four cells, their tables, figures and the report.
pub const REPRODUCE: Scenario = Scenario {
    name: "reproduce",
    command: "reproduce --only tiny --threads 1 --quiet",
    is_slow: true,
    kept: &["data/quick/tiny/", "figures/"],
    rows: "data/quick/tiny/rows.csv",
    wrong: |folder, whole| {
        same(folder, whole, "data/quick/tiny/rows.csv", &[])?;
        same(folder, whole, "figures/quick/tiny/", &[])?;
        let report = folder.read("figures/quick/report.html");
        let is_whole = report.trim_end().ends_with("</html>");
        is_whole.then_some(()).ok_or("the report is cut off".to_owned())
    },
    ..SWEEP
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
    command: "merge --quiet",
    wrong: |folder, whole| {
        same(folder, whole, "data/tiny/", &["manifest.toml"])?;
        let rows = [folder, whole].map(|folder| folder.read("data/tiny/rows.csv"));
        (rows[0] == rows[1]).then_some(()).ok_or("rows were measured again".to_owned())?;
        succeeds(folder, "verify tiny")
    },
    ..SWEEP
};

/// One of two parts: the first, with its lock and the order of the cells beside it.
pub const PART: Scenario = Scenario {
    name: "part",
    command: "sweep analysis/tiny.toml --shard 1/2 --threads 1 --quiet",
    is_slow: true,
    rows: "data/tiny/shards/1-of-2/rows.csv",
    wrong: |folder, whole| {
        same(folder, whole, "data/tiny/", &["manifest.toml"])?;
        let copied = folder.copied();
        copied.done(&["sweep", "analysis/tiny.toml", "--shard", "2/2", "--threads", "1"]);
        succeeds(&copied, "merge --quiet")?;
        succeeds(&copied, "verify tiny")?;
        match copied.path("data/tiny/shards").exists() {
            true => Err(format!("joined, and left {:?}", copied.tree())),
            false => Ok(()),
        }
    },
    ..SWEEP
};

const ONE_SEED: &str = "train.checkpoint_every = 3\nrun = [{ name = \"ls\", arm = \"ls\", seed = 0 }, { name = \"mhsa\", seed = 0 }]";

/// Two trainings, one after another.
pub const TRAININGS: Scenario = Scenario {
    name: "trainings",
    prepare: |folder| folder.write("analysis/runs.toml", tiny::trainings(ONE_SEED)),
    command: "sweep analysis/runs.toml --threads 1 --quiet",
    is_slow: true,
    kept: &["data/runs/rows.csv", "data/runs/rows.parquet", "data/runs/manifest.toml"],
    rows: "data/runs/rows.csv",
    wrong: |folder, whole| {
        same(folder, whole, "data/runs/rows.csv", &[])?;
        same(folder, whole, "data/runs/", &["events", "manifest.toml", ".csv", ".parquet"])?;
        succeeds(folder, "verify runs")
    },
    ..SWEEP
};

/// A training on a text whose tokens are kept.
pub const TOKENS: Scenario = Scenario {
    name: "tokens",
    prepare: |folder| {
        folder.write("run.toml", tiny::training("steps = 2\nvocabulary = \"byte\""));
        // What repeats takes little room, packed: long enough for its tokens to be kept.
        let line = "the quick brown fox jumps over the lazy dog\n";
        let text = line.repeat((1 << 20) / line.len() + 1);
        folder.write("text.txt.zst", zstd::encode_all(text.as_bytes(), 3).unwrap());
    },
    command: "train run.toml --text text.txt.zst --out r --threads 1 --quiet --resume",
    is_slow: true,
    kept: &["data/tokens/", "r/manifest.toml"],
    rows: "r/steps.csv",
    // Those of a run without a checkpoint are made again.
    sure: |_, _| Some(0),
    wrong: |folder, whole| {
        same(folder, whole, "data/tokens/", &[])?;
        same(folder, whole, "r/steps.csv", &[])
    },
    ..SWEEP
};

fn succeeds(folder: &Folder, line: &str) -> Result<(), String> {
    match folder.run(&words(line)) {
        Ended { code: Some(0), .. } => Ok(()),
        Ended { code, stdout, stderr } => {
            Err(format!("{line} ended with {code:?}: {stdout}{stderr}"))
        }
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

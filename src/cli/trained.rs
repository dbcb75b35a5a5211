//! The flags that say which trained model, and on which text.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use rank_study::lm::{Split, Texts};
use rank_study::run::TrainedRun;

#[derive(Args, Debug)]
pub struct TrainedArgs {
    /// Folder of a trained run
    pub run: PathBuf,
    /// Read this text: a .txt, .bin, .zst or folder of them
    #[arg(long, value_name = "FILE")]
    text: PathBuf,
    /// Use only this split of the text
    #[arg(long, value_name = "NAME", default_value = "all")]
    split: Part,
    /// Use the weights kept at this step [default: the last]
    #[arg(long, value_name = "N")]
    step: Option<usize>,
}

/// A part of a text.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Part {
    All,
    Train,
    Valid,
    Test,
}

impl Part {
    /// The split, or none for the whole text.
    fn split(self) -> Option<Split> {
        match self {
            Self::All => None,
            Self::Train => Some(Split::Train),
            Self::Valid => Some(Split::Valid),
            Self::Test => Some(Split::Test),
        }
    }

    /// As a definition writes it.
    pub fn name(self) -> &'static str {
        self.split().map_or("all", Split::name)
    }
}

impl TrainedArgs {
    /// The model and the text.
    pub fn read(&self) -> Result<(TrainedRun, Texts)> {
        if !self.run.join("manifest.toml").is_file() {
            bail!("no manifest.toml in {}/; name the folder of a trained run", self.run.display());
        }
        let run = TrainedRun::read(&self.run, self.step)?;
        Ok((run, Texts::find(&self.text, None).with_context(|| self.flag())?))
    }

    /// The split of the text, or none for the whole of it.
    pub fn split(&self) -> Option<Split> {
        self.split.split()
    }

    /// The text as it was given, for an error.
    pub fn flag(&self) -> String {
        format!("--text {}", self.text.display())
    }
}

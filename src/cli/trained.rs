//! The flags that say which trained model, and on which text.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use rank_study::lm::{Split, Texts};
use rank_study::run::TrainedRun;

#[derive(Args, Debug)]
pub struct TrainedArgs {
    /// The folder of a run that train made
    pub run: PathBuf,
    /// The text, or records: a .txt or .bin, packed as .zst or not, or a folder of them, each a document
    #[arg(long, value_name = "FILE")]
    text: PathBuf,
    /// Only this part of the text, divided as the run's definition says
    #[arg(long, value_name = "NAME", default_value = "all")]
    split: Part,
    /// The weights that keep_checkpoints kept of this step, in place of the last ones
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

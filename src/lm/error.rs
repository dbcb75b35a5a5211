//! What can be wrong with a training run.

use std::io;
use std::path::PathBuf;

use crate::pattern::TargetError;
use crate::system::{NoDisk, NoMemory};

/// Why a training run could not be defined, started or saved. Each message says what was found
/// and what to do. A run that diverges is not an error but an [`Outcome`](crate::lm::Outcome).
#[derive(Debug, thiserror::Error)]
pub enum LmError {
    /// A key that a training definition does not have.
    #[error("unknown key {found:?} in a training definition; did you mean {nearest:?}?")]
    UnknownKey {
        /// The key as given.
        found: String,
        /// The valid key that reads most like it.
        nearest: String,
    },
    /// A key with a value that it cannot take.
    #[error("{}", value_error(key, found, why))]
    Value {
        /// The key.
        key: &'static str,
        /// The value as given.
        found: String,
        /// What the key may be.
        why: String,
    },
    /// A value of the wrong type, or a definition that is not TOML.
    #[error("{0}")]
    Definition(String),
    /// A device that is not there, or that does not compute what is asked.
    #[error("device cuda: {why}")]
    NoDevice {
        /// What is missing.
        why: String,
    },
    /// A run that the machine's memory cannot hold.
    #[error("{what} at least {room}; lower {lower}")]
    TooLarge {
        /// What takes so much.
        what: &'static str,
        /// How much, and what there is.
        room: NoMemory,
        /// What makes it less.
        lower: &'static str,
    },
    /// A model that cannot teach another.
    #[error(
        "the teacher cannot be used: {0}; name a run with the same layers, heads and vocabulary"
    )]
    Teacher(String),
    /// No text where one is needed.
    #[error("the model needs a text, and none is given")]
    NoText,
    /// A text with fewer tokens than a passage needs.
    #[error(
        "the text is too short: {found} of the {needed} tokens needed; give a longer text, or use fewer tokens"
    )]
    ShortText {
        /// Tokens of the text.
        found: usize,
        /// Where the passage ends.
        needed: usize,
    },
    /// A file of exported heads with fewer passages than are asked for.
    #[error(
        "the file has {found} passages, but groups × passages is {needed}; ask for fewer, or export more"
    )]
    FewPassages {
        /// Passages of the file.
        found: usize,
        /// How many are asked for.
        needed: usize,
    },
    /// A corpus too short for the context.
    #[error(
        "{part} has {tokens} tokens, but one context needs {needed}; give a longer text or a smaller \
         context"
    )]
    TextTooShort {
        /// Which part of the text, or all of it.
        part: &'static str,
        /// How many tokens it has.
        tokens: usize,
        /// How many one window of context + 1 tokens needs.
        needed: usize,
    },
    /// A folder without a text.
    #[error("{} has no .txt, .txt.zst, .bin or .bin.zst file; name a folder of texts", folder.display())]
    NoTexts {
        /// The folder.
        folder: PathBuf,
    },
    /// A document of which the last record is not whole.
    #[error(
        "{}: {bytes} bytes are not a whole number of records of {record} bytes ({whole} records and {} \
         bytes); set records to the bytes of one record",
        path.display(), bytes % record
    )]
    BrokenRecord {
        /// The file.
        path: PathBuf,
        /// Its bytes, unpacked.
        bytes: u64,
        /// Bytes of a record.
        record: u64,
        /// The whole records that it has.
        whole: u64,
    },
    /// A synthetic corpus of records without rows.
    #[error(
        "corpus.columns is 0, but a synthetic corpus of records needs it; set it, or give records to read"
    )]
    NoColumns,
    /// Fewer documents than splits.
    #[error(
        "{documents} documents are too few for valid_fraction and test_fraction; add some, lower a \
         fraction, or give one file, which is split by position"
    )]
    TooFewDocuments {
        /// How many there are.
        documents: usize,
    },
    /// A byte-pair vocabulary that could not be trained, used or read.
    #[error("BPE vocabulary: {why}")]
    Bpe {
        /// What went wrong.
        why: String,
    },
    /// Tokens that could not be written.
    #[error("cannot write the tokens of the text: {0}; check the free disk space")]
    Tokens(#[source] io::Error),
    /// Tokens that their disk has no room for.
    #[error("{}: the tokens of the text need at least {room}; free some, or name another --token-cache", folder.display())]
    NoDisk {
        /// The folder that keeps them.
        folder: PathBuf,
        /// How much they take, and what there is.
        room: NoDisk,
    },
    /// A file of tokens that was written and could not be read back.
    #[error("{}: the file changed after it was written; check the disk", path.display())]
    Unkept {
        /// The file.
        path: PathBuf,
    },
    /// A text that cannot be made into characters.
    #[error("the text is not UTF-8 at byte {byte}; convert it, or set vocabulary=byte")]
    NotUtf8 {
        /// The first byte that is not part of a character.
        byte: usize,
    },
    /// A symbol that the vocabulary lacks.
    #[error("the vocabulary of the model has no {found:?}; train a model on text that has it")]
    NotInVocabulary {
        /// The character as found.
        found: char,
    },
    /// A text for a model of the synthetic corpus.
    #[error(
        "the model was trained on the synthetic corpus and cannot read a text; leave --text out"
    )]
    NoWrittenForm,
    /// Weights that are not what activations are multiplied by.
    #[error(
        "the model uses sigma-reparam, so its weights cannot be edited or reused; take a run without it"
    )]
    Reparametrised,
    /// Weights of a model of another shape than the one that is to begin with them.
    #[error("{key} is {here}, but the starting weights have {there}; set the same value")]
    OtherShape {
        /// The first key that differs.
        key: &'static str,
        /// Its value in the run that is to begin.
        here: String,
        /// Its value in the weights.
        there: String,
    },
    /// A model that was not trained to predict the next token.
    #[error(
        "the model predicts masked tokens, not the next one; take a run with objective = next-token"
    )]
    NotNextToken,
    /// A passage without a token after the first.
    #[error("a passage of under two tokens has no next token; give a longer one")]
    NoNextToken,
    /// A passage that is empty or longer than a published model reads.
    #[error("the passage has {found} tokens; it must have 1 to {context}, the model's context")]
    PassageLength {
        /// Tokens of the passage.
        found: usize,
        /// The most that the model reads.
        context: usize,
    },
    /// A token that a published model has no embedding of.
    #[error(
        "token {found} is outside the model's vocabulary of {size}; use the tokenizer.json published with \
         the model"
    )]
    UnknownToken {
        /// The token as given.
        found: u32,
        /// How many the model has, from 0.
        size: usize,
    },
    /// A file of a model that cannot be used.
    #[error("{}: {why}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What was found and, of a published model, what can be used.
        why: String,
    },
    /// A file that could not be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Attention that could not be made for a head.
    #[error(transparent)]
    Attention(#[from] TargetError),
    /// A recorder that could not keep a record, as on a full disk.
    #[error("cannot write a record of the run: {0}")]
    Recorder(#[from] io::Error),
    /// Workers whose models came to differ: a defect of this program or of a machine.
    #[error(
        "worker {rank} has other weights than worker 0 after step {step}; nothing of it is kept. Check \
         the machines' memory, and please report this"
    )]
    OtherWeights {
        /// The rank of the worker.
        rank: usize,
        /// The steps that were taken.
        step: usize,
    },
    /// An error of the tensor library: a shape or a device, never a value that a user gave.
    #[error("tensor operation: {0}")]
    Tensor(#[from] candle_core::Error),
}

/// `window must be at least 1 (0 found)`; what to do follows what was found.
fn value_error(key: &str, found: &str, why: &str) -> String {
    let (wrong, then) = why
        .split_once("; ")
        .map_or((why, String::new()), |(wrong, then)| (wrong, format!("; {then}")));
    format!("{key} {wrong} ({found} found){then}")
}

/// An error naming the key and what was found, unless `holds`.
pub(in crate::lm) fn require(
    holds: bool,
    key: &'static str,
    found: impl ToString,
    why: &str,
) -> Result<(), LmError> {
    if holds {
        Ok(())
    } else {
        Err(LmError::Value { key, found: found.to_string(), why: why.to_owned() })
    }
}

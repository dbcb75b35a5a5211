//! What can be wrong with a training run.

use std::io;
use std::path::PathBuf;

use crate::collective::CollectiveError;
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
    #[error("{key} = {found}: {why}")]
    Value {
        /// The key.
        key: &'static str,
        /// The value as given.
        found: String,
        /// What the key may be.
        why: String,
    },
    /// A value of the wrong type, or a definition that is not TOML.
    #[error("training definition: {0}")]
    Definition(String),
    /// A device that is not there, or that does not compute what is asked.
    #[error("device cuda: {why}")]
    NoDevice {
        /// What is missing.
        why: String,
    },
    /// A run that the machine's memory cannot hold.
    #[error("{what} at least {room}: set {lower} lower")]
    TooLarge {
        /// What takes so much.
        what: &'static str,
        /// How much, and what there is.
        room: NoMemory,
        /// What makes it less.
        lower: &'static str,
    },
    /// A model that cannot teach another.
    #[error("the teacher: {0}; name a run of the same layers, heads and vocabulary")]
    Teacher(String),
    /// No text where one is needed.
    #[error("the run was trained on a text; name one")]
    NoText,
    /// A text with fewer tokens than a passage needs.
    #[error("{found} tokens, the passage ends at {needed}: give a longer text or ask for fewer")]
    ShortText {
        /// Tokens of the text.
        found: usize,
        /// Where the passage ends.
        needed: usize,
    },
    /// A file of exported heads with fewer passages than are asked for.
    #[error(
        "{found} passages are in the file, and groups times passages are {needed}: ask for fewer, or export more"
    )]
    FewPassages {
        /// Passages of the file.
        found: usize,
        /// How many are asked for.
        needed: usize,
    },
    /// A corpus too short for the context.
    #[error(
        "{part} has {tokens} tokens, one context needs {needed}: give a longer text or a smaller context"
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
    #[error("{} has no file that ends in .txt, .txt.zst, .bin or .bin.zst", folder.display())]
    NoTexts {
        /// The folder.
        folder: PathBuf,
    },
    /// A document of which the last record is not whole.
    #[error(
        "{}: {bytes} bytes are not a whole number of records of {record} bytes ({whole} of them and {} bytes): set records to the bytes of one",
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
        "the synthetic corpus has records of rows of corpus.columns symbols, and that is 0: set it, or give the records to read"
    )]
    NoColumns,
    /// Fewer documents than splits.
    #[error(
        "{documents} documents are too few to divide by valid_fraction and test_fraction: add some, set a fraction lower, or give one file, which is split by position"
    )]
    TooFewDocuments {
        /// How many there are.
        documents: usize,
    },
    /// A byte-pair vocabulary that could not be trained, used or read.
    #[error("byte-pair vocabulary: {why}")]
    Bpe {
        /// What went wrong.
        why: String,
    },
    /// Tokens that could not be written.
    #[error("the tokens of the text could not be written: {0}; check that the disk has room")]
    Tokens(#[source] io::Error),
    /// Tokens that their disk has no room for.
    #[error("{}: the tokens of the text take at least {room}; free some, or keep tokens on another disk", folder.display())]
    NoDisk {
        /// The folder that keeps them.
        folder: PathBuf,
        /// How much they take, and what there is.
        room: NoDisk,
    },
    /// A file of tokens that was written and could not be read back.
    #[error("{}: not as it was written; check the disk", path.display())]
    Unkept {
        /// The file.
        path: PathBuf,
    },
    /// A text that cannot be made into characters.
    #[error("the text is not UTF-8 at byte {byte}: convert it, or set vocabulary=byte")]
    NotUtf8 {
        /// The first byte that is not part of a character.
        byte: usize,
    },
    /// A symbol that the vocabulary lacks.
    #[error("{found:?} is not in the vocabulary that the model was trained with")]
    NotInVocabulary {
        /// The character as found.
        found: char,
    },
    /// A text for a model of the synthetic corpus.
    #[error("the model was trained on the synthetic corpus, whose symbols no text is written in")]
    NoWrittenForm,
    /// Weights that are not what activations are multiplied by.
    #[error(
        "the model's matrices are divided by their spectral norm, so its weights are neither edited nor started from; \
         take a run without sigma-reparam"
    )]
    Reparametrised,
    /// Weights of a model of another shape than the one that is to begin with them.
    #[error(
        "{key} is {here}, but {there} in the weights that the run starts from; give the run theirs"
    )]
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
        "the model predicts masked tokens and no next one; take a run of objective = next-token"
    )]
    NotNextToken,
    /// A passage without a token after the first.
    #[error("a passage of under two tokens has no next token; give a longer one")]
    NoNextToken,
    /// A passage that is empty or longer than a published model reads.
    #[error("a passage of {found} tokens; give one of 1 to {context}, the model's context")]
    PassageLength {
        /// Tokens of the passage.
        found: usize,
        /// The most that the model reads.
        context: usize,
    },
    /// A token that a published model has no embedding of.
    #[error(
        "token {found} is not in the model's vocabulary of {size}; take the tokenizer.json published with the model"
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
    #[error("a record of the run could not be written: {0}")]
    Recorder(#[from] io::Error),
    /// Processes that cannot go on together.
    #[error(transparent)]
    Collective(#[from] CollectiveError),
    /// Processes whose models came to differ: a defect of this program or of a machine.
    #[error(
        "process {rank} has other weights than process 0 after step {step}, and nothing of it is kept; \
         check the machines' memory and processors, and report it"
    )]
    OtherWeights {
        /// The rank of the process.
        rank: usize,
        /// The steps that were taken.
        step: usize,
    },
    /// An error of the tensor library: a shape or a device, never a value that a user gave.
    #[error("tensor operation: {0}")]
    Tensor(#[from] candle_core::Error),
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

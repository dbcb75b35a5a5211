//! A published model: its folder or file, its tokenizer and its heads.

use std::io;
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokenizers::Tokenizer;

use super::config::Config;
use super::read;
use super::stored::GgufFile;
use super::transformer::Transformer;
use super::weights::Weights;
use crate::lm::{Attend, HeadsOfLayer, LmError, Probed, Split, Texts};
use crate::system::{caught, sha256};
use crate::targets::{HeadKind, Visibility};

const CONFIG: &str = "config.json";
const TOKENIZER: &str = "tokenizer.json";
/// Files of tokenizers in other forms.
const OTHER_TOKENIZERS: [&str; 6] = [
    "tokenizer.model",
    "spiece.model",
    "sentencepiece.bpe.model",
    "tekken.json",
    "vocab.json",
    "vocab.txt",
];
/// The number of bytes of text read per token needed.
const BYTES_PER_TOKEN: usize = 16;

/// A published model, for inference in float32.
///
/// The model is a folder with the files that the `transformers` library saves: `config.json`, whose `model_type` is in
/// the table below; the weights as `model.safetensors` or as several such files with their index; for texts,
/// `tokenizer.json`. Or it is one `.gguf` file of most of these types, whose quantised weights are converted to the
/// numbers that they represent. Weights are read from disk layer by layer and not kept in memory.
///
/// With x the residual stream of a block, A its attention, M its MLP (each times `residual_multiplier` in `granite`) and N a norm:
///
/// | `model_type` | block | layer input X of queries and keys |
/// |---|---|---|
/// | all others, such as `llama` | x ← x + A(N₁x), x ← x + M(N₂x) | N₁x |
/// | `gpt_neox` | x ← x + A(N₁x) + M(N₂x), or as above | N₁x |
/// | `cohere`, `cohere2` | x ← x + A(N₁x) + M(N₁x) | N₁x |
/// | `gemma2`, `gemma3_text`, `glm4` | x ← x + N₂A(N₁x), x ← x + N₄M(N₃x) | N₁x |
/// | `olmo2`, `olmo3`, `exaone4` | x ← x + N₁A(x), x ← x + N₂M(x) | x |
/// | `bert`, `roberta`, `xlm-roberta` | x ← N₁(x + A(x)), x ← N₂(x + M(x)) | x |
///
/// Q = X·W_q + b_q and K = X·W_k + b_k are split into heads of d columns, normalised and rotated by position
/// if the type does that. The logits of a head are s·QKᵀ. Several query heads may share one key head. The mask is
/// causal, with a window in layers that have one; BERT-type models are bidirectional. The X in
/// [`HeadInputs`](crate::lm::HeadInputs) has a last column of ones if there are biases. Channels
/// that are rotated together are adjacent in queries and keys, in any order of the files.
pub struct PretrainedModel {
    name: String,
    transformer: Transformer,
    tokens: Tokens,
    /// The tokens with which every passage begins.
    beginning: Vec<u32>,
    identity: String,
}

impl PretrainedModel {
    /// Reads a model with float32, float16 or bfloat16 weights or, in a `.gguf`, quantised ones.
    ///
    /// # Errors
    /// Files that are missing or unreadable, a model of another type or with unsupported settings of
    /// attention, a weight that is missing or has another shape than configured, or a tokenizer with more tokens than
    /// the model.
    pub fn read(path: &Path) -> Result<Self, LmError> {
        match gguf_in(path) {
            Some(file) => Self::read_gguf(&file),
            None => Self::read_folder(path),
        }
    }

    fn read_folder(folder: &Path) -> Result<Self, LmError> {
        let path = folder.join(CONFIG);
        let config = Config::read(&path)?;
        let of = config.model_type()?;
        let first = format!("{}.weight", of.weight("embed_tokens"));
        let weights = Weights::read(folder, &of.prefix, &first)?;
        let transformer = read::read(of, &config, &weights)?;
        let tokens = Tokens::read(folder.join(TOKENIZER), None, transformer.vocabulary())?;
        let text = std::fs::read(&path).map_err(LmError::io(&path))?;
        let identity = format!("{} {}", sha256(&text), bytes_of_weights(folder)?);
        let beginning = match transformer.blocks[0].attention.visibility == Visibility::Causal {
            true => tokens.before_texts(),
            false => Vec::new(),
        };
        Ok(Self { name: of.name.clone(), transformer, tokens, beginning, identity })
    }

    fn read_gguf(path: &Path) -> Result<Self, LmError> {
        let file = Arc::new(GgufFile::open(path)?);
        let of = file.model_type()?;
        let transformer = file.model(&of)?;
        let beside = path.with_file_name(TOKENIZER);
        let tokens = Tokens::read(beside, Some(&file), transformer.vocabulary())?;
        let length = std::fs::metadata(path).map_err(LmError::io(path))?.len();
        let identity = format!("{} {length}", sha256(file.description().as_bytes()));
        let beginning = file.beginning().into_iter().collect();
        Ok(Self { name: of.name.clone(), transformer, tokens, beginning, identity })
    }

    /// Whether a path is a published model of any type: a `.gguf` file, or a folder with one or with
    /// `config.json`.
    pub fn is_in(path: &Path) -> bool {
        path.join(CONFIG).is_file() || gguf_in(path).is_some()
    }

    /// The model's type, such as `gpt2` or `llama`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Identifies the model among others of its name: a hash of its configuration, or of the description in its `.gguf`,
    /// and the size of its weights.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// The kinds of a layer's heads.
    ///
    /// # Panics
    /// If there is no such layer.
    pub fn head_kinds(&self, layer: usize) -> Vec<HeadKind> {
        vec![self.transformer.blocks[layer].attention.kind; self.heads()]
    }

    /// d_head.
    pub fn head_dimension(&self) -> usize {
        self.transformer.blocks[0].attention.d
    }

    /// Encodes a text with the model's `tokenizer.json`. The text is neither truncated nor padded, whatever that file
    /// says, and no special tokens are added. Text that looks like a special token is encoded as text.
    ///
    /// # Errors
    /// No `tokenizer.json`, or a text that it cannot encode.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>, LmError> {
        self.tokens.encode(text)
    }
}

/// A published model has no splits; `tokens` always reads the whole texts.
impl Probed for PretrainedModel {
    fn context(&self) -> usize {
        self.transformer.context
    }

    /// The tokens that the tokenizer puts before a text, for causal models. Much of their attention goes to the first token of
    /// a passage.
    fn beginning(&self) -> Vec<u32> {
        self.beginning.clone()
    }

    fn layers(&self) -> usize {
        self.transformer.blocks.len()
    }

    fn heads(&self) -> usize {
        self.transformer.blocks[0].attention.heads
    }

    fn tokens(
        &self,
        texts: Option<&Texts>,
        _split: Option<Split>,
        most: usize,
    ) -> Result<Vec<u32>, LmError> {
        let text = texts.ok_or(LmError::NoText)?.beginning(most * BYTES_PER_TOKEN)?;
        let mut tokens = self.encode(&text)?;
        tokens.truncate(most);
        Ok(tokens)
    }

    fn token_texts(&self, passage: &[u32]) -> Option<Vec<String>> {
        self.tokens.texts_of(passage)
    }

    fn probe_layers(
        &self,
        passages: &[Vec<u32>],
        layers: Range<usize>,
        each: &mut dyn FnMut(HeadsOfLayer) -> ControlFlow<()>,
    ) -> Result<(), LmError> {
        self.transformer.probe(passages, layers, each)
    }

    fn passage_loss(&self, passage: &[u32], attend: &mut Attend<'_>) -> Result<f64, LmError> {
        self.transformer.passage_loss(passage, attend)
    }
}

/// The `.gguf` file at a path, or the only one in a folder without `config.json`.
fn gguf_in(path: &Path) -> Option<PathBuf> {
    let is_gguf = |path: &Path| path.extension().is_some_and(|end| end == "gguf");
    if path.is_file() {
        return is_gguf(path).then(|| path.to_owned());
    }
    if path.join(CONFIG).is_file() {
        return None;
    }
    let mut found = std::fs::read_dir(path).ok()?.flatten().map(|entry| entry.path());
    let mut files = found.by_ref().filter(|path| is_gguf(path));
    files.next().filter(|_| files.next().is_none())
}

/// Size of all weight files in a folder, in bytes.
fn bytes_of_weights(folder: &Path) -> Result<u64, LmError> {
    let failed = LmError::io(folder);
    let mut all = 0;
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into());
        // A single file, or the shards that the index lists.
        if name.starts_with("model") && name.ends_with(".safetensors") {
            all += std::fs::metadata(&path).map_err(LmError::io(&path))?.len();
        }
    }
    Ok(all)
}

/// A model's tokenizer, if it has one.
pub(super) struct Tokens {
    /// The path of `tokenizer.json`, even if it does not exist.
    path: PathBuf,
    tokenizer: Option<Tokenizer>,
}

impl Tokens {
    /// Reads the `tokenizer.json` at `path`; if it does not exist, the tokenizer described in a `.gguf` file, if any.
    ///
    /// # Errors
    /// A tokenizer that cannot be read, or that has a token of `vocabulary` or above.
    pub(super) fn read(
        path: PathBuf,
        described: Option<&GgufFile>,
        vocabulary: usize,
    ) -> Result<Self, LmError> {
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => Some(bytes),
            Err(source) if source.kind() == io::ErrorKind::NotFound => {
                described.map(GgufFile::tokenizer).transpose()?.flatten()
            }
            Err(source) => return Err(LmError::Io { path, source }),
        };
        let Some(bytes) = bytes else { return Ok(Self { path, tokenizer: None }) };
        let read = || -> tokenizers::Result<(Tokenizer, Option<u32>)> {
            let mut tokenizer = Tokenizer::from_bytes(bytes)?;
            // Sentence encoders truncate and pad texts to a fixed length.
            tokenizer.with_truncation(None)?;
            tokenizer.with_padding(None);
            tokenizer.set_encode_special_tokens(true);
            let most = tokenizer.get_vocab(true).into_values().max();
            Ok((tokenizer, most))
        };
        let (tokenizer, most) = heard(&path, read)?;
        if let Some(most) = most.filter(|&most| most as usize >= vocabulary) {
            let why = format!("has a token {most}, but the model has {vocabulary} embeddings");
            return Err(unusable(&path, why));
        }
        Ok(Self { path, tokenizer: Some(tokenizer) })
    }

    /// Encodes a text without truncation, padding or special tokens. Text that looks like a special token is encoded as
    /// text.
    ///
    /// # Errors
    /// No tokenizer, or a text that it cannot encode.
    pub(super) fn encode(&self, text: &str) -> Result<Vec<u32>, LmError> {
        let path = &self.path;
        let missing = || {
            let found = OTHER_TOKENIZERS.iter().find(|name| path.with_file_name(name).is_file());
            let how = found.map_or_else(
                || "save the model's tokenizer as tokenizer.json beside its weights".to_owned(),
                |name| format!("make it of {name} with transformers: AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER)"),
            );
            LmError::file(path, format!("is missing; {how}"))
        };
        let tokenizer = self.tokenizer.as_ref().ok_or_else(missing)?;
        heard(path, || Ok(tokenizer.encode(text, false)?.get_ids().to_vec()))
    }

    /// The special tokens that the tokenizer puts before a text; empty if it cannot encode one.
    pub(super) fn before_texts(&self) -> Vec<u32> {
        let Some(tokenizer) = &self.tokenizer else { return Vec::new() };
        let ids = |special: bool| {
            let encode = || Ok(tokenizer.encode("a", special)?.get_ids().to_vec());
            heard(&self.path, encode).unwrap_or_default()
        };
        let (with, without) = (ids(true), ids(false));
        let first = with.windows(without.len().max(1)).position(|ids| ids == without);
        first.map_or_else(Vec::new, |first| with[..first].to_vec())
    }

    /// The text of each token of a passage; `None` without a tokenizer. A character that spans several
    /// tokens is assigned to the last of them.
    pub(super) fn texts_of(&self, passage: &[u32]) -> Option<Vec<String>> {
        let tokenizer = self.tokenizer.as_ref()?;
        let decode = || {
            let mut stream = tokenizer.decode_stream(false);
            passage.iter().map(|&token| Ok(stream.step(token)?.unwrap_or_default())).collect()
        };
        heard(&self.path, decode).ok()
    }
}

/// Runs a call of the tokenizer library, which panics on some damaged files.
fn heard<T>(path: &Path, work: impl FnOnce() -> tokenizers::Result<T>) -> Result<T, LmError> {
    match caught(work) {
        Ok(done) => done.map_err(|e| unusable(path, e)),
        Err(why) => Err(unusable(path, format!("is damaged: {why}"))),
    }
}

fn unusable(path: &Path, why: impl ToString) -> LmError {
    let why = why.to_string().replace('\n', " ");
    LmError::file(path, format!("{why}; use the tokenizer.json published with the model"))
}

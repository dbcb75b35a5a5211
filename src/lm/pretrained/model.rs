//! A published model: its folder or file, its tokenizer, its heads.

use std::io;
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};

use tokenizers::Tokenizer;

use super::config::Config;
use super::decoder::{self, Form};
use super::gguf::Gguf;
use super::plain;
use super::transformer::Transformer;
use crate::lm::{HeadsOfLayer, LmError, Probed, Split, Texts};
use crate::system::{caught, sha256};
use crate::targets::{HeadKind, Visibility};

const CONFIG: &str = "config.json";
const TOKENIZER: &str = "tokenizer.json";
/// Bytes of text that a token is taken to need at most.
const BYTES_PER_TOKEN: usize = 16;

/// A published model, for inference in float32.
///
/// Its folder holds `config.json`, whose `model_type` is one of those below, the weights as `model.safetensors` or as
/// several such files with their index, and, for texts, `tokenizer.json`: the files that the `transformers` library
/// saves. Or it is one `.gguf` file of a Llama-, Qwen 2- or Qwen 3-type model, whose quantised weights are taken as
/// the numbers that they stand for. Weights are read layer by layer as a passage comes to them and not kept.
///
/// With x the stream of a block, A its attention, M its MLP and N a norm:
///
/// | `model_type` | a block | X, which queries and keys are made of |
/// |---|---|---|
/// | `gpt2`, `llama`, `mistral`, `qwen2`, `qwen3`, `gpt_oss` | x ← x + A(N₁x), x ← x + M(N₂x) | N₁x |
/// | `gpt_neox` | x ← x + A(N₁x) + M(N₂x), or as above | N₁x |
/// | `gemma2`, `gemma3_text` | x ← x + N₂A(N₁x), x ← x + N₄M(N₃x) | N₁x |
/// | `olmo2` | x ← x + N₁A(x), x ← x + N₂M(x) | x |
/// | `bert` | x ← N₁(x + A(x)), x ← N₂(x + M(x)) | x |
///
/// Q = X·W_q + b_q and K = X·W_k + b_k are cut into heads of d columns, normalised and turned by their positions where
/// the type does that, and a head's logits are s·QKᵀ. Several heads of queries may share one of keys. What a row sees
/// is what is before it, within a window where its layer has one, and in a BERT-type model all. The stream X of
/// [`HeadInputs`](crate::lm::HeadInputs) has the biases' column of ones last, where there are biases, and channels that
/// are turned together are neighbours in queries and keys, whatever their order in the files.
pub struct PretrainedModel {
    name: &'static str,
    transformer: Transformer,
    tokens: Tokens,
    /// What every passage begins with.
    beginning: Vec<u32>,
    identity: String,
}

impl PretrainedModel {
    /// Reads a model, whose weights are float32, float16, bfloat16 or, in a `.gguf`, quantised.
    ///
    /// # Errors
    /// Files that are not there or cannot be read, a model of another type or with settings that change its
    /// attention, a weight that is missing or of another shape than the configuration's, a tokenizer of more tokens.
    pub fn read(path: &Path) -> Result<Self, LmError> {
        match gguf_in(path) {
            Some(file) => Self::read_gguf(&file),
            None => Self::read_folder(path),
        }
    }

    fn read_folder(folder: &Path) -> Result<Self, LmError> {
        let path = folder.join(CONFIG);
        let config = Config::read(&path)?;
        let plain = plain::TYPES.iter();
        let known: Vec<_> = plain.clone().map(|of| of.name).chain(decoder::NAMES).collect();
        let name = config.model_type(&known)?;
        let transformer = match plain.clone().find(|of| of.name == name) {
            Some(of) => of.read(&config, folder),
            None => decoder::read(name, &config, &decoder::weights(folder)?, &Form::SAVED),
        }?;
        let tokens = Tokens::read(folder.join(TOKENIZER), || None, transformer.vocabulary())?;
        let text = std::fs::read(&path).map_err(LmError::io(&path))?;
        let identity = format!("{} {}", sha256(&text), bytes_of_weights(folder)?);
        let beginning = match transformer.is_causal() {
            true => tokens.before_texts(),
            false => Vec::new(),
        };
        Ok(Self { name, transformer, tokens, beginning, identity })
    }

    fn read_gguf(path: &Path) -> Result<Self, LmError> {
        let file = Gguf::open(path)?;
        let (name, transformer) = (file.name()?, file.read()?);
        let beside = path.with_file_name(TOKENIZER);
        let tokens = Tokens::read(beside, || Some(file.tokenizer()), transformer.vocabulary())?;
        let length = std::fs::metadata(path).map_err(LmError::io(path))?.len();
        let identity = format!("{} {length}", sha256(file.description().as_bytes()));
        let beginning = file.beginning().into_iter().collect();
        Ok(Self { name, transformer, tokens, beginning, identity })
    }

    /// Whether a path is a published model, of whatever type: a `.gguf` file, or a folder with one or with
    /// `config.json`.
    pub fn is_in(path: &Path) -> bool {
        path.join(CONFIG).is_file() || gguf_in(path).is_some()
    }

    /// The type of the model, as `gpt2` or `llama`.
    pub fn name(&self) -> &str {
        self.name
    }

    /// What tells the model from others of its name: what its configuration, or the description of its `.gguf`, hashes
    /// to, and how long its weights are.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// What the heads of a layer see.
    ///
    /// # Panics
    /// Where there is no such layer.
    pub fn head_kinds(&self, layer: usize) -> Vec<HeadKind> {
        vec![self.transformer.blocks[layer].attention.kind; self.heads()]
    }

    /// Channels of a head.
    pub fn head_dimension(&self) -> usize {
        self.transformer.blocks[0].attention.d
    }

    /// Channels of the stream, C.
    pub fn channels(&self) -> usize {
        self.transformer.embedding.tokens.dimensions()[1]
    }

    /// A text as tokens, by the model's own `tokenizer.json`. It is neither cut nor filled up, whatever that file
    /// says, and no special token is put around it; where the text itself reads like one, it stays text.
    ///
    /// # Errors
    /// No `tokenizer.json`, or a text that it cannot encode.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>, LmError> {
        self.tokens.encode(text)
    }
}

/// A published model has no splits: its tokens are always those of the whole texts.
impl Probed for PretrainedModel {
    fn context(&self) -> usize {
        self.transformer.context
    }

    /// Those that the tokenizer puts before a text, where what a row sees is what is before it: the first token of a
    /// passage is where much of the attention of such models lies.
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
}

impl Transformer {
    fn is_causal(&self) -> bool {
        self.blocks[0].attention.visibility == Visibility::Causal
    }
}

/// The `.gguf` that a path is, or the only one of a folder without `config.json`.
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

/// Bytes of all weights of a folder.
fn bytes_of_weights(folder: &Path) -> Result<u64, LmError> {
    let failed = LmError::io(folder);
    let mut all = 0;
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into());
        // One file, or the shards that the index names.
        if name.starts_with("model") && name.ends_with(".safetensors") {
            all += std::fs::metadata(&path).map_err(LmError::io(&path))?.len();
        }
    }
    Ok(all)
}

/// A model's tokenizer, where it has one.
pub(super) struct Tokens {
    /// Where it is or would be.
    path: PathBuf,
    tokenizer: Option<Tokenizer>,
}

impl Tokens {
    /// The `tokenizer.json` at `path`; or else, of a file that describes its own, what `described` says.
    ///
    /// # Errors
    /// A tokenizer that cannot be read, or that has more tokens than the model, whose are `vocabulary`.
    pub(super) fn read(
        path: PathBuf,
        described: impl FnOnce() -> Option<Result<Vec<u8>, LmError>>,
        vocabulary: usize,
    ) -> Result<Self, LmError> {
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => Some(bytes),
            Err(source) if source.kind() == io::ErrorKind::NotFound => described().transpose()?,
            Err(source) => return Err(LmError::Io { path, source }),
        };
        let Some(bytes) = bytes else { return Ok(Self { path, tokenizer: None }) };
        let read = || -> tokenizers::Result<(Tokenizer, Option<u32>)> {
            let mut tokenizer = Tokenizer::from_bytes(bytes)?;
            // Sentence encoders cut texts to a length and fill them up to it.
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

    /// A text as tokens, none cut or filled up or put around it; where the text itself reads like a special token, it
    /// stays text.
    ///
    /// # Errors
    /// No tokenizer, or a text that it cannot encode.
    pub(super) fn encode(&self, text: &str) -> Result<Vec<u32>, LmError> {
        let path = &self.path;
        let tokenizer = self.tokenizer.as_ref().ok_or_else(|| LmError::File {
            path: path.clone(),
            why: "is missing; save the model's tokenizer as tokenizer.json beside its weights"
                .to_owned(),
        })?;
        heard(path, || Ok(tokenizer.encode(text, false)?.get_ids().to_vec()))
    }

    /// The special tokens that the tokenizer puts before a text; none where it cannot encode one.
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

    /// What each token of a passage stands for, where there is a tokenizer. A character whose bytes are of several
    /// tokens is the last one's.
    pub(super) fn texts_of(&self, passage: &[u32]) -> Option<Vec<String>> {
        let tokenizer = self.tokenizer.as_ref()?;
        let decode = || {
            let mut stream = tokenizer.decode_stream(false);
            passage.iter().map(|&token| Ok(stream.step(token)?.unwrap_or_default())).collect()
        };
        heard(&self.path, decode).ok()
    }
}

/// What the library makes of a file's tokenizer; it panics at some that are damaged.
fn heard<T>(path: &Path, work: impl FnOnce() -> tokenizers::Result<T>) -> Result<T, LmError> {
    match caught(work) {
        Ok(done) => done.map_err(|e| unusable(path, e)),
        Err(why) => Err(unusable(path, format!("is damaged: {why}"))),
    }
}

fn unusable(path: &Path, why: impl ToString) -> LmError {
    let why = why.to_string().replace('\n', " ");
    LmError::File {
        path: path.to_owned(),
        why: format!("{why}; use the tokenizer.json published with the model"),
    }
}

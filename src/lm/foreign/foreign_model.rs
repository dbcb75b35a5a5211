//! A published model: its folder, its tokenizer, its heads.

use std::io;
use std::path::{Path, PathBuf};

use tokenizers::Tokenizer;

use super::config::Config;
use super::transformer::Transformer;
use super::{bert, gpt2};
use crate::lm::{HeadProbe, LmError, Probed, Split, Texts};

const CONFIG: &str = "config.json";
const TOKENIZER: &str = "tokenizer.json";
/// Bytes of text that a token is taken to need at most.
const BYTES_PER_TOKEN: usize = 16;

/// A published GPT-2-type model (Radford et al. 2019) or BERT-type model (Devlin et al. 2018,
/// arXiv 1810.04805), for inference in float32.
///
/// Its folder holds `config.json`, whose `model_type` is `gpt2` or `bert`, the weights as one
/// `model.safetensors`, and, for texts, `tokenizer.json`: the files that the `transformers` library saves.
/// With x the stream of a block, A its attention and M its MLP:
///
/// | `model_type` | a block | X, which queries and keys are made of | a row sees |
/// |---|---|---|---|
/// | `gpt2` | x ← x + A(norm₁ x), x ← x + M(norm₂ x) | norm₁ x | itself and what is before it |
/// | `bert` | x ← norm₁(x + A(x)), x ← norm₂(x + M(x)) | x | all |
///
/// Q = X·W_q + b_q and K = X·W_k + b_k, (T, C) each, are cut into H heads of d = C/H columns, and a head's
/// logits are QKᵀ/√d. Positions are learned and added to the embeddings, so nothing is turned, and every token of
/// a BERT-type model is of type 0.
pub struct ForeignModel {
    name: &'static str,
    transformer: Transformer,
    /// Where the tokenizer is or would be.
    tokenizer_path: PathBuf,
    tokenizer: Option<Tokenizer>,
}

impl ForeignModel {
    /// Reads a model, whose weights are float32, float16 or bfloat16.
    ///
    /// # Errors
    /// Files that are not there or cannot be read, a model of another type or with settings that change its
    /// attention, a weight that is missing or of another shape than the configuration's.
    pub fn read(folder: &Path) -> Result<Self, LmError> {
        let config = Config::read(&folder.join(CONFIG))?;
        let name = config.model_type(&[gpt2::NAME, bert::NAME])?;
        let transformer = match name {
            gpt2::NAME => gpt2::read(&config, folder),
            _ => bert::read(&config, folder),
        }?;
        let tokenizer_path = folder.join(TOKENIZER);
        let tokenizer = read_tokenizer(&tokenizer_path)?;
        Ok(Self { name, transformer, tokenizer_path, tokenizer })
    }

    /// Whether a folder holds a published model, of whatever type: `config.json` is there.
    pub fn is_in(folder: &Path) -> bool {
        folder.join(CONFIG).is_file()
    }

    /// The type of the model, `gpt2` or `bert`.
    pub fn name(&self) -> &str {
        self.name
    }

    /// A text as tokens, by the model's own `tokenizer.json`. It is neither cut nor filled up, whatever that file
    /// says, and no special token is put around it; where the text itself reads like one, it stays text.
    ///
    /// # Errors
    /// No `tokenizer.json`, or a text that it cannot encode.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>, LmError> {
        let path = &self.tokenizer_path;
        let tokenizer = self.tokenizer.as_ref().ok_or_else(|| LmError::File {
            path: path.clone(),
            why: "is not there: save the model's tokenizer in that form beside its weights"
                .to_owned(),
        })?;
        let encoding = tokenizer.encode(text, false).map_err(|e| unusable(path, e))?;
        Ok(encoding.get_ids().to_vec())
    }
}

/// A published model has no splits: its tokens are always those of the whole texts. The stream X of
/// [`HeadInputs`](crate::lm::HeadInputs) has the biases' column of ones last.
impl Probed for ForeignModel {
    fn context(&self) -> usize {
        self.transformer.context()
    }

    fn layers(&self) -> usize {
        self.transformer.blocks.len()
    }

    fn heads(&self) -> usize {
        self.transformer.heads
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

    fn probe(&self, passage: &[u32]) -> Result<Vec<HeadProbe>, LmError> {
        self.transformer.probe(passage)
    }
}

/// The tokenizer of a file, where there is one.
fn read_tokenizer(path: &Path) -> Result<Option<Tokenizer>, LmError> {
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(source) if source.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(LmError::Io { path: path.to_owned(), source }),
    };
    let mut tokenizer = Tokenizer::from_bytes(bytes).map_err(|e| unusable(path, e))?;
    // Sentence encoders cut texts to a length and fill them up to it.
    tokenizer.with_truncation(None).map_err(|e| unusable(path, e))?;
    tokenizer.with_padding(None);
    tokenizer.set_encode_special_tokens(true);
    Ok(Some(tokenizer))
}

fn unusable(path: &Path, why: impl ToString) -> LmError {
    let why = why.to_string().replace('\n', " ");
    LmError::File {
        path: path.to_owned(),
        why: format!("{why}; take the one published with the model"),
    }
}

//! A published model's tokenizer.

use std::io;
use std::path::{Path, PathBuf};

use tokenizers::Tokenizer;

use crate::lm::LmError;
use crate::system::caught;

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

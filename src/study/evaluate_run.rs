//! A trained model of a run's folder on a text.

use std::path::Path;

use toml::Value;

use super::manifest::Manifest;
use super::run_files::{CHECKPOINT, kept_checkpoint};
use super::run_manifest::{CHARACTERS, CORPUS, DEFINITION, END_OF_DOCUMENT, VOCABULARY_SIZE};
use super::train_run::{MANIFEST, TOKENIZER};
use super::{StudyError, TrainError};
use crate::lm::{
    Bpe, Evaluation, HeadProbe, LmError, Model, ModelShape, Split, Symbols, Texts, TrainDefinition,
    Vocabulary, evaluate_whole,
};

/// Windows in one batch.
const BATCH: usize = 8;

/// A training run's definition, vocabulary and weights, from its folder.
pub struct TrainedRun {
    definition: TrainDefinition,
    vocabulary: Vocabulary,
    model: Model,
}

impl TrainedRun {
    /// Reads the last checkpoint of a run, or the weights of one of its `keep_checkpoints`.
    ///
    /// # Errors
    /// A folder that holds no run or not these weights, or files that cannot be read.
    pub fn read(folder: &Path, step: Option<usize>) -> Result<Self, TrainError> {
        let path = folder.join(MANIFEST);
        let manifest = Manifest::read(&path)?;
        let lacks = |what: &str| StudyError::Definition {
            path: path.clone(),
            why: format!("has no {what}; name the folder of a training run"),
        };
        let table = |key: &str| manifest.more.get(key).and_then(Value::as_table);
        let definition = table(DEFINITION).ok_or_else(|| lacks(DEFINITION))?;
        let definition = TrainDefinition::from_table(definition)?;
        let corpus = table(CORPUS).ok_or_else(|| lacks(CORPUS))?;
        let has_end = corpus.get(END_OF_DOCUMENT).and_then(Value::as_bool).unwrap_or(false);
        let size = corpus.get(VOCABULARY_SIZE).and_then(Value::as_integer);
        let size = size.and_then(|size| usize::try_from(size).ok());
        let size = size.ok_or_else(|| lacks(VOCABULARY_SIZE))?;
        let tokenizer = folder.join(TOKENIZER);
        let symbols = if let Some(characters) = corpus.get(CHARACTERS).and_then(Value::as_str) {
            Symbols::Characters(characters.chars().collect())
        } else if tokenizer.exists() {
            let json = std::fs::read_to_string(&tokenizer);
            let json = json.map_err(|e| StudyError::read(&tokenizer, e))?;
            Symbols::BytePairs(
                Bpe::from_json(&json)
                    .map_err(|e| StudyError::Definition { path: tokenizer, why: e.to_string() })?,
            )
        } else if corpus.contains_key("entropy_nats") {
            Symbols::Unwritten { size }
        } else {
            Symbols::Bytes
        };
        let vocabulary = Vocabulary { symbols, has_end };
        if vocabulary.size() != size {
            return Err(StudyError::Definition {
                path,
                why: format!("says {size} symbols, its vocabulary has {}", vocabulary.size()),
            }
            .into());
        }
        let weights = match step {
            None => folder.join(CHECKPOINT),
            Some(step) => folder.join(kept_checkpoint(step)),
        };
        let model = Model::load(ModelShape::new(&definition, size), &weights)?;
        Ok(Self { definition, vocabulary, model })
    }

    /// The loss on texts, or on one split of them as the run's definition divides texts: see
    /// [`evaluate_whole`]. `advanced` is told of the bytes evaluated so far and of all.
    ///
    /// # Errors
    /// Texts that cannot be read or divided, that the vocabulary cannot write, or that have a single
    /// token.
    pub fn evaluate(
        &self,
        texts: &Texts,
        split: Option<Split>,
        advanced: &dyn Fn(u64, u64),
    ) -> Result<Evaluation, LmError> {
        let (documents, bytes) = texts.documents(&self.definition, &self.vocabulary, split)?;
        let advanced = |done| advanced(done, bytes);
        evaluate_whole(&self.model, &self.vocabulary, documents, BATCH, &advanced)
    }

    /// The longest passage that the model reads.
    pub fn context(&self) -> usize {
        self.definition.context
    }

    /// Every head's queries and keys on `count` tokens of texts, or of one split of them, from token
    /// `first` on; documents follow one another.
    ///
    /// # Errors
    /// As [`Self::evaluate`]; too few tokens, or more than the model's context.
    pub fn probe(
        &self,
        texts: &Texts,
        split: Option<Split>,
        first: usize,
        count: usize,
    ) -> Result<Vec<HeadProbe>, LmError> {
        let (documents, _) = texts.documents(&self.definition, &self.vocabulary, split)?;
        let mut tokens = Vec::new();
        for document in documents {
            tokens.extend(document?);
            if tokens.len() >= first + count {
                break;
            }
        }
        let found = tokens.len();
        match tokens.get(first..first + count) {
            Some(passage) => self.model.probe(passage),
            None => Err(LmError::ShortText { found, needed: first + count }),
        }
    }
}

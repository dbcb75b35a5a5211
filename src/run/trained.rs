//! A trained model from a run's folder: evaluation on texts, and probing of its heads.

use std::ops::{ControlFlow, Range};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use toml::Value;

use super::error::RunError;
use super::files::{CHECKPOINT, TOKENIZER, kept_checkpoint};
use super::manifest::{MANIFEST, Manifest};
use super::run_manifest::{CHARACTERS, CORPUS, DEFINITION, END_OF_DOCUMENT, VOCABULARY_SIZE};
use crate::lm::{
    Attend, Bpe, Corpus, Evaluation, HeadProbe, HeadsOfLayer, LmError, Matrices, Model, ModelShape,
    Probed, Split, Symbols, Texts, TrainDefinition, Vocabulary, evaluate_whole,
};
use crate::system::FileError;

/// Sequences per batch.
const BATCH: usize = 8;

/// A training run's definition, vocabulary and weights, from its folder.
pub struct TrainedRun {
    definition: TrainDefinition,
    vocabulary: Vocabulary,
    model: Model,
}

impl TrainedRun {
    /// Reads the definition of the run in `folder`.
    ///
    /// # Errors
    /// The folder has no run.
    pub fn definition_in(folder: &Path) -> Result<TrainDefinition, RunError> {
        let path = folder.join(MANIFEST);
        let manifest = Manifest::read(&path)?;
        let definition = manifest.table(DEFINITION).ok_or_else(|| lacks(&path, DEFINITION))?;
        Ok(TrainDefinition::from_manifest(definition)?)
    }

    /// Reads the last checkpoint of a run, or the weights of one of its `keep_checkpoints`.
    ///
    /// # Errors
    /// The folder has no run or not these weights, or a file cannot be read.
    pub fn read(folder: &Path, step: Option<usize>) -> Result<Self, RunError> {
        let path = folder.join(MANIFEST);
        let manifest = Manifest::read(&path)?;
        let definition = Self::definition_in(folder)?;
        let corpus = manifest.table(CORPUS).ok_or_else(|| lacks(&path, CORPUS))?;
        let has_end = corpus.get(END_OF_DOCUMENT).and_then(Value::as_bool).unwrap_or(false);
        let size = corpus.get(VOCABULARY_SIZE).and_then(Value::as_integer);
        let size = size.and_then(|size| usize::try_from(size).ok());
        let size = size.ok_or_else(|| lacks(&path, VOCABULARY_SIZE))?;
        let tokenizer = folder.join(TOKENIZER);
        let symbols = if let Some(characters) = corpus.get(CHARACTERS).and_then(Value::as_str) {
            Symbols::Characters(characters.chars().collect())
        } else if tokenizer.exists() {
            let json = std::fs::read_to_string(&tokenizer);
            let json = json.map_err(|e| FileError::read(&tokenizer, e))?;
            Symbols::BytePairs(
                Bpe::from_json(&json).map_err(|e| RunError::unusable(&tokenizer, e.to_string()))?,
            )
        } else if corpus.contains_key("entropy_nats") {
            Symbols::Unwritten { size }
        } else {
            Symbols::Bytes
        };
        let vocabulary = Vocabulary { symbols, has_end };
        if vocabulary.size() != size {
            let found = vocabulary.size();
            let why = format!("says {size} symbols, but its vocabulary has {found}");
            return Err(RunError::unusable(&path, why));
        }
        let weights = match step {
            None => folder.join(CHECKPOINT),
            Some(step) => folder.join(kept_checkpoint(step)),
        };
        let model = Model::load(ModelShape::new(&definition, size), &weights)?;
        Ok(Self { definition, vocabulary, model })
    }

    /// The run with matrices rounded to `bits` bits: [`Model::rounded`].
    ///
    /// # Errors
    /// As that method.
    pub fn rounded(self, bits: usize, matrices: Matrices) -> Result<Self, LmError> {
        Ok(Self { model: self.model.rounded(bits, matrices)?, ..self })
    }

    /// Computes the loss on texts, or on one split of them as in the run's definition: see [`evaluate_whole`]. Calls
    /// `advanced` with the number of bytes evaluated so far and the total.
    ///
    /// # Errors
    /// The texts cannot be read or divided, have characters outside the vocabulary, or have only one token.
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
}

/// What was read last of a synthetic corpus, and its tokens.
type Reading = ((TrainDefinition, Option<Split>, usize), Vec<u32>);

impl TrainedRun {
    /// At most `most` tokens of the synthetic corpus that the run was trained on.
    ///
    /// The heads of a run read the same tokens one after another, so the last tokens are kept: generating the corpus can take
    /// longer than measuring a head.
    fn synthetic_tokens(&self, split: Option<Split>, most: usize) -> Result<Vec<u32>, LmError> {
        static LAST: Mutex<Option<Reading>> = Mutex::new(None);
        let wanted = (self.definition.clone(), split, most);
        let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((found, tokens)) = &*last
            && *found == wanted
        {
            return Ok(tokens.clone());
        }
        let corpus = Corpus::synthetic(&self.definition)?;
        let splits = split.map_or_else(|| Split::ALL.to_vec(), |split| vec![split]);
        let all = splits.into_iter().flat_map(|split| corpus.split(split));
        let tokens: Vec<u32> = all.take(most).map(|&token| u32::from(token)).collect();
        *last = Some((wanted, tokens.clone()));
        Ok(tokens)
    }
}

/// Without texts, the tokens come from the synthetic corpus that the run was trained on.
impl Probed for TrainedRun {
    fn context(&self) -> usize {
        self.definition.context
    }

    fn layers(&self) -> usize {
        self.definition.layers
    }

    fn heads(&self) -> usize {
        self.definition.heads
    }

    fn tokens(
        &self,
        texts: Option<&Texts>,
        split: Option<Split>,
        most: usize,
    ) -> Result<Vec<u32>, LmError> {
        let mut tokens = Vec::new();
        match texts {
            Some(texts) => {
                let (documents, _) = texts.documents(&self.definition, &self.vocabulary, split)?;
                for document in documents {
                    tokens.extend(document?.into_iter().take(most - tokens.len()));
                    if tokens.len() >= most {
                        break;
                    }
                }
            }
            None if matches!(self.vocabulary.symbols, Symbols::Unwritten { .. }) => {
                return self.synthetic_tokens(split, most);
            }
            None => return Err(LmError::NoText),
        }
        Ok(tokens)
    }

    fn token_texts(&self, passage: &[u32]) -> Option<Vec<String>> {
        self.vocabulary.texts_of(passage)
    }

    fn model(&self) -> Option<&Model> {
        Some(&self.model)
    }

    fn passage_loss(&self, passage: &[u32], attend: &mut Attend<'_>) -> Result<f64, LmError> {
        self.model.passage_loss(passage, attend)
    }

    fn probe_layers(
        &self,
        passages: &[Vec<u32>],
        layers: Range<usize>,
        each: &mut dyn FnMut(HeadsOfLayer) -> ControlFlow<()>,
    ) -> Result<(), LmError> {
        // These models are small, so all layers are probed at once.
        let probes = passages.iter().map(|passage| self.model.probe(passage));
        let probes = probes.collect::<Result<Vec<_>, _>>()?;
        for layer in layers {
            let of_layer = |all: &Vec<HeadProbe>| -> Vec<HeadProbe> {
                all.iter().filter(|probe| probe.layer == layer).cloned().collect()
            };
            if each(probes.iter().map(of_layer).collect()).is_break() {
                break;
            }
        }
        Ok(())
    }
}

fn lacks(path: &Path, what: &str) -> RunError {
    RunError::unusable(path, format!("has no {what}; name the folder of a training run"))
}

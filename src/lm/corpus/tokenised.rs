//! A corpus as tokens, from texts or from the synthetic source: builds a vocabulary and encodes.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;

use rayon::prelude::*;

use super::bpe::Bpe;
use super::document::Piece;
use super::texts::{Division, SPLITS, Span, Split, Texts};
use super::tokens::{self, Store, write_tokens};
use super::vocabulary::{Encoder, Symbols, Vocabulary};
use crate::lm::definition::MOST_SYMBOLS;
use crate::lm::{LmError, SyntheticCorpus, TextVocabulary, TrainDefinition};
use crate::system::disk::{File, make_folders};
use crate::system::{check_disk, has_no_locks, sha256};

/// The largest number of bytes of the training split in which BPE counts pairs. Of a longer split it uses every second
/// piece, every third, and so on, because counts must stay within 31 bits.
const COUNTED: u64 = 1 << 29;

/// The vocabulary of a definition for a corpus. Characters are collected from every split, BPE is trained on
/// the training split alone.
fn build_vocabulary(
    definition: &TrainDefinition,
    texts: &Texts,
    division: &Division,
) -> Result<Vocabulary, LmError> {
    let has_end = texts.has_ends();
    let symbols = match definition.vocabulary {
        TextVocabulary::Byte => Symbols::Bytes,
        TextVocabulary::Characters => {
            let mut seen = BTreeSet::new();
            for piece in division.iter().flatten().flat_map(|span| texts.pieces(span)) {
                seen.extend(piece?.text()?.chars());
            }
            Symbols::Characters(seen.into_iter().collect())
        }
        TextVocabulary::Bpe { size } => {
            let every = division[0].iter().map(Span::bytes).sum::<u64>().div_ceil(COUNTED).max(1);
            let mut wrong = None;
            let counted = division[0]
                .iter()
                .flat_map(|span| texts.pieces(span))
                .step_by(every as usize)
                .map(|piece| Ok(piece?.text()?.to_owned()))
                .map_while(|text: Result<_, LmError>| {
                    text.map_err(|error| wrong = Some(error)).ok()
                });
            let trained = Bpe::train(counted, size, has_end);
            if let Some(error) = wrong {
                return Err(error);
            }
            Symbols::BytePairs(trained?)
        }
    };
    let vocabulary = Vocabulary { symbols, has_end };
    match vocabulary.size() {
        size if size > MOST_SYMBOLS => Err(LmError::Refused(format!(
            "the text has {size} different characters; at most {MOST_SYMBOLS} symbols are supported: set \
             vocabulary = bpe:8192"
        ))),
        _ => Ok(vocabulary),
    }
}

/// Writes the tokens of the spans, with an end-of-document token after each document if the vocabulary has one.
/// Returns the number of tokens.
fn encode(
    vocabulary: &Vocabulary,
    texts: &Texts,
    spans: &[Span],
    to: &mut impl Write,
) -> Result<usize, LmError> {
    // The encoder and the tokens of each thread.
    let mut workers = vec![(Encoder::default(), Vec::new()); rayon::current_num_threads()];
    let mut count = 0;
    for span in spans {
        let mut pieces = texts.pieces(span);
        loop {
            // One piece per thread at a time, written in order.
            let round: Vec<Piece> =
                pieces.by_ref().take(workers.len()).collect::<Result<_, _>>()?;
            workers[..round.len()].par_iter_mut().zip(&round).try_for_each(
                |((encoder, tokens), piece)| {
                    tokens.clear();
                    encoder.encode(vocabulary, piece, tokens)
                },
            )?;
            for (_, tokens) in &workers[..round.len()] {
                count += tokens.len();
                write_tokens(tokens, to)?;
            }
            if round.len() < workers.len() {
                break;
            }
        }
        if let Some(end) = vocabulary.end().filter(|_| span.is_last) {
            count += 1;
            write_tokens(&[end], to)?;
        }
    }
    Ok(count)
}

/// Texts of fewer bytes are encoded each time, which takes less than a second; tokens of longer ones are cached.
const KEPT_FROM: u64 = 1 << 20;

/// Tokens, divided into splits.
#[derive(Clone, Debug)]
pub struct Corpus {
    /// The vocabulary of the tokens.
    pub vocabulary: Vocabulary,
    /// SHA-256, in hexadecimal, of the text as [`Texts::sha256`] returns it, or of the synthetic tokens
    /// as little-endian 32-bit words.
    pub sha256: String,
    /// The hash of the validation texts, if they are separate.
    pub valid_sha256: Option<String>,
    /// Mean conditional entropy of the synthetic source in nats per token: the smallest loss that any model
    /// can expect. `None` for a text, whose entropy is unknown.
    pub entropy_nats: Option<f64>,
    store: Store,
}

impl Corpus {
    /// Encodes texts with the definition's vocabulary and divides them by its `valid_fraction` and
    /// `test_fraction`.
    ///
    /// The tokens of 1 MiB of text or more are cached in a file in the folder `kept`, which is
    /// created if missing. The file's name is a hash of everything that the tokens depend on. This run and later runs on the
    /// same texts map the file into memory. A file that is damaged or does not match is written again. Encoding reads
    /// the texts in pieces of 1 MiB.
    ///
    /// # Errors
    /// A file that cannot be read or written, a text that is not UTF-8 although the vocabulary needs
    /// characters, too few documents to divide, or a split too short for the context.
    pub fn from_texts(
        definition: &TrainDefinition,
        texts: &Texts,
        kept: &Path,
    ) -> Result<Self, LmError> {
        definition.check()?;
        let division = texts.divide(definition)?;
        if texts.bytes() < KEPT_FROM {
            return Self::encoded(definition, texts, &division);
        }
        let key = key(definition, texts);
        let path = kept.join(format!("{key}.tokens"));
        if let Some((store, vocabulary)) = tokens::read(&path, &key)? {
            return Self::of_texts(definition, texts, vocabulary, store);
        }
        let failed = LmError::io(kept);
        make_folders(kept).map_err(failed)?;
        // Parallel runs on one text encode it once. Without file locks each run encodes it, and the file is still complete.
        let lock = File::create(&kept.join(".lock")).map_err(failed)?;
        lock.lock().or_else(|e| if has_no_locks(&e) { Ok(()) } else { Err(failed(e)) })?;
        let found = match tokens::read(&path, &key)? {
            Some(found) => found,
            None => {
                let vocabulary = build_vocabulary(definition, texts, &division)?;
                check_disk(kept, least_bytes(&vocabulary, &division)).map_err(|room| {
                    LmError::Refused(format!(
                        "{}: the tokens of the text need at least {room}; free some, or name another \
                         --token-cache",
                        kept.display()
                    ))
                })?;
                tokens::write(&path, &key, &vocabulary, |to| {
                    encode_splits(&vocabulary, texts, &division, to)
                })?;
                tokens::read(&path, &key)?.ok_or_else(|| {
                    let why = "the file changed after it was written; check the disk";
                    LmError::Refused(format!("{}: {why}", path.display()))
                })?
            }
        };
        Self::of_texts(definition, texts, found.1, found.0)
    }

    /// Encodes one text in memory, without a cache file.
    ///
    /// # Errors
    /// As [`Self::from_texts`].
    pub fn from_text(definition: &TrainDefinition, text: &[u8]) -> Result<Self, LmError> {
        definition.check()?;
        let texts = Texts::in_memory(text);
        let division = texts.divide(definition)?;
        Self::encoded(definition, &texts, &division)
    }

    fn encoded(
        definition: &TrainDefinition,
        texts: &Texts,
        division: &Division,
    ) -> Result<Self, LmError> {
        let vocabulary = build_vocabulary(definition, texts, division)?;
        let mut bytes = Vec::new();
        let counts = encode_splits(&vocabulary, texts, division, &mut bytes)?;
        let store = Store::in_memory(bytemuck::pod_collect_to_vec(&bytes), counts);
        Self::of_texts(definition, texts, vocabulary, store)
    }

    fn of_texts(
        definition: &TrainDefinition,
        texts: &Texts,
        vocabulary: Vocabulary,
        store: Store,
    ) -> Result<Self, LmError> {
        let (sha256, valid_sha256) = (texts.sha256(), texts.valid_sha256());
        Self { vocabulary, sha256, valid_sha256, entropy_nats: None, store }.checked(definition)
    }

    /// The synthetic corpus that the definition's `corpus` table describes, divided by position. The upstream text, if
    /// `upstream_steps` is above 0, has the next seed: other tables over the same symbols.
    ///
    /// # Errors
    /// A corpus too short for the context, or a value that its key does not allow.
    pub fn synthetic(definition: &TrainDefinition) -> Result<Self, LmError> {
        definition.check()?;
        let (mut tokens, entropy) = definition.corpus.generate()?;
        let words: Vec<u8> = tokens.iter().flat_map(|token| token.to_le_bytes()).collect();
        let symbols = Symbols::Unwritten { size: definition.corpus.vocabulary_size() };
        let vocabulary = Vocabulary { symbols, has_end: false };
        let share = |share: f64| (tokens.len() as f64 * share) as usize;
        let (valid, test) = (definition.valid_fraction, definition.test_fraction);
        let (trained, kept) = (share(1.0 - valid - test), share(1.0 - test));
        let mut counts = [trained, kept - trained, tokens.len() - kept, 0, 0];
        if definition.upstream_steps > 0 {
            let seed = definition.corpus.seed.wrapping_add(1);
            let (other, _) = SyntheticCorpus { seed, ..definition.corpus.clone() }.generate()?;
            let trained = share(1.0 - valid);
            counts[3..].copy_from_slice(&[trained, other.len() - trained]);
            tokens.extend(other);
        }
        Self {
            vocabulary,
            sha256: sha256(&words),
            valid_sha256: None,
            entropy_nats: Some(entropy),
            store: Store::in_memory(tokens.iter().map(|&token| token as u16).collect(), counts),
        }
        .checked(definition)
    }

    /// Refuses splits that are shorter than one context.
    fn checked(self, definition: &TrainDefinition) -> Result<Self, LmError> {
        let upstream = self.has_upstream() || definition.upstream_steps > 0;
        for (split, part, wanted) in [
            (Split::Train, "the training part of the text", true),
            (Split::Valid, "the validation part of the text", true),
            (Split::Test, "the test part of the text", definition.test_fraction > 0.0),
            (Split::Upstream, "the text in the subfolder upstream", upstream),
            (Split::UpstreamValid, "the validation part of the upstream text", upstream),
        ] {
            let (tokens, needed) = (self.split(split).len(), definition.context + 1);
            if wanted && tokens < needed {
                return Err(LmError::too_few(part, tokens, needed, "tokens"));
            }
        }
        Ok(self)
    }

    /// Whether there is an upstream text.
    pub(in crate::lm) fn has_upstream(&self) -> bool {
        !self.split(Split::UpstreamValid).is_empty()
    }

    /// The tokens of one split, in the order of the text.
    pub fn split(&self, split: Split) -> &[u16] {
        self.store.split(split as usize)
    }
}

fn encode_splits(
    vocabulary: &Vocabulary,
    texts: &Texts,
    division: &Division,
    mut to: &mut dyn std::io::Write,
) -> Result<[usize; SPLITS], LmError> {
    let mut counts = [0; SPLITS];
    for (count, spans) in counts.iter_mut().zip(division) {
        *count = encode(vocabulary, texts, spans, &mut to)?;
    }
    Ok(counts)
}

/// The smallest number of bytes that the tokens can take: as if each token were the longest of the vocabulary.
fn least_bytes(vocabulary: &Vocabulary, division: &Division) -> f64 {
    let bytes: u64 = division.iter().flatten().map(Span::bytes).sum();
    let longest = (0..vocabulary.size()).map(|token| vocabulary.bytes_of(token as u32)).max();
    let tokens = bytes as f64 / f64::from(longest.unwrap_or(1).max(1));
    tokens * size_of::<u16>() as f64
}

/// A hash of everything that the tokens of texts depend on.
fn key(definition: &TrainDefinition, texts: &Texts) -> String {
    let TrainDefinition { vocabulary, valid_fraction, test_fraction, .. } = definition;
    let vocabulary = String::from(*vocabulary);
    let all = format!(
        "{} {:?} {} {vocabulary} {valid_fraction} {test_fraction}",
        texts.sha256(),
        texts.valid_sha256(),
        texts.has_ends()
    );
    sha256(all.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_take_at_least_what_the_longest_would() {
        let folder = tempfile::tempdir().unwrap();
        let text = folder.path().join("text.txt");
        std::fs::write(&text, "snö\n".repeat(KEPT_FROM as usize / 4)).unwrap();
        let texts = Texts::find(&text, None).unwrap();
        for (vocabulary, least) in [("byte", 1.0), ("characters", 0.5), ("bpe:259", 0.0)] {
            let definition = TrainDefinition::default().with(&format!("vocabulary={vocabulary}"));
            let division = texts.divide(&definition).unwrap();
            let encoded = build_vocabulary(&definition, &texts, &division).unwrap();
            let found = least_bytes(&encoded, &division);
            let kept = folder.path().join(vocabulary.replace(':', "-"));
            Corpus::from_texts(&definition, &texts, &kept).unwrap();
            let files = std::fs::read_dir(&kept).unwrap().map(|entry| entry.unwrap().path());
            let tokens = files.filter(|path| path.extension().is_some_and(|e| e == "tokens"));
            let written: u64 = tokens.map(|path| path.metadata().unwrap().len()).sum();
            let at_least = (least * texts.bytes() as f64).max(0.2 * written as f64);
            assert!((at_least..=written as f64).contains(&found), "{vocabulary}: {found}");
        }
    }
}

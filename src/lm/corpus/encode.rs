//! Builds a vocabulary from texts and encodes texts as tokens.

use std::collections::BTreeSet;
use std::io::Write;

use rayon::prelude::*;

use super::bpe::Bpe;
use super::document::Piece;
use super::texts::{Division, Span, Texts};
use super::tokens::Width;
use super::vocabulary::{Encoder, Symbols, Vocabulary, see_characters, utf8};
use crate::lm::{LmError, TextVocabulary, TrainDefinition};

/// The largest number of bytes of the training split in which BPE counts pairs. Of a longer split it uses every second
/// piece, every third, and so on, because counts must stay within 31 bits.
const COUNTED: u64 = 1 << 29;

/// The vocabulary of a definition for a corpus. Characters are collected from every split, BPE is trained on
/// the training split alone.
pub(super) fn vocabulary(
    definition: &TrainDefinition,
    texts: &Texts,
    division: &Division,
) -> Result<Vocabulary, LmError> {
    let has_end = texts.has_ends();
    let symbols = match definition.vocabulary {
        TextVocabulary::Byte => Symbols::Bytes,
        TextVocabulary::Characters => {
            let mut seen = BTreeSet::new();
            for piece in pieces(texts, division.iter().flatten()) {
                let piece = piece?;
                see_characters(&mut seen, &piece.bytes).map_err(piece.errors())?;
            }
            Symbols::Characters(seen.into_iter().collect())
        }
        TextVocabulary::Bpe { size } => {
            let every = division[0].iter().map(Span::bytes).sum::<u64>().div_ceil(COUNTED).max(1);
            let mut wrong = None;
            let counted = pieces(texts, &division[0])
                .step_by(every as usize)
                .map(|piece| {
                    let piece = piece?;
                    let text = utf8(&piece.bytes).map_err(piece.errors())?;
                    Ok(text.to_owned())
                })
                .map_while(|text| text.map_err(|error| wrong = Some(error)).ok());
            let trained = Bpe::train(counted, size, has_end);
            if let Some(error) = wrong {
                return Err(error);
            }
            Symbols::BytePairs(trained?)
        }
    };
    Ok(Vocabulary { symbols, has_end })
}

/// Writes the tokens of the spans, with an end-of-document token after each document if the vocabulary has one.
/// Returns the number of tokens.
pub(super) fn encode(
    vocabulary: &Vocabulary,
    texts: &Texts,
    spans: &[Span],
    to: &mut impl Write,
) -> Result<usize, LmError> {
    let width = Width::of(vocabulary.size());
    let mut workers: Vec<Worker> =
        (0..rayon::current_num_threads()).map(|_| Worker::default()).collect();
    let mut count = 0;
    for span in spans {
        let mut pieces = texts.pieces(span)?;
        loop {
            // One piece per thread at a time, written in order.
            let round: Vec<Piece> =
                pieces.by_ref().take(workers.len()).collect::<Result<_, _>>()?;
            workers[..round.len()].par_iter_mut().zip(&round).try_for_each(|(worker, piece)| {
                worker.tokens.clear();
                worker
                    .encoder
                    .encode(vocabulary, &piece.bytes, &mut worker.tokens)
                    .map_err(piece.errors())
            })?;
            for worker in &workers[..round.len()] {
                count += worker.tokens.len();
                width.write(&worker.tokens, to).map_err(LmError::Tokens)?;
            }
            if round.len() < workers.len() {
                break;
            }
        }
        if let Some(end) = vocabulary.end().filter(|_| span.is_last) {
            count += 1;
            width.write(&[end], to).map_err(LmError::Tokens)?;
        }
    }
    Ok(count)
}

/// State of one thread.
#[derive(Default)]
struct Worker {
    encoder: Encoder,
    tokens: Vec<u32>,
}

fn pieces<'a>(
    texts: &'a Texts,
    spans: impl IntoIterator<Item = &'a Span, IntoIter: Send> + Send,
) -> impl Iterator<Item = Result<Piece, LmError>> + Send {
    spans.into_iter().flat_map(|span| {
        let (pieces, error) = match texts.pieces(span) {
            Ok(pieces) => (Some(pieces), None),
            Err(error) => (None, Some(Err(error))),
        };
        pieces.into_iter().flatten().chain(error)
    })
}

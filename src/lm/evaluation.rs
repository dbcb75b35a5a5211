//! Evaluation of a model: its loss on windows of a text.

use candle_core::{Device, Tensor};

use super::{LmError, Model, Vocabulary};
use crate::lm::workers::Workers;

/// The loss of a model on windows of a text.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Evaluation {
    /// Number of predicted tokens.
    pub tokens: u64,
    /// Number of bytes of these tokens; 0 if they have no written form.
    pub bytes: u64,
    /// Mean cross-entropy, in nats per token.
    pub loss_nats: f64,
}

impl Evaluation {
    /// Perplexity per token: e to the power of the loss.
    pub fn perplexity(&self) -> f64 {
        self.loss_nats.exp()
    }

    /// The loss in nats per byte, which allows a comparison of vocabularies: the sum over all tokens, including
    /// ends of documents, divided by the bytes of the text. `None` if there are no bytes.
    pub fn loss_nats_per_byte(&self) -> Option<f64> {
        (self.bytes > 0).then(|| self.loss_nats * self.tokens as f64 / self.bytes as f64)
    }

    /// Perplexity per byte: e to the power of the loss per byte.
    pub fn perplexity_per_byte(&self) -> Option<f64> {
        self.loss_nats_per_byte().map(f64::exp)
    }

    /// The loss in bits per byte: nats per byte / ln 2. For images with one byte per channel of a pixel this is the measure
    /// known as bits per dimension.
    pub fn bits_per_byte(&self) -> Option<f64> {
        self.loss_nats_per_byte().map(|nats| nats / std::f64::consts::LN_2)
    }
}

/// The mean loss of `model` over `batches` batches of `batch_size` windows, at least one of each,
/// spread evenly over `text`: the same windows at every call. Every token
/// counts, also the first ones of a window, which have little context.
///
/// Several workers with the same model take batches in turn, and losses are added in the order of the batches, so the result
/// does not depend on the number of workers.
///
/// # Errors
/// A text shorter than context + 1 tokens, or a token that the model's vocabulary lacks.
pub(super) fn evaluate(
    model: &Model,
    vocabulary: &Vocabulary,
    text: &[u16],
    batches: usize,
    batch_size: usize,
    workers: &dyn Workers,
) -> Result<Evaluation, LmError> {
    let context = model.shape().context;
    let needed = context + 1;
    if text.len() < needed {
        return Err(LmError::too_few("the text", text.len(), needed, "tokens"));
    }
    let (batches, batch_size) = (batches.max(1), batch_size.max(1));
    let windows = batches * batch_size;
    let gaps = (windows - 1).max(1);
    let last = text.len() - needed;
    let starts: Vec<usize> = (0..windows).map(|i| i * last / gaps).collect();
    let (mut losses, mut sum) = (Vec::new(), Sum::default());
    for (at, starts) in starts.chunks(batch_size).enumerate() {
        if at % workers.size() == workers.rank() {
            let of_batch = Sum::of(model, vocabulary, text, starts, context)?;
            losses.push(of_batch.loss_nats);
            sum.add(of_batch);
        }
    }
    // Integers, which double precision adds exactly.
    losses.extend([sum.tokens as f64, sum.bytes as f64]);
    let all = workers.gather_numbers(&losses);
    let total = |from_end: usize| -> u64 {
        all.iter().map(|of_rank| of_rank[of_rank.len() - from_end] as u64).sum()
    };
    let (tokens, bytes) = (total(2), total(1));
    let loss_nats = (0..batches).map(|at| all[at % workers.size()][at / workers.size()]).sum();
    Ok(Sum { tokens, bytes, loss_nats }.mean())
}

/// The mean loss of `model` over all of `documents`. Each is read in consecutive windows of one context, without
/// overlap; the last window may be shorter. So every token except the first of a document is predicted once, from the
/// earlier tokens of its window alone. The first tokens of a window have little context, so the loss is an upper bound
/// of that with a sliding window.
///
/// `advanced` is called with the number of bytes predicted so far.
///
/// # Errors
/// Documents of at most one token, a token that the vocabulary lacks, or an error of `documents`.
pub fn evaluate_whole(
    model: &Model,
    vocabulary: &Vocabulary,
    documents: impl Iterator<Item = Result<Vec<u32>, LmError>>,
    batch_size: usize,
    advanced: &dyn Fn(u64),
) -> Result<Evaluation, LmError> {
    let context = model.shape().context;
    let mut sum = Sum::default();
    for document in documents {
        let text = &document?[..];
        let predicted = text.len().saturating_sub(1);
        let whole: Vec<usize> = (0..predicted / context).map(|window| window * context).collect();
        let left = predicted % context;
        for starts in whole.chunks(batch_size.max(1)) {
            sum.add(Sum::of(model, vocabulary, text, starts, context)?);
            advanced(sum.bytes);
        }
        if left > 0 {
            sum.add(Sum::of(model, vocabulary, text, &[predicted - left], left)?);
            advanced(sum.bytes);
        }
    }
    if sum.tokens == 0 {
        return Err(LmError::too_few("the text", 0, 2, "tokens"));
    }
    Ok(sum.mean())
}

/// Sums of losses and bytes over batches.
#[derive(Default)]
struct Sum {
    tokens: u64,
    bytes: u64,
    loss_nats: f64,
}

impl Sum {
    /// The sums for the windows of `length` tokens at `starts`.
    fn of(
        model: &Model,
        vocabulary: &Vocabulary,
        text: &[impl Copy + Into<u32>],
        starts: &[usize],
        length: usize,
    ) -> Result<Self, LmError> {
        let (inputs, targets) = batch(text, starts, length, model.device())?;
        let loss = model.predict(&inputs)?.loss_of(&targets)?;
        let predicted = targets.to_vec1::<u32>()?;
        Ok(Self {
            tokens: predicted.len() as u64,
            bytes: predicted.iter().map(|&t| u64::from(vocabulary.bytes_of(t))).sum(),
            loss_nats: loss * predicted.len() as f64,
        })
    }

    fn add(&mut self, other: Self) {
        self.tokens += other.tokens;
        self.bytes += other.bytes;
        self.loss_nats += other.loss_nats;
    }

    fn mean(&self) -> Evaluation {
        let Self { tokens, bytes, loss_nats } = *self;
        Evaluation { tokens, bytes, loss_nats: loss_nats / tokens as f64 }
    }
}

/// The windows of `length` tokens at `starts`, (B, T), and the token after each of their tokens, (B·T).
pub(super) fn batch(
    text: &[impl Copy + Into<u32>],
    starts: &[usize],
    length: usize,
    device: &Device,
) -> Result<(Tensor, Tensor), LmError> {
    let windows = |shift: usize| -> Vec<u32> {
        let windows = starts.iter().flat_map(|start| &text[start + shift..][..length]);
        windows.map(|&token| token.into()).collect()
    };
    let inputs = Tensor::from_vec(windows(0), (starts.len(), length), device)?;
    let targets = Tensor::from_vec(windows(1), starts.len() * length, device)?;
    Ok((inputs, targets))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lm::{ModelShape, Symbols, TrainDefinition};

    #[test]
    fn the_whole_is_every_token_but_the_first_once() {
        let definition = TrainDefinition::default().with("layers=1 d_model=8 heads=2 context=4");
        let model = Model::new(ModelShape::new(&definition, 256), 0.5, 3).unwrap();
        let vocabulary = Vocabulary { symbols: Symbols::Bytes, has_end: false };
        let document: Vec<u32> = (0..12).map(|i| i * i % 251).collect();
        let loss = |from: usize, length: usize| {
            let (inputs, targets) = batch(&document, &[from], length, &Device::Cpu).unwrap();
            model.predict(&inputs).unwrap().loss_of(&targets).unwrap() * length as f64
        };
        let sum = loss(0, 4) + loss(4, 4) + loss(8, 3);
        for batch_size in [1, 8] {
            let documents = [Ok(document.clone()), Ok(vec![7]), Ok(document.clone())].into_iter();
            let last = std::cell::Cell::new(0);
            let found =
                evaluate_whole(&model, &vocabulary, documents, batch_size, &|done| last.set(done))
                    .unwrap();
            assert_eq!((found.tokens, found.bytes, last.get()), (22, 22, 22));
            let off = (found.loss_nats - sum / 11.0).abs();
            assert!(off < 1e-6, "{off}");
            assert_eq!(found.loss_nats_per_byte(), Some(found.loss_nats));
        }
        let one = std::iter::once(Ok(vec![7]));
        let error = evaluate_whole(&model, &vocabulary, one, 1, &|_| {}).unwrap_err().to_string();
        assert!(error.contains("0 of the 2 tokens"), "{error}");
    }

    #[test]
    fn the_loss_per_byte_spreads_the_sum_over_the_bytes() {
        let found = Evaluation { tokens: 10, bytes: 40, loss_nats: 4.0 };
        assert_eq!(found.loss_nats_per_byte(), Some(1.0));
        assert_eq!(found.perplexity_per_byte(), Some(1f64.exp()));
        assert_eq!(found.bits_per_byte(), Some(1.0 / 2f64.ln()));
        assert_eq!(Evaluation { bytes: 0, ..found }.loss_nats_per_byte(), None);
    }
}

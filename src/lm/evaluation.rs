//! Windows of a text, and the loss of a model on them.

use candle_core::{Device, Tensor};

use super::{LmError, Model};

/// The loss of a model on windows of a text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Evaluation {
    /// Tokens predicted.
    pub tokens: u64,
    /// Mean cross-entropy, in nats a token.
    pub loss_nats: f64,
}

/// The mean loss of `model` over `batches` batches of `batch_size` windows, at least one of each,
/// spread evenly over `text`: the same ones at every call. A window is a whole context long, and
/// every token of it counts, also its first ones, which have little to go by.
///
/// # Errors
/// A text shorter than one context + 1 tokens, or a token that the model's vocabulary lacks.
pub fn evaluate(
    model: &Model,
    text: &[u32],
    batches: usize,
    batch_size: usize,
) -> Result<Evaluation, LmError> {
    let context = model.shape().context;
    let needed = context + 1;
    let Some(last) = text.len().checked_sub(needed) else {
        return Err(LmError::TextTooShort { part: "the text", tokens: text.len(), needed });
    };
    let (batches, batch_size) = (batches.max(1), batch_size.max(1));
    let windows = batches * batch_size;
    let gaps = (windows - 1).max(1);
    let starts: Vec<usize> = (0..windows).map(|i| i * last / gaps).collect();
    let mut total = 0.0;
    for starts in starts.chunks(batch_size) {
        let (inputs, targets) = batch(text, starts, context)?;
        let loss = model.predict(&inputs)?.loss(&targets)?;
        total += f64::from(loss.to_scalar::<f32>()?);
    }
    Ok(Evaluation { tokens: (windows * context) as u64, loss_nats: total / batches as f64 })
}

/// The windows of `context` tokens at `starts`, (B, T), and the tokens that follow each, (B·T).
pub(super) fn batch(
    text: &[u32],
    starts: &[usize],
    context: usize,
) -> Result<(Tensor, Tensor), LmError> {
    let windows = |shift: usize| -> Vec<u32> {
        let window = |start: &usize| &text[start + shift..][..context];
        starts.iter().flat_map(window).copied().collect()
    };
    let inputs = Tensor::from_vec(windows(0), (starts.len(), context), &Device::Cpu)?;
    let targets = Tensor::from_vec(windows(1), starts.len() * context, &Device::Cpu)?;
    Ok((inputs, targets))
}

//! A linear classifier of a model's hidden state: which part of a text is a window from?

use candle_core::Tensor;
use ndarray::{Array2, Array4, Axis, concatenate};

use crate::lm::{LmError, Model};
use crate::numerics::{product, softmax};

/// Equal parts of the text, one class each.
const PARTS: usize = 6;
/// Windows of a part to train on, from its first half, and as many to test on, from its second half.
const WINDOWS: usize = 200;
/// Tokens of a window, at most.
const TOKENS: usize = 128;
/// Weight of the squared coefficients.
const DECAY: f64 = 1e-2;
/// Steps of accelerated gradient descent.
const STEPS: usize = 500;

/// Trains softmax regression on the hidden state after the last norm, averaged over a window, to name the part of `text` that the
/// window is from; returns its accuracy and cross-entropy on windows that it was not trained on. Parts of several books differ in author and subject, of which predicting the next token takes
/// little. The hidden state is fixed; its channels are standardised.
///
/// # Errors
/// A text that is too short, or a token that the vocabulary lacks.
pub(super) fn classify_parts(model: &Model, text: &[u32]) -> Result<[f64; 2], LmError> {
    let tokens = TOKENS.min(model.shape().context);
    let (half, needed) = (text.len() / (2 * PARTS), 4 * PARTS * tokens);
    if text.len() < needed {
        return Err(LmError::too_few("the text", text.len(), needed, "tokens"));
    }
    let mut hidden = Vec::new();
    for half_part in text.chunks_exact(half).take(2 * PARTS) {
        let start = |at: usize| at * (half - tokens) / (WINDOWS - 1);
        let ids = (0..WINDOWS).flat_map(|at| &half_part[start(at)..][..tokens]);
        let ids = Tensor::from_vec(ids.copied().collect(), (WINDOWS, tokens), model.device())?;
        let means = model.predict(&ids)?.mean_hidden(tokens)?;
        hidden.extend(means.flatten_all()?.to_vec1::<f32>()?.into_iter().map(f64::from));
    }
    let shape = (PARTS, 2, WINDOWS, model.shape().d_model);
    let hidden = Array4::from_shape_vec(shape, hidden).map_err(candle_core::Error::wrap)?;
    let [train, test] = [0, 1].map(|half| {
        let of_half = hidden.index_axis(Axis(1), half);
        let rows = of_half.to_shape((PARTS * WINDOWS, shape.3)).expect("the same elements");
        rows.into_owned()
    });
    let (mean, deviation) = (train.mean_axis(Axis(0)).expect("rows"), train.std_axis(Axis(0), 0.0));
    let standard = |x: Array2<f64>| {
        let x = (x - &mean) / &deviation.mapv(|deviation| deviation.max(f64::MIN_POSITIVE));
        concatenate![Axis(1), x, Array2::ones((PARTS * WINDOWS, 1))]
    };
    let (train, test) = (standard(train), standard(test));
    let probabilities = |x: &Array2<f64>, weights: &Array2<f64>| {
        let mut p = product(x.view(), weights.view());
        p.rows_mut().into_iter().for_each(|row| softmax(row, 0..PARTS));
        p
    };
    // Nesterov's method; the curvature is at most half of the mean square of a row.
    let channels = train.ncols();
    let mut weights = Array2::<f64>::zeros((channels, PARTS));
    let mut ahead = weights.clone();
    for step in 0..STEPS {
        let mut error = probabilities(&train, &ahead);
        (0..PARTS * WINDOWS).for_each(|row| error[[row, row / WINDOWS]] -= 1.0);
        let slope = product(train.t(), error.view()) / (PARTS * WINDOWS) as f64 + &ahead * DECAY;
        let next = &ahead - slope / (0.5 * channels as f64 + DECAY);
        ahead = &next + (&next - &weights) * (step as f64 / (step + 3) as f64);
        weights = next;
    }
    let (mut named, mut loss_nats) = (0, 0.0);
    for (row, p) in probabilities(&test, &weights).rows().into_iter().enumerate() {
        let own = p[row / WINDOWS];
        named += usize::from(p.iter().all(|other| *other <= own));
        loss_nats -= own.ln() / (PARTS * WINDOWS) as f64;
    }
    Ok([named as f64 / (PARTS * WINDOWS) as f64, loss_nats])
}

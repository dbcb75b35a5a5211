//! Whether a run has room in the machine's memory.

use crate::lm::{Dtype, LmError, Positions, TrainDefinition};
use crate::system::{available_bytes, gibibytes};

/// Bytes of a float32.
const FLOAT32: f64 = 4.0;

/// Refuses a run whose weights, gradients and moments, four float32 numbers a weight, cannot be held. Of a block there
/// are 12 C² weights, beside gains.
///
/// # Errors
/// Less memory than that.
pub(super) fn check_weights(
    definition: &TrainDefinition,
    vocabulary: usize,
) -> Result<(), LmError> {
    let TrainDefinition { layers, d_model, context, .. } = *definition;
    let [layers, channels, context] = [layers, d_model, context].map(|size| size as f64);
    let positions = if definition.positions == Positions::Learned { context } else { 0.0 };
    let weights = layers * 12.0 * channels * channels + (vocabulary as f64 + positions) * channels;
    check("the weights with their gradients and moments take", 4.0 * FLOAT32 * weights)
}

/// Refuses steps of so many sequences at a time whose activations cannot be held on the CPU. Kept of each block are at
/// least, for every token, queries, keys, values, heads' outputs and the 4 C channels of the MLP; or, where they are
/// computed again, its input.
///
/// # Errors
/// Less memory than that.
pub(super) fn check_activations(
    definition: &TrainDefinition,
    sequences: usize,
) -> Result<(), LmError> {
    let TrainDefinition { layers, d_model, context, recompute, dtype, .. } = *definition;
    let [layers, channels, tokens] = [layers, d_model, context].map(|size| size as f64);
    let kept = if recompute { 1.0 } else { 8.0 };
    let bytes = if dtype == Dtype::Bfloat16 { 0.5 * FLOAT32 } else { FLOAT32 };
    let all = layers * channels * tokens * sequences as f64 * kept * bytes;
    check("what a step keeps for its backward pass takes", all)
}

fn check(what: &'static str, needed: f64) -> Result<(), LmError> {
    match available_bytes() {
        Some(free) if needed > free as f64 => {
            Err(LmError::TooLarge { what, needed: gibibytes(needed), free: gibibytes(free as f64) })
        }
        _ => Ok(()),
    }
}

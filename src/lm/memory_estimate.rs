//! Memory check before training: a lower bound on what a definition needs, against what the machine has.

use super::definition::{Arm, Dtype, Positions, Router, TrainDefinition};
use super::error::LmError;
use crate::system::check_memory;

/// Bytes of a float32.
const FLOAT32: f64 = 4.0;
/// Bytes of the bookkeeping for the tensors of a block.
const TENSORS: f64 = 4096.0;

/// The keys that reduce the size of a model and of its steps.
const MODEL: &str = "layers, d_model, batch or context";

/// Refuses a model if the memory cannot hold `copies` of its weights in float32. A block has 4·C·H·D + 8·C² weights with
/// attention, beside gains.
///
/// # Errors
/// Too little memory.
pub(super) fn check_weights(
    definition: &TrainDefinition,
    vocabulary: usize,
    copies: usize,
    what: &'static str,
) -> Result<(), LmError> {
    let blocks = definition.layers as f64 * TENSORS;
    check(what, copies as f64 * bytes_of_weights(definition, vocabulary) + blocks, MODEL)
}

/// A lower bound of the size of the weights, in bytes.
pub(super) fn bytes_of_weights(definition: &TrainDefinition, vocabulary: usize) -> f64 {
    let TrainDefinition { layers, d_model, heads, context, .. } = *definition;
    let of_heads = heads as f64 * definition.head_dimension() as f64;
    let [layers, channels, context] = [layers, d_model, context].map(|size| size as f64);
    let positions = if definition.positions == Positions::Learned { context } else { 0.0 };
    let of_mixer = match definition.arm {
        Arm::Gam => 2.0 * channels + definition.memory_slots as f64,
        _ => 4.0 * of_heads,
    };
    let of_blocks = layers * channels * (of_mixer + 8.0 * channels);
    FLOAT32 * (of_blocks + (vocabulary as f64 + positions) * channels)
}

/// Refuses steps if the CPU's memory cannot hold the activations of all sequences of a step. Kept of each block are at
/// least, for every token, queries, keys, values, heads' outputs (H·D channels each) and the 4 C channels of the MLP; or, where they are
/// computed again, its input.
///
/// # Errors
/// Too little memory.
pub(super) fn check_activations(
    definition: &TrainDefinition,
    sequences: usize,
) -> Result<(), LmError> {
    let TrainDefinition { layers, d_model, context, recompute, dtype, .. } = *definition;
    let [layers, channels, tokens] = [layers, d_model, context].map(|size| size as f64);
    let of_heads = definition.heads as f64 * definition.head_dimension() as f64;
    let kept = if recompute { channels } else { 4.0 * (of_heads + channels) };
    let bytes = if dtype == Dtype::Bfloat16 { 0.5 * FLOAT32 } else { FLOAT32 };
    // With recursions: all tokens pass the middle blocks R times, (R + 1)/2 times in the mean, or at least once; what is computed
    // again has three inputs.
    let layers = match (definition.recursions as f64, definition.router) {
        (1.0, _) => layers,
        _ if recompute => 3.0,
        (repeats, Router::None) => 2.0 + (layers - 2.0) * repeats,
        (repeats, Router::Expert) => 2.0 + (layers - 2.0) * 0.5 * (repeats + 1.0),
        (_, Router::Token) => layers,
    };
    let all = layers * kept * tokens * sequences as f64 * bytes;
    check("one step's activations need", all, MODEL)
}

/// Refuses what needs more memory than the machine has; `lower` names the keys to reduce.
///
/// # Errors
/// Too little memory.
pub(super) fn check(what: &'static str, needed: f64, lower: &'static str) -> Result<(), LmError> {
    check_memory(needed)
        .map_err(|room| LmError::Refused(format!("{what} at least {room}; lower {lower}")))
}

impl TrainDefinition {
    /// Checks a model of `symbols` symbols for inference: its values, and that weights and tokens fit into memory.
    ///
    /// # Errors
    /// A value that its key does not allow, or sizes that need more memory than the machine has.
    pub fn check_inference(&self, symbols: usize) -> Result<(), LmError> {
        self.check()?;
        check_weights(self, symbols, 1, "the weights need")?;
        let tokens = self.context as f64 * size_of::<u32>() as f64;
        check("the tokens need", tokens, "the tokens to read")
    }
}

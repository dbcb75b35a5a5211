//! The columns of a language model, whatever is measured of it.

use super::part::record;
use crate::lm::TrainDefinition;

record! {
    /// A model, as its definition has it.
    pub struct ModelColumns {
        /// the run's name in its study's definition
        run: String,
        /// which heads are global and which local, and what holds the logits down
        arm: String,
        /// blocks
        #[range = Counted]
        layers: usize,
        /// the width of the residual stream
        #[range = Counted]
        d_model: usize,
        /// attention heads a layer
        #[range = Counted]
        heads: usize,
        /// heads that see everything, in the layer that has most of them
        global_heads: usize,
        /// how many tokens at and before its own a local head sees
        #[range = Counted]
        window: usize,
        /// how the model knows where a token stands: `learned`, `rope`, `sinusoidal` or `none`
        positions: String,
        /// the slope over the lag that logits have beside QKᵀ/√d: `none`, `alibi` (fixed) or `learned`
        slopes: String,
    }
}

impl ModelColumns {
    /// Those of the run `run`.
    pub fn of(run: &str, definition: &TrainDefinition) -> Self {
        Self {
            run: run.to_owned(),
            arm: definition.arm.name().to_owned(),
            layers: definition.layers,
            d_model: definition.d_model,
            heads: definition.heads,
            global_heads: definition.most_global_heads(),
            window: definition.local_tokens(),
            positions: definition.positions.name().to_owned(),
            slopes: definition.slopes.name().to_owned(),
        }
    }
}

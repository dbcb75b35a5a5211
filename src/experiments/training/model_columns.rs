//! The columns of a language model, whatever is measured of it.

use crate::lm::TrainDefinition;
use crate::record::record;

record! {
    /// A model, as its definition has it.
    pub struct ModelColumns {
        /// the run's name in its study's definition
        run: String,
        /// the attention variant: which heads are global or local, and the stabiliser
        arm: String,
        /// the number of layers
        #[range = Counted]
        layers: usize,
        /// the width of the residual stream
        #[range = Counted]
        d_model: usize,
        /// attention heads per layer
        #[range = Counted]
        heads: usize,
        /// the dimensions of a head; empty where they are d_model / heads
        #[range = Counted]
        d_head: Option<usize>,
        /// global heads in the layer with most of them
        global_heads: usize,
        /// the tokens that a local head sees, its own among them; empty where all heads are global
        #[range = Counted]
        window: Option<usize>,
        /// positional encoding: `learned`, `rope`, `sinusoidal` or `none`
        positions: String,
        /// linear position bias: `none`, `alibi` (fixed) or `learned`
        slopes: String,
    }
}

impl ModelColumns {
    /// The dimensions of a head.
    pub fn head_dimension(&self) -> usize {
        self.d_head.unwrap_or_else(|| self.d_model / self.heads.max(1))
    }

    /// The weights of the blocks' matrices, L·(4·C·H·D + 8·C²): the least number of parameters.
    pub fn block_weights(&self) -> usize {
        let of_heads = self.heads * self.head_dimension();
        4 * self.layers * self.d_model * (of_heads + 2 * self.d_model)
    }

    /// Those of the run `run`.
    pub fn of(run: &str, definition: &TrainDefinition) -> Self {
        Self {
            run: run.to_owned(),
            arm: definition.arm.name().to_owned(),
            layers: definition.layers,
            d_model: definition.d_model,
            heads: definition.heads,
            d_head: definition.d_head,
            global_heads: definition.most_global_heads(),
            window: definition.local_tokens(),
            positions: definition.positions.name().to_owned(),
            slopes: definition.slopes.name().to_owned(),
        }
    }
}

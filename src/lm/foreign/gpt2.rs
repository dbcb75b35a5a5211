//! GPT-2-type models: how they are configured and what their weights are called.

use std::path::Path;

use ndarray::s;

use super::arithmetic::{Activation, Linear};
use super::config::Config;
use super::transformer::{Block, Transformer};
use super::weights::Weights;
use crate::lm::LmError;
use crate::pattern::Visibility;

pub(super) const NAME: &str = "gpt2";

/// Reads what queries and keys are made by: all but the last norm and what follows it.
pub(super) fn read(config: &Config, folder: &Path) -> Result<Transformer, LmError> {
    // Each changes the logits.
    config.only("scale_attn_weights", true)?;
    config.only("scale_attn_by_inverse_layer_idx", false)?;
    config.divides("n_head", "n_embd")?;
    let c = config.count("n_embd")?;
    let epsilon = config.epsilon("layer_norm_epsilon", 1e-5)?;
    let hidden = config.count_if_there("n_inner")?.unwrap_or(4 * c);
    let activation = config.activation("activation_function", Activation::TanhGelu)?;

    let mut weights = Weights::read(folder, "transformer.", "wte.weight")?;
    let tokens = weights.matrix("wte.weight", [config.count("vocab_size")?, c])?;
    let positions = weights.matrix("wpe.weight", [config.count("n_positions")?, c])?;
    let block = |layer: usize| {
        let name = |part: &str| format!("h.{layer}.{part}");
        let all = weights.linear(&name("attn.c_attn"), [c, 3 * c])?;
        Ok(Block {
            projections: [0, 1, 2].map(|part| columns(&all, part * c, c)),
            output: weights.linear(&name("attn.c_proj"), [c, c])?,
            mlp: [
                weights.linear(&name("mlp.c_fc"), [c, hidden])?,
                weights.linear(&name("mlp.c_proj"), [hidden, c])?,
            ],
            norms: [
                weights.norm(&name("ln_1"), c, epsilon)?,
                weights.norm(&name("ln_2"), c, epsilon)?,
            ],
        })
    };
    let blocks = (0..config.count("n_layer")?).map(block).collect::<Result<_, LmError>>()?;
    Ok(Transformer {
        tokens,
        positions,
        norm: None,
        blocks,
        norm_first: true,
        heads: config.count("n_head")?,
        activation,
        visibility: Visibility::Causal,
    })
}

/// `count` outputs of a projection, from `first` on.
fn columns(all: &Linear, first: usize, count: usize) -> Linear {
    let range = first..first + count;
    Linear {
        weights: all.weights.slice(s![.., range.clone()]).to_owned(),
        bias: all.bias.slice(s![range]).to_owned(),
    }
}

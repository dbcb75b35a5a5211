//! GPT-2-type models (Radford et al. 2019): how they are configured and what their weights are called.

use std::path::Path;

use super::arithmetic::Activation;
use super::attention::{Attention, Projections};
use super::config::Config;
use super::mlp::Mlp;
use super::transformer::{Block, Embedding, Norms, Transformer};
use super::weights::Weights;
use crate::lm::LmError;
use crate::pattern::{HeadKind, Visibility};

pub(super) const NAME: &str = "gpt2";

/// Reads what queries and keys are made by: all but the last norm and what follows it.
pub(super) fn read(config: &Config, folder: &Path) -> Result<Transformer, LmError> {
    // Each changes the logits.
    config.only("scale_attn_weights", true)?;
    config.only("scale_attn_by_inverse_layer_idx", false)?;
    config.divides("n_head", "n_embd")?;
    let (c, heads) = (config.count("n_embd")?, config.count("n_head")?);
    let d = c / heads;
    let epsilon = config.epsilon("layer_norm_epsilon", 1e-5)?;
    let hidden = config.count_if_there("n_inner")?.unwrap_or(4 * c);
    let activation = config.activation("activation_function", Activation::TanhGelu)?;

    let weights = Weights::read(folder, &["transformer."], "wte.weight")?;
    let context = config.count("n_positions")?;
    let block = |layer: usize| {
        let name = |part: &str| format!("h.{layer}.{part}");
        let norm = |part: &str| weights.layer_norm(&name(part), c, epsilon).map(Some);
        let attention = Attention {
            projections: Projections::Thirds(
                weights.convolution(&name("attn.c_attn"), [c, 3 * c])?,
            ),
            output: weights.convolution(&name("attn.c_proj"), [c, c])?,
            heads,
            key_heads: heads,
            d,
            scale: 1.0 / (d as f64).sqrt(),
            norm: None,
            rotary: None,
            visibility: Visibility::Causal,
            kind: HeadKind::Global,
            softcap: None,
            sinks: None,
        };
        let mlp = Mlp::Plain {
            input: weights.convolution(&name("mlp.c_fc"), [c, hidden])?,
            activation,
            output: weights.convolution(&name("mlp.c_proj"), [hidden, c])?,
        };
        let norms = [
            Norms { before: norm("ln_1")?, ..Norms::default() },
            Norms { before: norm("ln_2")?, ..Norms::default() },
        ];
        Ok(Block { attention, mlp, norms, parallel: false })
    };
    Ok(Transformer {
        embedding: Embedding {
            tokens: weights.tensor("wte.weight", &[config.count("vocab_size")?, c])?,
            scale: 1.0,
            positions: Some(weights.tensor("wpe.weight", &[context, c])?),
            shift: None,
            norm: None,
        },
        blocks: (0..config.count("n_layer")?).map(block).collect::<Result<_, LmError>>()?,
        context,
    })
}

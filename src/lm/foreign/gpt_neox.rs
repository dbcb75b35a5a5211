//! GPT-NeoX-type models (Black et al. 2022, arXiv 2204.06745), Pythia among them: how they are configured and what their
//! weights are called.

use std::path::Path;
use std::sync::Arc;

use super::arithmetic::{Activation, Bias};
use super::attention::{Attention, Projections};
use super::config::Config;
use super::decoder;
use super::mlp::Mlp;
use super::rotary::Rotary;
use super::transformer::{Block, Embedding, Norms, Transformer};
use super::weights::Weights;
use crate::lm::LmError;
use crate::pattern::{HeadKind, Visibility};

pub(super) const NAME: &str = "gpt_neox";

/// Reads what queries and keys are made by: all but the last norm and what follows it.
pub(super) fn read(config: &Config, folder: &Path) -> Result<Transformer, LmError> {
    config.divides("num_attention_heads", "hidden_size")?;
    let (c, heads) = (config.count("hidden_size")?, config.count("num_attention_heads")?);
    let d = c / heads;
    let epsilon = config.epsilon("layer_norm_eps", 1e-5)?;
    let hidden = config.count("intermediate_size")?;
    let activation = config.activation("hidden_act", Activation::Gelu)?;
    let parallel = config.flag("use_parallel_residual", true)?;
    let settings = match config.part("rope_parameters")? {
        Some(settings) => settings,
        None => config.part("rope_scaling")?.unwrap_or_else(|| config.nothing()),
    };
    let said = if settings.names("rope_theta") { &settings } else { config };
    let base = match said.names("rope_theta") {
        true => said.above_zero("rope_theta")?,
        false => config.above_zero_or("rotary_emb_base", 10_000.0)?,
    };
    let share = match settings.names("partial_rotary_factor") {
        true => settings.above_zero("partial_rotary_factor")?,
        false => config.above_zero_or("rotary_pct", 0.25)?,
    };
    let turned = (d as f64 * share) as usize;
    if share > 1.0 || !turned.is_multiple_of(2) || !d.is_multiple_of(2) {
        return Err(config.wrong(format!(
            "rotates {turned} of {d} channels per head; both must be even, and the first at most the second"
        )));
    }
    let rotary = Rotary::read(&settings, base, turned)?;
    let scale = decoder::turned_scale(config, &rotary, d, 1.0 / (d as f64).sqrt())?;
    let rotary = Arc::new(rotary);

    let weights = Weights::read(folder, &["gpt_neox."], "embed_in.weight")?;
    let block = |layer: usize| {
        let name = |part: &str| format!("layers.{layer}.{part}");
        let linear = |part: &str, shape| weights.linear(&name(part), shape, Bias::WhereThere);
        let norm = |part: &str| weights.layer_norm(&name(part), c, epsilon).map(Some);
        let attention = Attention {
            projections: Projections::ByHead(linear("attention.query_key_value", [c, 3 * c])?),
            output: linear("attention.dense", [c, c])?,
            heads,
            key_heads: heads,
            d,
            scale,
            norm: None,
            rotary: Some(rotary.clone()),
            visibility: Visibility::Causal,
            kind: HeadKind::Global,
            softcap: None,
            sinks: None,
        };
        let mlp = Mlp::Plain {
            input: linear("mlp.dense_h_to_4h", [c, hidden])?,
            activation,
            output: linear("mlp.dense_4h_to_h", [hidden, c])?,
        };
        let norms = [
            Norms { before: norm("input_layernorm")?, ..Norms::default() },
            Norms { before: norm("post_attention_layernorm")?, ..Norms::default() },
        ];
        Ok(Block { attention, mlp, norms, parallel })
    };
    Ok(Transformer {
        embedding: Embedding {
            tokens: weights.tensor("embed_in.weight", &[config.count("vocab_size")?, c])?,
            scale: 1.0,
            positions: None,
            shift: None,
            norm: None,
        },
        blocks: (0..config.count("num_hidden_layers")?)
            .map(block)
            .collect::<Result<_, LmError>>()?,
        context: config.count("max_position_embeddings")?,
    })
}

//! BERT-type models (Devlin et al. 2018, arXiv 1810.04805): how they are configured and what their weights are called.

use std::path::Path;

use super::arithmetic::{Activation, Bias};
use super::attention::{Attention, Projections};
use super::config::Config;
use super::mlp::Mlp;
use super::transformer::{Block, Embedding, Norms, Transformer};
use super::weights::Weights;
use crate::lm::LmError;
use crate::pattern::{HeadKind, Visibility};

pub(super) const NAME: &str = "bert";

/// Reads the encoder; what follows it, as a pooler or a head for some task, is left. Every token is of type 0.
pub(super) fn read(config: &Config, folder: &Path) -> Result<Transformer, LmError> {
    // One changes the logits, the other what a row sees.
    config.only("position_embedding_type", "absolute")?;
    config.only("is_decoder", false)?;
    config.divides("num_attention_heads", "hidden_size")?;
    let (c, heads) = (config.count("hidden_size")?, config.count("num_attention_heads")?);
    let d = c / heads;
    let epsilon = config.epsilon("layer_norm_eps", 1e-12)?;
    let hidden = config.count("intermediate_size")?;
    let activation = config.activation("hidden_act", Activation::Gelu)?;

    let first = "embeddings.word_embeddings.weight";
    let weights = Weights::read(folder, &["bert."], first)?;
    let context = config.count("max_position_embeddings")?;
    let types = config.count("type_vocab_size")?;
    let types = weights.tensor("embeddings.token_type_embeddings.weight", &[types, c])?;
    let block = |layer: usize| {
        let name = |part: &str| format!("encoder.layer.{layer}.{part}");
        let linear = |part: &str, shape| weights.linear(&name(part), shape, Bias::Always);
        let norm = |part: &str| weights.layer_norm(&name(part), c, epsilon).map(Some);
        let attention = Attention {
            projections: Projections::Apart(Box::new([
                linear("attention.self.query", [c, c])?,
                linear("attention.self.key", [c, c])?,
                linear("attention.self.value", [c, c])?,
            ])),
            output: linear("attention.output.dense", [c, c])?,
            heads,
            key_heads: heads,
            d,
            scale: 1.0 / (d as f64).sqrt(),
            norm: None,
            rotary: None,
            visibility: Visibility::Bidirectional,
            kind: HeadKind::Global,
            softcap: None,
            sinks: None,
        };
        let mlp = Mlp::Plain {
            input: linear("intermediate.dense", [c, hidden])?,
            activation,
            output: linear("output.dense", [hidden, c])?,
        };
        let norms = [
            Norms { of_sum: norm("attention.output.LayerNorm")?, ..Norms::default() },
            Norms { of_sum: norm("output.LayerNorm")?, ..Norms::default() },
        ];
        Ok(Block { attention, mlp, norms, parallel: false })
    };
    Ok(Transformer {
        embedding: Embedding {
            tokens: weights.tensor(first, &[config.count("vocab_size")?, c])?,
            scale: 1.0,
            positions: Some(
                weights.tensor("embeddings.position_embeddings.weight", &[context, c])?,
            ),
            shift: Some(types.rows(&[0])?.row(0).to_owned()),
            norm: Some(weights.layer_norm("embeddings.LayerNorm", c, epsilon)?),
        },
        blocks: (0..config.count("num_hidden_layers")?)
            .map(block)
            .collect::<Result<_, LmError>>()?,
        context,
    })
}

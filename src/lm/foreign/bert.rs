//! BERT-type models: how they are configured and what their weights are called.

use std::path::Path;

use super::arithmetic::Activation;
use super::config::Config;
use super::transformer::{Block, Transformer};
use super::weights::Weights;
use crate::lm::LmError;
use crate::pattern::Visibility;

pub(super) const NAME: &str = "bert";

/// Reads the encoder; what follows it, as a pooler or a head for some task, is left.
pub(super) fn read(config: &Config, folder: &Path) -> Result<Transformer, LmError> {
    // One changes the logits, the other what a row sees.
    config.only("position_embedding_type", "absolute")?;
    config.only("is_decoder", false)?;
    config.divides("num_attention_heads", "hidden_size")?;
    let c = config.count("hidden_size")?;
    let epsilon = config.epsilon("layer_norm_eps", 1e-12)?;
    let hidden = config.count("intermediate_size")?;
    let activation = config.activation("hidden_act", Activation::Gelu)?;

    let first = "embeddings.word_embeddings.weight";
    let mut weights = Weights::read(folder, "bert.", first)?;
    let tokens = weights.matrix(first, [config.count("vocab_size")?, c])?;
    let context = config.count("max_position_embeddings")?;
    let positions = weights.matrix("embeddings.position_embeddings.weight", [context, c])?;
    let types = config.count("type_vocab_size")?;
    let types = weights.matrix("embeddings.token_type_embeddings.weight", [types, c])?;
    let norm = weights.norm("embeddings.LayerNorm", c, epsilon)?;
    let block = |layer: usize| {
        let name = |part: &str| format!("encoder.layer.{layer}.{part}");
        let mut linear = |part: &str, shape| weights.transposed_linear(&name(part), shape);
        let projections = [
            linear("attention.self.query", [c, c])?,
            linear("attention.self.key", [c, c])?,
            linear("attention.self.value", [c, c])?,
        ];
        let output = linear("attention.output.dense", [c, c])?;
        let mlp =
            [linear("intermediate.dense", [c, hidden])?, linear("output.dense", [hidden, c])?];
        let mut norm = |part: &str| weights.norm(&name(part), c, epsilon);
        let norms = [norm("attention.output.LayerNorm")?, norm("output.LayerNorm")?];
        Ok(Block { projections, output, mlp, norms })
    };
    let blocks =
        (0..config.count("num_hidden_layers")?).map(block).collect::<Result<_, LmError>>()?;
    Ok(Transformer {
        tokens,
        // Every token is of type 0.
        positions: positions + types.row(0),
        norm: Some(norm),
        blocks,
        norm_first: false,
        heads: config.count("num_attention_heads")?,
        activation,
        visibility: Visibility::Bidirectional,
    })
}

//! Model types with layer norms, MLPs of two matrices and one key head per query head: their configuration keys and names
//! of weights.

use std::path::Path;
use std::sync::Arc;

use super::attention::{Attention, Projections};
use super::config::Config;
use super::decoder;
use super::layers::{Activation, Bias, Mlp};
use super::rotary::Rotary;
use super::transformer::{Block, Embedding, Norms, Transformer};
use super::weights::Weights;
use crate::lm::LmError;
use crate::targets::{HeadKind, Visibility};

/// A model type: the keys of its `config.json` and the names of its weights.
pub(super) struct PlainType {
    /// The `model_type`.
    pub(super) name: &'static str,
    /// Keys that affect logits or the mask, each with the only supported value, in JSON.
    only: &'static [(&'static str, &'static str)],
    channels: &'static str,
    heads: &'static str,
    layers: &'static str,
    context: &'static str,
    /// The key of the MLP's hidden size, and the default as a multiple of C if the key may be absent.
    hidden: (&'static str, Option<usize>),
    /// The key of ε and its default.
    epsilon: (&'static str, f32),
    activation: (&'static str, Activation),
    /// Prefix of all weight names in models saved with a head for a task.
    prefix: &'static str,
    tokens: &'static str,
    /// Learned positions; `None` for rotary positions.
    positions: Option<&'static str>,
    /// The embedding of token types, of which the first is used for every token, and the norm after the embeddings.
    types_and_norm: Option<[&'static str; 2]>,
    /// Prefix of the weight names of a block, before its number.
    block: &'static str,
    projections: Names,
    output: &'static str,
    mlp: [&'static str; 2],
    norms: [&'static str; 2],
    /// Whether norms apply to the sum of the residual stream and the part's output, rather than to the part's input.
    norms_of_sum: bool,
    /// Whether matrices are stored as outputs × inputs.
    transposed: bool,
    bias: Bias,
    visibility: Visibility,
}

/// Names of the projections to queries, keys and values.
enum Names {
    Apart([&'static str; 3]),
    Joint { all: &'static str, by_head: bool },
}

/// GPT-2 (Radford et al. 2019), BERT (Devlin et al. 2018, arXiv 1810.04805), and GPT-NeoX (Black et al. 2022, arXiv
/// 2204.06745), which includes Pythia.
pub(super) const TYPES: [PlainType; 3] = [
    PlainType {
        name: "gpt2",
        only: &[("scale_attn_weights", "true"), ("scale_attn_by_inverse_layer_idx", "false")],
        channels: "n_embd",
        heads: "n_head",
        layers: "n_layer",
        context: "n_positions",
        hidden: ("n_inner", Some(4)),
        epsilon: ("layer_norm_epsilon", 1e-5),
        activation: ("activation_function", Activation::TanhGelu),
        prefix: "transformer.",
        tokens: "wte.weight",
        positions: Some("wpe.weight"),
        types_and_norm: None,
        block: "h",
        projections: Names::Joint { all: "attn.c_attn", by_head: false },
        output: "attn.c_proj",
        mlp: ["mlp.c_fc", "mlp.c_proj"],
        norms: ["ln_1", "ln_2"],
        norms_of_sum: false,
        transposed: false,
        bias: Bias::Always,
        visibility: Visibility::Causal,
    },
    PlainType {
        name: "bert",
        only: &[("position_embedding_type", "\"absolute\""), ("is_decoder", "false")],
        channels: "hidden_size",
        heads: "num_attention_heads",
        layers: "num_hidden_layers",
        context: "max_position_embeddings",
        hidden: ("intermediate_size", None),
        epsilon: ("layer_norm_eps", 1e-12),
        activation: ("hidden_act", Activation::Gelu),
        prefix: "bert.",
        tokens: "embeddings.word_embeddings.weight",
        positions: Some("embeddings.position_embeddings.weight"),
        types_and_norm: Some(["embeddings.token_type_embeddings.weight", "embeddings.LayerNorm"]),
        block: "encoder.layer",
        projections: Names::Apart([
            "attention.self.query",
            "attention.self.key",
            "attention.self.value",
        ]),
        output: "attention.output.dense",
        mlp: ["intermediate.dense", "output.dense"],
        norms: ["attention.output.LayerNorm", "output.LayerNorm"],
        norms_of_sum: true,
        transposed: true,
        bias: Bias::Always,
        visibility: Visibility::Bidirectional,
    },
    PlainType {
        name: "gpt_neox",
        only: &[],
        channels: "hidden_size",
        heads: "num_attention_heads",
        layers: "num_hidden_layers",
        context: "max_position_embeddings",
        hidden: ("intermediate_size", None),
        epsilon: ("layer_norm_eps", 1e-5),
        activation: ("hidden_act", Activation::Gelu),
        prefix: "gpt_neox.",
        tokens: "embed_in.weight",
        positions: None,
        types_and_norm: None,
        block: "layers",
        projections: Names::Joint { all: "attention.query_key_value", by_head: true },
        output: "attention.dense",
        mlp: ["mlp.dense_h_to_4h", "mlp.dense_4h_to_h"],
        norms: ["input_layernorm", "post_attention_layernorm"],
        norms_of_sum: false,
        transposed: true,
        bias: Bias::WhereThere,
        visibility: Visibility::Causal,
    },
];

impl PlainType {
    /// Reads the model up to the last block; a last norm, a pooler and heads for a task are not needed.
    pub(super) fn read(&self, config: &Config, folder: &Path) -> Result<Transformer, LmError> {
        for (key, usual) in self.only {
            config.only(key, usual)?;
        }
        config.divides(self.heads, self.channels)?;
        let (c, heads) = (config.count(self.channels)?, config.count(self.heads)?);
        let d = c / heads;
        let epsilon = config.epsilon(self.epsilon.0, self.epsilon.1)?;
        let hidden = match self.hidden {
            (key, Some(times)) => config.count_if_there(key)?.unwrap_or(times * c),
            (key, None) => config.count(key)?,
        };
        let activation = config.activation(self.activation.0, self.activation.1)?;
        let (mut parallel, mut rotary, mut scale) = (false, None, 1.0 / (d as f64).sqrt());
        if self.positions.is_none() {
            parallel = config.flag("use_parallel_residual", true)?;
            let found = partial_rotary(config, d)?;
            scale = decoder::turned_scale(config, &found, d, scale)?;
            rotary = Some(Arc::new(found));
        }

        let weights = Weights::read(folder, self.prefix, self.tokens)?;
        let context = config.count(self.context)?;
        let block = |layer: usize| {
            let name = |part: &str| format!("{}.{layer}.{part}", self.block);
            let linear =
                |part: &str, shape| weights.linear(&name(part), shape, self.transposed, self.bias);
            let attention = Attention {
                projections: match self.projections {
                    Names::Apart([q, k, v]) => Projections::Apart(Box::new([
                        linear(q, [c, c])?,
                        linear(k, [c, c])?,
                        linear(v, [c, c])?,
                    ])),
                    Names::Joint { all, by_head } => {
                        Projections::Joint { all: linear(all, [c, 3 * c])?, by_head }
                    }
                },
                output: linear(self.output, [c, c])?,
                heads,
                key_heads: heads,
                d,
                scale,
                norm: None,
                rotary: rotary.clone(),
                visibility: self.visibility,
                kind: HeadKind::Global,
                softcap: None,
                sinks: None,
            };
            let mlp = Mlp::Plain {
                input: linear(self.mlp[0], [c, hidden])?,
                activation,
                output: linear(self.mlp[1], [hidden, c])?,
            };
            let norms = |part: &str| -> Result<Norms, LmError> {
                let norm = Some(weights.layer_norm(&name(part), c, epsilon)?);
                Ok(match self.norms_of_sum {
                    true => Norms { of_sum: norm, ..Norms::default() },
                    false => Norms { before: norm, ..Norms::default() },
                })
            };
            let norms = [norms(self.norms[0])?, norms(self.norms[1])?];
            Ok(Block { attention, mlp, norms, parallel })
        };
        let (mut shift, mut norm) = (None, None);
        if let Some([types, normed]) = self.types_and_norm {
            let types = weights.tensor(types, &[config.count("type_vocab_size")?, c])?;
            shift = Some(types.rows(&[0])?.row(0).to_owned());
            norm = Some(weights.layer_norm(normed, c, epsilon)?);
        }
        let positions = self.positions.map(|name| weights.tensor(name, &[context, c]));
        Ok(Transformer {
            embedding: Embedding {
                tokens: weights.tensor(self.tokens, &[config.count("vocab_size")?, c])?,
                scale: 1.0,
                positions: positions.transpose()?,
                shift,
                norm,
            },
            blocks: (0..config.count(self.layers)?).map(block).collect::<Result<_, LmError>>()?,
            context,
        })
    }
}

/// The rotary positions of GPT-NeoX, which rotate only the first of a head's `d` channels.
fn partial_rotary(config: &Config, d: usize) -> Result<Rotary, LmError> {
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
    Rotary::read(&settings, base, turned)
}

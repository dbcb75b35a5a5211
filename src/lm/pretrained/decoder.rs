//! Llama-type decoders: RMSNorm, rotary positions, grouped queries and gated MLPs. The types differ as follows:
//!
//! | `model_type` | differences from Llama (Touvron et al. 2023, arXiv 2302.13971) |
//! |---|---|
//! | `llama` | – |
//! | `mistral` | a window in every layer |
//! | `qwen2` | biases of queries, keys and values; windows from a given layer on |
//! | `qwen3` | windows as in `qwen2`; queries and keys of each head normalised |
//! | `gemma2` | norms before and after, gains 1 + w, embeddings times √C, another scale, softcaps, alternating windows |
//! | `gemma3_text` | as `gemma2` without softcaps; heads normalised; two kinds of rotary positions |
//! | `olmo2` | norms only after; queries and keys normalised over all heads together |
//! | `gpt_oss` | biases, learned sinks, alternating windows, a mixture of experts |

use std::path::Path;
use std::sync::Arc;

use super::attention::{Attention, Projections, QkNorm};
use super::config::Config;
use super::layers::{Activation, Bias, ExpertWeights, Experts, Mlp, Norm};
use super::rotary::{Pairs, Rotary};
use super::transformer::{Block, Embedding, Norms, Transformer};
use super::weights::Weights;
use crate::lm::LmError;
use crate::targets::{HeadKind, Visibility};

pub(super) const NAMES: [&str; 8] =
    ["llama", "mistral", "qwen2", "qwen3", "gemma2", "gemma3_text", "olmo2", "gpt_oss"];

const FULL: &str = "full_attention";
const SLIDING: &str = "sliding_attention";
/// Upper bound for the number of layers, above that of any model.
const MOST_LAYERS: usize = 10_000;

/// Differences between the weights in a file and those that `transformers` saves.
pub(super) struct Form {
    pub(super) pairs: Pairs,
    /// Divisors of the rotary frequencies.
    pub(super) divided: Option<Vec<f32>>,
}

impl Form {
    pub(super) const SAVED: Self = Self { pairs: Pairs::Halves, divided: None };
}

/// Reads the weights in a folder.
pub(super) fn weights(folder: &Path) -> Result<Weights, LmError> {
    Weights::read(folder, "model.", "embed_tokens.weight")
}

/// A type with its configuration.
struct Kind<'c> {
    name: &'static str,
    config: &'c Config,
}

/// Reads the model up to the last block; the last norm and the output layer are not needed for queries and keys.
pub(super) fn read(
    name: &'static str,
    config: &Config,
    weights: &Weights,
    form: &Form,
) -> Result<Transformer, LmError> {
    let kind = Kind { name, config };
    kind.check()?;
    let (c, heads) = (config.count("hidden_size")?, config.count("num_attention_heads")?);
    let key_heads = config.count_if_there("num_key_value_heads")?.unwrap_or(heads);
    if !heads.is_multiple_of(key_heads) {
        return Err(config.wrong(format!(
            "num_attention_heads is {heads}; it must be a multiple of num_key_value_heads, {key_heads}"
        )));
    }
    let d = match config.count_if_there("head_dim")? {
        Some(d) => d,
        None => {
            config.divides("num_attention_heads", "hidden_size")?;
            c / heads
        }
    };
    if !d.is_multiple_of(2) {
        return Err(config.wrong(format!("head_dim is {d}; rotary positions need an even number")));
    }
    let (layers, hidden) = (config.count("num_hidden_layers")?, config.count("intermediate_size")?);
    let windows = kind.windows(layers)?;
    let mut rotaries = Vec::new();
    for layer_type in [FULL, SLIDING] {
        let rotary = kind.rotary(layer_type, d)?.with_pairs(form.pairs);
        rotaries.push(Arc::new(match &form.divided {
            Some(by) => rotary.divided(by),
            None => rotary,
        }));
    }
    let block = |layer: usize| {
        let rotary = &rotaries[usize::from(windows[layer].is_some())];
        let at = |part: &str| format!("layers.{layer}.{part}");
        let linear = |part: &str, shape| weights.linear(&at(part), shape, true, kind.bias(part)?);
        let projections = Projections::Apart(Box::new([
            linear("self_attn.q_proj", [c, heads * d])?,
            linear("self_attn.k_proj", [c, key_heads * d])?,
            linear("self_attn.v_proj", [c, key_heads * d])?,
        ]));
        let norm_of = |side: &str, channels| {
            weights.rms_norm(&at(&format!("self_attn.{side}_norm")), channels, kind.rms()?)
        };
        let norm = match name {
            "qwen3" | "gemma3_text" => Some(QkNorm::Each([norm_of("q", d)?, norm_of("k", d)?])),
            "olmo2" => {
                Some(QkNorm::Together([norm_of("q", heads * d)?, norm_of("k", key_heads * d)?]))
            }
            _ => None,
        };
        let sinks = (name == "gpt_oss").then(|| weights.vector(&at("self_attn.sinks"), heads));
        let attention = Attention {
            projections,
            output: linear("self_attn.o_proj", [heads * d, c])?,
            heads,
            key_heads,
            d,
            scale: turned_scale(config, rotary, d, kind.scale(d)?)?,
            norm,
            rotary: Some(rotary.clone()),
            visibility: Visibility::Causal,
            kind: windows[layer].map_or(HeadKind::Global, |window| HeadKind::Local { window }),
            softcap: kind.softcap()?,
            sinks: sinks.transpose()?,
        };
        let mlp = match name {
            "gpt_oss" => Mlp::Experts(Box::new(experts(config, weights, &at("mlp"), [c, hidden])?)),
            _ => Mlp::Gated {
                gate: linear("mlp.gate_proj", [c, hidden])?,
                up: linear("mlp.up_proj", [c, hidden])?,
                activation: kind.activation()?,
                output: linear("mlp.down_proj", [hidden, c])?,
            },
        };
        let norms = kind.norms(|part| weights.rms_norm(&at(part), c, kind.rms()?))?;
        Ok(Block { attention, mlp, norms, parallel: false })
    };
    let vocabulary = config.count("vocab_size")?;
    Ok(Transformer {
        embedding: Embedding {
            tokens: weights.tensor("embed_tokens.weight", &[vocabulary, c])?,
            scale: if kind.is_gemma() { (c as f32).sqrt() } else { 1.0 },
            positions: None,
            shift: None,
            norm: None,
        },
        blocks: (0..layers).map(block).collect::<Result<_, LmError>>()?,
        context: config.count("max_position_embeddings")?,
    })
}

/// The scale of logits, including the factor from the length of rotated channels.
pub(super) fn turned_scale(
    config: &Config,
    rotary: &Rotary,
    d: usize,
    scale: f64,
) -> Result<f64, LmError> {
    match rotary.factor_of_logits(d) {
        Some(factor) => Ok(scale * factor),
        None => Err(config.wrong(
            "rotates some channels and rescales them (attention_factor), which is not supported; export \
             its heads from PyTorch instead: docs/diagnose.md"
                .to_owned(),
        )),
    }
}

impl Kind<'_> {
    fn is_gemma(&self) -> bool {
        self.name.starts_with("gemma")
    }

    /// Refuses settings that change logits and are not supported.
    fn check(&self) -> Result<(), LmError> {
        self.config.only("partial_rotary_factor", "1.0")?;
        self.config.only("use_bidirectional_attention", "false")?;
        if self.name == "gemma3_text" {
            self.config.only("attn_logit_softcapping", "null")?;
        }
        if let Some(found) = self.config.part("quantization_config")? {
            let method = found.value("quant_method").and_then(|v| v.as_str()).unwrap_or("unnamed");
            if (self.name, method) != ("gpt_oss", "mxfp4") {
                return Err(self.config.wrong(format!(
                    "has weights quantised by {method}, and only mxfp4 of gpt_oss is supported; save them \
                     dequantised"
                )));
            }
        }
        Ok(())
    }

    /// The scale s of the logits s·QKᵀ.
    fn scale(&self, d: usize) -> Result<f64, LmError> {
        let of = match self.is_gemma() {
            true => self.config.above_zero_or("query_pre_attn_scalar", 256.0)?,
            false => d as f64,
        };
        Ok(1.0 / of.sqrt())
    }

    fn softcap(&self) -> Result<Option<f32>, LmError> {
        const KEY: &str = "attn_logit_softcapping";
        if self.name != "gemma2" {
            return Ok(None);
        }
        // Null means no softcap.
        let usual = if self.config.names(KEY) { None } else { Some(50.0) };
        Ok(self.config.above_zero_if_there(KEY)?.or(usual).map(|cap| cap as f32))
    }

    /// ε of a norm, and the offset that is added to its weights.
    fn rms(&self) -> Result<(f32, f32), LmError> {
        let usual = if ["olmo2", "gpt_oss"].contains(&self.name) { 1e-5 } else { 1e-6 };
        let offset = if self.is_gemma() { 1.0 } else { 0.0 };
        Ok((self.config.epsilon("rms_norm_eps", usual)?, offset))
    }

    fn activation(&self) -> Result<Activation, LmError> {
        match self.is_gemma() {
            true => self.config.activation("hidden_activation", Activation::TanhGelu),
            false => self.config.activation("hidden_act", Activation::Silu),
        }
    }

    /// Whether a projection has a bias, as far as the configuration says.
    fn bias(&self, part: &str) -> Result<Bias, LmError> {
        let of_attention = part.starts_with("self_attn");
        let key = if of_attention { "attention_bias" } else { "mlp_bias" };
        Ok(match (self.name, part) {
            ("qwen2", "self_attn.q_proj" | "self_attn.k_proj" | "self_attn.v_proj") => Bias::Always,
            ("mistral" | "qwen2", _) => Bias::Never,
            _ => match self.config.value(key) {
                Some(_) if self.config.flag(key, false)? => Bias::Always,
                Some(_) => Bias::Never,
                None => Bias::WhereThere,
            },
        })
    }

    /// The norms of attention and MLP; `norm` reads one by its name.
    fn norms(&self, norm: impl Fn(&str) -> Result<Norm, LmError>) -> Result<[Norms; 2], LmError> {
        let norm = |part| norm(part).map(Some);
        let before = |part| Ok::<_, LmError>(Norms { before: norm(part)?, ..Norms::default() });
        let after = |part| Ok::<_, LmError>(Norms { after: norm(part)?, ..Norms::default() });
        Ok(match self.name {
            "olmo2" => [after("post_attention_layernorm")?, after("post_feedforward_layernorm")?],
            name if name.starts_with("gemma") => [
                Norms { after: norm("post_attention_layernorm")?, ..before("input_layernorm")? },
                Norms {
                    after: norm("post_feedforward_layernorm")?,
                    ..before("pre_feedforward_layernorm")?
                },
            ],
            _ => [before("input_layernorm")?, before("post_attention_layernorm")?],
        })
    }

    /// The window of each layer; `None` for global layers.
    fn windows(&self, layers: usize) -> Result<Vec<Option<usize>>, LmError> {
        const KEY: &str = "sliding_window";
        let config = self.config;
        if layers > MOST_LAYERS {
            return Err(
                config.wrong(format!("has {layers} layers; it must have at most {MOST_LAYERS}"))
            );
        }
        let asked = match self.name {
            "llama" | "olmo2" => false,
            "qwen2" | "qwen3" => config.flag("use_sliding_window", false)?,
            _ => true,
        };
        // If the key is absent, the type's default window applies.
        let usual = if self.name == "gpt_oss" { 128 } else { 4096 };
        let window = match config.count_if_there(KEY)? {
            _ if !asked => None,
            None if !config.names(KEY) => Some(usual),
            found => found,
        };
        let types = config.words("layer_types")?.filter(|_| self.name != "mistral");
        if let Some(types) = &types {
            if types.len() != layers {
                let found = types.len();
                return Err(config.wrong(format!("layer_types names {found} of {layers} layers")));
            }
            if let Some(other) = types.iter().find(|t| ![FULL, SLIDING].contains(&t.as_str())) {
                return Err(config.wrong(format!(
                    "layer_types has {other:?}; only {FULL} and {SLIDING} are supported"
                )));
            }
        }
        let pattern = match self.name {
            "gemma3_text" => config.count_if_there("sliding_window_pattern")?.unwrap_or(6),
            _ => 2,
        };
        let first = match config.value("max_window_layers").and_then(serde_json::Value::as_u64) {
            Some(first) => first as usize,
            None => 28,
        };
        let slides = |layer: usize| match (&types, self.name) {
            (Some(types), _) => types[layer] == SLIDING,
            (None, "gemma2" | "gemma3_text" | "gpt_oss") => !(layer + 1).is_multiple_of(pattern),
            (None, "qwen2" | "qwen3") => layer >= first,
            (None, name) => name == "mistral",
        };
        Ok((0..layers).map(|layer| window.filter(|_| slides(layer))).collect())
    }

    /// The rotary positions of layers of a type.
    fn rotary(&self, layer_type: &str, d: usize) -> Result<Rotary, LmError> {
        let config = self.config;
        let local = self.name == "gemma3_text" && layer_type == SLIDING;
        let (key, usual) = match self.name {
            "gemma3_text" if local => ("rope_local_base_freq", 10_000.0),
            "gemma3_text" => ("rope_theta", 1_000_000.0),
            "gpt_oss" => ("rope_theta", 150_000.0),
            _ => ("rope_theta", 10_000.0),
        };
        // Newer configurations have one set of settings, or one per type of layer. Older ones scale only global layers.
        let settings = match config.part("rope_parameters")? {
            Some(all) => all.part(layer_type)?.unwrap_or(all),
            None if local => config.nothing(),
            None => config.part("rope_scaling")?.unwrap_or_else(|| config.nothing()),
        };
        settings.only("partial_rotary_factor", "1.0")?;
        let base = match settings.names("rope_theta") {
            true => settings.above_zero("rope_theta")?,
            false => config.above_zero_or(key, usual)?,
        };
        Rotary::read(&settings, base, d)
    }
}

/// Reads the experts of a layer.
fn experts(
    config: &Config,
    weights: &Weights,
    name: &str,
    [c, hidden]: [usize; 2],
) -> Result<Experts, LmError> {
    let count = config.count("num_local_experts")?;
    let chosen = match config.count_if_there("num_experts_per_tok")? {
        Some(chosen) => chosen,
        None => config.count_if_there("experts_per_token")?.unwrap_or(4),
    };
    if chosen > count {
        return Err(config.wrong(format!(
            "num_experts_per_tok is {chosen}; it must be at most num_local_experts, {count}"
        )));
    }
    let part = |part: &str, [inputs, outputs]: [usize; 2]| {
        let name = format!("{name}.experts.{part}");
        let biases = weights.tensor(&format!("{name}_bias"), &[count, outputs])?;
        let blocks = format!("{name}_blocks");
        let matrices = match weights.has(&blocks) {
            true => ExpertWeights::FourBits {
                blocks: weights.tensor(&blocks, &[count, outputs, inputs / 32, 16])?,
                exponents: weights
                    .tensor(&format!("{name}_scales"), &[count, outputs, inputs / 32])?,
            },
            false => ExpertWeights::Numbers(weights.tensor(&name, &[count, inputs, outputs])?),
        };
        Ok::<_, LmError>((matrices, biases))
    };
    Ok(Experts {
        router: weights.linear(&format!("{name}.router"), [c, count], true, Bias::Always)?,
        chosen,
        input: part("gate_up_proj", [c, 2 * hidden])?,
        output: part("down_proj", [hidden, c])?,
        limit: config.above_zero_or("swiglu_limit", 7.0)? as f32,
        alpha: config.above_zero_or("swiglu_alpha", 1.702)? as f32,
    })
}

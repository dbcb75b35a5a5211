//! Llama-type decoders: RMSNorm, rotary positions, grouped queries and gated MLPs. [`TYPES`] says how the types differ.

use std::path::Path;
use std::sync::Arc;

use super::attention::{Attention, Projections, QkNorm};
use super::config::Config;
use super::decoder_types::{Biases, ModelType, NormOver, NormPlaces, TYPES, Windows};
use super::layers::{Activation, Bias, ExpertWeights, Experts, Mlp, Norm};
use super::rotary::{Form, Rotary};
use super::transformer::{Block, Embedding, Norms, Transformer};
use super::weights::Weights;
use crate::lm::LmError;
use crate::targets::{HeadKind, Visibility};

const FULL: &str = "full_attention";
const SLIDING: &str = "sliding_attention";
/// Upper bound for the number of layers, above that of any model.
const MOST_LAYERS: usize = 10_000;

/// Reads the weights in a folder.
pub(super) fn weights(folder: &Path) -> Result<Weights, LmError> {
    Weights::read(folder, "model.", "embed_tokens.weight")
}

/// A type with its configuration.
struct Kind<'c> {
    of: &'static ModelType,
    config: &'c Config,
}

/// Reads the model up to the last block; the last norm and the output layer are not needed for queries and keys.
pub(super) fn read(
    name: &'static str,
    config: &Config,
    weights: &Weights,
    form: &Form,
) -> Result<Transformer, LmError> {
    let of = TYPES.iter().find(|of| of.name == name).expect("a name of this module");
    let kind = Kind { of, config };
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
        rotaries.push(Arc::new(kind.rotary(layer_type, d)?.in_form(form)));
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
        let norm = match of.qk_norm {
            Some(NormOver::Head) => Some(QkNorm::Each([norm_of("q", d)?, norm_of("k", d)?])),
            Some(NormOver::Layer) => {
                Some(QkNorm::Together([norm_of("q", heads * d)?, norm_of("k", key_heads * d)?]))
            }
            None => None,
        };
        let sinks = of.has_experts.then(|| weights.vector(&at("self_attn.sinks"), heads));
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
        let mlp = match of.has_experts {
            true => Mlp::Experts(Box::new(experts(config, weights, &at("mlp"), [c, hidden])?)),
            false => Mlp::Gated {
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
            scale: if of.is_gemma { (c as f32).sqrt() } else { 1.0 },
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
    /// Refuses settings that change logits and are not supported.
    fn check(&self) -> Result<(), LmError> {
        self.config.only("partial_rotary_factor", "1.0")?;
        self.config.only("use_bidirectional_attention", "false")?;
        if self.of.is_gemma && !self.of.has_softcap {
            self.config.only("attn_logit_softcapping", "null")?;
        }
        if let Some(found) = self.config.part("quantization_config")? {
            let method = found.value("quant_method").and_then(|v| v.as_str()).unwrap_or("unnamed");
            if !self.of.has_experts || method != "mxfp4" {
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
        let of = match self.of.is_gemma {
            true => self.config.above_zero_or("query_pre_attn_scalar", 256.0)?,
            false => d as f64,
        };
        Ok(1.0 / of.sqrt())
    }

    fn softcap(&self) -> Result<Option<f32>, LmError> {
        const KEY: &str = "attn_logit_softcapping";
        if !self.of.has_softcap {
            return Ok(None);
        }
        // Null means no softcap.
        let usual = if self.config.names(KEY) { None } else { Some(50.0) };
        Ok(self.config.above_zero_if_there(KEY)?.or(usual).map(|cap| cap as f32))
    }

    /// ε of a norm, and the offset that is added to its weights.
    fn rms(&self) -> Result<(f32, f32), LmError> {
        let offset = if self.of.is_gemma { 1.0 } else { 0.0 };
        Ok((self.config.epsilon("rms_norm_eps", self.of.epsilon)?, offset))
    }

    fn activation(&self) -> Result<Activation, LmError> {
        match self.of.is_gemma {
            true => self.config.activation("hidden_activation", Activation::TanhGelu),
            false => self.config.activation("hidden_act", Activation::Silu),
        }
    }

    /// Whether a projection has a bias, as far as the configuration says.
    fn bias(&self, part: &str) -> Result<Bias, LmError> {
        let of_attention = part.starts_with("self_attn");
        let key = if of_attention { "attention_bias" } else { "mlp_bias" };
        let is_input = ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"].contains(&part);
        Ok(match self.of.biases {
            Biases::Projections if is_input => Bias::Always,
            Biases::Projections | Biases::Never => Bias::Never,
            Biases::Configured => match self.config.value(key) {
                Some(_) if self.config.flag(key, false)? => Bias::Always,
                Some(_) => Bias::Never,
                None => Bias::WhereThere,
            },
        })
    }

    /// The norms of attention and MLP; `norm` reads one by its name.
    fn norms(&self, norm: impl Fn(&str) -> Result<Norm, LmError>) -> Result<[Norms; 2], LmError> {
        // Before and after attention, then before and after the MLP.
        let [attention, mlp] = match self.of.norms {
            NormPlaces::Before => {
                [[Some("input_layernorm"), None], [Some("post_attention_layernorm"), None]]
            }
            NormPlaces::After => [
                [None, Some("post_attention_layernorm")],
                [None, Some("post_feedforward_layernorm")],
            ],
            NormPlaces::Both => [
                [Some("input_layernorm"), Some("post_attention_layernorm")],
                [Some("pre_feedforward_layernorm"), Some("post_feedforward_layernorm")],
            ],
        };
        let read = |[before, after]: [Option<&str>; 2]| -> Result<Norms, LmError> {
            let [before, after] = [before, after].map(|name| name.map(&norm).transpose());
            Ok(Norms { before: before?, after: after?, of_sum: None })
        };
        Ok([read(attention)?, read(mlp)?])
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
        let asked = match self.of.windows {
            Windows::Never => false,
            Windows::From => config.flag("use_sliding_window", false)?,
            _ => true,
        };
        let window = match config.count_if_there(KEY)? {
            _ if !asked => None,
            None if !config.names(KEY) => Some(self.of.window),
            found => found,
        };
        let types =
            config.words("layer_types")?.filter(|_| !matches!(self.of.windows, Windows::All));
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
        let first = config.value("max_window_layers").and_then(serde_json::Value::as_u64);
        let first = first.map_or(28, |first| first as usize);
        let nth = match self.of.windows {
            Windows::AllBut(nth) => nth,
            Windows::AllButPattern(usual) => {
                config.count_if_there("sliding_window_pattern")?.unwrap_or(usual)
            }
            // No layer's.
            _ => usize::MAX,
        };
        let slides = |layer: usize| match (&types, self.of.windows) {
            (Some(types), _) => types[layer] == SLIDING,
            (None, Windows::From) => layer >= first,
            // Types without windows have none to take.
            (None, _) => !(layer + 1).is_multiple_of(nth),
        };
        Ok((0..layers).map(|layer| window.filter(|_| slides(layer))).collect())
    }

    /// The rotary positions of layers of a type.
    fn rotary(&self, layer_type: &str, d: usize) -> Result<Rotary, LmError> {
        let config = self.config;
        let local = self.of.local_rope_theta.filter(|_| layer_type == SLIDING);
        let (key, usual) = match local {
            Some(usual) => ("rope_local_base_freq", usual),
            None => ("rope_theta", self.of.rope_theta),
        };
        // Newer configurations have one set of settings, or one per type of layer. Older ones scale only global layers.
        let settings = match config.part("rope_parameters")? {
            Some(all) => all.part(layer_type)?.unwrap_or(all),
            None if local.is_some() => config.nothing(),
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
    let chosen = config.count_if_there("num_experts_per_tok")?.unwrap_or(4);
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

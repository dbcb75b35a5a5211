//! Reads the configuration and the weights of a model of any type.

use std::sync::Arc;

use super::attention::{Attention, Projections};
use super::config::Config;
use super::layers::{ExpertWeights, Experts, Mlp, Norm};
use super::rotary::Rotary;
use super::transformer::{Block, Embedding, Norms, Output, Transformer};
use super::types::{MlpType, ModelType, NormOver, Windows};
use super::weights::Weights;
use crate::lm::LmError;
use crate::targets::{HeadKind, Visibility};

const FULL: &str = "full_attention";
const SLIDING: &str = "sliding_attention";
/// Upper bound for the number of layers, above that of any model.
const MOST_LAYERS: usize = 10_000;

/// A type with its configuration and weights.
struct Kind<'c> {
    of: &'c ModelType,
    config: &'c Config,
    weights: &'c Weights,
}

/// Reads the model. The output layer may be missing; heads for other tasks are left out.
pub(super) fn read(
    of: &ModelType,
    config: &Config,
    weights: &Weights,
) -> Result<Transformer, LmError> {
    let kind = Kind { of, config, weights };
    kind.check()?;
    let (c, heads) = (kind.count("hidden_size")?, kind.count("num_attention_heads")?);
    let key_heads = match of.joint {
        None => config.count_if_there("num_key_value_heads")?.unwrap_or(heads),
        Some(_) => heads,
    };
    if !heads.is_multiple_of(key_heads) {
        return Err(config.wrong(format!(
            "num_attention_heads is {heads}; it must be a multiple of num_key_value_heads, {key_heads}"
        )));
    }
    let d = match config.count_if_there("head_dim")? {
        Some(d) => d,
        None if c.is_multiple_of(heads) => c / heads,
        None => {
            let [channels, of_heads] =
                ["hidden_size", "num_attention_heads"].map(|key| of.key(key));
            return Err(config.wrong(format!(
                "{channels} is {c}; it must be a multiple of {of_heads}, {heads}"
            )));
        }
    };
    let hidden = match (config.count_if_there(of.key("intermediate_size"))?, of.hidden) {
        (None, Some(times)) => times * c,
        _ => kind.count("intermediate_size")?,
    };
    let (layers, context) =
        (kind.count("num_hidden_layers")?, kind.count("max_position_embeddings")?);
    let windows = kind.windows(layers)?;
    let rotaries = [kind.rotary(FULL, d)?.map(Arc::new), kind.rotary(SLIDING, d)?.map(Arc::new)];
    let parallel = of.parallel && config.flag("use_parallel_residual", true)?;
    let block = |layer: usize| {
        let rotary = &rotaries[usize::from(windows[layer].is_some())];
        let at = |part: &str| format!("{}.{layer}.{}", of.block, of.weight(part));
        let linear =
            |part: &str, shape| weights.linear(&at(part), shape, of.transposed, of.has_biases);
        let norm = |part: &str, channels| kind.norm(&at(part), channels);
        let projections = match of.joint {
            None => Projections::Apart(Box::new([
                linear("self_attn.q_proj", [c, heads * d])?,
                linear("self_attn.k_proj", [c, key_heads * d])?,
                linear("self_attn.v_proj", [c, key_heads * d])?,
            ])),
            Some(by_head) => Projections::Joint {
                all: linear("self_attn.qkv_proj", [c, 3 * heads * d])?,
                by_head,
            },
        };
        let mut qk_norm = None;
        if let Some(over) = of.qk_norm {
            let [of_queries, of_keys] = match over {
                NormOver::Head => [d, d],
                NormOver::Layer => [heads * d, key_heads * d],
            };
            let norms = [norm("self_attn.q_norm", of_queries)?, norm("self_attn.k_norm", of_keys)?];
            qk_norm = Some((over, norms));
        }
        let has_experts = matches!(of.mlp, MlpType::Experts);
        let sinks = has_experts.then(|| weights.vector(&at("self_attn.sinks"), heads));
        let attention = Attention {
            projections,
            output: linear("self_attn.o_proj", [heads * d, c])?,
            heads,
            key_heads,
            d,
            scale: kind.scale(d, rotary.as_deref())?,
            norm: qk_norm,
            rotary: rotary.clone(),
            visibility: of.visibility,
            kind: windows[layer].map_or(HeadKind::Global, |window| HeadKind::Local { window }),
            softcap: kind.softcap()?,
            sinks: sinks.transpose()?,
        };
        let activation = config.activation(of.key("hidden_act"), of.activation)?;
        let mlp = match of.mlp {
            MlpType::Experts => Mlp::Experts(kind.experts(&at("mlp"), [c, hidden])?),
            MlpType::Gated | MlpType::Plain => {
                let is_gated = matches!(of.mlp, MlpType::Gated);
                let gate = is_gated.then(|| linear("mlp.gate_proj", [c, hidden])).transpose()?;
                let up = linear("mlp.up_proj", [c, hidden])?;
                Mlp::Dense { gate, up, activation, output: linear("mlp.down_proj", [hidden, c])? }
            }
        };
        let norms = of.norms.map(|names| -> Result<Norms, LmError> {
            let read = |name: Option<&str>| name.map(|name| norm(name, c)).transpose();
            let [before, after, of_sum] = names.map(read);
            Ok(Norms { before: before?, after: after?, of_sum: of_sum? })
        });
        let [of_attention, of_mlp] = norms;
        Ok(Block { attention, mlp, norms: [of_attention?, of_mlp?], parallel })
    };
    let blocks = (0..layers).map(block).collect::<Result<_, LmError>>()?;
    let embedding = kind.embedding(c, context)?;
    let output = kind.output(&embedding)?;
    Ok(Transformer { embedding, blocks, context, output })
}

impl Kind<'_> {
    /// Refuses settings that change logits and are not supported.
    fn check(&self) -> Result<(), LmError> {
        for (key, usual) in self.of.only {
            self.config.only(key, usual)?;
        }
        if let Some(found) = self.config.part("quantization_config")? {
            let method = found.value("quant_method").and_then(|v| v.as_str()).unwrap_or("unnamed");
            if !matches!(self.of.mlp, MlpType::Experts) || method != "mxfp4" {
                return Err(self.config.wrong(format!(
                    "has weights quantised by {method}, and only mxfp4 of gpt_oss is supported; save them \
                     dequantised"
                )));
            }
        }
        Ok(())
    }

    /// The number at the key that Llama's configuration calls `usual`.
    fn count(&self, usual: &str) -> Result<usize, LmError> {
        self.config.count(self.of.key(usual))
    }

    fn embedding(&self, c: usize, context: usize) -> Result<Embedding, LmError> {
        let table = |part: &str, rows: usize| {
            self.weights.tensor(&format!("{}.weight", self.of.weight(part)), &[rows, c])
        };
        let (mut positions, mut shift, mut norm) = (None, None, None);
        if self.of.rotary_share.is_none() {
            positions = Some(table("embed_positions", context)?);
        }
        if let Some([types, name]) = self.of.types_and_norm {
            let types = self.weights.tensor(types, &[self.count("type_vocab_size")?, c])?;
            shift = Some(types.rows(&[0])?.row(0).to_owned());
            norm = Some(self.norm(name, c)?);
        }
        let scale = if self.of.is_gemma { (c as f32).sqrt() } else { 1.0 };
        let tokens = table("embed_tokens", self.count("vocab_size")?)?;
        Ok(Embedding { tokens, scale, positions, shift, norm })
    }

    /// The output layer, whose matrix may be that of the embedding; `None` if the files lack it.
    fn output(&self, embedding: &Embedding) -> Result<Option<Output>, LmError> {
        let (norm, head) = (self.of.weight("norm"), self.of.weight("lm_head"));
        let is_there =
            self.of.visibility == Visibility::Causal && self.weights.has(&format!("{norm}.weight"));
        let is_tied = self.config.flag("tie_word_embeddings", true)?;
        let own = self.weights.beside(&format!("{head}.weight"));
        let weights = own.or_else(|| is_tied.then(|| embedding.tokens.clone()));
        let sizes = embedding.tokens.dimensions();
        let Some(weights) = weights.filter(|of| is_there && of.dimensions() == sizes) else {
            return Ok(None);
        };
        let softcap = self.config.above_zero_if_there("final_logit_softcapping")?;
        let norm = self.norm(norm, sizes[1])?;
        Ok(Some(Output { norm, weights, softcap: softcap.map(|cap| cap as f32) }))
    }

    /// The scale s of the logits s·QKᵀ, including the factor from the length of rotated channels.
    fn scale(&self, d: usize, rotary: Option<&Rotary>) -> Result<f64, LmError> {
        let of = match self.of.is_gemma {
            true => self.config.above_zero_or("query_pre_attn_scalar", 256.0)?,
            false => d as f64,
        };
        let factor = rotary.map_or(Some(1.0), |rotary| rotary.factor_of_logits(d));
        let factor = factor.ok_or_else(|| {
            self.config.wrong(
                "rotates some channels and rescales them (attention_factor), which is not supported; export \
                 its heads from PyTorch instead: docs/diagnose.md"
                    .to_owned(),
            )
        })?;
        Ok(1.0 / of.sqrt() * factor)
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

    /// A norm with gain and, if it is a layer norm, bias.
    fn norm(&self, name: &str, channels: usize) -> Result<Norm, LmError> {
        let epsilon = self.config.epsilon(self.of.key("rms_norm_eps"), self.of.epsilon)?;
        match self.of.has_layer_norms {
            true => self.weights.layer_norm(name, channels, epsilon),
            false => {
                let offset = if self.of.is_gemma { 1.0 } else { 0.0 };
                self.weights.rms_norm(name, channels, epsilon, offset)
            }
        }
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
            Windows::AllBut(usual) => {
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

    /// The rotary positions of layers of a type; `None` for other positions.
    fn rotary(&self, layer_type: &str, d: usize) -> Result<Option<Rotary>, LmError> {
        let config = self.config;
        let Some(usual_share) = self.of.rotary_share else { return Ok(None) };
        let local = self.of.local_rope_theta.filter(|_| layer_type == SLIDING);
        let (key, usual) = match local {
            Some(usual) => ("rope_local_base_freq", usual),
            None => (self.of.key("rope_theta"), self.of.rope_theta),
        };
        // Newer configurations have one set of settings, or one per type of layer. Older ones scale only global layers.
        let settings = match config.part("rope_parameters")? {
            Some(all) => all.part(layer_type)?.unwrap_or(all),
            None if local.is_some() => config.nothing(),
            None => config.part("rope_scaling")?.unwrap_or_else(|| config.nothing()),
        };
        if usual_share == 1.0 {
            settings.only("partial_rotary_factor", "1.0")?;
        }
        let share = match settings.above_zero_if_there("partial_rotary_factor")? {
            Some(share) => share,
            None => config.above_zero_or("rotary_pct", usual_share)?,
        };
        let base = match settings.names("rope_theta") {
            true => settings.above_zero("rope_theta")?,
            false => config.above_zero_or(key, usual)?,
        };
        let turned = (d as f64 * share) as usize;
        if share > 1.0 || !turned.is_multiple_of(2) || !d.is_multiple_of(2) {
            return Err(config.wrong(format!(
                "rotates {turned} of {d} channels per head; both must be even, and the first at most the second"
            )));
        }
        let rotary = Rotary::read(&settings, base, turned, self.of.pairs)?;
        // A `.gguf` may have divisors of the frequencies instead of settings.
        const DIVISORS: &str = "rope_freqs.weight";
        Ok(Some(match self.weights.dimensions(DIVISORS) {
            Some(&[count]) => rotary.divided_by(&self.weights.vector(DIVISORS, count)?),
            _ => rotary,
        }))
    }

    /// Reads the experts of a layer.
    fn experts(&self, name: &str, [c, hidden]: [usize; 2]) -> Result<Experts, LmError> {
        let Self { config, weights, .. } = *self;
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
            router: weights.linear(&format!("{name}.router"), [c, count], true, true)?,
            chosen,
            input: part("gate_up_proj", [c, 2 * hidden])?,
            output: part("down_proj", [hidden, c])?,
            limit: config.above_zero_or("swiglu_limit", 7.0)? as f32,
            alpha: config.above_zero_or("swiglu_alpha", 1.702)? as f32,
        })
    }
}

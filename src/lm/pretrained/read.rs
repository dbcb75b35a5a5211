//! Reads the configuration and the weights of a model of any type.

use std::sync::Arc;

use super::attention::{Attention, Projections};
use super::config::Config;
use super::layers::{Dense, ExpertMlps, ExpertWeights, Experts, Input, JointExperts, Mlp, Norm};
use super::rotary::Rotary;
use super::transformer::{Block, Embedding, Kept, Norms, Output, Transformer};
use super::types::{
    LocalPositions, MlpType, ModelType, NormOver, NormType, Qkv, Unrotated, Windows,
};
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
    let key_heads = match of.qkv {
        Qkv::JointByHead => heads,
        _ => config.count_if_there("num_key_value_heads")?.unwrap_or(heads),
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
    let is_rotated = kind.rotated(&windows)?;
    let parallel = config.flag("use_parallel_residual", of.parallel)?;
    let residual = config.above_zero_or("residual_multiplier", 1.0)? as f32;
    let block = |layer: usize| {
        let rotary = &rotaries[usize::from(windows[layer].is_some())];
        let rotary = rotary.as_ref().filter(|_| is_rotated[layer]);
        let at = |part: &str| format!("{}.{layer}.{}", of.block, of.weight(part));
        let linear =
            |part: &str, shape| weights.linear(&at(part), shape, of.transposed, of.has_biases);
        let norm = |part: &str, channels| kind.norm(&at(part), channels);
        let projections = match of.qkv {
            Qkv::Apart => Projections::Apart(Box::new([
                linear("self_attn.q_proj", [c, heads * d])?,
                linear("self_attn.k_proj", [c, key_heads * d])?,
                linear("self_attn.v_proj", [c, key_heads * d])?,
            ])),
            Qkv::Joint | Qkv::JointByHead => Projections::Joint {
                all: linear("self_attn.qkv_proj", [c, (heads + 2 * key_heads) * d])?,
                by_head: of.qkv == Qkv::JointByHead,
            },
        };
        let of_queries = format!("{}.weight", at("self_attn.q_norm"));
        if of.qk_norm.is_none() && weights.has(&of_queries) {
            let name = &of.name;
            return Err(config.wrong(format!(
                "has norms of queries and keys ({of_queries}), which are not supported in {name}; export its heads \
                 from PyTorch instead: docs/diagnose.md"
            )));
        }
        let mut qk_norm = None;
        if let Some(over) = of.qk_norm {
            let [of_queries, of_keys] = match over {
                NormOver::Head => [d, d],
                NormOver::Layer => [heads * d, key_heads * d],
            };
            let norms = [norm("self_attn.q_norm", of_queries)?, norm("self_attn.k_norm", of_keys)?];
            qk_norm = Some((over, norms));
        }
        let has_experts = of.mlp == MlpType::Experts;
        let sinks = has_experts.then(|| weights.vector(&at("self_attn.sinks"), heads));
        let attention = Attention {
            projections,
            output: linear("self_attn.o_proj", [heads * d, c])?,
            heads,
            key_heads,
            d,
            scale: kind.scale(d, rotary.map(|rotary| &**rotary))?,
            norm: qk_norm,
            rotary: rotary.cloned(),
            visibility: of.visibility,
            kind: windows[layer].map_or(HeadKind::Global, |window| HeadKind::Local { window }),
            softcap: kind.softcap()?,
            sinks: sinks.transpose()?,
        };
        let mlp = match of.mlp {
            MlpType::Experts => Mlp::Experts(kind.joint_experts(&at("mlp"), [c, hidden])?),
            MlpType::Routed => {
                // Older configurations of Qwen 3 call it num_experts.
                let count = match config.count_if_there("num_experts")? {
                    Some(count) => count,
                    None => config.count("num_local_experts")?,
                };
                let mlp = at("mlp");
                let expert = |expert: usize| {
                    let name = |part: &str| format!("{mlp}.experts.{expert}.{}", of.weight(part));
                    kind.dense(&name, [c, hidden])
                };
                Mlp::Experts(Experts {
                    router: weights.linear(&format!("{mlp}.gate"), [c, count], true, false)?,
                    chosen: kind.chosen(count, 2)?,
                    among_chosen: config.flag("norm_topk_prob", of.normalises_chosen)?,
                    all: ExpertMlps::Apart((0..count).map(expert).collect::<Result<_, _>>()?),
                })
            }
            _ => Mlp::Dense(Box::new(kind.dense(&|part| at(&format!("mlp.{part}")), [c, hidden])?)),
        };
        let norms = of.norms.each_ref().map(|names| -> Result<Norms, LmError> {
            let read = |name: &String| (!name.is_empty()).then(|| norm(name, c)).transpose();
            let [before, after, of_sum] = names.each_ref().map(read);
            Ok(Norms { before: before?, after: after?, of_sum: of_sum? })
        });
        let [of_attention, of_mlp] = norms;
        Ok(Block { attention, mlp, norms: [of_attention?, of_mlp?], parallel, residual })
    };
    let blocks = (0..layers).map(block).collect::<Result<_, LmError>>()?;
    let embedding = kind.embedding(c, context)?;
    let positions =
        embedding.positions.iter().map(|(all, first)| all.dimensions()[0].saturating_sub(*first));
    let original = rotaries.iter().flatten().filter_map(|rotary| rotary.context());
    let context = positions.chain(original).fold(context, usize::min);
    let output = kind.output(&embedding)?;
    Ok(Transformer { embedding, blocks, context, output, kept: Kept::default() })
}

impl Kind<'_> {
    /// Refuses settings that change logits and are not supported.
    fn check(&self) -> Result<(), LmError> {
        for (key, usual) in &self.of.only {
            self.config.only(key, usual)?;
        }
        if let Some(found) = self.config.part("quantization_config")? {
            let method = found.value("quant_method").and_then(|v| v.as_str()).unwrap_or("unnamed");
            if self.of.mlp != MlpType::Experts || method != "mxfp4" {
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
        if self.of.rotary_share == 0.0 {
            // RoBERTa's configuration counts the rows before the first position, OPT's does not.
            let first = self.of.first_position;
            let name = format!("{}.weight", self.of.weight("embed_positions"));
            let is_longer =
                self.weights.dimensions(&name).is_some_and(|of| of[0] == context + first);
            let rows = if is_longer { context + first } else { context };
            positions = Some((table("embed_positions", rows)?, first));
        }
        if let Some([types, name]) = &self.of.types_and_norm {
            let types = self.weights.tensor(types, &[self.count("type_vocab_size")?, c])?;
            shift = Some(types.rows(&[0])?.row(0).to_owned());
            norm = Some(self.norm(name, c)?);
        }
        let scale = match self.of.is_gemma {
            true => (c as f32).sqrt(),
            false => self.config.above_zero_or("embedding_multiplier", 1.0)? as f32,
        };
        let tokens = table("embed_tokens", self.count("vocab_size")?)?;
        Ok(Embedding { tokens, scale, positions, shift, norm })
    }

    /// The output layer, whose matrix may be that of the embedding; `None` if the files lack it.
    fn output(&self, embedding: &Embedding) -> Result<Option<Output>, LmError> {
        let (norm, head) = (self.of.weight("norm"), self.of.weight("lm_head"));
        let is_bare = matches!(self.of.norm, NormType::Layer { has_gain: false, .. });
        let is_there = self.of.visibility == Visibility::Causal
            && (is_bare || self.weights.has(&format!("{norm}.weight")));
        let is_tied = self.config.flag("tie_word_embeddings", true)?;
        let own = self.weights.beside(&format!("{head}.weight"));
        let weights = own.or_else(|| is_tied.then(|| embedding.tokens.clone()));
        let sizes = embedding.tokens.dimensions();
        let Some(weights) = weights.filter(|of| is_there && of.dimensions() == sizes) else {
            return Ok(None);
        };
        let softcap = self.config.above_zero_if_there("final_logit_softcapping")?;
        let norm = self.norm(norm, sizes[1])?;
        // Cohere's configuration has the factor, Granite's the divisor.
        let scale = self.config.above_zero_or("logit_scale", self.of.logit_scale)?
            / self.config.above_zero_or("logits_scaling", 1.0)?;
        let softcap = softcap.map(|cap| cap as f32);
        Ok(Some(Output { norm, weights, scale: scale as f32, softcap }))
    }

    /// The scale s of the logits s·QKᵀ, including the factor from the length of rotated channels.
    fn scale(&self, d: usize, rotary: Option<&Rotary>) -> Result<f64, LmError> {
        let of = match self.of.is_gemma {
            true => self.config.above_zero_or(self.of.key("query_pre_attn_scalar"), 256.0)?,
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
        let scale = self.config.above_zero_or("attention_multiplier", 1.0 / of.sqrt())?;
        Ok(scale * factor)
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

    fn norm(&self, name: &str, channels: usize) -> Result<Norm, LmError> {
        let epsilon = self.config.epsilon(self.of.key("rms_norm_eps"), self.of.epsilon)?;
        self.weights.norm(name, channels, epsilon, self.of.norm)
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

    /// Whether each layer with these windows has rotary positions, if the type has them.
    fn rotated(&self, windows: &[Option<usize>]) -> Result<Vec<bool>, LmError> {
        const KEY: &str = "no_rope_layers";
        let every = self.config.count_if_there("no_rope_layer_interval")?.unwrap_or(4);
        let listed = self.config.numbers(KEY)?;
        if let Some(found) = listed.as_ref().map(Vec::len).filter(|&of| of != windows.len()) {
            let layers = windows.len();
            return Err(self.config.wrong(format!("{KEY} names {found} of {layers} layers")));
        }
        let has_windows = windows.iter().any(Option::is_some);
        let of_layer = |layer: usize| match (self.of.unrotated, &listed) {
            (Unrotated::Never, _) => true,
            (Unrotated::Global, _) => windows[layer].is_some() || !has_windows,
            (Unrotated::Listed, Some(listed)) => listed[layer] != 0.0,
            (Unrotated::Listed, None) => !(layer + 1).is_multiple_of(every),
        };
        Ok((0..windows.len()).map(of_layer).collect())
    }

    /// The rotary positions of layers of a type; `None` for other positions.
    fn rotary(&self, layer_type: &str, d: usize) -> Result<Option<Rotary>, LmError> {
        let config = self.config;
        if self.of.rotary_share == 0.0 {
            return Ok(None);
        }
        let own = (self.of.key("rope_theta"), self.of.rope_theta);
        let (is_local, key, usual) = match self.of.local {
            LocalPositions::Base(usual) if layer_type == SLIDING => {
                (true, "rope_local_base_freq", usual)
            }
            LocalPositions::Unscaled => (layer_type == SLIDING, own.0, own.1),
            _ => (false, own.0, own.1),
        };
        // Newer configurations have one set of settings, or one per type of layer. Older ones scale only global layers.
        let settings = match config.part("rope_parameters")? {
            Some(all) => all.part(layer_type)?.unwrap_or(all),
            None if is_local => config.nothing(),
            None => config.part("rope_scaling")?.unwrap_or_else(|| config.nothing()),
        };
        let lengths = ["max_position_embeddings", "original_max_position_embeddings"];
        let settings = settings.or_from(config, &lengths);
        const SHARE: &str = "partial_rotary_factor";
        if self.of.only.contains_key(SHARE) {
            settings.only(SHARE, "1.0")?;
        }
        let share = match [settings.above_zero_if_there(SHARE)?, config.above_zero_if_there(SHARE)?]
        {
            [Some(share), _] | [_, Some(share)] => share,
            _ => config.above_zero_or("rotary_pct", self.of.rotary_share)?,
        };
        let base = match settings.names("rope_theta") {
            true => settings.above_zero("rope_theta")?,
            false => config.above_zero_or(key, usual)?,
        };
        // Shares are ratios of whole numbers, rounded.
        let turned = (d as f64 * share + 1e-9) as usize;
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

    /// An MLP of one expert or of all tokens; `name` gives the full names of its weights.
    fn dense(
        &self,
        name: &dyn Fn(&str) -> String,
        [c, hidden]: [usize; 2],
    ) -> Result<Dense, LmError> {
        let Self { of, config, weights } = *self;
        let part =
            |part: &str, shape| weights.linear(&name(part), shape, of.transposed, of.has_biases);
        let input = match of.mlp {
            MlpType::GatedJoint => Input::Joint(part("gate_up_proj", [c, 2 * hidden])?),
            MlpType::Plain => Input::Plain(part("up_proj", [c, hidden])?),
            _ => Input::Gated {
                gate: part("gate_proj", [c, hidden])?,
                up: part("up_proj", [c, hidden])?,
            },
        };
        let activation = config.activation(of.key("hidden_act"), of.activation)?;
        Ok(Dense { input, activation, output: part("down_proj", [hidden, c])? })
    }

    /// The number of experts for each token, of `count`.
    fn chosen(&self, count: usize, usual: usize) -> Result<usize, LmError> {
        let chosen = self.config.count_if_there("num_experts_per_tok")?.unwrap_or(usual);
        if chosen > count {
            return Err(self.config.wrong(format!(
                "num_experts_per_tok is {chosen}; it must be at most the number of experts, {count}"
            )));
        }
        Ok(chosen)
    }

    /// Reads the experts of a layer whose weights are in one tensor.
    fn joint_experts(&self, name: &str, [c, hidden]: [usize; 2]) -> Result<Experts, LmError> {
        let Self { config, weights, .. } = *self;
        let count = config.count("num_local_experts")?;
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
            chosen: self.chosen(count, 4)?,
            among_chosen: true,
            all: ExpertMlps::Joint(Box::new(JointExperts {
                input: part("gate_up_proj", [c, 2 * hidden])?,
                output: part("down_proj", [hidden, c])?,
                limit: config.above_zero_or("swiglu_limit", 7.0)? as f32,
                alpha: config.above_zero_or("swiglu_alpha", 1.702)? as f32,
            })),
        })
    }
}

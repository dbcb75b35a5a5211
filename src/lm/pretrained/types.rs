//! What a type of published model is: how it differs from Llama (Touvron et al. 2023, arXiv 2302.13971).

use serde::Deserialize;

use super::layers::Activation;
use super::type_table::TYPES;
use crate::targets::Visibility;

/// A type of model, as its differences from Llama.
#[derive(Clone, Copy)]
pub(super) struct ModelType {
    /// `model_type` of its configuration.
    pub name: &'static str,
    /// Keys of its configuration: Llama's, and its own.
    pub keys: &'static [(&'static str, &'static str)],
    /// Keys that affect logits or the mask, each with the only supported value, in JSON.
    pub only: &'static [(&'static str, &'static str)],
    /// Sizes that configurations of models for texts and images leave out, where they are these.
    pub usual: &'static [(&'static str, u64)],
    /// Prefix of all weight names in models saved with a head for a task.
    pub prefix: &'static str,
    /// Prefix of the weight names of a block, before its number.
    pub block: &'static str,
    /// Weight names: Llama's, and its own.
    pub weights: &'static [(&'static str, &'static str)],
    /// Whether matrices are stored as outputs × inputs.
    pub transposed: bool,
    /// Whether all projections have biases; otherwise those have one whose bias is in the file.
    pub has_biases: bool,
    /// One matrix for queries, keys and values, if there is one; `true` for the order of
    /// [`Projections::Joint`](super::attention::Projections::Joint) by head.
    pub joint: Option<bool>,
    /// Normalisation of queries and keys.
    pub qk_norm: Option<NormOver>,
    /// The norms before and after attention, and of the sum of the residual stream and its output; the same of the MLP.
    pub norms: [[Option<&'static str>; 3]; 2],
    pub norm: NormType,
    /// ε of the norms, where the configuration has none.
    pub epsilon: f32,
    /// Embeddings times √C, the scale by `query_pre_attn_scalar`.
    pub is_gemma: bool,
    pub mlp: MlpType,
    /// Whether the weights of a token's experts sum to 1, where the configuration has no `norm_topk_prob`.
    pub normalises_chosen: bool,
    /// The activation of the MLP, where the configuration has none.
    pub activation: Activation,
    /// The MLP's hidden size as a multiple of C, where the configuration has none.
    pub hidden: Option<usize>,
    /// The rotary positions' share of a head's channels, where the configuration has none; `None` for learned positions.
    pub rotary_share: Option<f64>,
    /// The factor of the output's logits, where the configuration has no `logit_scale`.
    pub logit_scale: f64,
    /// The channels that are rotated together.
    pub pairs: Pairs,
    /// The base of the rotary positions, where the configuration has none.
    pub rope_theta: f64,
    pub local: LocalPositions,
    /// The layers without rotary positions.
    pub unrotated: Unrotated,
    /// The row of the first token's learned position.
    pub first_position: usize,
    pub windows: Windows,
    /// The window, where the configuration has none.
    pub window: usize,
    pub has_softcap: bool,
    pub visibility: Visibility,
    /// Whether the MLP is parallel to attention, where the configuration has no `use_parallel_residual`.
    pub parallel: bool,
    /// The embedding of token types, of which the first is used for every token, and the norm after the embeddings.
    pub types_and_norm: Option<[&'static str; 2]>,
}

/// Which channels form a pair.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(in crate::lm) enum Pairs {
    /// Channels i and i + r/2 of the r rotated ones.
    Halves,
    /// Channels 2i and 2i + 1.
    Neighbours,
}

impl Pairs {
    /// The order of `d` channels in which pairs are adjacent; `pairs` of them are rotated.
    pub(in crate::lm) fn order(self, pairs: usize, d: usize) -> Vec<usize> {
        match self {
            Self::Neighbours => (0..d).collect(),
            Self::Halves => (0..pairs).flat_map(|i| [i, pairs + i]).chain(2 * pairs..d).collect(),
        }
    }
}

/// The channels that are normalised together.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(in crate::lm) enum NormOver {
    /// The channels of each head.
    Head,
    /// The channels of all heads.
    Layer,
}

/// A norm: its gains are `offset` + w, or 1 where the type has no w.
#[derive(Clone, Copy)]
pub(super) enum NormType {
    Rms { offset: f32 },
    Layer { offset: f32, has_gain: bool, has_bias: bool },
}

/// The rotary positions of layers with a window.
#[derive(Clone, Copy)]
pub(super) enum LocalPositions {
    /// Those of the other layers.
    Shared,
    /// Those of the other layers, without scaling.
    Unscaled,
    /// Of `rope_local_base_freq`, or this base.
    Base(f64),
}

/// The layers without rotary positions.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Unrotated {
    Never,
    /// Those with a zero in `no_rope_layers`; every fourth, if the configuration does not have it.
    Listed,
    /// Those without a window, in models that have windows.
    Global,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum MlpType {
    Gated,
    /// The same, with the gate and the other projection in one matrix.
    GatedJoint,
    Plain,
    /// A mixture of gated MLPs, each with weights of its own.
    Routed,
    /// That of gpt-oss; attention has learned sinks.
    Experts,
}

/// The layers with a window, where the configuration has no `layer_types`.
#[derive(Clone, Copy)]
pub(super) enum Windows {
    Never,
    /// All, whatever `layer_types` says.
    All,
    /// From layer `max_window_layers` on, if `use_sliding_window` says so.
    From,
    /// All but every n-th, where `sliding_window_pattern` is n if the configuration has it.
    AllBut(usize),
}

/// Models in a `.gguf`: `general.architecture`, its type, and whether a file has the channels of rotary pairs adjacent, as
/// converters write those of Llama and its kin.
const ARCHITECTURES: &[(&str, &str, bool)] = &[
    ("llama", "llama", true),
    ("qwen2", "qwen2", false),
    ("qwen3", "qwen3", false),
    ("gemma", "gemma", false),
    ("gemma2", "gemma2", false),
    ("gemma3", "gemma3_text", false),
    ("olmo", "olmo", true),
    ("olmo2", "olmo2", false),
    ("granite", "granite", true),
    ("phi3", "phi3", false),
    ("glm4", "glm4", true),
    ("gpt2", "gpt2", false),
    ("gptneox", "gpt_neox", false),
    ("bert", "bert", false),
    ("starcoder2", "starcoder2", false),
    ("stablelm", "stablelm", false),
    ("nemotron", "nemotron", false),
    ("command-r", "cohere", true),
    ("cohere2", "cohere2", true),
];

/// The weight names in a `.gguf`: Llama's, and its own.
const IN_GGUF: &[(&str, &str)] = &[
    ("embed_tokens", "token_embd"),
    ("embed_positions", "position_embd"),
    ("self_attn.q_proj", "attn_q"),
    ("self_attn.k_proj", "attn_k"),
    ("self_attn.v_proj", "attn_v"),
    ("self_attn.qkv_proj", "attn_qkv"),
    ("self_attn.o_proj", "attn_output"),
    ("self_attn.q_norm", "attn_q_norm"),
    ("self_attn.k_norm", "attn_k_norm"),
    ("mlp.gate_proj", "ffn_gate"),
    ("mlp.gate_up_proj", "ffn_up"),
    ("mlp.up_proj", "ffn_up"),
    ("mlp.down_proj", "ffn_down"),
    ("norm", "output_norm"),
    ("lm_head", "output"),
];
/// The norms there, in the order of [`ModelType::norms`].
const NORMS_IN_GGUF: [[&str; 3]; 2] = [
    ["attn_norm", "post_attention_norm", "attn_output_norm"],
    ["ffn_norm", "post_ffw_norm", "layer_output_norm"],
];

impl ModelType {
    /// The type of this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        TYPES.iter().find(|of| of.name == name)
    }

    /// The type of a `.gguf` with this `general.architecture`, with the weights of such a file.
    ///
    /// # Errors
    /// Another architecture; the supported ones.
    pub fn of_gguf(architecture: &str) -> Result<Self, Vec<&'static str>> {
        let found = ARCHITECTURES.iter().find(|(name, ..)| *name == architecture);
        let &(_, name, is_adjacent) = found
            .ok_or_else(|| ARCHITECTURES.iter().map(|&(name, ..)| name).collect::<Vec<_>>())?;
        let of = Self::named(name).expect("every architecture has a type");
        // Where both parts read the same norm, a file has that of attention alone.
        let norm = |part: usize, slot: usize| {
            let own = of.norms[part][slot]?;
            let is_shared = of.norms[0][slot] == Some(own);
            Some(NORMS_IN_GGUF[if is_shared { 0 } else { part }][slot])
        };
        Ok(Self {
            prefix: "",
            block: "blk",
            weights: IN_GGUF,
            transposed: true,
            joint: of.joint.map(|_| false),
            norms: std::array::from_fn(|part| std::array::from_fn(|slot| norm(part, slot))),
            // Gains are stored with their offset.
            norm: match of.norm {
                NormType::Rms { .. } => NormType::Rms { offset: 0.0 },
                NormType::Layer { has_gain, has_bias, .. } => {
                    NormType::Layer { offset: 0.0, has_gain, has_bias }
                }
            },
            pairs: if is_adjacent { Pairs::Neighbours } else { Pairs::Halves },
            types_and_norm: of.types_and_norm.map(|_| ["token_types.weight", "token_embd_norm"]),
            ..*of
        })
    }

    /// The key of its configuration that Llama's calls `usual`.
    pub fn key<'k>(&self, usual: &'k str) -> &'k str {
        own(self.keys, usual)
    }

    /// The name of its weights that Llama's are called, without `.weight`.
    pub fn weight<'k>(&self, usual: &'k str) -> &'k str {
        own(self.weights, usual)
    }
}

fn own<'k>(names: &[(&str, &'static str)], usual: &'k str) -> &'k str {
    names.iter().find(|(llama, _)| *llama == usual).map_or(usual, |&(_, own)| own)
}

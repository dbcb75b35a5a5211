//! What a type of published model is: how it differs from Llama (Touvron et al. 2023, arXiv 2302.13971).

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;
use toml::Table;

use super::layers::Activation;
use crate::targets::Visibility;

/// A name of Llama's to the type's own.
type Names = BTreeMap<String, String>;

/// A type of model, as its differences from Llama: an entry of types.toml.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ModelType {
    /// `model_type` of its configuration.
    pub name: String,
    /// What a `.gguf` with such a model is.
    pub gguf: Option<Gguf>,
    /// Keys of its configuration: Llama's, and its own.
    pub keys: Names,
    /// Keys that affect logits or the mask, each with the only supported value, in JSON.
    pub only: Names,
    /// Sizes that configurations of models for texts and images leave out, where they are these.
    pub usual: BTreeMap<String, u64>,
    /// Prefix of all weight names in models saved with a head for a task.
    pub prefix: String,
    /// Prefix of the weight names of a block, before its number.
    pub block: String,
    /// Weight names: Llama's, and its own.
    pub weights: Names,
    /// Whether matrices are stored as outputs × inputs.
    pub transposed: bool,
    /// Whether all projections have biases; otherwise those have one whose bias is in the file.
    pub has_biases: bool,
    pub qkv: Qkv,
    /// Normalisation of queries and keys.
    pub qk_norm: Option<NormOver>,
    /// The norms before and after attention, and of the sum of the residual stream and its output; the same of the MLP. Where
    /// there is none, the name is empty.
    pub norms: [[String; 3]; 2],
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
    /// The rotary positions' share of a head's channels, where the configuration has none; 0 for learned positions.
    pub rotary_share: f64,
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
    pub types_and_norm: Option<[String; 2]>,
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

/// The `general.architecture` of a `.gguf`, and the channels of rotary pairs in its files.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Gguf {
    architecture: String,
    pairs: Pairs,
}

/// The matrices of queries, keys and values.
#[derive(Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Qkv {
    Apart,
    /// One matrix: all queries, all keys, all values.
    Joint,
    /// One matrix: those of the first head, then of the second, and so on.
    JointByHead,
}

/// A norm: its gains are `offset` + w, or 1 where the type has no w.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind", deny_unknown_fields)]
pub(super) enum NormType {
    Rms { offset: f32 },
    Layer { offset: f32, has_gain: bool, has_bias: bool },
}

/// The rotary positions of layers with a window.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum LocalPositions {
    /// Those of the other layers.
    Shared,
    /// Those of the other layers, without scaling.
    Unscaled,
    /// Of `rope_local_base_freq`, or this base.
    Base(f64),
}

/// The layers without rotary positions.
#[derive(Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Unrotated {
    Never,
    /// Those with a zero in `no_rope_layers`; every fourth, if the configuration does not have it.
    Listed,
    /// Those without a window, in models that have windows.
    Global,
}

#[derive(Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
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
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Windows {
    Never,
    /// All, whatever `layer_types` says.
    All,
    /// From layer `max_window_layers` on, if `use_sliding_window` says so.
    From,
    /// All but every n-th, where `sliding_window_pattern` is n if the configuration has it.
    AllBut(usize),
}

/// All types, by name.
pub(super) static TYPES: LazyLock<Vec<ModelType>> = LazyLock::new(|| {
    let all: Table = include_str!("types.toml").parse().expect("types.toml is TOML");
    let read = |name: &String| {
        let mut entry = with_parents(&all, name);
        entry.insert("name".to_owned(), name.clone().into());
        entry.try_into().unwrap_or_else(|e| panic!("types.toml: {name}: {e}"))
    };
    all.keys().map(read).collect()
});

/// An entry with the keys of the types that it is `like`.
fn with_parents(all: &Table, name: &str) -> Table {
    let mut own = all[name].as_table().expect("a type is a table").clone();
    let Some(parent) = own.remove("like") else { return own };
    let mut whole = with_parents(all, parent.as_str().expect("`like` is a name"));
    whole.remove("gguf");
    whole.extend(own);
    whole
}

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
        let known = || TYPES.iter().filter_map(|of| Some((of, of.gguf.as_ref()?)));
        let Some((of, gguf)) = known().find(|(_, gguf)| gguf.architecture == architecture) else {
            return Err(known().map(|(_, gguf)| &*gguf.architecture).collect());
        };
        // Where both parts read the same norm, a file has that of attention alone.
        let norm = |part: usize, slot: usize| {
            let own = &of.norms[part][slot];
            let part = if of.norms[0][slot] == *own { 0 } else { part };
            if own.is_empty() { String::new() } else { NORMS_IN_GGUF[part][slot].to_owned() }
        };
        let named = |names: &[(&str, &str)]| {
            names.iter().map(|(usual, own)| ((*usual).to_owned(), (*own).to_owned())).collect()
        };
        Ok(Self {
            prefix: String::new(),
            block: "blk".to_owned(),
            weights: named(IN_GGUF),
            transposed: true,
            qkv: if of.qkv == Qkv::JointByHead { Qkv::Joint } else { of.qkv },
            norms: std::array::from_fn(|part| std::array::from_fn(|slot| norm(part, slot))),
            // Gains are stored with their offset.
            norm: match of.norm {
                NormType::Rms { .. } => NormType::Rms { offset: 0.0 },
                NormType::Layer { has_gain, has_bias, .. } => {
                    NormType::Layer { offset: 0.0, has_gain, has_bias }
                }
            },
            pairs: gguf.pairs,
            types_and_norm: of
                .types_and_norm
                .as_ref()
                .map(|_| ["token_types.weight", "token_embd_norm"].map(str::to_owned)),
            ..of.clone()
        })
    }

    /// The key of its configuration that Llama's calls `usual`.
    pub fn key<'k>(&'k self, usual: &'k str) -> &'k str {
        self.keys.get(usual).map_or(usual, String::as_str)
    }

    /// The name of its weights that Llama's are called, without `.weight`.
    pub fn weight<'k>(&'k self, usual: &'k str) -> &'k str {
        self.weights.get(usual).map_or(usual, String::as_str)
    }
}

//! The types of published models: each an entry that says how it differs from Llama (Touvron et al. 2023, arXiv 2302.13971).

use serde::Deserialize;

use super::layers::Activation;
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
    /// Layer norms instead of RMSNorms.
    pub has_layer_norms: bool,
    /// ε of the norms, where the configuration has none.
    pub epsilon: f32,
    /// Gains of 1 + w, embeddings times √C, the scale by `query_pre_attn_scalar`.
    pub is_gemma: bool,
    pub mlp: MlpType,
    /// The activation of the MLP, where the configuration has none.
    pub activation: Activation,
    /// The MLP's hidden size as a multiple of C, where the configuration has none.
    pub hidden: Option<usize>,
    /// The rotary positions' share of a head's channels, where the configuration has none; `None` for learned positions.
    pub rotary_share: Option<f64>,
    /// The channels that are rotated together.
    pub pairs: Pairs,
    /// The base of the rotary positions, where the configuration has none.
    pub rope_theta: f64,
    /// The same of local layers, if they have positions of their own.
    pub local_rope_theta: Option<f64>,
    pub windows: Windows,
    /// The window, where the configuration has none.
    pub window: usize,
    pub has_softcap: bool,
    pub visibility: Visibility,
    /// Whether the MLP is parallel to attention, unless `use_parallel_residual` is false.
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

#[derive(Clone, Copy)]
pub(super) enum MlpType {
    Gated,
    Plain,
    /// A mixture of experts; attention has learned sinks.
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

const FIRST: Option<&str> = Some("input_layernorm");
const SECOND: Option<&str> = Some("post_attention_layernorm");
const LAST: Option<&str> = Some("post_feedforward_layernorm");

const LLAMA: ModelType = ModelType {
    name: "llama",
    keys: &[],
    only: &[("partial_rotary_factor", "1.0"), ("use_bidirectional_attention", "false")],
    usual: &[],
    prefix: "model.",
    block: "layers",
    weights: &[],
    transposed: true,
    has_biases: false,
    joint: None,
    qk_norm: None,
    norms: [[FIRST, None, None], [SECOND, None, None]],
    has_layer_norms: false,
    epsilon: 1e-6,
    is_gemma: false,
    mlp: MlpType::Gated,
    activation: Activation::Silu,
    hidden: None,
    rotary_share: Some(1.0),
    pairs: Pairs::Halves,
    rope_theta: 10_000.0,
    local_rope_theta: None,
    windows: Windows::Never,
    window: 4096,
    has_softcap: false,
    visibility: Visibility::Causal,
    parallel: false,
    types_and_norm: None,
};

const GEMMA2: ModelType = ModelType {
    name: "gemma2",
    keys: &[("hidden_act", "hidden_activation")],
    norms: [[FIRST, SECOND, None], [Some("pre_feedforward_layernorm"), LAST, None]],
    is_gemma: true,
    activation: Activation::TanhGelu,
    windows: Windows::AllBut(2),
    has_softcap: true,
    ..LLAMA
};

const QWEN3: ModelType =
    ModelType { name: "qwen3", qk_norm: Some(NormOver::Head), windows: Windows::From, ..LLAMA };

/// GPT-2 (Radford et al. 2019).
const GPT2: ModelType = ModelType {
    name: "gpt2",
    keys: &[
        ("hidden_size", "n_embd"),
        ("num_attention_heads", "n_head"),
        ("num_hidden_layers", "n_layer"),
        ("max_position_embeddings", "n_positions"),
        ("intermediate_size", "n_inner"),
        ("rms_norm_eps", "layer_norm_epsilon"),
        ("hidden_act", "activation_function"),
    ],
    only: &[("scale_attn_weights", "true"), ("scale_attn_by_inverse_layer_idx", "false")],
    prefix: "transformer.",
    block: "h",
    weights: &[
        ("embed_tokens", "wte"),
        ("embed_positions", "wpe"),
        ("self_attn.qkv_proj", "attn.c_attn"),
        ("self_attn.o_proj", "attn.c_proj"),
        ("mlp.up_proj", "mlp.c_fc"),
        ("mlp.down_proj", "mlp.c_proj"),
        ("input_layernorm", "ln_1"),
        ("post_attention_layernorm", "ln_2"),
        ("norm", "ln_f"),
    ],
    transposed: false,
    has_biases: true,
    joint: Some(false),
    has_layer_norms: true,
    epsilon: 1e-5,
    mlp: MlpType::Plain,
    activation: Activation::TanhGelu,
    hidden: Some(4),
    rotary_share: None,
    ..LLAMA
};

/// BERT (Devlin et al. 2018, arXiv 1810.04805).
const BERT: ModelType = ModelType {
    name: "bert",
    keys: &[("rms_norm_eps", "layer_norm_eps")],
    only: &[("position_embedding_type", "\"absolute\""), ("is_decoder", "false")],
    prefix: "bert.",
    block: "encoder.layer",
    weights: &[
        ("embed_tokens", "embeddings.word_embeddings"),
        ("embed_positions", "embeddings.position_embeddings"),
        ("self_attn.q_proj", "attention.self.query"),
        ("self_attn.k_proj", "attention.self.key"),
        ("self_attn.v_proj", "attention.self.value"),
        ("self_attn.o_proj", "attention.output.dense"),
        ("mlp.up_proj", "intermediate.dense"),
        ("mlp.down_proj", "output.dense"),
        ("input_layernorm", "attention.output.LayerNorm"),
        ("post_attention_layernorm", "output.LayerNorm"),
    ],
    has_biases: true,
    norms: [[None, None, FIRST], [None, None, SECOND]],
    has_layer_norms: true,
    epsilon: 1e-12,
    mlp: MlpType::Plain,
    activation: Activation::Gelu,
    rotary_share: None,
    visibility: Visibility::Bidirectional,
    types_and_norm: Some(["embeddings.token_type_embeddings.weight", "embeddings.LayerNorm"]),
    ..LLAMA
};

/// GPT-NeoX (Black et al. 2022, arXiv 2204.06745), which includes Pythia.
const GPT_NEOX: ModelType = ModelType {
    name: "gpt_neox",
    keys: &[("rms_norm_eps", "layer_norm_eps"), ("rope_theta", "rotary_emb_base")],
    only: &[],
    prefix: "gpt_neox.",
    weights: &[
        ("embed_tokens", "embed_in"),
        ("self_attn.qkv_proj", "attention.query_key_value"),
        ("self_attn.o_proj", "attention.dense"),
        ("mlp.up_proj", "mlp.dense_h_to_4h"),
        ("mlp.down_proj", "mlp.dense_4h_to_h"),
        ("norm", "final_layer_norm"),
        ("lm_head", "embed_out"),
    ],
    joint: Some(true),
    has_layer_norms: true,
    epsilon: 1e-5,
    mlp: MlpType::Plain,
    activation: Activation::Gelu,
    rotary_share: Some(0.25),
    parallel: true,
    ..LLAMA
};

pub(super) const TYPES: &[ModelType] = &[
    GPT2,
    BERT,
    GPT_NEOX,
    LLAMA,
    ModelType { name: "mistral", windows: Windows::All, ..LLAMA },
    ModelType { name: "qwen2", qk_norm: None, ..QWEN3 },
    QWEN3,
    GEMMA2,
    ModelType {
        name: "gemma3_text",
        usual: &[
            ("num_attention_heads", 8),
            ("num_key_value_heads", 4),
            ("head_dim", 256),
            ("vocab_size", 262_208),
            ("max_position_embeddings", 131_072),
        ],
        only: &[
            ("partial_rotary_factor", "1.0"),
            ("use_bidirectional_attention", "false"),
            ("attn_logit_softcapping", "null"),
        ],
        qk_norm: Some(NormOver::Head),
        windows: Windows::AllBut(6),
        has_softcap: false,
        rope_theta: 1_000_000.0,
        local_rope_theta: Some(10_000.0),
        ..GEMMA2
    },
    ModelType {
        name: "olmo2",
        norms: [[None, SECOND, None], [None, LAST, None]],
        qk_norm: Some(NormOver::Layer),
        epsilon: 1e-5,
        ..LLAMA
    },
    ModelType {
        name: "gpt_oss",
        epsilon: 1e-5,
        windows: Windows::AllBut(2),
        window: 128,
        rope_theta: 150_000.0,
        mlp: MlpType::Experts,
        ..LLAMA
    },
];

/// The weight names in a `.gguf` of a Llama-like model: Llama's, and its own.
const IN_GGUF: &[(&str, &str)] = &[
    ("embed_tokens", "token_embd"),
    ("self_attn.q_proj", "attn_q"),
    ("self_attn.k_proj", "attn_k"),
    ("self_attn.v_proj", "attn_v"),
    ("self_attn.o_proj", "attn_output"),
    ("self_attn.q_norm", "attn_q_norm"),
    ("self_attn.k_norm", "attn_k_norm"),
    ("mlp.gate_proj", "ffn_gate"),
    ("mlp.up_proj", "ffn_up"),
    ("mlp.down_proj", "ffn_down"),
    ("input_layernorm", "attn_norm"),
    ("post_attention_layernorm", "ffn_norm"),
    ("norm", "output_norm"),
    ("lm_head", "output"),
];

impl ModelType {
    /// The type of this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        TYPES.iter().find(|of| of.name == name)
    }

    /// The type with the weights of a `.gguf`.
    pub fn in_gguf(&self) -> Self {
        // Converters reorder Llama's channels so that rotary pairs are adjacent.
        let pairs = if self.name == "llama" { Pairs::Neighbours } else { Pairs::Halves };
        Self { prefix: "", block: "blk", weights: IN_GGUF, pairs, ..*self }
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

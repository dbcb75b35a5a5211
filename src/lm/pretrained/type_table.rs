//! The types of published models that can be read, each as its differences from Llama or another type.

use super::layers::Activation;
use super::types::{
    LocalPositions, MlpType, ModelType, NormOver, NormType, Pairs, Unrotated, Windows,
};
use crate::targets::Visibility;

const FIRST: Option<&str> = Some("input_layernorm");
const SECOND: Option<&str> = Some("post_attention_layernorm");
const LAST: Option<&str> = Some("post_feedforward_layernorm");

const LAYER_NORM: NormType = NormType::Layer { offset: 0.0, has_gain: true, has_bias: true };

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
    norm: NormType::Rms { offset: 0.0 },
    epsilon: 1e-6,
    is_gemma: false,
    mlp: MlpType::Gated,
    normalises_chosen: false,
    logit_scale: 1.0,
    activation: Activation::Silu,
    hidden: None,
    rotary_share: Some(1.0),
    pairs: Pairs::Halves,
    rope_theta: 10_000.0,
    local: LocalPositions::Shared,
    unrotated: Unrotated::Never,
    first_position: 0,
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
    norm: NormType::Rms { offset: 1.0 },
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
    norm: LAYER_NORM,
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
    norm: LAYER_NORM,
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
    norm: LAYER_NORM,
    epsilon: 1e-5,
    mlp: MlpType::Plain,
    activation: Activation::Gelu,
    rotary_share: Some(0.25),
    parallel: true,
    ..LLAMA
};

/// OLMo 2 (OLMo team 2024, arXiv 2501.00656).
const OLMO2: ModelType = ModelType {
    name: "olmo2",
    norms: [[None, SECOND, None], [None, LAST, None]],
    qk_norm: Some(NormOver::Layer),
    epsilon: 1e-5,
    ..LLAMA
};

/// Phi-3 (Abdin et al. 2024, arXiv 2404.14219).
const PHI3: ModelType = ModelType {
    name: "phi3",
    only: &[],
    joint: Some(false),
    mlp: MlpType::GatedJoint,
    epsilon: 1e-5,
    windows: Windows::All,
    ..LLAMA
};

/// Command R (Cohere 2024).
const COHERE: ModelType = ModelType {
    name: "cohere",
    keys: &[("rms_norm_eps", "layer_norm_eps")],
    only: &[("use_qk_norm", "false")],
    norms: [[FIRST, None, None], [FIRST, None, None]],
    norm: NormType::Layer { offset: 0.0, has_gain: true, has_bias: false },
    epsilon: 1e-5,
    logit_scale: 0.0625,
    pairs: Pairs::Neighbours,
    rope_theta: 500_000.0,
    parallel: true,
    ..LLAMA
};

/// Mixtral (Jiang et al. 2024, arXiv 2401.04088).
const MIXTRAL: ModelType = ModelType {
    name: "mixtral",
    weights: &[
        ("mlp", "block_sparse_moe"),
        ("gate_proj", "w1"),
        ("up_proj", "w3"),
        ("down_proj", "w2"),
    ],
    epsilon: 1e-5,
    mlp: MlpType::Routed,
    normalises_chosen: true,
    rope_theta: 1_000_000.0,
    windows: Windows::All,
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
    ModelType {
        name: "gemma",
        // Its scale is that of Llama.
        keys: &[("query_pre_attn_scalar", "head_dim")],
        norms: LLAMA.norms,
        windows: Windows::Never,
        has_softcap: false,
        ..GEMMA2
    },
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
        local: LocalPositions::Base(10_000.0),
        ..GEMMA2
    },
    // OLMo (Groeneveld et al. 2024, arXiv 2402.00838).
    ModelType {
        name: "olmo",
        only: &[("clip_qkv", "null")],
        norm: NormType::Layer { offset: 0.0, has_gain: false, has_bias: false },
        epsilon: 1e-5,
        ..LLAMA
    },
    OLMO2,
    ModelType {
        name: "olmo3",
        windows: Windows::AllBut(4),
        local: LocalPositions::Unscaled,
        rope_theta: 500_000.0,
        ..OLMO2
    },
    // EXAONE 4 (LG AI Research 2025, arXiv 2507.11407).
    ModelType {
        name: "exaone4",
        qk_norm: Some(NormOver::Head),
        windows: Windows::AllBut(4),
        unrotated: Unrotated::Global,
        ..OLMO2
    },
    ModelType { name: "granite", ..LLAMA },
    ModelType { name: "smollm3", unrotated: Unrotated::Listed, rope_theta: 2_000_000.0, ..LLAMA },
    PHI3,
    // GLM-4 (GLM team 2024, arXiv 2406.12793).
    ModelType {
        name: "glm4",
        joint: None,
        norms: [
            [FIRST, Some("post_self_attn_layernorm"), None],
            [SECOND, Some("post_mlp_layernorm"), None],
        ],
        epsilon: 1.5625e-7,
        rotary_share: Some(0.5),
        pairs: Pairs::Neighbours,
        windows: Windows::Never,
        ..PHI3
    },
    // StarCoder 2 (Lozhkov et al. 2024, arXiv 2402.19173).
    ModelType {
        name: "starcoder2",
        keys: &[("rms_norm_eps", "norm_epsilon")],
        weights: &[("mlp.up_proj", "mlp.c_fc"), ("mlp.down_proj", "mlp.c_proj")],
        norm: LAYER_NORM,
        epsilon: 1e-5,
        mlp: MlpType::Plain,
        activation: Activation::TanhGelu,
        windows: Windows::All,
        ..LLAMA
    },
    // StableLM 2 (Bellagente et al. 2024, arXiv 2402.17834).
    ModelType {
        name: "stablelm",
        keys: &[("rms_norm_eps", "layer_norm_eps")],
        only: &[("qk_layernorm", "false"), ("use_parallel_residual", "false")],
        norm: LAYER_NORM,
        epsilon: 1e-5,
        rotary_share: Some(0.25),
        ..LLAMA
    },
    // Nemotron (Parmar et al. 2024, arXiv 2402.16819).
    ModelType {
        name: "nemotron",
        keys: &[("rms_norm_eps", "norm_eps")],
        only: &[],
        norm: NormType::Layer { offset: 1.0, has_gain: true, has_bias: true },
        epsilon: 1e-5,
        mlp: MlpType::Plain,
        activation: Activation::SquaredRelu,
        rotary_share: Some(0.5),
        ..LLAMA
    },
    COHERE,
    ModelType {
        name: "cohere2",
        rope_theta: 10_000.0,
        windows: Windows::AllBut(4),
        unrotated: Unrotated::Global,
        ..COHERE
    },
    MIXTRAL,
    ModelType {
        name: "qwen3_moe",
        keys: &[("intermediate_size", "moe_intermediate_size")],
        only: &[("decoder_sparse_step", "1"), ("mlp_only_layers", "[]")],
        mlp: MlpType::Routed,
        ..QWEN3
    },
    // RoBERTa (Liu et al. 2019, arXiv 1907.11692).
    ModelType { name: "roberta", prefix: "roberta.", first_position: 2, ..BERT },
    ModelType { name: "xlm-roberta", prefix: "roberta.", first_position: 2, ..BERT },
    // OPT (Zhang et al. 2022, arXiv 2205.01068).
    ModelType {
        name: "opt",
        keys: &[("intermediate_size", "ffn_dim"), ("hidden_act", "activation_function")],
        only: &[("do_layer_norm_before", "true"), ("_remove_final_layer_norm", "false")],
        prefix: "model.decoder.",
        weights: &[
            ("self_attn.o_proj", "self_attn.out_proj"),
            ("mlp.up_proj", "fc1"),
            ("mlp.down_proj", "fc2"),
            ("input_layernorm", "self_attn_layer_norm"),
            ("post_attention_layernorm", "final_layer_norm"),
            ("norm", "final_layer_norm"),
        ],
        norm: LAYER_NORM,
        epsilon: 1e-5,
        mlp: MlpType::Plain,
        activation: Activation::Relu,
        rotary_share: None,
        first_position: 2,
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

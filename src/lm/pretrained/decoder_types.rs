//! The types of Llama-type decoders: each an entry that says how it differs from Llama (Touvron et al. 2023, arXiv 2302.13971).

/// A type of model, as its differences from Llama.
#[derive(Clone, Copy)]
pub(super) struct ModelType {
    /// `model_type` of its configuration.
    pub name: &'static str,
    pub norms: NormPlaces,
    /// Normalisation of queries and keys.
    pub qk_norm: Option<NormOver>,
    /// Gains of 1 + w, embeddings times √C, the scale by `query_pre_attn_scalar`, GELU.
    pub is_gemma: bool,
    /// ε of the norms, where the configuration has none.
    pub epsilon: f32,
    pub biases: Biases,
    pub windows: Windows,
    /// The window, where the configuration has none.
    pub window: usize,
    pub has_softcap: bool,
    /// The base of the rotary positions, where the configuration has none.
    pub rope_theta: f64,
    /// The same of local layers, if they have positions of their own.
    pub local_rope_theta: Option<f64>,
    /// A mixture of experts, and learned sinks.
    pub has_experts: bool,
}

#[derive(Clone, Copy)]
pub(super) enum NormPlaces {
    Before,
    After,
    Both,
}

#[derive(Clone, Copy)]
pub(super) enum NormOver {
    /// The channels of each head.
    Head,
    /// The channels of all heads.
    Layer,
}

#[derive(Clone, Copy)]
pub(super) enum Biases {
    /// As `attention_bias` and `mlp_bias` say.
    Configured,
    Never,
    /// Of queries, keys and values.
    Projections,
}

/// The layers with a window, where the configuration has no `layer_types`.
#[derive(Clone, Copy)]
pub(super) enum Windows {
    Never,
    /// All, whatever `layer_types` says.
    All,
    /// From layer `max_window_layers` on, if `use_sliding_window` says so.
    From,
    /// All but every n-th.
    AllBut(usize),
    /// The same, where `sliding_window_pattern` is n if the configuration has it.
    AllButPattern(usize),
}

const LLAMA: ModelType = ModelType {
    name: "llama",
    norms: NormPlaces::Before,
    qk_norm: None,
    is_gemma: false,
    epsilon: 1e-6,
    biases: Biases::Configured,
    windows: Windows::Never,
    window: 4096,
    has_softcap: false,
    rope_theta: 10_000.0,
    local_rope_theta: None,
    has_experts: false,
};

const GEMMA2: ModelType = ModelType {
    name: "gemma2",
    norms: NormPlaces::Both,
    is_gemma: true,
    windows: Windows::AllBut(2),
    has_softcap: true,
    ..LLAMA
};

const QWEN3: ModelType =
    ModelType { name: "qwen3", qk_norm: Some(NormOver::Head), windows: Windows::From, ..LLAMA };

pub(super) const TYPES: &[ModelType] = &[
    LLAMA,
    ModelType { name: "mistral", biases: Biases::Never, windows: Windows::All, ..LLAMA },
    ModelType { name: "qwen2", qk_norm: None, biases: Biases::Projections, ..QWEN3 },
    QWEN3,
    GEMMA2,
    ModelType {
        name: "gemma3_text",
        qk_norm: Some(NormOver::Head),
        windows: Windows::AllButPattern(6),
        has_softcap: false,
        rope_theta: 1_000_000.0,
        local_rope_theta: Some(10_000.0),
        ..GEMMA2
    },
    ModelType {
        name: "olmo2",
        norms: NormPlaces::After,
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
        has_experts: true,
        ..LLAMA
    },
];

/// Their names.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    TYPES.iter().map(|of| of.name)
}

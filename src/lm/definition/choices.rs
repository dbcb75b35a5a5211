//! The keys of a training definition whose values are names.

use std::fmt;
use std::str::FromStr;

use candle_core::DType;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which heads are global and which local, and what holds the logits down.
///
/// The arms from `qk-norm` on have every head global and name one [`Stabiliser`]; the key
/// `stabilisers` puts any of them beside any layout of heads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Arm {
    /// Every head global: multi-head self-attention.
    Mhsa,
    /// In each layer the first `global_heads` heads global, the rest local (Hajra 2025,
    /// arXiv 2505.15548).
    Ls,
    /// Every head local: the ablation.
    LocalOnly,
    /// Whole layers in turn: the first local, the second global, and so on (as in Gemma 2,
    /// arXiv 2408.00118).
    LayerAlternating,
    /// [`Stabiliser::QkNorm`].
    QkNorm,
    /// [`Stabiliser::SigmaReparam`].
    SigmaReparam,
    /// [`Stabiliser::Softcap`].
    Softcap,
    /// [`Stabiliser::QkClip`].
    QkClip,
    /// [`Stabiliser::ZLoss`].
    ZLoss,
}

impl Arm {
    /// The name in a definition and in rows.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mhsa => "mhsa",
            Self::Ls => "ls",
            Self::LocalOnly => "local-only",
            Self::LayerAlternating => "layer-alternating",
            Self::QkNorm => "qk-norm",
            Self::SigmaReparam => "sigma-reparam",
            Self::Softcap => "softcap",
            Self::QkClip => "qk-clip",
            Self::ZLoss => "z-loss",
        }
    }

    /// The stabiliser that the arm stands for.
    pub(super) fn stabiliser(self) -> Option<Stabiliser> {
        match self {
            Self::Mhsa | Self::Ls | Self::LocalOnly | Self::LayerAlternating => None,
            Self::QkNorm => Some(Stabiliser::QkNorm),
            Self::SigmaReparam => Some(Stabiliser::SigmaReparam),
            Self::Softcap => Some(Stabiliser::Softcap),
            Self::QkClip => Some(Stabiliser::QkClip),
            Self::ZLoss => Some(Stabiliser::ZLoss),
        }
    }
}

/// What others do against growing logits. Logits are logged as QKᵀ/√D of the queries and keys that
/// attention gets, so after `qk-norm` and before `softcap`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Stabiliser {
    /// softmax(LN(XW_Q) LN(XW_K)ᵀ / √D): queries and keys layer-normalised over a head's D
    /// channels, with gains that the layer's heads share (Dehghani et al. 2023, arXiv 2302.05442).
    QkNorm,
    /// Ŵ = γ/σ(W) · W with σ(W) the spectral norm and γ a learned scalar that starts at 1 (Zhai et
    /// al. 2023, arXiv 2303.06296), for each matrix of a block; the tied embedding stays as it is.
    /// σ(W) is ‖Wv‖, with one step of power iteration on v after each training step.
    SigmaReparam,
    /// z ← c tanh(z/c) on the attention logits, c the key `softcap` (Gemma 2, arXiv 2408.00118).
    Softcap,
    /// After each step, W_Q and W_K of a head whose largest logit S in that step exceeded τ, the
    /// key `qk_clip`, are each scaled by √(τ/S) (QK-Clip: Kimi K2, arXiv 2507.20534).
    QkClip,
    /// ς · mean (log Z)² beside the cross-entropy, Z = Σ e^z over the output logits and ς the key
    /// `z_loss` (PaLM: Chowdhery et al. 2022, arXiv 2204.02311).
    ZLoss,
}

/// How the model knows where a token stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Positions {
    /// One learned vector for each of the `context` positions, added to the token's.
    Learned,
    /// Rotary: channels 2i and 2i + 1 of a query or key at position t turn by the angle
    /// t · 10000^(−2i/D), so that a logit depends on the distance alone (Su et al. 2021,
    /// arXiv 2104.09864). D must be even.
    Rope,
    /// One fixed vector for each position, added to the token's: channels 2i and 2i + 1 of position t are √2 σ
    /// times the sine and cosine of t · 10000^(−2i/C), σ the key `initial_deviation`, so that they begin as long as
    /// learned ones (Vaswani et al. 2017, arXiv 1706.03762). C must be even.
    Sinusoidal,
    /// None: the causal mask alone tells, and where there is none, the windows of local heads.
    None,
}

/// What a head's logits have beside QKᵀ/√D: a slope over the lag, y_ij = z_ij − m |j − i|, with one m a head. It
/// costs queries and keys nothing, and is no part of the logits that are logged. With no softcap it is added to z,
/// with one to c tanh(z/c).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Slopes {
    /// None.
    None,
    /// m = 2^(−8h/H) for head h = 1 … H of a layer, fixed (ALiBi: Press et al. 2022, arXiv 2108.12409).
    Alibi,
    /// One trained number a head, which begins as ALiBi's.
    Learned,
}

impl Slopes {
    /// The name in a definition and in rows.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Alibi => "alibi",
            Self::Learned => "learned",
        }
    }

    /// ALiBi's slope of each of a layer's `heads`.
    pub(crate) fn of_alibi(heads: usize) -> Vec<f32> {
        (1..=heads).map(|head| (-8.0 * head as f32 / heads as f32).exp2()).collect()
    }
}

impl Positions {
    /// The name in a definition and in rows.
    pub fn name(self) -> &'static str {
        match self {
            Self::Learned => "learned",
            Self::Rope => "rope",
            Self::Sinusoidal => "sinusoidal",
            Self::None => "none",
        }
    }
}

/// What a model learns to predict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Objective {
    /// Of every token the one that comes next, behind a causal mask.
    NextToken,
    /// Some tokens of each sequence, the share `mask_share`, which stand in it as a symbol that is added to the
    /// vocabulary; the loss is the mean over these alone (Devlin et al. 2019, arXiv 1810.04805). They are chosen anew
    /// for each sequence of a run, and for an evaluation the same ones every time.
    Masked,
}

impl Objective {
    /// The name in a definition.
    pub fn name(self) -> &'static str {
        match self {
            Self::NextToken => "next-token",
            Self::Masked => "masked",
        }
    }
}

/// The learning rate after warm-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Schedule {
    /// Half a cosine from the peak to `final_learning_rate` times the peak at the last step.
    Cosine,
    /// The peak throughout.
    Constant,
}

/// The arithmetic of products and attention. Weights, their gradients' sums, AdamW's moments, the
/// residual stream, norms and the loss are float32 in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Dtype {
    /// IEEE single precision.
    Float32,
    /// bfloat16, which keeps 8 bits of a number: what a norm, a projection, an MLP or attention gives
    /// is rounded to it, and so are the weights that enter a product and the gradients that leave
    /// these. Sums inside an operator are float32. On a CPU this is as slow as float32.
    Bfloat16,
}

impl Dtype {
    /// What [`ModelShape`](crate::lm::ModelShape)'s products take and give.
    pub(in crate::lm) fn of_tensors(self) -> DType {
        match self {
            Self::Float32 => DType::F32,
            Self::Bfloat16 => DType::BF16,
        }
    }

    /// The name in a definition and a manifest.
    pub fn name(self) -> &'static str {
        match self {
            Self::Float32 => "float32",
            Self::Bfloat16 => "bfloat16",
        }
    }
}

/// The fewest symbols of a byte-pair vocabulary: the bytes and the end of a document.
const LEAST_PAIRS: usize = 257;
/// The most.
const MOST_PAIRS: usize = 1 << 20;

/// How a text becomes tokens. The synthetic corpus has symbols of its own and ignores it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum TextVocabulary {
    /// `byte`: one token a byte, 256 symbols.
    Byte,
    /// `characters`: one token a character; the distinct characters of all splits, in code point
    /// order.
    Characters,
    /// `bpe:SIZE`: byte pairs, merged as often as SIZE symbols allow; see [`crate::lm::Bpe`].
    Bpe {
        /// Symbols in all, the end of a document among them where there is one.
        size: usize,
    },
}

impl fmt::Display for TextVocabulary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Byte => f.write_str("byte"),
            Self::Characters => f.write_str("characters"),
            Self::Bpe { size } => write!(f, "bpe:{size}"),
        }
    }
}

impl FromStr for TextVocabulary {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let pairs = text.strip_prefix("bpe:").and_then(|size| size.parse().ok());
        match (text, pairs) {
            ("byte", _) => Ok(Self::Byte),
            ("characters", _) => Ok(Self::Characters),
            (_, Some(size)) if (LEAST_PAIRS..=MOST_PAIRS).contains(&size) => Ok(Self::Bpe { size }),
            _ => Err(format!(
                "vocabulary = {text:?} is unknown; give byte, characters or bpe:SIZE \
                 ({LEAST_PAIRS} to {MOST_PAIRS}), such as bpe:8192"
            )),
        }
    }
}

impl TryFrom<String> for TextVocabulary {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<TextVocabulary> for String {
    fn from(vocabulary: TextVocabulary) -> Self {
        vocabulary.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vocabulary_reads_back_as_written_and_a_wrong_one_is_told_what_to_be() {
        for text in ["byte", "characters", "bpe:257", "bpe:20000"] {
            assert_eq!(text.parse::<TextVocabulary>().unwrap().to_string(), text);
        }
        for text in ["bytes", "bpe", "bpe:", "bpe:256", "bpe:1048577", "bpe:-1", "bpe:8k"] {
            let error = text.parse::<TextVocabulary>().unwrap_err();
            assert!(error.contains(text) && error.contains("bpe:8192"), "{error}");
        }
    }
}

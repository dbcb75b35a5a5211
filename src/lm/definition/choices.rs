//! Values of the definition's keys that are names.

use candle_core::DType;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::lm::LmError;
use crate::lm::error::require;

/// Variant of attention: which heads are global or local, and which stabiliser acts.
///
/// The variants from `qk-norm` on have only global heads and name one [`Stabiliser`]; the key
/// `stabilisers` combines any of them with any layout of heads.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    JsonSchema,
    strum::IntoStaticStr,
    strum::EnumString,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Arm {
    /// All heads are global: multi-head self-attention.
    Mhsa,
    /// In each layer the first `global_heads` heads are global, the rest local (Hajra 2025,
    /// arXiv 2505.15548).
    Ls,
    /// All heads are local: the ablation.
    LocalOnly,
    /// Layers alternate: all heads of the first are local, of the second global, and so on (as in Gemma 2,
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
    /// No attention: a causal convolution over three tokens beside a learned memory of `memory_slots` vectors, both gated
    /// (Gated Associative Memory: Acharya 2025, arXiv 2509.00605, without biases). Needs `heads = 1`. The scores
    /// of the memory are logged in the place of logits.
    Gam,
}

impl Arm {
    /// The name in definitions and rows.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The name in figures and verdicts.
    pub fn label(self) -> &'static str {
        match self {
            Self::Mhsa => "multi-head",
            Self::Ls => "LS-attention",
            Self::LocalOnly => "local heads only",
            Self::LayerAlternating => "alternating layers",
            Self::QkNorm => "QK-norm",
            Self::SigmaReparam => "σReparam",
            Self::QkClip => "QK-clip",
            Self::Gam => "gated memory",
            Self::Softcap | Self::ZLoss => self.name(),
        }
    }

    /// The number of global heads in `layer`, counted from 0, of `heads` heads; `global_heads` is the key. Layers may differ
    /// only between even and odd ones.
    pub(crate) fn global_heads(self, layer: usize, heads: usize, global_heads: usize) -> usize {
        match self {
            Self::Ls => global_heads,
            Self::LocalOnly => 0,
            Self::LayerAlternating if layer.is_multiple_of(2) => 0,
            _ => heads,
        }
    }

    /// Checks the keys that the variant restricts.
    pub(super) fn check(
        self,
        layers: usize,
        heads: usize,
        global_heads: usize,
    ) -> Result<(), LmError> {
        match self {
            Self::Ls => {
                let why = format!(
                    "must be 1 to heads = {heads} with arm = ls; for none, set arm = local-only"
                );
                require((1..=heads).contains(&global_heads), "global_heads", global_heads, &why)
            }
            Self::LayerAlternating => {
                let why = "must be at least 2 with arm = layer-alternating";
                require(layers >= 2, "layers", layers, why)
            }
            _ => Ok(()),
        }
    }

    /// The stabiliser that the variant names; `None` if it names none.
    pub(super) fn stabiliser(self) -> Option<Stabiliser> {
        match self {
            Self::QkNorm => Some(Stabiliser::QkNorm),
            Self::SigmaReparam => Some(Stabiliser::SigmaReparam),
            Self::Softcap => Some(Stabiliser::Softcap),
            Self::QkClip => Some(Stabiliser::QkClip),
            Self::ZLoss => Some(Stabiliser::ZLoss),
            _ => None,
        }
    }
}

/// A published method against growing logits. Logits are logged as QKᵀ/√D of the queries and keys that
/// attention receives: after `qk-norm` and before `softcap`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Stabiliser {
    /// softmax(LN(XW_Q) LN(XW_K)ᵀ / √D): queries and keys layer-normalised over a head's D
    /// channels, with gains that the layer's heads share (Dehghani et al. 2023, arXiv 2302.05442).
    QkNorm,
    /// Ŵ = γ/σ(W) · W with σ(W) the spectral norm and γ a learned scalar that starts at 1 (Zhai et
    /// al. 2023, arXiv 2303.06296), for each matrix of a block, but not for the tied embedding.
    /// σ(W) is ‖Wv‖, with one step of power iteration on v after each training step.
    SigmaReparam,
    /// z ← c tanh(z/c) on the attention logits, with c the key `softcap` (Gemma 2, arXiv 2408.00118).
    Softcap,
    /// After each step, W_Q and W_K of every head whose largest logit S in that step exceeded τ, the
    /// key `qk_clip`, are scaled by √(τ/S) each (QK-Clip: Kimi K2, arXiv 2507.20534).
    QkClip,
    /// Adds ς · mean (log Z)² to the cross-entropy, with Z = Σ e^z over the output logits and ς the key
    /// `z_loss` (PaLM: Chowdhery et al. 2022, arXiv 2204.02311).
    ZLoss,
}

impl Stabiliser {
    /// The stabilisers that have a key of their own, such as a threshold, with that key.
    pub const KEYS: [(Self, &str); 3] =
        [(Self::Softcap, "softcap"), (Self::QkClip, "qk_clip"), (Self::ZLoss, "z_loss")];
}

/// Which tokens take part in each recursion of the middle blocks.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::IntoStaticStr,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Router {
    /// All tokens.
    None,
    /// Each recursion takes the tokens of largest score (expert choice). Training compares a token with later ones; validation
    /// does not.
    Expert,
    /// Each token chooses its number of recursions before the first (token choice).
    Token,
}

impl Router {
    /// The name in definitions.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// The keys and values to which the tokens of a recursion attend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RecursionKeys {
    /// Those of the tokens that take part in the same recursion.
    Own,
    /// Those of all tokens in the first recursion.
    Shared,
}

/// The position encoding.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::IntoStaticStr,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Positions {
    /// One learned vector for each of the `context` positions, added to the token's vector.
    Learned,
    /// RoPE: channels 2i and 2i + 1 of a query or key at position t are rotated by the angle
    /// t · 10000^(−2i/D), so a logit depends on the relative distance alone (Su et al. 2021,
    /// arXiv 2104.09864). D must be even.
    Rope,
    /// One fixed vector for each position, added to the token's vector (Vaswani et al. 2017, arXiv 1706.03762). Channels
    /// 2i and 2i + 1 of position t are √2 σ times the sine and cosine of t · 10000^(−2i/C). σ is the key
    /// `initial_deviation`, so that these vectors start as large as learned ones. C must be even.
    Sinusoidal,
    /// No positional encoding: order enters through the causal mask and the windows of local heads alone.
    None,
}

/// A linear position bias of each head, beside QKᵀ/√D: y_ij = z_ij − m |j − i|, with one slope m per head. It
/// does not need large queries and keys, and it is not part of the logged logits. It is added to z or, with a softcap,
/// to c tanh(z/c).
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::IntoStaticStr,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Slopes {
    /// No position bias.
    None,
    /// m = 2^(−8h/H) for head h = 1 … H of a layer, fixed (ALiBi: Press et al. 2022, arXiv 2108.12409).
    Alibi,
    /// One trained number per head, initialised as in ALiBi.
    Learned,
}

impl Slopes {
    /// The name in definitions and rows.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The ALiBi slopes of a layer with `heads` heads.
    pub(crate) fn of_alibi(heads: usize) -> Vec<f32> {
        (1..=heads).map(|head| (-8.0 * head as f32 / heads as f32).exp2()).collect()
    }
}

impl Positions {
    /// The name in definitions and rows.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// The rule by which a step changes the weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Optimiser {
    /// AdamW for every weight.
    Adamw,
    /// Muon for the matrices of the blocks, AdamW for embeddings and gains (Jordan et al. 2024). A step along a
    /// matrix of m × n numbers has the root mean square 0.2, as AdamW's about has, so both use one learning rate (Liu et
    /// al. 2025, arXiv 2502.16982).
    Muon,
}

/// The learning rate after warm-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Schedule {
    /// Half a cosine from the peak to `final_learning_rate` times the peak at the last step.
    Cosine,
    /// The peak throughout.
    Constant,
    /// TriLM's, for ternary weights (Kaushal et al. 2024, arXiv 2407.12327): a line from the peak to 0 at the last step, two
    /// thirds of it from half of the steps on, and no weight decay in the last third.
    Trilm,
}

/// The precision of products and attention. Weights, summed gradients, AdamW's moments, the
/// residual stream, norms and the loss are always float32.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::IntoStaticStr,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Dtype {
    /// IEEE single precision.
    Float32,
    /// bfloat16, with 8 significant bits. Rounded to it are the outputs of norms, projections, MLPs and
    /// attention, the weights that enter a product, and the gradients that leave these operators. Sums
    /// inside an operator are float32. On a CPU it is as slow as float32.
    Bfloat16,
}

impl Dtype {
    /// The dtype of the inputs and outputs of products in a [`ModelShape`](crate::lm::ModelShape).
    pub(in crate::lm) fn of_tensors(self) -> DType {
        match self {
            Self::Float32 => DType::F32,
            Self::Bfloat16 => DType::BF16,
        }
    }

    /// The name in definitions and manifests.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// The smallest size of a BPE vocabulary: the 256 bytes and the end of a document.
const LEAST_PAIRS: usize = 257;
/// The largest number of symbols of a corpus, whose tokens are stored in two bytes each.
pub(in crate::lm) const MOST_SYMBOLS: usize = 1 << 16;

/// How a text is encoded as tokens. The synthetic corpus has its own symbols and ignores this.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum TextVocabulary {
    /// `byte`: one token per byte, 256 symbols.
    Byte,
    /// `characters`: one token per character; the symbols are the distinct characters of all splits in code point
    /// order.
    Characters,
    /// `bpe:SIZE`: BPE with SIZE symbols; see [`crate::lm::Bpe`].
    Bpe {
        /// The number of symbols, including the end of a document if there is one.
        size: usize,
    },
}

impl From<TextVocabulary> for String {
    fn from(vocabulary: TextVocabulary) -> Self {
        match vocabulary {
            TextVocabulary::Byte => "byte".to_owned(),
            TextVocabulary::Characters => "characters".to_owned(),
            TextVocabulary::Bpe { size } => format!("bpe:{size}"),
        }
    }
}

impl TryFrom<String> for TextVocabulary {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let pairs = text.strip_prefix("bpe:").and_then(|size| size.parse().ok());
        match (&*text, pairs) {
            ("byte", _) => Ok(Self::Byte),
            ("characters", _) => Ok(Self::Characters),
            (_, Some(size)) if (LEAST_PAIRS..=MOST_SYMBOLS).contains(&size) => {
                Ok(Self::Bpe { size })
            }
            _ => Err(format!(
                "vocabulary = {text:?} is unknown; give byte, characters or bpe:SIZE \
                 ({LEAST_PAIRS} to {MOST_SYMBOLS}), such as bpe:8192"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lm::TrainDefinition;
    use crate::targets::HeadKind;

    #[test]
    fn arms_differ_in_their_heads_and_stabilisers() {
        use Stabiliser::{QkClip, QkNorm, SigmaReparam, Softcap, ZLoss};
        let global = vec![HeadKind::Global; 4];
        let local = vec![HeadKind::Local { window: 16 }; 4];
        let mixed = [&global[..1], &local[1..]].concat();
        for (arm, layers, stabiliser) in [
            ("mhsa", [&global; 3], None),
            ("ls", [&mixed; 3], None),
            ("local-only", [&local; 3], None),
            ("layer-alternating", [&local, &global, &local], None),
            ("qk-norm", [&global; 3], Some(QkNorm)),
            ("sigma-reparam", [&global; 3], Some(SigmaReparam)),
            ("softcap", [&global; 3], Some(Softcap)),
            ("qk-clip", [&global; 3], Some(QkClip)),
            ("z-loss", [&global; 3], Some(ZLoss)),
        ] {
            let definition = TrainDefinition::default().with(&format!("arm={arm}"));
            assert_eq!(definition.head_kinds().iter().collect::<Vec<_>>(), layers, "{arm}");
            let most = match arm {
                "ls" => 1,
                "local-only" => 0,
                _ => 4,
            };
            assert_eq!(definition.most_global_heads(), most, "{arm}");
            for each in [QkNorm, SigmaReparam, Softcap, QkClip, ZLoss] {
                assert_eq!(definition.has(each), Some(each) == stabiliser, "{arm}: {each:?}");
            }
        }
    }

    #[test]
    fn a_vocabulary_reads_back_as_written_and_a_wrong_one_is_named() {
        for text in ["byte", "characters", "bpe:257", "bpe:20000"] {
            assert_eq!(String::from(TextVocabulary::try_from(text.to_owned()).unwrap()), text);
        }
        for text in ["bytes", "bpe", "bpe:", "bpe:256", "bpe:65537", "bpe:-1", "bpe:8k"] {
            let error = TextVocabulary::try_from(text.to_owned()).unwrap_err();
            assert!(error.contains(text), "{error}");
        }
    }
}

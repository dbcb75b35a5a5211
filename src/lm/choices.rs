//! The keys of a training definition whose values are names.

use serde::{Deserialize, Serialize};

/// Which heads are global and which local.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arm {
    /// Every head global: multi-head self-attention.
    Mhsa,
    /// In each layer the first `global_heads` heads global, the rest local (Hajra 2025,
    /// arXiv 2505.15548).
    Ls,
    /// Every head local: the ablation.
    LocalOnly,
}

/// How the model knows where a token stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Positions {
    /// One learned vector for each of the `context` positions, added to the token's.
    Learned,
}

/// The learning rate after warm-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Schedule {
    /// Half a cosine from the peak to `final_learning_rate` times the peak at the last step.
    Cosine,
    /// The peak throughout.
    Constant,
}

/// The numbers that activations and weights are held in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Dtype {
    /// IEEE single precision.
    Float32,
}

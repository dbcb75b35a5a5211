//! The claims under test: those of the paper (Hajra 2025, *Short-Range Dependency Effects on Transformer Instability and a
//! Decomposed Attention Solution*, arXiv 2505.15548), and predictions made by this project before its rows.

use std::fmt;

/// A claim of the paper that can be measured, or a prediction made by this project.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// Dense local attention needs logits that grow with n/d.
    DenseLocalGrows,
    /// Sparse long-range attention fits low rank.
    SparseIsEasy,
    /// Low rank is a problem for short-range attention in particular.
    LocalityIsHard,
    /// Splitting heads removes the pressure on logits.
    SplitHelps,
    /// Logits of mhsa grow in training, those of LS-attention do not.
    LogitsInTraining,
    /// mhsa diverges.
    Diverges,
    /// LS-attention's loss is no higher.
    NoWorse,
    /// Two fifths of another method's perplexity.
    TwoFifths,
    /// Fewer steps to the same loss.
    StepsToConverge,
    /// What the global head contributes.
    GlobalHead,
    /// Long-range tasks suffer from local heads.
    LongRangeLimit,
    /// A short window is enough.
    WindowRule,
    /// Data other than text.
    OtherModalities,
    /// The rank penalty drives the growth of trained logits.
    RankCarriesGrowth,
    /// Rank is the cause for a given layer input.
    RankGivenInputs,
    /// The exponent predicted from fits alone.
    PredictedExponent,
    /// Needed logits order heads as their actual logits do.
    NeededTellsActual,
    /// More rank at equal parameters makes logits smaller.
    MoreRankHelps,
    /// A linear position bias makes QKᵀ smaller.
    SlopesFreeLogits,
    /// The ramp law.
    RampCostsLength,
    /// Positions make logits large.
    PositionsMakeLogits,
    /// Rank makes logits large.
    RankMakesLogits,
    /// The error at which logits are decomposed does not harm the model.
    SmallErrorIsHarmless,
    /// A linear position bias can replace the ramp.
    RampIsASlope,
    /// Global heads attend to few tokens.
    GlobalIsSparse,
    /// The attention of global heads has low rank.
    GlobalIsLowRank,
    /// Few far tokens are enough for the model.
    FewFarTokensDo,
    /// A far part of low rank is enough for the model.
    LowFarRankDoes,
    /// Published models need their large logits.
    PublishedNeed,
    /// The large logits of published models are ramps.
    PublishedRamp,
    /// A twentieth of another method's time.
    Twentieth,
    /// Inference is faster.
    Latency,
    /// Inference is faster than FlashAttention-2.
    FlashAttention,
}

/// The part of the work that a claim belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// Fits of low-rank logits to made attention matrices.
    #[default]
    SyntheticTargets,
    /// Training runs: logits, losses, divergence.
    Training,
    /// Heads of models that were trained here.
    TrainedHeads,
    /// Heads of published models.
    PublishedModels,
    /// Time and memory.
    Cost,
}

impl Group {
    /// Every group, in the order of the report.
    pub const ALL: [Self; 5] = [
        Self::SyntheticTargets,
        Self::Training,
        Self::TrainedHeads,
        Self::PublishedModels,
        Self::Cost,
    ];

    /// The heading of the group.
    pub fn title(self) -> &'static str {
        match self {
            Self::SyntheticTargets => "Synthetic targets",
            Self::Training => "Training",
            Self::TrainedHeads => "Trained heads",
            Self::PublishedModels => "Published models",
            Self::Cost => "Cost",
        }
    }
}

/// Who says a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The paper, in words or numbers.
    Paper,
    /// Nobody yet: it follows from the paper's argument that rank is the cause.
    Derived,
    /// This project.
    Here,
}

impl Claim {
    /// Every claim, in the order of the report.
    pub const ALL: [Self; 33] = [
        Self::DenseLocalGrows,
        Self::SparseIsEasy,
        Self::LocalityIsHard,
        Self::SplitHelps,
        Self::LogitsInTraining,
        Self::Diverges,
        Self::NoWorse,
        Self::TwoFifths,
        Self::StepsToConverge,
        Self::GlobalHead,
        Self::LongRangeLimit,
        Self::WindowRule,
        Self::OtherModalities,
        Self::RankCarriesGrowth,
        Self::RankGivenInputs,
        Self::PredictedExponent,
        Self::NeededTellsActual,
        Self::MoreRankHelps,
        Self::SlopesFreeLogits,
        Self::RampCostsLength,
        Self::PositionsMakeLogits,
        Self::RankMakesLogits,
        Self::SmallErrorIsHarmless,
        Self::RampIsASlope,
        Self::GlobalIsSparse,
        Self::GlobalIsLowRank,
        Self::FewFarTokensDo,
        Self::LowFarRankDoes,
        Self::PublishedNeed,
        Self::PublishedRamp,
        Self::Twentieth,
        Self::Latency,
        Self::FlashAttention,
    ];

    /// The claims that matter most: the paper's main ones, and what was found instead.
    pub const LEADING: [Self; 6] = [
        Self::LogitsInTraining,
        Self::SlopesFreeLogits,
        Self::DenseLocalGrows,
        Self::NoWorse,
        Self::SplitHelps,
        Self::RankMakesLogits,
    ];

    /// The part of the work that it belongs to.
    pub fn group(self) -> Group {
        match self {
            Self::DenseLocalGrows
            | Self::SparseIsEasy
            | Self::LocalityIsHard
            | Self::SplitHelps => Group::SyntheticTargets,
            Self::LogitsInTraining
            | Self::Diverges
            | Self::NoWorse
            | Self::TwoFifths
            | Self::StepsToConverge
            | Self::GlobalHead
            | Self::LongRangeLimit
            | Self::WindowRule
            | Self::OtherModalities
            | Self::PredictedExponent
            | Self::MoreRankHelps
            | Self::SlopesFreeLogits => Group::Training,
            Self::RankCarriesGrowth
            | Self::RankGivenInputs
            | Self::NeededTellsActual
            | Self::RampCostsLength
            | Self::PositionsMakeLogits
            | Self::RankMakesLogits
            | Self::SmallErrorIsHarmless
            | Self::RampIsASlope
            | Self::GlobalIsSparse
            | Self::GlobalIsLowRank
            | Self::FewFarTokensDo
            | Self::LowFarRankDoes => Group::TrainedHeads,
            Self::PublishedNeed | Self::PublishedRamp => Group::PublishedModels,
            Self::Twentieth | Self::Latency | Self::FlashAttention => Group::Cost,
        }
    }

    /// The paper's number, where the paper gives one.
    pub fn paper_says(self) -> Option<&'static str> {
        match self {
            Self::LogitsInTraining => Some("200–400 against < 50"),
            Self::Diverges => Some("divergence after 20–30 thousand steps"),
            Self::TwoFifths => Some("2/5 of the perplexity"),
            Self::Twentieth => Some("1/20 of the GPU hours"),
            Self::GlobalHead => Some("perplexity 36 → 42"),
            Self::Latency => Some("up to 36 % less"),
            Self::WindowRule => Some("window 50 at n = 2,048"),
            _ => None,
        }
    }

    /// Where the paper makes it.
    pub fn place(self) -> &'static str {
        match self {
            Self::DenseLocalGrows | Self::SparseIsEasy | Self::LocalityIsHard => {
                "the rank argument for n ≫ d"
            }
            Self::GlobalIsSparse
            | Self::GlobalIsLowRank
            | Self::FewFarTokensDo
            | Self::LowFarRankDoes => "the rank argument for n ≫ d assumes it",
            Self::SplitHelps | Self::NoWorse => "abstract",
            Self::LogitsInTraining | Self::Diverges => "Figure 1",
            Self::TwoFifths | Self::Twentieth | Self::Latency => "abstract, figures",
            Self::FlashAttention => "abstract",
            Self::StepsToConverge | Self::WindowRule | Self::OtherModalities => "text",
            Self::GlobalHead => "ablation",
            Self::LongRangeLimit => "limitations",
            Self::RankCarriesGrowth => "the rank argument, in training",
            Self::RankGivenInputs => "the rank argument, with the layer's input given",
            Self::PublishedNeed => "the rank argument, published models",
            Self::PublishedRamp => "found here, published models",
            Self::PredictedExponent => "predicted here, growth with n/d",
            Self::NeededTellsActual => "predicted here, the order of heads",
            Self::MoreRankHelps => "the rank argument, an intervention",
            Self::SlopesFreeLogits
            | Self::RampCostsLength
            | Self::PositionsMakeLogits
            | Self::RankMakesLogits
            | Self::SmallErrorIsHarmless
            | Self::RampIsASlope => "predicted here, position ramp",
        }
    }

    /// Who says it.
    pub fn origin(self) -> Origin {
        match self {
            Self::SplitHelps
            | Self::NoWorse
            | Self::LogitsInTraining
            | Self::Diverges
            | Self::TwoFifths
            | Self::Twentieth
            | Self::Latency
            | Self::FlashAttention
            | Self::StepsToConverge
            | Self::WindowRule
            | Self::OtherModalities
            | Self::GlobalHead
            | Self::LongRangeLimit => Origin::Paper,
            Self::DenseLocalGrows
            | Self::SparseIsEasy
            | Self::LocalityIsHard
            | Self::GlobalIsSparse
            | Self::GlobalIsLowRank
            | Self::FewFarTokensDo
            | Self::LowFarRankDoes
            | Self::RankCarriesGrowth
            | Self::RankGivenInputs
            | Self::PublishedNeed
            | Self::MoreRankHelps => Origin::Derived,
            Self::PublishedRamp
            | Self::PredictedExponent
            | Self::NeededTellsActual
            | Self::SlopesFreeLogits
            | Self::RampCostsLength
            | Self::PositionsMakeLogits
            | Self::RankMakesLogits
            | Self::SmallErrorIsHarmless
            | Self::RampIsASlope => Origin::Here,
        }
    }

    fn text(self) -> &'static str {
        match self {
            Self::DenseLocalGrows => {
                "Dense local attention at n ≫ d needs logits that grow with n/d"
            }
            Self::SparseIsEasy => "Sparse long-range attention fits low rank without large logits",
            Self::LocalityIsHard => "Low rank is a problem for short-range attention in particular",
            Self::SplitHelps => {
                "Splitting heads into local and global removes the pressure on logits"
            }
            Self::LogitsInTraining => {
                "In training, max |logit| grows to 200–400 with multi-head attention and stays below 50 with \
                 LS-attention"
            }
            Self::Diverges => {
                "Multi-head attention at n = 2,048 diverges after 20–30 thousand steps; LS-attention does not"
            }
            Self::NoWorse => "LS-attention's loss is no higher than multi-head attention's",
            Self::TwoFifths => {
                "LS-attention's validation perplexity is 2/5 of another stabiliser's"
            }
            Self::StepsToConverge => {
                "LS-attention converges in fewer steps than multi-head attention"
            }
            Self::GlobalHead => {
                "Without the global head, validation perplexity rises from 36 to 42"
            }
            Self::LongRangeLimit => "On long-range tasks, local heads cost accuracy",
            Self::WindowRule => "A local window far shorter than the sequence is enough",
            Self::OtherModalities => {
                "LS-attention's lower loss and logits are not specific to text"
            }
            Self::RankCarriesGrowth => {
                "In training, the rank penalty drives the growth of multi-head attention's logits"
            }
            Self::RankGivenInputs => {
                "For a given layer input, the rank of W_q·W_kᵀ makes a head's logits large"
            }
            Self::PredictedExponent => {
                "Predicted here: max |logit| of trained models grows with n/d as fits of similar targets do"
            }
            Self::NeededTellsActual => {
                "Predicted here: needed logits order a model's heads by max |logit| beyond what entropy does"
            }
            Self::MoreRankHelps => {
                "Multi-head attention with twice the rank and half the heads has smaller logits"
            }
            Self::SlopesFreeLogits => {
                "Predicted here: with a linear position bias, QKᵀ has less than half the max |logit|, at \
                 LS-attention's loss or lower"
            }
            Self::RampCostsLength => {
                "Predicted here: local attention made by a ramp over positions costs logits in proportion to \
                 n/2 · ln(1 + 1/τ)"
            }
            Self::PositionsMakeLogits => {
                "Predicted here: logits are large because the layer input does not separate positions"
            }
            Self::RankMakesLogits => {
                "Logits are large because queries and keys of d channels lack rank"
            }
            Self::SmallErrorIsHarmless => {
                "Predicted here: a KL of 0.01 nats in every head's attention does not harm the model"
            }
            Self::RampIsASlope => {
                "Predicted here: a linear position bias outside QKᵀ can replace the ramp in QKᵀ"
            }
            Self::GlobalIsSparse => {
                "Beyond the window, LS-attention's global heads attend to few tokens"
            }
            Self::GlobalIsLowRank => {
                "Beyond the window, the attention of LS-attention's global heads has low rank"
            }
            Self::FewFarTokensDo => {
                "LS-attention loses nothing when global heads keep 16 tokens per query beyond the window"
            }
            Self::LowFarRankDoes => {
                "LS-attention loses nothing when global attention beyond the window is truncated to rank 16"
            }
            Self::PublishedNeed => {
                "Heads of published models with max |logit| above 20 need such logits at their rank"
            }
            Self::PublishedRamp => "Logits above 20 in published models are ramps over positions",
            Self::Twentieth => {
                "LS-attention reaches another stabiliser's perplexity in 1/20 of its GPU hours"
            }
            Self::Latency => "LS-attention's inference latency is up to 36 % lower",
            Self::FlashAttention => {
                "LS-attention is faster than FlashAttention-2 on a GPU at equal size"
            }
        }
    }

    /// A headline and a sentence for a claim without rows: what exists instead, and why it is not enough.
    pub(super) fn why_not_measured(self) -> [&'static str; 2] {
        match self {
            Self::StepsToConverge => [
                "no run was trained until its loss stopped falling",
                "Not measured as claimed: runs end after a fixed number of steps. lm-stabilisers has the validation \
                 loss over steps.",
            ],
            Self::WindowRule => [
                "no comparison of windows at n = 2,048",
                "Not measured as claimed: lm-windows compares windows at n up to 1,024 early in training, window-rule \
                 on synthetic targets.",
            ],
            Self::FlashAttention => [
                "no GPU and no FlashAttention-2 here",
                "Not measured: all times here are of this project's own CPU kernels (study latency).",
            ],
            _ => ["no study measures it", "No study here measures it."],
        }
    }
}

impl fmt::Display for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

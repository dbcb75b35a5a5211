//! What the paper says, claim by claim, and what was predicted here from its argument: Hajra 2025, *Short-Range Dependency Effects on Transformer Instability
//! and a Decomposed Attention Solution*, arXiv 2505.15548.

use std::fmt;

/// A claim of the paper that can be measured, or a prediction from its argument (analysis/PREDICTIONS.md).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// Dense local attention needs logits that grow with n/d.
    DenseLocalGrows,
    /// Long-range attention, being sparse, fits low rank.
    SparseIsEasy,
    /// What low rank cannot hold is short-range attention.
    LocalityIsHard,
    /// Splitting heads removes the pressure.
    SplitHelps,
    /// In training mhsa's logits grow, those of LS-attention do not.
    LogitsInTraining,
    /// mhsa diverges.
    Diverges,
    /// LS-attention's perplexity is no worse.
    NoWorse,
    /// Two fifths of another method's perplexity.
    TwoFifths,
    /// A twentieth of another method's time.
    Twentieth,
    /// What the global head is worth.
    GlobalHead,
    /// Inference is faster.
    Latency,
    /// Where long-range structure prevails, local heads cost.
    LongRangeLimit,
    /// The rank bottleneck carries the growth of trained logits.
    RankCarriesGrowth,
    /// Rank is the cause once the layer's input is given.
    RankGivenInputs,
    /// The exponent predicted from fits alone.
    PredictedExponent,
    /// Needed logits tell which heads have large ones.
    NeededTellsActual,
    /// More rank at equal parameters makes logits smaller.
    MoreRankHelps,
    /// A slope over the lag takes large logits away.
    SlopesFreeLogits,
    /// The law of the ramp.
    RampCostsLength,
    /// Telling positions apart is what makes logits large.
    PositionsMakeLogits,
    /// The rank of queries and keys is what makes logits large.
    RankMakesLogits,
    /// The error that parts are told at does not harm the model.
    SmallErrorIsHarmless,
    /// What a ramp does, a slope over the lag does for nothing.
    RampIsASlope,
    /// Global heads attend to few tokens.
    GlobalIsSparse,
    /// Global heads' attention has few dimensions.
    GlobalIsLowRank,
    /// The model needs few of the far tokens.
    FewFarTokensDo,
    /// The model needs few dimensions of the far part.
    LowFarRankDoes,
    /// Published models' large logits are needed.
    PublishedNeed,
    /// They are ramps.
    PublishedRamp,
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

impl Claim {
    /// Every claim, in the order of the report.
    pub const ALL: [Self; 29] = [
        Self::DenseLocalGrows,
        Self::SparseIsEasy,
        Self::LocalityIsHard,
        Self::SplitHelps,
        Self::LogitsInTraining,
        Self::Diverges,
        Self::NoWorse,
        Self::TwoFifths,
        Self::Twentieth,
        Self::GlobalHead,
        Self::Latency,
        Self::LongRangeLimit,
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
    ];

    /// Those that a reader wants to know of first: what the paper is about, and what was found in its place.
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
            | Self::GlobalHead
            | Self::LongRangeLimit
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
            Self::Twentieth | Self::Latency => Group::Cost,
        }
    }

    /// The paper's number, where the paper gives one.
    pub fn paper_says(self) -> Option<&'static str> {
        match self {
            Self::LogitsInTraining => Some("200–400 against < 50"),
            Self::Diverges => Some("mhsa diverges after 20–30 thousand steps"),
            Self::TwoFifths => Some("2/5 of the perplexity"),
            Self::Twentieth => Some("1/20 of the GPU hours"),
            Self::GlobalHead => Some("perplexity 36 → 42"),
            Self::Latency => Some("up to 36 % less"),
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
            | Self::LowFarRankDoes => "the rank argument for n ≫ d, assumed",
            Self::SplitHelps | Self::NoWorse => "abstract",
            Self::LogitsInTraining | Self::Diverges => "Figure 1",
            Self::TwoFifths | Self::Twentieth | Self::Latency => "abstract, figures",
            Self::GlobalHead => "ablation",
            Self::LongRangeLimit => "limitations",
            Self::RankCarriesGrowth => "the rank argument, in training",
            Self::RankGivenInputs => "the rank argument, with the layer's input given",
            Self::PublishedNeed => "the rank argument, in models from elsewhere",
            Self::PublishedRamp => "found here in models without a slope, in models from elsewhere",
            Self::PredictedExponent => "predicted here, (a)",
            Self::NeededTellsActual => "predicted here, (b)",
            Self::MoreRankHelps => "the rank argument, an intervention",
            Self::SlopesFreeLogits
            | Self::RampCostsLength
            | Self::PositionsMakeLogits
            | Self::RankMakesLogits
            | Self::SmallErrorIsHarmless
            | Self::RampIsASlope => "predicted here, the ramp",
        }
    }

    fn text(self) -> &'static str {
        match self {
            Self::DenseLocalGrows => {
                "Dense local attention at n ≫ d needs logits that grow with n/d"
            }
            Self::SparseIsEasy => "Sparse global (long-range) attention is easy for low rank",
            Self::LocalityIsHard => "It is short-range attention that low rank cannot hold",
            Self::SplitHelps => {
                "Splitting the heads into local and global ones removes the pressure on logits"
            }
            Self::LogitsInTraining => {
                "In training, multi-head attention's logits grow to 200 to 400, those of LS-attention stay \
                 under 50"
            }
            Self::Diverges => {
                "Multi-head attention at n = 2,048 diverges after 20 to 30 thousand steps, LS-attention does \
                 not"
            }
            Self::NoWorse => "LS-attention's loss is no worse than multi-head attention's",
            Self::TwoFifths => {
                "LS-attention's validation perplexity is 2/5 of that of another stabiliser"
            }
            Self::Twentieth => {
                "LS-attention reaches another stabiliser's perplexity in 1/20 of its GPU hours"
            }
            Self::GlobalHead => "Without the global head perplexity rises from 36 to 42",
            Self::Latency => "LS-attention's inference latency is up to 36 % less",
            Self::LongRangeLimit => "Where a task is mostly long-range, local heads cost accuracy",
            Self::RankCarriesGrowth => {
                "In training it is the rank bottleneck (inflation) that makes multi-head attention's logits grow"
            }
            Self::RankGivenInputs => {
                "With its layer's input given, it is the rank of a head's W_q·W_kᵀ that makes its logits large"
            }
            Self::PredictedExponent => {
                "Max |logit| of trained models grows with n/d as fits of targets like their attention say"
            }
            Self::NeededTellsActual => {
                "The logits that a head's attention needs at its rank tell which heads have large ones, beyond what \
                 its entropy tells"
            }
            Self::MoreRankHelps => {
                "Multi-head attention with twice the rank and half the heads has smaller logits"
            }
            Self::SlopesFreeLogits => {
                "Given a slope over the lag, multi-head attention of the same rank needs less than half of its logits, at \
                 LS-attention's loss or a better one"
            }
            Self::RampCostsLength => {
                "Locality bought by a ramp over positions costs logits in proportion to n·ln(1 + 1/τ)/2"
            }
            Self::PositionsMakeLogits => {
                "What makes trained logits large is that the stream must tell positions apart"
            }
            Self::RankMakesLogits => {
                "What makes trained logits large is that queries and keys of d channels are short of rank"
            }
            Self::SmallErrorIsHarmless => {
                "An error of ε = 0.01 nats in every head's attention is harmless to the model"
            }
            Self::RampIsASlope => {
                "The ramp in QKᵀ can be replaced by a slope over the lag that costs no logits"
            }
            Self::PublishedNeed => {
                "Heads of published models that have logits above 20 nats need them at their rank"
            }
            Self::PublishedRamp => {
                "The logits above 20 nats of published models are ramps over positions"
            }
            Self::GlobalIsSparse => {
                "What LS-attention's global heads attend to beyond the window is sparse"
            }
            Self::GlobalIsLowRank => {
                "What LS-attention's global heads attend to beyond the window is low-rank"
            }
            Self::FewFarTokensDo => {
                "LS-attention loses nothing where its global heads attend to 16 tokens a row beyond the window"
            }
            Self::LowFarRankDoes => {
                "LS-attention loses nothing where its global heads attend beyond the window with a matrix of rank 16"
            }
        }
    }
}

impl fmt::Display for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

//! The keys of a training definition and of its synthetic corpus, with their defaults.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::choices::{
    Arm, Dtype, MOST_SYMBOLS, Optimiser, Positions, RecursionKeys, Router, Schedule, Slopes,
    Stabiliser, TextVocabulary,
};
use crate::lm::LmError;
use crate::lm::error::require;
use crate::lm::operators::Objective;
use crate::targets::HeadKind;

/// All settings of a training run except its text.
///
/// Written as TOML with these field names as keys; a key that is left out has its default. The same
/// definition on the same corpus gives the same run. Two variants with the same `seed` start from
/// the same weights and read the same parts of the text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(default)]
pub struct TrainDefinition {
    /// Variant of attention: which heads are global or local, and which stabiliser acts.
    pub arm: Arm,
    /// Stabilisers beside that of `arm`, for any layout of heads.
    pub stabilisers: Vec<Stabiliser>,
    /// Bound c of the stabiliser `softcap`.
    pub softcap: f64,
    /// Threshold τ of the stabiliser `qk-clip` on the largest logit of a head, with its sign.
    pub qk_clip: f64,
    /// Coefficient ς of the stabiliser `z-loss`.
    pub z_loss: f64,
    /// Exponent e of each token's loss in the objective, 0 < e ≤ 1 (Hajra 2019, arXiv 1902.06127).
    pub loss_exponent: f64,
    /// Share of the training targets that another symbol replaces, always the same ones.
    pub label_noise: f64,
    /// Whether the matrices of blocks have only the values −γ, 0 and γ, with γ the mean of |W| (TriLM, arXiv 2407.12327).
    pub ternary: bool,
    /// Vectors in each layer's memory of arm `gam`.
    pub memory_slots: usize,
    /// Decoder blocks.
    pub layers: usize,
    /// Times that a token passes the blocks between the first and the last one, with the same weights (Mixture-of-Recursions, arXiv 2507.10524).
    pub recursions: usize,
    /// Which tokens take part in a recursion.
    pub router: Router,
    /// Factor α of what a recursion adds; default 0.1 with `expert`, 1 with `token`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub router_scale: Option<f64>,
    /// Coefficient of the router's own loss; default 0.001 with `expert`, 0.1 with `token`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub router_loss: Option<f64>,
    /// Keys and values of a recursion: its own tokens', or those of all tokens in the first recursion.
    pub recursion_keys: RecursionKeys,
    /// Whether `expert` chooses by score > ½ in validation. `false` chooses as training does, which reads later tokens.
    pub causal_validation: bool,
    /// Width of the residual stream; a multiple of `heads` unless `d_head` is set.
    pub d_model: usize,
    /// Attention heads in each layer.
    pub heads: usize,
    /// Dimensions of each head, which sets its rank; default d_model / heads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub d_head: Option<usize>,
    /// Global heads in each layer of arm `ls`.
    pub global_heads: usize,
    /// Tokens that a local head attends to, its own included.
    pub window: usize,
    /// Tokens in one sequence: n.
    pub context: usize,
    /// Position encoding.
    pub positions: Positions,
    /// Linear position bias of each head, added to QKᵀ/√d_head: `alibi` is fixed, `learned` is trained.
    pub slopes: Slopes,
    /// Tokens of a text: `characters`, `byte` or `bpe:SIZE`, such as `bpe:8192`.
    #[schemars(with = "String")]
    pub vocabulary: TextVocabulary,
    /// Standard deviation of the initial weights. GPT-2 has 0.02 at d_model = 768; the same per 1/√d_model is 0.07 at 64.
    pub initial_deviation: f64,
    /// Sequences in one batch.
    pub batch: usize,
    /// Batches per step, whose gradients are averaged.
    pub accumulation: usize,
    /// Whether activations are computed again in the backward pass: less memory, a second forward pass, the same result.
    pub recompute: bool,
    /// Optimiser steps.
    pub steps: usize,
    /// Optimiser. `muon` with `stabilisers = ["qk-clip"]` is MuonClip.
    pub optimiser: Optimiser,
    /// The peak learning rate.
    pub learning_rate: f64,
    /// Steps over which the learning rate rises linearly to its peak.
    pub warmup_steps: usize,
    /// The learning rate after warm-up.
    pub schedule: Schedule,
    /// The last learning rate of the cosine schedule, as a fraction of the peak.
    pub final_learning_rate: f64,
    /// AdamW's decay rates of the first and second moments.
    pub betas: [f64; 2],
    /// Decoupled weight decay of the optimiser, on matrices only.
    pub weight_decay: f64,
    /// The gradient's largest global norm; longer ones are scaled down to it.
    pub clip: f64,
    /// First steps that read the upstream text instead, with a schedule of their own: continual pre-training (Gupta et al.
    /// 2023, arXiv 2308.04014).
    pub upstream_steps: usize,
    /// The peak learning rate of these steps; default `learning_rate`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upstream_learning_rate: Option<f64>,
    /// Precision of activations and products. Weights, moments and the loss stay float32.
    pub dtype: Dtype,
    /// Seed of the initial weights and of the order of text.
    pub seed: u64,
    /// Steps between evaluations. There is always one at the end.
    pub eval_every: usize,
    /// Steps between checkpoints, of which the last is kept.
    pub checkpoint_every: usize,
    /// Steps whose weights are kept beside the last checkpoint.
    pub keep_checkpoints: Vec<usize>,
    /// Training loss in nats above which a run ends as diverged, after warm-up; `inf` for never.
    pub diverged_above: f64,
    /// Batches per evaluation, the same each time.
    pub eval_batches: usize,
    /// Share of the corpus held out for validation, where no validation text is given.
    pub valid_fraction: f64,
    /// Share of the corpus held out for tests.
    pub test_fraction: f64,
    /// The synthetic corpus, used where no text is given.
    pub corpus: SyntheticCorpus,
}

impl Default for TrainDefinition {
    fn default() -> Self {
        Self {
            arm: Arm::Mhsa,
            stabilisers: Vec::new(),
            softcap: 50.0,
            qk_clip: 100.0,
            z_loss: 1e-4,
            loss_exponent: 1.0,
            label_noise: 0.0,
            ternary: false,
            memory_slots: 512,
            layers: 3,
            recursions: 1,
            router: Router::None,
            router_scale: None,
            router_loss: None,
            recursion_keys: RecursionKeys::Own,
            causal_validation: true,
            d_model: 64,
            heads: 4,
            global_heads: 1,
            window: 16,
            d_head: None,
            context: 512,
            positions: Positions::Learned,
            slopes: Slopes::None,
            vocabulary: TextVocabulary::Characters,
            initial_deviation: 0.02,
            batch: 4,
            accumulation: 1,
            recompute: false,
            steps: 1500,
            optimiser: Optimiser::Adamw,
            learning_rate: 3e-3,
            warmup_steps: 100,
            schedule: Schedule::Cosine,
            final_learning_rate: 0.1,
            upstream_steps: 0,
            upstream_learning_rate: None,
            betas: [0.9, 0.99],
            weight_decay: 0.1,
            clip: 1.0,
            dtype: Dtype::Float32,
            seed: 0,
            eval_every: 250,
            checkpoint_every: 500,
            keep_checkpoints: Vec::new(),
            diverged_above: f64::INFINITY,
            eval_batches: 16,
            valid_fraction: 0.1,
            test_fraction: 0.0,
            corpus: SyntheticCorpus::default(),
        }
    }
}

impl TrainDefinition {
    /// Dimensions of each head, d.
    pub fn head_dimension(&self) -> usize {
        self.d_head.unwrap_or_else(|| self.d_model / self.heads.max(1))
    }

    /// What a step minimises.
    pub(in crate::lm) fn objective(&self) -> Objective {
        let z_loss = if self.has(Stabiliser::ZLoss) { self.z_loss } else { 0.0 };
        Objective { exponent: self.loss_exponent, z_loss }
    }

    /// The factor α of a gate and the coefficient of the router's loss; those of the paper by default.
    pub(in crate::lm) fn router_scale_and_loss(&self) -> [f64; 2] {
        let [scale, loss] = match self.router {
            Router::None => [0.0, 0.0],
            Router::Expert => [0.1, 1e-3],
            Router::Token => [1.0, 0.1],
        };
        [self.router_scale.unwrap_or(scale), self.router_loss.unwrap_or(loss)]
    }

    /// The moments that the optimiser keeps of each weight at least.
    pub(in crate::lm) fn least_moments(&self) -> usize {
        match self.optimiser {
            Optimiser::Adamw => 2,
            Optimiser::Muon => 1,
        }
    }

    /// Tokens that one step reads.
    pub fn tokens_per_step(&self) -> usize {
        self.accumulation * self.batch * self.context
    }

    /// The kind of each head, by layer.
    pub fn head_kinds(&self) -> Vec<Vec<HeadKind>> {
        (0..self.layers).map(|layer| self.layer_kinds(layer)).collect()
    }

    /// The number of global heads in the layer that has most of them: the column `global_heads`.
    pub fn most_global_heads(&self) -> usize {
        let there = self.layers_by_kinds().into_iter().filter(|(layers, _)| *layers > 0);
        let global =
            |kinds: Vec<HeadKind>| kinds.iter().filter(|kind| **kind == HeadKind::Global).count();
        there.map(|(_, kinds)| global(kinds)).max().unwrap_or(0)
    }

    /// The two kinds of layers: the number of layers and the kinds of their heads. Not one entry per layer, because a
    /// definition may name more layers than fit into memory before it is refused.
    pub(crate) fn layers_by_kinds(&self) -> [(usize, Vec<HeadKind>); 2] {
        // Layers differ at most between even and odd ones.
        let odd = self.layers / 2;
        [(self.layers - odd, self.layer_kinds(0)), (odd, self.layer_kinds(1))]
    }

    /// The tokens at and before its own that a local head attends to, if there are local heads: the column `window`.
    pub fn local_tokens(&self) -> Option<usize> {
        self.has_local_heads().then_some(self.window)
    }

    /// Whether a local head's window covers the whole context, so that it is equivalent to a global head.
    pub fn has_window_of_context(&self) -> bool {
        self.has_local_heads() && self.window >= self.context
    }

    /// Whether any head is local, so that the key `window` has an effect.
    pub fn has_local_heads(&self) -> bool {
        let is_local = |kind: &HeadKind| kind.window().is_some();
        let layers = self.layers_by_kinds();
        layers.iter().any(|(count, kinds)| *count > 0 && kinds.iter().any(is_local))
    }

    /// Whether the key `global_heads` has an effect.
    pub fn uses_global_heads(&self) -> bool {
        let other = Self { global_heads: self.global_heads + 1, ..self.clone() };
        self.layers_by_kinds() != other.layers_by_kinds()
    }

    fn layer_kinds(&self, layer: usize) -> Vec<HeadKind> {
        let global = self.arm.global_heads(layer, self.heads, self.global_heads);
        let mut kinds = vec![HeadKind::Global; global];
        kinds.resize(self.heads, HeadKind::Local { window: self.window });
        kinds
    }

    /// Whether a stabiliser acts, selected by the variant or by the key `stabilisers`.
    pub fn has(&self, stabiliser: Stabiliser) -> bool {
        self.arm.stabiliser() == Some(stabiliser) || self.stabilisers.contains(&stabiliser)
    }
}

/// The largest size of the table R, in numbers.
const MAX_TABLE: usize = 1 << 24;
/// The largest allowed value of a size.
const MOST: usize = 1 << 30;

/// The synthetic corpus: a stream of segments, each local or recall.
///
/// **Symbols.** A local symbols, one `store` mark, one `query` mark, K keys and V values, numbered
/// in that order: A + 2 + K + V symbols.
///
/// **Local segment** (probability 1 − `recall`): `segment` local symbols in a row. Given the previous local
/// symbols x₋₁, x₋₂, …, without other symbols, the next one is s with probability
///
/// p(s) ∝ R\[x₋₁ … x₋ₖ\]\[s\] · exp(`vote` · Σₗ aₗ M\[x₋ₗ\]\[s\] / ‖a‖), l = 1 … `window`
///
/// with k = `order`. Each of the Aᵏ rows of R is drawn from a symmetric Dirichlet distribution of parameter
/// `concentration`, M has standard normal entries, and a is uniform on the simplex. So R depends on
/// exactly the last k symbols. The vote has a standard deviation of `vote` nats and depends on all of the
/// last `window` symbols, which needs dense local attention.
///
/// **Recall segment** (probability `recall`): with equal chance `store key value`, with a uniform key and value,
/// or `query key value`, where the value is the one stored with the key. The key is uniform among the last `pairs` stored keys
/// whose values are at least `beyond` tokens before the queried value. This needs one sparse, distant look-up. As long as
/// there is no such key, every recall segment is a `store`.
///
/// **Entropy.** Every conditional distribution is known, so the corpus reports the mean entropy
/// of the next token given all previous ones: that of p for a local symbol; in addition that of the choice of
/// segment for a segment's first token; ln K for a stored key; ln V for a stored value;
/// ln(number of keys that may be queried) for a queried key; 0 for a queried value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(default)]
pub struct SyntheticCorpus {
    /// Tokens of the synthetic corpus, which is used where no text is given.
    pub tokens: usize,
    /// Number of local symbols, A.
    pub alphabet: usize,
    /// Order k of the transition table R.
    pub order: usize,
    /// Dirichlet parameter of the rows of R. Small values make the next symbol nearly certain.
    pub concentration: f64,
    /// Last symbols that vote for the next one.
    pub window: usize,
    /// Standard deviation of the vote in nats; 0 for none.
    pub vote: f64,
    /// Symbols per local segment.
    pub segment: usize,
    /// Share of segments that are look-ups, 0 to 1.
    pub recall: f64,
    /// Number of keys, K.
    pub keys: usize,
    /// Number of values, V.
    pub values: usize,
    /// Last stored keys that a query may ask for.
    pub pairs: usize,
    /// Least distance in tokens to a value that is asked for.
    pub beyond: usize,
    /// Seed of tables and stream.
    pub seed: u64,
}

impl Default for SyntheticCorpus {
    fn default() -> Self {
        Self {
            tokens: 1_000_000,
            alphabet: 16,
            order: 1,
            concentration: 1.0,
            window: 16,
            vote: 2.0,
            segment: 16,
            recall: 0.1,
            keys: 16,
            values: 16,
            pairs: 4,
            beyond: 0,
            seed: 0,
        }
    }
}

impl SyntheticCorpus {
    /// The number of symbols: A + 2 + K + V.
    pub fn vocabulary_size(&self) -> usize {
        self.alphabet + 2 + self.keys + self.values
    }

    /// Checks every value against the range of its key.
    pub(in crate::lm) fn check(&self) -> Result<(), LmError> {
        for (key, found, least) in [
            ("corpus.tokens", self.tokens, 1),
            ("corpus.order", self.order, 0),
            ("corpus.window", self.window, 1),
            ("corpus.segment", self.segment, 1),
            ("corpus.keys", self.keys, 1),
            ("corpus.values", self.values, 1),
            ("corpus.pairs", self.pairs, 1),
            ("corpus.beyond", self.beyond, 0),
        ] {
            require(found >= least, key, found, "must be at least 1")?;
            require(found <= MOST, key, found, "must be at most 2^30")?;
        }
        let alphabet = self.alphabet;
        require(alphabet >= 2, "corpus.alphabet", alphabet, "must be at least 2")?;
        let table = u32::try_from(self.order + 1)
            .ok()
            .and_then(|power| self.alphabet.checked_pow(power))
            .is_some_and(|size| size <= MAX_TABLE);
        let why = format!(
            "gives {alphabet}^(order + 1) numbers, more than {MAX_TABLE}; lower alphabet or \
                         order"
        );
        require(table, "corpus.order", self.order, &why)?;
        let symbols = self.vocabulary_size();
        let why = format!("gives {symbols} symbols with keys and values, more than {MOST_SYMBOLS}");
        require(symbols <= MOST_SYMBOLS, "corpus.alphabet", alphabet, &why)?;
        let positive = self.concentration.is_finite() && self.concentration > 0.0;
        require(positive, "corpus.concentration", self.concentration, "must be above 0")?;
        let vote = self.vote.is_finite() && self.vote >= 0.0;
        require(vote, "corpus.vote", self.vote, "must be 0 or more")?;
        let recall = (0.0..=1.0).contains(&self.recall);
        require(recall, "corpus.recall", self.recall, "must be 0 to 1")
    }
}

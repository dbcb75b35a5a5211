//! The seeds of one cell of a study of logit growth.

use crate::table::{Estimate, Spread};

/// One fit of a study of logit growth: one seed of one target at one rank.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GrowthSeed {
    /// The seed.
    pub seed: usize,
    /// L*(ε), the smallest max |logit| that reached ε; `None` if no logit bound tried did.
    pub needed: Option<f64>,
    /// L⁰(ε), the same with no rank limit.
    pub floor: Option<f64>,
    /// L*(ε) / L⁰(ε), the rank penalty.
    pub inflation: Option<f64>,
}

/// The seeds of one target family at one n and rank.
#[derive(Clone, Debug, PartialEq)]
pub struct GrowthCell {
    /// The target family.
    pub family: String,
    /// The family with its parameters: `dirichlet-band, w = 32`.
    pub label: String,
    /// The number of columns over which a row is spread: window of a band, m of `landmark`, k of `random-sparse`.
    pub support: Option<usize>,
    /// ε in nats.
    pub tolerance: f64,
    /// The sequence length.
    pub n: usize,
    /// The rank d of the factors.
    pub rank: usize,
    /// The fits, one per seed, in order.
    pub seeds: Vec<GrowthSeed>,
    /// The number of fits that reached ε and stopped at the step limit; their logits are upper bounds only.
    pub step_limited: usize,
}

impl GrowthCell {
    /// n/d.
    pub fn ratio(&self) -> f64 {
        self.n as f64 / self.rank as f64
    }

    /// L*(ε) over the seeds that reached ε.
    pub fn needed(&self) -> Option<Spread> {
        Spread::of(self.seeds.iter().filter_map(|seed| seed.needed))
    }

    /// L⁰(ε) over all seeds.
    pub fn floor(&self) -> Option<Spread> {
        Spread::of(self.seeds.iter().filter_map(|seed| seed.floor))
    }

    /// L*(ε) / L⁰(ε) over the seeds that reached ε.
    pub fn inflation(&self) -> Option<Spread> {
        Spread::of(self.seeds.iter().filter_map(|seed| seed.inflation))
    }

    /// Student's interval of the geometric mean of L*(ε) / L⁰(ε), over the seeds that reached ε.
    pub fn inflation_within(&self) -> Option<Estimate> {
        let logs = self.seeds.iter().filter_map(|seed| Some(seed.inflation?.ln()));
        Estimate::interval(logs).map(Estimate::exp)
    }

    /// The number of seeds that reached ε.
    pub fn reached(&self) -> usize {
        self.seeds.iter().filter(|seed| seed.needed.is_some()).count()
    }

    /// Whether more than half of the seeds reached ε.
    pub fn is_mostly_reached(&self) -> bool {
        2 * self.reached() > self.seeds.len()
    }

    /// The number of seeds that did not reach ε at any logit bound tried.
    pub fn unreached(&self) -> usize {
        self.seeds.len() - self.reached()
    }
}

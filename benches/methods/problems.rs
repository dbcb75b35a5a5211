//! Test problems of the comparison: one stage of a fit, from random starts.

use anyhow::Result;
use ndarray::Array3;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use rank_study::solver::{Evaluator, Factors, Precision, Problem};
use rank_study::targets::{Family, Parameters, Visibility};

/// Initial weight of the penalty on logits beyond the bound, as in fits.
const SLOPE: f64 = 0.1;
/// The sequence length of every problem.
const N: usize = 128;

/// A family of targets at one rank and logit bound.
pub struct Case {
    /// Name in the rows.
    pub name: &'static str,
    family: &'static str,
    parameters: Parameters,
    rank: usize,
    cap: f64,
}

impl Case {
    /// The four problems on which every method runs.
    pub fn all() -> [Self; 4] {
        let none = Parameters::default;
        [
            Self {
                name: "dirichlet-band, w = 32, d = 8, cap 8",
                family: "dirichlet-band",
                parameters: Parameters { window: Some(32), ..none() },
                rank: 8,
                cap: 8.0,
            },
            Self {
                name: "random-sparse, k = 8, d = 4, cap 8",
                family: "random-sparse",
                parameters: Parameters { k: Some(8), ..none() },
                rank: 4,
                cap: 8.0,
            },
            Self {
                name: "landmark, m = 8, d = 8, cap 4",
                family: "landmark",
                parameters: Parameters { m: Some(8), ..none() },
                rank: 8,
                // With bound 8 the fit reaches 3e-6 nats, which leaves nothing to compare.
                cap: 4.0,
            },
            Self {
                name: "mixture, w = 24 and m = 6, d = 16, cap 8",
                family: "mixture",
                parameters: Parameters {
                    lambda: Some(0.5),
                    local: Some("dirichlet-band".to_owned()),
                    window: Some(24),
                    global: Some("landmark".to_owned()),
                    m: Some(6),
                    ..none()
                },
                rank: 16,
                cap: 8.0,
            },
        ]
    }

    /// One causal head for the target of a seed, with a logit bound and a start. The start has standard normal queries
    /// and keys, so logits of standard deviation 1, as in a fit's random starts.
    ///
    /// # Errors
    /// The library does not accept the family or the sizes.
    pub fn stage(&self, seed: u64) -> Result<Stage> {
        let family = Family::from_parameters(self.family, &self.parameters)?;
        let target = family.build(N, seed, Visibility::Causal)?;
        let problem = Problem::new(target, "global".parse()?, self.rank)?;
        let mut generator = ChaCha8Rng::seed_from_u64(seed);
        let mut draw = || -> Array3<f64> {
            Array3::from_shape_simple_fn((1, N, self.rank), || {
                StandardNormal.sample(&mut generator)
            })
        };
        let (queries, keys) = (draw(), draw());
        let start = Factors::new(queries, keys, ndarray::arr1(&[1.0]))?;
        Ok(Stage { problem, start, penalty: (self.cap, SLOPE) })
    }
}

/// A problem to minimise, and its start.
pub struct Stage {
    pub problem: Problem,
    start: Factors,
    /// Logit bound, and weight of the penalty beyond it.
    pub penalty: (f64, f64),
}

impl Stage {
    /// The same problem with another penalty.
    pub fn with_penalty(self, penalty: (f64, f64)) -> Self {
        Self { penalty, ..self }
    }

    /// The objective at the start.
    ///
    /// # Errors
    /// The logit bound is not valid.
    pub fn evaluator(&self) -> Result<Evaluator<'_>> {
        Ok(Evaluator::new(&self.problem, Precision::F64, Some(&self.start), self.penalty)?)
    }
}

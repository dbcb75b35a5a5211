//! The objective of one problem, as the optimiser sees it: a function of one vector.

pub(super) use super::kernel::Evaluation;
use super::kernel::Kernel;
use super::penalty::{Multipliers, Penalty};
use super::problem::{FitError, Problem};

/// The arithmetic of an evaluation. Vectors and sums over rows are float64 in both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Precision {
    /// float32 logits and products: half the time and half the memory.
    F32,
    /// float64 throughout.
    #[default]
    F64,
}

impl std::fmt::Display for Precision {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::F32 => "f32",
            Self::F64 => "f64",
        })
    }
}

impl std::str::FromStr for Precision {
    type Err = FitError;

    fn from_str(text: &str) -> Result<Self, FitError> {
        match text {
            "f32" => Ok(Self::F32),
            "f64" => Ok(Self::F64),
            _ => Err(FitError::Precision(text.to_owned())),
        }
    }
}

/// The objective with its work space, so that an evaluation allocates nothing large.
pub(super) struct Objective<'p> {
    problem: &'p Problem,
    kernel: AnyKernel,
    /// Where the kernel is float32: what is measured beside the descent is float64 all the same.
    exact: Option<Kernel<f64>>,
    pub evaluations: usize,
}

enum AnyKernel {
    F32(Kernel<f32>),
    F64(Kernel<f64>),
}

impl<'p> Objective<'p> {
    pub fn new(problem: &'p Problem, precision: Precision) -> Self {
        let kernel = match precision {
            Precision::F32 => AnyKernel::F32(Kernel::new(problem)),
            Precision::F64 => AnyKernel::F64(Kernel::new(problem)),
        };
        Self { problem, kernel, exact: None, evaluations: 0 }
    }

    pub fn problem(&self) -> &'p Problem {
        self.problem
    }

    /// Evaluates at x and writes the gradient of kl_nats plus the penalty to `gradient`.
    pub fn evaluate(
        &mut self,
        x: &[f64],
        penalty: Option<&Penalty>,
        gradient: &mut [f64],
    ) -> Evaluation {
        self.evaluations += 1;
        match &mut self.kernel {
            AnyKernel::F32(kernel) => kernel.evaluate(self.problem, x, penalty, Some(gradient)),
            AnyKernel::F64(kernel) => kernel.evaluate(self.problem, x, penalty, Some(gradient)),
        }
    }

    /// kl_nats and the logits' extremes at x, in float64 whatever the precision of the descent.
    pub fn measure(&mut self, x: &[f64]) -> Evaluation {
        let exact = match &mut self.kernel {
            AnyKernel::F64(kernel) => kernel,
            AnyKernel::F32(_) => self.exact.get_or_insert_with(|| Kernel::new(self.problem)),
        };
        exact.evaluate(self.problem, x, None, None)
    }

    /// The multipliers of every head and row after one update at x.
    pub fn updated_multipliers(&mut self, x: &[f64], penalty: &Penalty) -> Multipliers {
        match &mut self.kernel {
            AnyKernel::F32(kernel) => kernel.updated_multipliers(self.problem, x, penalty),
            AnyKernel::F64(kernel) => kernel.updated_multipliers(self.problem, x, penalty),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fit::Factors;
    use crate::target::{Family, Parameters, Target, Visibility};
    use ndarray::{Array2, Axis};
    use proptest::prelude::*;

    fn problem(layout: &str, visibility: Visibility, n: usize, rank: usize, seed: u64) -> Problem {
        let parameters = Parameters {
            window: Some(5),
            m: Some(3),
            local: Some("dirichlet-band".to_owned()),
            global: Some("landmark".to_owned()),
            ..Parameters::default()
        };
        let family = Family::from_parameters("mixture", &parameters).unwrap();
        let target = family.build(n, seed, visibility).unwrap();
        Problem::new(target, layout.parse().unwrap(), rank).unwrap()
    }

    fn vector(problem: &Problem, seed: u64) -> Vec<f64> {
        let mut x = super::super::start::random(problem, 8.0, seed).unwrap().to_vector();
        if problem.heads() > 1 {
            let length = x.len();
            x[length - 1] += 0.3;
        }
        x
    }

    /// kl_nats and its gradient by dense matrices and the definition, with nothing of the blocks in
    /// it.
    fn naive(problem: &Problem, x: &[f64]) -> (f64, Vec<f64>) {
        let (n, d, heads) = (problem.n(), problem.rank(), problem.heads());
        let factors = Factors::from_vector(x, heads, n, d).unwrap();
        let a = problem.target().dense();
        let joint: Vec<Array2<f64>> = (0..heads)
            .map(|head| {
                let z = factors.logits(head);
                let mut joint = Array2::zeros((n, n));
                for i in 0..n {
                    let seen = problem.seen(head, i);
                    let sum: f64 = seen.clone().map(|j| z[[i, j]].exp()).sum();
                    let weight = factors.weights()[head] / sum;
                    seen.for_each(|j| joint[[i, j]] = weight * z[[i, j]].exp());
                }
                joint
            })
            .collect();
        let mixed = joint.iter().fold(Array2::zeros((n, n)), |sum, joint| sum + joint);
        let log_ratio = |a: f64, p: f64| if a > 0.0 { a * (a / p).ln() / n as f64 } else { 0.0 };
        let kl_nats = a.iter().zip(&mixed).map(|(&a, &p)| log_ratio(a, p)).sum();
        let mut gradient = vec![0.0; x.len()];
        for (head, joint) in joint.iter().enumerate() {
            let weight = factors.weights()[head];
            let shares = Array2::from_shape_fn((n, n), |at| {
                if a[at] > 0.0 { a[at] * joint[at] / mixed[at] } else { 0.0 }
            });
            let mass = shares.sum_axis(Axis(1)).insert_axis(Axis(1));
            let g = (joint / weight * &mass - &shares) / (n as f64 * (d as f64).sqrt());
            let (q, k) = factors.head(head);
            let parts = g.dot(&k).into_iter().chain(g.t().dot(&q));
            let side = 2 * n * d;
            gradient[head * side..(head + 1) * side]
                .iter_mut()
                .zip(parts)
                .for_each(|(to, g)| *to = g);
            if heads > 1 {
                gradient[heads * side + head] = weight - shares.sum() / n as f64;
            }
        }
        (kl_nats, gradient)
    }

    fn largest_difference(a: &[f64], b: &[f64]) -> f64 {
        a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
    }

    fn largest_gradient_error(problem: &Problem, x: &[f64], penalty: Option<&Penalty>) -> f64 {
        let mut objective = Objective::new(problem, Precision::F64);
        let mut gradient = vec![0.0; x.len()];
        objective.evaluate(x, penalty, &mut gradient);
        let mut scratch = vec![0.0; x.len()];
        let mut worst = 0.0f64;
        for i in 0..x.len() {
            let mut at = |offset: f64| {
                let mut moved = x.to_vec();
                moved[i] += offset;
                objective.evaluate(&moved, penalty, &mut scratch).value
            };
            let h = 1e-5;
            let difference = (at(h) - at(-h)) / (2.0 * h);
            worst = worst.max((difference - gradient[i]).abs());
        }
        worst
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(12))]

        #[test]
        fn value_and_gradient_agree_with_the_definition(
            layout in prop::sample::select(vec!["global", "2xglobal", "local:6+global", "local:3+2xglobal"]),
            bidirectional in any::<bool>(),
            n in 7usize..60,
            rank in 1usize..5,
            seed in 0u64..1000,
        ) {
            let visibility =
                if bidirectional { Visibility::Bidirectional } else { Visibility::Causal };
            let problem = problem(layout, visibility, n, rank, seed);
            let x = vector(&problem, seed);
            let kl_nats = Objective::new(&problem, Precision::F64).measure(&x).kl_nats;
            let (expected, _) = naive(&problem, &x);
            prop_assert!((kl_nats - expected).abs() < 1e-12 * expected.max(1.0), "{kl_nats} against {expected}");
            let worst = largest_gradient_error(&problem, &x, None);
            prop_assert!(worst < 1e-8, "largest difference {worst:e}");
        }

        #[test]
        fn blocks_and_slots_of_every_size_agree_with_dense_matrices(
            layout in prop::sample::select(vec!["global", "local:30", "local:9+global"]),
            bidirectional in any::<bool>(),
            n in 90usize..900,
            rank in prop::sample::select(vec![1, 4, 8, 12, 17, 24, 33, 40, 64, 70]),
            seed in 0u64..1000,
        ) {
            let visibility =
                if bidirectional { Visibility::Bidirectional } else { Visibility::Causal };
            // A lone window sees no landmarks: give it a band.
            let problem = if layout == "local:30" {
                let band = Parameters { window: Some(20), ..Parameters::default() };
                let family = Family::from_parameters("dirichlet-band", &band).unwrap();
                let target = family.build(n, seed, visibility).unwrap();
                Problem::new(target, layout.parse().unwrap(), rank).unwrap()
            } else {
                problem(layout, visibility, n, rank, seed)
            };
            let x = vector(&problem, seed);
            let (kl_nats, expected) = naive(&problem, &x);
            let largest = expected.iter().fold(0.0, |most: f64, g| most.max(g.abs()));
            for (precision, tolerance) in [(Precision::F64, 1e-12), (Precision::F32, 1e-4)] {
                let mut gradient = vec![f64::NAN; x.len()];
                let evaluation = Objective::new(&problem, precision).evaluate(&x, None, &mut gradient);
                let off = (evaluation.kl_nats / kl_nats - 1.0).abs();
                prop_assert!(off < tolerance, "{precision:?}: kl_nats off by {off:e}");
                let off = largest_difference(&gradient, &expected) / largest;
                prop_assert!(off < tolerance, "{precision:?}: gradient off by {off:e}");
            }
        }
    }

    #[test]
    fn the_number_of_threads_does_not_show() {
        let problem = problem("local:40+global", Visibility::Causal, 1100, 9, 3);
        let x = vector(&problem, 3);
        let penalty = Penalty::new(&problem, 1.0, 0.7);
        let evaluate = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let mut gradient = vec![0.0; x.len()];
                let mut objective = Objective::new(&problem, Precision::F64);
                let value = objective.evaluate(&x, Some(&penalty), &mut gradient).value;
                (value, gradient, objective.updated_multipliers(&x, &penalty))
            })
        };
        let one = evaluate(1);
        (2..5).for_each(|threads| assert!(one == evaluate(threads), "{threads} threads"));
    }

    #[test]
    fn the_penalty_s_gradient_agrees_with_finite_differences() {
        for layout in ["global", "local:6+global"] {
            let problem = problem(layout, Visibility::Causal, 20, 3, 4);
            let x = vector(&problem, 4);
            let mut objective = Objective::new(&problem, Precision::F64);
            let mut penalty = Penalty::new(&problem, 0.3, 2.0);
            // Twice, so that there are multipliers of bounds that are active and of some that are not.
            penalty.multipliers = objective.updated_multipliers(&x, &penalty);
            penalty.cap = 0.5;
            penalty.multipliers = objective.updated_multipliers(&x, &penalty);
            assert!(penalty.total_multiplier() > 0.0, "{layout}: no bound was active");
            let worst = largest_gradient_error(&problem, &x, Some(&penalty));
            assert!(worst < 1e-7, "{layout}: largest difference {worst:e}");
        }
    }

    #[test]
    fn a_shift_of_a_row_s_logits_changes_nothing() {
        let problem = problem("global", Visibility::Causal, 30, 4, 1);
        let mut x = vector(&problem, 1);
        // Keys with a constant in one dimension turn that dimension of a query into a row shift.
        let (n, d) = (30, 4);
        (0..n).for_each(|j| x[n * d + j * d] = 1.0);
        let before = Objective::new(&problem, Precision::F64).measure(&x).kl_nats;
        (0..n).for_each(|i| x[i * d] += 3.0 + i as f64);
        let after = Objective::new(&problem, Precision::F64).measure(&x).kl_nats;
        assert!((before - after).abs() < 1e-12, "{before} against {after}");
    }

    #[test]
    fn extremes_are_over_visible_pairs_alone() {
        let target =
            Target::from_rows(vec![vec![(0, 1.0)], vec![(1, 1.0)]], Visibility::Causal).unwrap();
        let problem = Problem::new(target, "global".parse().unwrap(), 1).unwrap();
        // z = [[2, 200], [3, 300]]: the 200 is hidden.
        let seen = Objective::new(&problem, Precision::F64).measure(&[2.0, 3.0, 1.0, 100.0]);
        assert_eq!((seen.max_abs_logit, seen.logit_spread), (300.0, 297.0));
    }
}

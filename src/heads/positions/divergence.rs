//! Least KL divergence of a form's attention from a head's.

use ndarray::{Array2, ArrayView1, s};

use super::conjugate_gradients::dot;
use super::covariance::Covariance;
use super::form::Form;
use super::rows::{SeenRow, SeenRows};

/// The decrease, in nats, below which Newton's method ends: half the squared Newton decrement, which estimates what is left to
/// gain (Boyd and Vandenberghe, *Convex Optimization*, section 9.5).
const WORTH: f64 = 1e-9;
/// The most steps of Newton's method.
const STEPS: usize = 100;
/// The relative residual to which a step's equations are solved, and the most products for it.
const RESIDUAL: f64 = 3e-2;
const PRODUCTS: usize = 300;
/// The most that a parameter moves in one step; further away the quadratic model is inaccurate.
const FARTHEST: f64 = 8.0;
/// The most rounds of scaling before Newton's method.
const ROUNDS: usize = 20;
/// The constant of the sufficient-decrease condition, and the most halvings of a step.
const ARMIJO: f64 = 1e-4;
const HALVINGS: usize = 30;

/// The attention of a form that is nearest to a head's.
#[derive(Clone, Debug)]
pub(in super::super) struct Nearest {
    /// Mean over rows of KL(P ‖ P̂), in nats.
    pub kl_nats: f64,
    /// θ.
    pub theta: Vec<f64>,
    /// Whether Newton's method estimates that less than [`WORTH`] is left to gain.
    pub converged: bool,
}

/// P̂ at a point θ, with its divergence.
pub(super) struct At {
    pub kl_nats: f64,
    attention: Vec<f64>,
}

impl SeenRows {
    /// Minimises the mean over rows of KL(P ‖ softmax ẑ(θ)) of a form, which is convex in θ, by Newton's method from `start`
    /// with halved steps. A form of many parameters is first scaled until the mass of each is about right. The result is never
    /// worse than the start.
    pub fn nearest(&self, form: Form, start: Vec<f64>) -> Nearest {
        let mut theta = start;
        let mut at = self.at(form, &theta);
        let scales = vec![1.0 / self.len() as f64; self.len()];
        if form != Form::Ramp {
            for _ in 0..ROUNDS {
                let scaled = self.scaled(form, &theta, &at);
                let next = self.at(form, &scaled);
                if next.kl_nats >= at.kl_nats {
                    break;
                }
                (theta, at) = (scaled, next);
            }
        }
        for _ in 0..STEPS {
            let gradient = self.gradient(form, &at);
            let hessian = Covariance { rows: self, form, masses: &at.attention, scales: &scales };
            let down: Vec<f64> = gradient.iter().map(|g| -g).collect();
            let step = hessian.solve(&down, RESIDUAL, PRODUCTS).x;
            let promised = dot(&down, &step);
            if promised <= 2.0 * WORTH {
                return Nearest { kl_nats: at.kl_nats, theta, converged: true };
            }
            let farthest = step.iter().fold(0.0, |most: f64, d| most.max(d.abs()));
            let mut length = (FARTHEST / farthest).min(1.0);
            let mut halvings = 0;
            let next = loop {
                let there: Vec<f64> =
                    theta.iter().zip(&step).map(|(t, d)| t + length * d).collect();
                let found = self.at(form, &there);
                if found.kl_nats <= at.kl_nats - ARMIJO * length * promised {
                    break Some((there, found));
                }
                if halvings == HALVINGS {
                    break None;
                }
                halvings += 1;
                length *= 0.5;
            };
            match next {
                Some((there, found)) => (theta, at) = (there, found),
                None => break,
            }
        }
        Nearest { kl_nats: at.kl_nats, theta, converged: false }
    }

    /// Mean over rows of KL(P ‖ uniform over the columns of the row), in nats.
    pub fn divergence_from_uniform(&self) -> f64 {
        let of_row = |row: SeenRow<'_>| {
            let count = row.columns.len() as f64;
            row.attention.iter().map(|&p| times_log(p, p * count)).sum::<f64>()
        };
        self.each().map(of_row).sum::<f64>() / self.len() as f64
    }

    /// softmax ẑ(θ) of a form over the allowed columns of one passage's rows, (rows, T).
    pub fn attention_of(&self, form: Form, theta: &[f64]) -> Array2<f64> {
        let At { attention, .. } = self.at(form, theta);
        let mut matrix = Array2::zeros((self.len(), self.tokens));
        for (row, mut to) in self.each().zip(matrix.rows_mut()) {
            let from = ArrayView1::from(&attention[row.pairs()]);
            to.slice_mut(s![row.columns.clone()]).assign(&from);
        }
        matrix
    }

    pub(super) fn at(&self, form: Form, theta: &[f64]) -> At {
        let mut attention = vec![0.0; self.pairs()];
        let mut sum = 0.0;
        for row in self.each() {
            let into = &mut attention[row.pairs()];
            form.logits(theta, self.tokens, &row, into);
            let greatest = into.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let of_p: f64 = row
                .attention
                .iter()
                .zip(&*into)
                .map(|(&p, z)| times_log(p, p) - p * (z - greatest))
                .sum();
            let mut normaliser = 0.0;
            for z in into.iter_mut() {
                *z = (*z - greatest).exp();
                normaliser += *z;
            }
            for e in into.iter_mut() {
                *e /= normaliser;
            }
            sum += of_p + row.attention.iter().sum::<f64>() * normaliser.ln();
        }
        At { kl_nats: sum / self.len() as f64, attention }
    }

    /// ∂KL/∂θ.
    pub(super) fn gradient(&self, form: Form, at: &At) -> Vec<f64> {
        let mut gradient = vec![0.0; form.parameters(self.tokens)];
        let share = 1.0 / self.len() as f64;
        for row in self.each() {
            let pairs = at.attention[row.pairs()].iter().zip(row.attention);
            let off: Vec<f64> = pairs.map(|(found, p)| share * (found - p)).collect();
            form.gather(&off, self.tokens, &row, &mut gradient);
        }
        gradient
    }

    /// θ after one step of iterative proportional fitting (Deming and Stephan 1940): each parameter's mass over all rows is
    /// corrected as if rows were not normalised, which lowers KL.
    fn scaled(&self, form: Form, theta: &[f64], at: &At) -> Vec<f64> {
        let parameters = form.parameters(self.tokens);
        let (mut wanted, mut found) = (vec![0.0; parameters], vec![0.0; parameters]);
        for row in self.each() {
            form.gather(row.attention, self.tokens, &row, &mut wanted);
            form.gather(&at.attention[row.pairs()], self.tokens, &row, &mut found);
        }
        let scale = |((theta, wanted), found): ((&f64, f64), f64)| match wanted > 0.0 && found > 0.0
        {
            true => theta + (wanted / found).ln(),
            false => *theta,
        };
        theta.iter().zip(wanted).zip(found).map(scale).collect()
    }
}

/// p ln q; 0 at p = 0.
fn times_log(p: f64, q: f64) -> f64 {
    if p > 0.0 { p * q.ln() } else { 0.0 }
}

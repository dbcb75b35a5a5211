//! The share of a head's logits that a form explains, and the form's attention nearest to the head's.

use ndarray::{Array2, ArrayView1, s};

use super::covariance::{Covariance, dot};
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
            let step = hessian.solve(&down, RESIDUAL, PRODUCTS).0;
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

/// The relative residual to which the normal equations are solved. The error of the share is of the order of its square.
const RESIDUAL_OF_SHARES: f64 = 1e-9;
/// The most products with their matrix.
const PRODUCTS_OF_SHARES: usize = 5000;

/// The least-squares fit of a form.
#[derive(Clone, Debug)]
pub(in super::super) struct Share {
    /// R² within rows; `None` if z is constant in every row.
    pub of_variance: Option<f64>,
    /// θ.
    pub theta: Vec<f64>,
    /// Whether the normal equations were solved.
    pub converged: bool,
}

impl SeenRows {
    /// Least-squares fit of z_ij = a_i + ẑ_ij(θ), with a free a_i in each row of each passage, one θ for all, and equal weight
    /// on every allowed pair. R² = 1 − Σ(z̃ − ẑ)²/Σz̃², both minus their row means. The normal equations are solved by
    /// conjugate gradients from θ = 0. If they do not converge, R² is that of the final θ, a lower bound on the best.
    pub fn share_of(&self, form: Form) -> Share {
        let centred = self.centred_logits();
        let tokens = self.tokens;
        let mut moments = vec![0.0; form.parameters(tokens)];
        let (mut masses, mut scales) = (Vec::with_capacity(centred.len()), Vec::new());
        for row in self.each() {
            let count = row.columns.len();
            form.gather(&centred[row.pairs()], tokens, &row, &mut moments);
            masses.extend(std::iter::repeat_n(1.0 / count as f64, count));
            scales.push(count as f64);
        }
        let normal = Covariance { rows: self, form, masses: &masses, scales: &scales };
        let (theta, converged) = normal.solve(&moments, RESIDUAL_OF_SHARES, PRODUCTS_OF_SHARES);
        let mut of_row = vec![0.0; self.widest()];
        let mut left = 0.0;
        for row in self.each() {
            let z = &mut of_row[..row.columns.len()];
            form.logits(&theta, tokens, &row, z);
            let mean = mean(z);
            left += centred[row.pairs()]
                .iter()
                .zip(&*z)
                .map(|(c, z)| (c - z + mean).powi(2))
                .sum::<f64>();
        }
        let of_variance = share(left, squares(&centred));
        Share { of_variance, theta, converged }
    }

    /// R² of z_ij = a_i + b_j, with b_j free in each passage: one score per key, added alike to every query. `passages` holds
    /// the rows of one passage each. Also returns whether all normal equations were solved. `None` if z is constant in every
    /// row.
    pub fn share_of_key_scores(passages: &[Self]) -> (Option<f64>, bool) {
        let (mut left, mut all, mut converged) = (0.0, 0.0, true);
        for passage in passages {
            let share = passage.share_of(Form::Position);
            let variation = squares(&passage.centred_logits());
            left += share.of_variance.map_or(0.0, |share| (1.0 - share) * variation);
            all += variation;
            converged &= share.converged;
        }
        (share(left, all), converged)
    }

    /// R² of z_ij = a_i + c_i j: a line with a slope of its own for each row.
    pub fn share_of_lines(&self) -> Option<f64> {
        let centred = self.centred_logits();
        let mut told = 0.0;
        for row in self.each() {
            let middle = 0.5 * (row.columns.len() as f64 - 1.0);
            let along = |at: usize| at as f64 - middle;
            let of_row = &centred[row.pairs()];
            let covariance: f64 = of_row.iter().enumerate().map(|(at, z)| along(at) * z).sum();
            let variance: f64 = (0..of_row.len()).map(|at| along(at).powi(2)).sum();
            if variance > 0.0 {
                told += covariance * covariance / variance;
            }
        }
        let all = squares(&centred);
        share(all - told, all)
    }

    /// z̃: the logits minus the mean of their row.
    fn centred_logits(&self) -> Vec<f64> {
        let mut centred = Vec::with_capacity(self.pairs());
        for row in self.each() {
            let mean = mean(row.logits);
            centred.extend(row.logits.iter().map(|z| z - mean));
        }
        centred
    }
}

fn share(left: f64, all: f64) -> Option<f64> {
    (all > 0.0).then(|| (1.0 - left / all).clamp(0.0, 1.0))
}

fn squares(values: &[f64]) -> f64 {
    values.iter().map(|v| v * v).sum()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

//! Adam (Kingma and Ba 2015, algorithm 1) on the full gradient, with a learning rate that falls to zero by a cosine
//! over the time budget.

use crate::run::Run;

/// The learning rates tried.
pub const LEARNING_RATES: [f64; 4] = [0.003, 0.01, 0.03, 0.1];

const BETAS: (f64, f64) = (0.9, 0.999);
/// Small compared with the gradients here, which are means over 128 rows.
const EPSILON: f64 = 1e-10;

/// Takes steps until the time budget is used up.
pub fn adam(run: &mut Run, learning_rate: f64) {
    let mut x = run.evaluator.point().to_vec();
    let mut moments = Moments::zeros(x.len());
    let mut value = run.evaluator.evaluate();
    while run.reached(value) {
        let cosine = (std::f64::consts::PI * run.elapsed().min(1.0)).cos();
        moments.step(&mut x, run.evaluator.gradient(), learning_rate * 0.5 * (1.0 + cosine));
        value = run.evaluator.evaluate_at(&x);
    }
}

/// Running means of the gradient and of its squares.
pub struct Moments {
    means: Vec<(f64, f64)>,
    biases: (f64, f64),
}

impl Moments {
    /// The moments before the first step.
    pub fn zeros(length: usize) -> Self {
        Self { means: vec![(0.0, 0.0); length], biases: (1.0, 1.0) }
    }

    /// Updates x by one step.
    pub fn step(&mut self, x: &mut [f64], gradient: &[f64], rate: f64) {
        self.biases = (self.biases.0 * BETAS.0, self.biases.1 * BETAS.1);
        for ((x, g), (m, v)) in x.iter_mut().zip(gradient).zip(&mut self.means) {
            *m = BETAS.0 * *m + (1.0 - BETAS.0) * g;
            *v = BETAS.1 * *v + (1.0 - BETAS.1) * g * g;
            let deviation = (*v / (1.0 - self.biases.1)).sqrt() + EPSILON;
            *x -= rate * (*m / (1.0 - self.biases.0)) / deviation;
        }
    }
}

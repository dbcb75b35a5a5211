//! What is beside the attention of a published model's block.

use ndarray::{Array1, Array2, ArrayView2, Axis, Ix1, Ix2, s};

use super::arithmetic::{Activation, Linear};
use super::stored::Stored;
use crate::lm::LmError;
use crate::numerics::product;

pub(super) enum Mlp {
    /// W₂ a(W₁ x).
    Plain { input: Linear, activation: Activation, output: Linear },
    /// W₃ (a(W₁ x) ∘ W₂ x) (Shazeer 2020, arXiv 2002.05202).
    Gated { gate: Linear, up: Linear, activation: Activation, output: Linear },
    /// A few of many gated MLPs for each token.
    Experts(Box<Experts>),
}

impl Mlp {
    pub(super) fn of(&self, x: &Array2<f32>) -> Result<Array2<f32>, LmError> {
        match self {
            Self::Plain { input, activation, output } => output.of(&activation.of(input.of(x)?)),
            Self::Gated { gate, up, activation, output } => {
                output.of(&(activation.of(gate.of(x)?) * up.of(x)?))
            }
            Self::Experts(experts) => experts.of(x),
        }
    }
}

/// The mixture of experts of gpt-oss: of each token's E router logits the k largest choose experts, their softmax weighs
/// what these give, W₂ ((u + 1) ∘ g σ(α g)), with g and u the even and odd channels of W₁ x, g at most and |u| at most
/// the limit.
pub(super) struct Experts {
    pub(super) router: Linear,
    /// k.
    pub(super) chosen: usize,
    /// W₁ and its biases, (E, C, 2I) and (E, 2I).
    pub(super) input: (ExpertWeights, Stored),
    /// W₂ and its biases, (E, I, C) and (E, C).
    pub(super) output: (ExpertWeights, Stored),
    pub(super) limit: f32,
    pub(super) alpha: f32,
}

/// Weights of all experts, one below another.
pub(super) enum ExpertWeights {
    /// As numbers.
    Numbers(Stored),
    /// In four bits (the OCP microscaling formats, 2023, MXFP4), outputs × inputs: by expert, output and 32 inputs 16 bytes
    /// of two numbers each, and the exponent of their scale.
    FourBits { blocks: Stored, exponents: Stored },
}

/// The numbers that four bits stand for; the fifth and on are those below zero.
const FOUR_BITS: [f32; 8] = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0];
/// What is taken off an exponent.
const EXPONENT_BIAS: f32 = 127.0;

impl ExpertWeights {
    /// The matrix of one expert, inputs × outputs.
    fn matrix(&self, expert: usize) -> Result<Array2<f32>, LmError> {
        match self {
            Self::Numbers(all) => Ok(all
                .at(expert)?
                .into_dimensionality::<Ix2>()
                .map_err(candle_core::Error::wrap)?),
            Self::FourBits { blocks, exponents } => {
                let (blocks, exponents) = (blocks.at(expert)?, exponents.at(expert)?);
                let (outputs, groups) = (blocks.shape()[0], blocks.shape()[1]);
                let bytes = blocks.shape()[2];
                let matrix =
                    Array2::from_shape_fn((groups * bytes * 2, outputs), |(input, output)| {
                        let (group, within) = (input / (2 * bytes), input % (2 * bytes));
                        let byte = blocks[[output, group, within / 2]] as u8;
                        let bits = if within % 2 == 0 { byte & 15 } else { byte >> 4 };
                        let size = FOUR_BITS[usize::from(bits & 7)];
                        let number = if bits > 7 { -size } else { size };
                        number * (exponents[[output, group]] - EXPONENT_BIAS).exp2()
                    });
                Ok(matrix)
            }
        }
    }
}

/// The biases of one expert.
fn biases(all: &Stored, expert: usize) -> Result<Array1<f32>, LmError> {
    Ok(all.at(expert)?.into_dimensionality::<Ix1>().map_err(candle_core::Error::wrap)?)
}

impl Experts {
    fn of(&self, x: &Array2<f32>) -> Result<Array2<f32>, LmError> {
        let scores = self.router.of(x)?;
        // (token, weight) by expert.
        let mut tokens_of = vec![Vec::new(); scores.ncols()];
        for (token, scores) in scores.rows().into_iter().enumerate() {
            let mut order: Vec<usize> = (0..scores.len()).collect();
            order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
            order.truncate(self.chosen);
            let most = scores[order[0]];
            let weights: Vec<f32> = order.iter().map(|&e| (scores[e] - most).exp()).collect();
            let sum: f32 = weights.iter().sum();
            for (expert, weight) in order.into_iter().zip(weights) {
                tokens_of[expert].push((token, weight / sum));
            }
        }
        let mut all = Array2::zeros(x.dim());
        for (expert, tokens) in tokens_of.iter().enumerate().filter(|(_, of)| !of.is_empty()) {
            let rows: Vec<usize> = tokens.iter().map(|&(token, _)| token).collect();
            let given = self.expert(expert, x.select(Axis(0), &rows).view())?;
            for (&(token, weight), given) in tokens.iter().zip(given.rows()) {
                all.row_mut(token).scaled_add(weight, &given);
            }
        }
        Ok(all)
    }

    fn expert(&self, expert: usize, x: ArrayView2<'_, f32>) -> Result<Array2<f32>, LmError> {
        let (weights, bias) = &self.input;
        let both = product(x, weights.matrix(expert)?.view()) + &biases(bias, expert)?;
        let gate = both.slice(s![.., ..;2]).mapv(|g| g.min(self.limit));
        let up = both.slice(s![.., 1..;2]).mapv(|u| u.clamp(-self.limit, self.limit));
        let hidden = gate.mapv(|g| g / (1.0 + (-self.alpha * g).exp())) * (up + 1.0);
        let (weights, bias) = &self.output;
        Ok(product(hidden.view(), weights.matrix(expert)?.view()) + &biases(bias, expert)?)
    }
}

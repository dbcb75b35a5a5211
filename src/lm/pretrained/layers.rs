//! Layers of published transformers, in float32.

use ndarray::{Array1, Array2, ArrayView2, Axis, Ix1, Ix2, Ix3, s};
use serde::Deserialize;
use statrs::function::erf::erf;

use super::stored::Stored;
use crate::lm::LmError;
use crate::lm::simd::{GELU_CUBIC, GELU_SLOPE};
use crate::numerics::product;

/// x W + b. W is read from its file at each use.
pub(super) struct Linear {
    pub(super) weights: Stored,
    /// Whether W is stored as outputs × inputs.
    pub(super) transposed: bool,
    /// b, outputs.
    pub(super) bias: Option<Array1<f32>>,
}

impl Linear {
    pub(super) fn of(&self, x: &Array2<f32>) -> Result<Array2<f32>, LmError> {
        let weights = self.weights.whole::<Ix2>()?;
        let weights = if self.transposed { weights.reversed_axes() } else { weights };
        let y = product(x.view(), weights.view());
        Ok(match &self.bias {
            Some(bias) => y + bias,
            None => y,
        })
    }
}

/// Normalises each row and multiplies it by a gain.
#[derive(Clone)]
pub(super) struct Norm {
    pub(super) gain: Array1<f32>,
    /// The bias of a layer norm, (x − mean)/√(variance + ε) ∘ gain + bias. Without one the norm is an RMSNorm,
    /// x/√(mean square + ε) ∘ gain (Zhang and Sennrich 2019, arXiv 1910.07467).
    pub(super) bias: Option<Array1<f32>>,
    /// ε.
    pub(super) epsilon: f32,
}

impl Norm {
    pub(super) fn of(&self, mut x: Array2<f32>) -> Array2<f32> {
        match &self.bias {
            Some(bias) => {
                for mut row in x.rows_mut() {
                    let c = row.len() as f32;
                    row -= row.sum() / c;
                    // The mean is subtracted first. Published models have channels with values far above the others,
                    // where the mean of squares minus the square of the mean would lose digits.
                    let variance = row.dot(&row) / c;
                    row /= (variance + self.epsilon).sqrt();
                }
                x * &self.gain + bias
            }
            None => {
                let scales = self.scales(&x);
                x * &scales.insert_axis(Axis(1)) * &self.gain
            }
        }
    }

    /// 1/√(mean square + ε) of each row.
    pub(super) fn scales(&self, x: &Array2<f32>) -> Array1<f32> {
        let of_row = |row: ndarray::ArrayView1<'_, f32>| {
            1.0 / (row.dot(&row) / row.len() as f32 + self.epsilon).sqrt()
        };
        x.rows().into_iter().map(of_row).collect()
    }
}

/// Activation function of an MLP.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Activation {
    /// x Φ(x), with Φ the normal distribution function.
    Gelu,
    /// x (1 + tanh(√(2/π) (x + 0.044715 x³)))/2.
    TanhGelu,
    /// x/(1 + e^(−x)).
    Silu,
    /// max(x, 0).
    Relu,
    /// max(x, 0)².
    SquaredRelu,
}

impl Activation {
    pub(super) fn of(self, x: Array2<f32>) -> Array2<f32> {
        match self {
            Self::Gelu => x.mapv_into(|x| {
                let x = f64::from(x);
                (0.5 * x * (1.0 + erf(x * std::f64::consts::FRAC_1_SQRT_2))) as f32
            }),
            Self::TanhGelu => x.mapv_into(|x| {
                let u = GELU_SLOPE * (x + GELU_CUBIC * x * x * x);
                0.5 * x * (1.0 + u.tanh())
            }),
            Self::Silu => x.mapv_into(|x| x / (1.0 + (-x).exp())),
            Self::Relu => x.mapv_into(|x| x.max(0.0)),
            Self::SquaredRelu => x.mapv_into(|x| x.max(0.0).powi(2)),
        }
    }
}

/// Appends a column of ones to a matrix.
pub(in crate::lm) fn with_ones(x: &Array2<f32>) -> Array2<f32> {
    let mut all = Array2::ones((x.nrows(), x.ncols() + 1));
    all.slice_mut(s![.., ..x.ncols()]).assign(x);
    all
}

pub(super) enum Mlp {
    Dense(Box<Dense>),
    Experts(Experts),
}

impl Mlp {
    pub(super) fn of(&self, x: &Array2<f32>) -> Result<Array2<f32>, LmError> {
        match self {
            Self::Dense(dense) => dense.of(x),
            Self::Experts(experts) => experts.of(x),
        }
    }
}

/// W₃ (a(W₁ x) ∘ W₂ x) (Shazeer 2020, arXiv 2002.05202), or W₃ a(W₂ x).
pub(super) struct Dense {
    pub(super) input: Input,
    /// a.
    pub(super) activation: Activation,
    /// W₃.
    pub(super) output: Linear,
}

/// The projections at the input of an MLP.
pub(super) enum Input {
    /// W₁ and W₂.
    Gated { gate: Linear, up: Linear },
    /// One matrix: W₁, then W₂.
    Joint(Linear),
    /// W₂.
    Plain(Linear),
}

impl Dense {
    fn of(&self, x: &Array2<f32>) -> Result<Array2<f32>, LmError> {
        let hidden = match &self.input {
            Input::Gated { gate, up } => self.activation.of(gate.of(x)?) * up.of(x)?,
            Input::Plain(up) => self.activation.of(up.of(x)?),
            Input::Joint(both) => {
                let both = both.of(x)?;
                let (gate, up) = both.view().split_at(Axis(1), both.ncols() / 2);
                self.activation.of(gate.to_owned()) * up
            }
        };
        self.output.of(&hidden)
    }
}

/// A mixture of experts, a few of many MLPs for each token. For each token the k largest of E router logits select experts, and
/// their softmax weights the outputs.
pub(super) struct Experts {
    pub(super) router: Linear,
    /// k.
    pub(super) chosen: usize,
    /// Whether the softmax is that of the selected experts rather than of all.
    pub(super) among_chosen: bool,
    pub(super) all: ExpertMlps,
}

pub(super) enum ExpertMlps {
    Apart(Vec<Dense>),
    Joint(Box<JointExperts>),
}

/// The experts of gpt-oss. The output of one is W₂ ((u + 1) ∘ g σ(α g)). g and u are the even and odd channels of W₁ x, clamped
/// to g ≤ limit and |u| ≤ limit.
pub(super) struct JointExperts {
    /// W₁ and its biases, (E, C, 2I) and (E, 2I).
    pub(super) input: (ExpertWeights, Stored),
    /// W₂ and its biases, (E, I, C) and (E, C).
    pub(super) output: (ExpertWeights, Stored),
    pub(super) limit: f32,
    pub(super) alpha: f32,
}

/// Weights of all experts, concatenated.
pub(super) enum ExpertWeights {
    /// Unquantised.
    Numbers(Stored),
    /// In four bits (the OCP microscaling formats, 2023, MXFP4), outputs × inputs. For each expert, output and group of 32
    /// inputs there are 16 bytes of two numbers each, and the exponent of their scale.
    FourBits { blocks: Stored, exponents: Stored },
}

/// Absolute values of the numbers of four bits; the fourth bit is the sign.
const FOUR_BITS: [f32; 8] = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0];
/// Subtracted from a stored exponent.
const EXPONENT_BIAS: f32 = 127.0;

impl ExpertWeights {
    /// The matrix of one expert, inputs × outputs.
    fn matrix(&self, expert: usize) -> Result<Array2<f32>, LmError> {
        match self {
            Self::Numbers(all) => all.at(expert),
            Self::FourBits { blocks, exponents } => {
                let (blocks, exponents) = (blocks.at::<Ix3>(expert)?, exponents.at::<Ix2>(expert)?);
                let (outputs, groups, bytes) = blocks.dim();
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

impl Experts {
    fn of(&self, x: &Array2<f32>) -> Result<Array2<f32>, LmError> {
        let scores = self.router.of(x)?;
        // (token, weight) by expert.
        let mut tokens_of = vec![Vec::new(); scores.ncols()];
        for (token, scores) in scores.rows().into_iter().enumerate() {
            let mut order: Vec<usize> = (0..scores.len()).collect();
            order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
            let weight = |&e: &usize| (scores[e] - scores[order[0]]).exp();
            let counted = if self.among_chosen { self.chosen } else { order.len() };
            let sum: f32 = order[..counted].iter().map(weight).sum();
            for expert in &order[..self.chosen] {
                tokens_of[*expert].push((token, weight(expert) / sum));
            }
        }
        let mut all = Array2::zeros(x.dim());
        for (expert, tokens) in tokens_of.iter().enumerate().filter(|(_, of)| !of.is_empty()) {
            let rows: Vec<usize> = tokens.iter().map(|&(token, _)| token).collect();
            let given = self.all.of(expert, &x.select(Axis(0), &rows))?;
            for (&(token, weight), given) in tokens.iter().zip(given.rows()) {
                all.row_mut(token).scaled_add(weight, &given);
            }
        }
        Ok(all)
    }
}

impl ExpertMlps {
    fn of(&self, expert: usize, x: &Array2<f32>) -> Result<Array2<f32>, LmError> {
        let JointExperts { input, output, limit, alpha } = match self {
            Self::Apart(all) => return all[expert].of(x),
            Self::Joint(all) => &**all,
        };
        let affine = |x: ArrayView2<'_, f32>, (weights, bias): &(ExpertWeights, Stored)| {
            let y = product(x, weights.matrix(expert)?.view());
            Ok::<_, LmError>(y + &bias.at::<Ix1>(expert)?)
        };
        let both = affine(x.view(), input)?;
        let gate = both.slice(s![.., ..;2]).mapv(|g| g.min(*limit));
        let up = both.slice(s![.., 1..;2]).mapv(|u| u.clamp(-limit, *limit));
        let hidden = gate.mapv(|g| g / (1.0 + (-alpha * g).exp())) * (up + 1.0);
        affine(hidden.view(), output)
    }
}

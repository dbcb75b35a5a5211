//! The optimiser of a run: AdamW, or Muon for some weights, with float32 moments and clipping by the global norm.

use std::sync::Mutex;

use candle_core::{CpuStorage, Device, InplaceOp2, Layout, Result, Tensor, bail};
use rayon::prelude::*;

use super::muon;
use super::update::Update;
#[cfg(feature = "cuda")]
use crate::lm::cuda::DeviceMoments;
use crate::lm::model::Weight;
use crate::lm::operators::elements;
use crate::lm::tensor_file::SafetensorsFile;
use crate::lm::{LmError, Optimiser, TrainDefinition};

/// Suffixes of a weight's name in the names of its moments; [`muon`] has only the first.
const SUFFIXES: [&str; 2] = [".first_moment", ".second_moment"];

/// AdamW (Loshchilov and Hutter 2019, arXiv 1711.05101). At step t with gradient g and rate η:
///
/// m ← β₁m + (1 − β₁)g, v ← β₂v + (1 − β₂)g²,
/// θ ← θ − η λ θ − η (m/(1 − β₁ᵗ)) / (√(v/(1 − β₂ᵗ)) + 10⁻⁸),
///
/// with the decay λ for matrices only, not for gains. Gradients are first scaled by
/// min(1, clip/‖g‖), with ‖g‖ over all weights. With [`Optimiser::Muon`], the matrices of blocks follow
/// [`muon`] instead.
pub(super) struct Descent {
    betas: [f64; 2],
    clip: f64,
    steps: i32,
    moments: Vec<Moments>,
}

/// What the optimiser remembers of one weight, on the weight's device.
enum Moments {
    /// The momentum of [`muon`].
    Momentum(Tensor),
    Host {
        first: Vec<f32>,
        second: Vec<f32>,
    },
    #[cfg(feature = "cuda")]
    Device(DeviceMoments),
}

impl Moments {
    /// The moments of a weight: each from its suffix.
    fn new(
        definition: &TrainDefinition,
        weight: &Weight,
        data: impl Fn(&str) -> std::result::Result<Vec<f32>, LmError>,
    ) -> std::result::Result<Self, LmError> {
        let (variable, first) = (&weight.variable, data(SUFFIXES[0])?);
        debug_assert_eq!(variable.elem_count(), first.len());
        if definition.optimiser == Optimiser::Muon && muon::moves(weight) {
            let momentum = Tensor::from_vec(first, variable.shape(), variable.device())?;
            return Ok(Self::Momentum(momentum));
        }
        let second = data(SUFFIXES[1])?;
        #[cfg(feature = "cuda")]
        if variable.device().is_cuda() {
            return Ok(Self::Device(DeviceMoments::beside(variable, first, second)?));
        }
        Ok(Self::Host { first, second })
    }

    /// The moments of a weight as tensors.
    fn tensors(&self, weight: &Weight) -> Result<Vec<Tensor>> {
        match self {
            Self::Momentum(momentum) => Ok(vec![momentum.clone()]),
            Self::Host { first, second } => [first, second]
                .into_iter()
                .map(|data| Tensor::from_slice(data, weight.variable.shape(), &Device::Cpu))
                .collect(),
            #[cfg(feature = "cuda")]
            Self::Device(moments) => Ok(moments.tensors().to_vec()),
        }
    }
}

impl Descent {
    /// An optimiser for `weights` with moments of 0.
    ///
    /// # Errors
    /// Only errors of the tensor library.
    pub(super) fn new(
        definition: &TrainDefinition,
        weights: &[Weight],
    ) -> std::result::Result<Self, LmError> {
        Self::with(definition, weights, 0, |weight, _| Ok(vec![0.0; weight.variable.elem_count()]))
    }

    /// An optimiser after `steps` steps, with the moments that `data` returns for a weight and a suffix.
    fn with(
        definition: &TrainDefinition,
        weights: &[Weight],
        steps: usize,
        data: impl Fn(&Weight, &str) -> std::result::Result<Vec<f32>, LmError>,
    ) -> std::result::Result<Self, LmError> {
        let moments = weights
            .iter()
            .map(|weight| Moments::new(definition, weight, |which| data(weight, which)))
            .collect::<std::result::Result<_, LmError>>()?;
        Ok(Self {
            betas: definition.betas,
            clip: definition.clip,
            steps: i32::try_from(steps).unwrap_or(i32::MAX),
            moments,
        })
    }

    /// The moments as named tensors: each weight's name followed by `.first_moment` or
    /// `.second_moment`.
    pub(super) fn named(&self, weights: &[Weight]) -> Result<Vec<(String, Tensor)>> {
        let mut all = Vec::with_capacity(2 * weights.len());
        for (weight, moments) in weights.iter().zip(&self.moments) {
            for (which, tensor) in SUFFIXES.into_iter().zip(moments.tensors(weight)?) {
                all.push((format!("{}{which}", weight.name), tensor));
            }
        }
        Ok(all)
    }

    /// An optimiser after `steps` steps, with the moments from a file.
    pub(super) fn from_file(
        definition: &TrainDefinition,
        weights: &[Weight],
        steps: usize,
        file: &SafetensorsFile,
    ) -> std::result::Result<Self, LmError> {
        Self::with(definition, weights, steps, |weight, which| {
            file.tensor(&format!("{}{which}", weight.name), weight.variable.dims())
        })
    }

    /// Updates the weights by one step along their gradients, whose [norm](super::step::gradient_norm) is `norm`. If it is not
    /// finite, nothing changes.
    ///
    /// # Errors
    /// Only errors of the tensor library.
    pub(super) fn step(
        &mut self,
        weights: &[Weight],
        gradients: &[Tensor],
        norm: f64,
        learning_rate: f64,
        weight_decay: f64,
    ) -> Result<()> {
        if !norm.is_finite() {
            return Ok(());
        }
        self.steps = self.steps.saturating_add(1);
        let scale = if norm > self.clip { self.clip / norm } else { 1.0 };
        let correction = self.betas.map(|beta| 1.0 - beta.powi(self.steps));
        let betas = self.betas.map(|beta| beta as f32);
        let each = weights.par_iter().zip(&mut self.moments).zip(gradients);
        each.try_for_each(|((weight, moments), gradient)| {
            let variable = &weight.variable;
            let decay = if variable.rank() > 1 { weight_decay } else { 0.0 };
            let keep = 1.0 - learning_rate * decay;
            let update = Update {
                gradient_scale: scale as f32,
                betas,
                keep: keep as f32,
                rate: (learning_rate / correction[0]) as f32,
                second_scale: (1.0 / correction[1]) as f32,
            };
            match moments {
                Moments::Momentum(momentum) => {
                    muon::step(variable, momentum, &(gradient * scale)?, keep, learning_rate)
                }
                Moments::Host { first, second } => {
                    let moments = Mutex::new([&mut first[..], &mut second[..]]);
                    variable.inplace_op2(&gradient.contiguous()?, &InPlace { moments, update })
                }
                #[cfg(feature = "cuda")]
                Moments::Device(moments) => moments.update(variable, gradient, &update),
            }
        })
    }
}

/// Updates one weight in place and in one pass.
struct InPlace<'a> {
    /// The first and the second moment. The tensor library calls the operation once, with a shared reference.
    moments: Mutex<[&'a mut [f32]; 2]>,
    update: Update,
}

impl InplaceOp2 for InPlace<'_> {
    fn name(&self) -> &'static str {
        "adamw"
    }

    fn cpu_fwd(
        &self,
        weight: &mut CpuStorage,
        weight_layout: &Layout,
        gradient: &CpuStorage,
        gradient_layout: &Layout,
    ) -> Result<()> {
        let gradient = elements::<f32>(gradient, gradient_layout)?;
        let (CpuStorage::F32(weight), Some((start, end)), Ok(mut moments)) =
            (weight, weight_layout.contiguous_offsets(), self.moments.lock())
        else {
            bail!("adamw: a weight is not contiguous float32");
        };
        let [first, second] = &mut *moments;
        self.update.apply(&mut weight[start..end], gradient, [first, second]);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use candle_core::Var;

    use super::*;
    use crate::lm::training::step::gradient_norm;

    fn weight(name: &str, data: &[f32], dimensions: &[usize]) -> Weight {
        let variable = Var::from_slice(data, dimensions, &Device::Cpu).unwrap();
        Weight { name: name.to_owned(), variable }
    }

    fn gradients(weights: &[Weight], loss: &Tensor) -> Vec<Tensor> {
        let store = loss.backward().unwrap();
        weights.iter().map(|weight| store.get(&weight.variable).unwrap().clone()).collect()
    }

    /// Takes one step and returns the norm of the gradients.
    fn step(optimiser: &mut Descent, weights: &[Weight], gradients: &[Tensor], rate: f64) -> f64 {
        let norm = gradient_norm(gradients).unwrap();
        optimiser.step(weights, gradients, norm, rate, 0.5).unwrap();
        norm
    }

    fn definition() -> TrainDefinition {
        TrainDefinition { betas: [0.9, 0.99], clip: 1e9, ..TrainDefinition::default() }
    }

    /// Compared with f(θ) = θ²/2 in double precision, with a decay by ηλ = 0.1 of the matrix and none of the vector.
    #[test]
    fn a_changing_gradient_gives_the_moments_of_the_formula_and_matrices_decay() {
        let weights = [weight("matrix", &[1.5], &[1, 1]), weight("gain", &[1.5], &[1])];
        let mut optimiser = Descent::new(&definition(), &weights).unwrap();
        let mut states = [(1.5f64, 0.0f64, 0.0f64); 2];
        for t in 1..=20 {
            let halves = weights.iter().map(|w| (w.variable.sqr().unwrap() * 0.5).unwrap());
            let terms = halves.map(|half| half.sum_all().unwrap());
            let loss = terms.reduce(|a, b| (a + b).unwrap()).unwrap();
            let norm = step(&mut optimiser, &weights, &gradients(&weights, &loss), 0.2);
            let expected = states[0].0.hypot(states[1].0);
            assert!((norm - expected).abs() < 1e-4, "step {t}: {norm}, not {expected}");
            for (weight, ((x, m, v), kept)) in weights.iter().zip(states.iter_mut().zip([0.9, 1.0]))
            {
                *m = 0.9 * *m + 0.1 * *x;
                *v = 0.99 * *v + 0.01 * *x * *x;
                let (m_hat, v_hat) = (*m / (1.0 - 0.9f64.powi(t)), *v / (1.0 - 0.99f64.powi(t)));
                *x = kept * *x - 0.2 * m_hat / (v_hat.sqrt() + 1e-8);
                let found = weight.variable.flatten_all().unwrap().to_vec1::<f32>().unwrap()[0];
                let off = (f64::from(found) - *x).abs();
                assert!(off < 1e-4, "{}, step {t}: {found}, not {x}", weight.name);
            }
        }
    }

    #[test]
    fn a_gradient_above_the_clip_is_scaled_and_its_norm_told() {
        // One step of Adam is invariant to the gradient's scale, but the second moment is not.
        let weights = [weight("gain", &[0.0, 0.0], &[2])];
        let mut optimiser =
            Descent::new(&TrainDefinition { clip: 1.0, ..definition() }, &weights).unwrap();
        let slope = Tensor::new(&[30.0f32, 40.0], &Device::Cpu).unwrap();
        let loss = (weights[0].variable.as_tensor() * slope).unwrap().sum_all().unwrap();
        let norm = step(&mut optimiser, &weights, &gradients(&weights, &loss), 0.1);
        assert!((norm - 50.0).abs() < 1e-4, "{norm}");
        let moments = optimiser.moments[0].tensors(&weights[0]).unwrap();
        for (found, expected) in
            moments[1].to_vec1::<f32>().unwrap().iter().zip([0.01 * 0.36, 0.01 * 0.64])
        {
            assert!((found - expected).abs() < 1e-7, "{found}, not {expected}");
        }
    }

    #[test]
    fn a_gradient_that_is_not_finite_moves_nothing() {
        let weights = [weight("gain", &[1.0], &[1])];
        let mut optimiser = Descent::new(&definition(), &weights).unwrap();
        let loss = (weights[0].variable.as_tensor() * f64::NAN).unwrap().sum_all().unwrap();
        let norm = step(&mut optimiser, &weights, &gradients(&weights, &loss), 0.1);
        assert!(norm.is_nan());
        assert_eq!(weights[0].variable.to_vec1::<f32>().unwrap(), [1.0]);
    }
}

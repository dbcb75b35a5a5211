//! AdamW's update and the norm of the gradient on the GPU.

use candle_core::{DType, Result, Tensor, Var};

use super::launch::{Argument, Grid, ROWS, arguments, device_of, launch, unwritten};
use crate::lm::training::Update;

/// The first and second moment of one weight, on the GPU.
pub(in crate::lm) struct DeviceMoments {
    first: Tensor,
    second: Tensor,
}

impl DeviceMoments {
    /// Copies moments from the host to the device of a weight.
    pub(in crate::lm) fn beside(weight: &Var, first: Vec<f32>, second: Vec<f32>) -> Result<Self> {
        let tensor = |data: Vec<f32>| Tensor::from_vec(data, weight.shape(), weight.device());
        Ok(Self { first: tensor(first)?, second: tensor(second)? })
    }

    /// Both moments.
    pub(in crate::lm) fn tensors(&self) -> [Tensor; 2] {
        [self.first.clone(), self.second.clone()]
    }

    /// Updates the weight and its moments in one pass.
    pub(in crate::lm) fn update(
        &self,
        weight: &Var,
        gradient: &Tensor,
        update: &Update,
    ) -> Result<()> {
        let gradient = gradient.contiguous()?;
        let count = weight.elem_count();
        let [beta_1, beta_2] = update.betas;
        let tensors = [weight.as_tensor(), &gradient, &self.first, &self.second];
        let mut arguments = arguments(&tensors, &[], &[])?;
        arguments.push(Argument::count(count));
        let Update { gradient_scale, keep, rate, second_scale, .. } = *update;
        let numbers = [gradient_scale, beta_1, beta_2, keep, rate, second_scale];
        arguments.extend(numbers.map(Argument::Float));
        launch(device_of(weight)?, ROWS, "adamw", Grid::elements(count), &arguments)
    }
}

/// Number of blocks for the sum of squares of a gradient.
const SQUARE_BLOCKS: usize = 32;

/// Σ g² over all gradients.
pub(in crate::lm) fn squared_norm(gradients: &[Tensor]) -> Result<f64> {
    let Some(first) = gradients.first() else { return Ok(0.0) };
    let device = device_of(first)?;
    let partials = unwritten((gradients.len(), SQUARE_BLOCKS), DType::F32, device)?;
    for (at, gradient) in gradients.iter().enumerate() {
        // Must live until the kernel is queued; the memory of a copy is then freed in stream order.
        let gradient = gradient.contiguous()?;
        let mut arguments = arguments(&[&gradient, &partials.narrow(0, at, 1)?], &[], &[])?;
        arguments.push(Argument::count(gradient.elem_count()));
        launch(device, ROWS, "squares", Grid::of(SQUARE_BLOCKS, 256), &arguments)?;
    }
    let partials = partials.flatten_all()?.to_vec1::<f32>()?;
    Ok(partials.into_iter().map(f64::from).sum())
}

//! Rounding of a trained model's matrices to few bits.

use candle_core::{Result, Tensor, Var};

use super::language_model::Model;
use super::weights::Weight;
use crate::lm::LmError;
use crate::lm::error::require;

/// Inputs that share a scale, as in QuantLM (Kaushal et al. 2024, arXiv 2407.12327, section 3.3).
const GROUP: usize = 128;

/// Which matrices are rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Matrices {
    /// All of all blocks. Embeddings and gains keep their precision.
    All,
    /// W_q and W_k of all blocks.
    QueriesAndKeys,
}

impl Matrices {
    fn has(self, weight: &Weight) -> bool {
        let name = &weight.name;
        let is_of_block = name.starts_with("layers.") && weight.variable.rank() == 2;
        let is_of_logits = name.ends_with("attention.query") || name.ends_with("attention.key");
        is_of_block && (self == Self::All || is_of_logits)
    }
}

impl Model {
    /// The model with its matrices rounded to `bits` bits: s·round(w/s) with s = max |w| / (2^(bits − 1) − 1), the maximum over
    /// 128 inputs of one output (fewer in the last group). Each weight goes to the nearest value; GPTQ, which the paper uses,
    /// also corrects for errors of other weights.
    ///
    /// # Errors
    /// Bits outside 2 to 8. A model whose matrices are not the weights themselves: ternary, or with sigma-reparam.
    pub fn rounded(&self, bits: usize, matrices: Matrices) -> std::result::Result<Self, LmError> {
        require((2..=8).contains(&bits), "bits", bits, "must be 2 to 8")?;
        let is_plain = !self.shape.ternary && !self.shape.sigma_reparam;
        require(is_plain, "bits", bits, "has no meaning for ternary or sigma-reparam matrices")?;
        let largest = ((1 << (bits - 1)) - 1) as f32;
        let changed = |weight: &Weight| -> Result<Weight> {
            let values = match matrices.has(weight) {
                true => rounded(&weight.variable, largest)?,
                false => weight.variable.as_detached_tensor(),
            };
            Ok(Weight { name: weight.name.clone(), variable: Var::from_tensor(&values)? })
        };
        let weights = self.weights.iter().map(changed).collect::<Result<_>>()?;
        Self::with_weights(self.shape.clone(), [weights, Vec::new()])
    }
}

/// Rounds a matrix, inputs × outputs, to the integers from −`largest` to `largest` times the scales of its groups.
fn rounded(matrix: &Tensor, largest: f32) -> Result<Tensor> {
    let (inputs, outputs) = matrix.dims2()?;
    let mut values: Vec<f32> = matrix.flatten_all()?.to_vec1()?;
    for group in values.chunks_mut(GROUP * outputs) {
        for output in 0..outputs {
            let of_output = || (output..).step_by(outputs);
            let rows = group.len() / outputs;
            let most = of_output().take(rows).map(|at| group[at].abs()).fold(0.0, f32::max);
            let scale = most / largest;
            for at in of_output().take(rows).filter(|_| scale > 0.0) {
                group[at] = (group[at] / scale).round() * scale;
            }
        }
    }
    Tensor::from_vec(values, (inputs, outputs), matrix.device())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lm::{ModelShape, TrainDefinition};

    #[test]
    fn values_are_the_nearest_of_their_group() {
        // Two outputs; the scale of the first 128 inputs is 1 for the first and 0 for the second.
        let value = |at: usize| match (at / 2, at % 2) {
            (0, 0) => 3.0,
            (128, 0) => 30.0,
            (input, 0) => (input % 5) as f32 * 0.4,
            _ => 0.0,
        };
        let values: Vec<f32> = (0..260).map(value).collect();
        let matrix = Tensor::from_vec(values, (130, 2), &candle_core::Device::Cpu).unwrap();
        let found: Vec<Vec<f32>> = rounded(&matrix, 3.0).unwrap().to_vec2().unwrap();
        let first = |input: usize| found[input][0];
        assert_eq!([0, 1, 2, 3, 4, 128, 129].map(first), [3.0, 0.0, 1.0, 1.0, 2.0, 30.0, 0.0]);
        assert!(found.iter().all(|row| row[1] == 0.0));
    }

    #[test]
    fn more_bits_change_the_loss_less() {
        let sizes = TrainDefinition::default().with("layers=2 d_model=16 heads=2 context=24");
        let model = Model::new(ModelShape::new(&sizes, 11), 0.5, 3).unwrap();
        let passage: Vec<u32> = (0..24).map(|at| at * at % 11).collect();
        let loss = |model: &Model| model.passage_loss(&passage, &mut |_| Ok(None)).unwrap();
        let off =
            |bits, matrices| (loss(&model.rounded(bits, matrices).unwrap()) - loss(&model)).abs();
        assert!(off(2, Matrices::All) > 10.0 * off(8, Matrices::All));
        assert!(off(8, Matrices::All) > 0.0);
        let values = |model: &Model, name: &str| {
            let weight = model.weights.iter().find(|weight| weight.name == name).unwrap();
            weight.variable.flatten_all().unwrap().to_vec1::<f32>().unwrap()
        };
        let rounded = model.rounded(3, Matrices::QueriesAndKeys).unwrap();
        let kept = |name: &str| values(&rounded, name) == values(&model, name);
        assert!(kept("layers.0.mlp.input") && kept("token_embedding"));
        assert!(!kept("layers.1.attention.key"));
        assert!(model.rounded(1, Matrices::All).is_err());
        let ternary = ModelShape::new(&sizes.with("ternary=true"), 11);
        assert!(Model::new(ternary, 0.5, 3).unwrap().rounded(4, Matrices::All).is_err());
    }
}

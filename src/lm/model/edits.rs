//! Copies of a model with modified weights.

use candle_core::{DType, Device, Tensor, Var};
use ndarray::{Array2, ArrayView2};

use super::language_model::Model;
use super::weights::{ModelShape, Weight};
use crate::lm::attention::HeadStatistics;
use crate::lm::{LmError, Slopes};
use crate::numerics::product;

impl Model {
    /// A copy whose keys ignore some directions of the layer input. Each layer has a matrix U, (C, m), with orthonormal
    /// columns; W_k becomes (I − U·Uᵀ)·W_k, so that K = X·(I − U·Uᵀ)·W_k. Queries and values still use all of X.
    ///
    /// # Errors
    /// `Reparametrised` if the model uses sigma-reparam; a number of matrices other than the number of layers,
    /// or a number of rows other than C.
    pub fn with_keys_without(&self, directions: &[Array2<f64>]) -> Result<Self, LmError> {
        if self.shape.sigma_reparam {
            return Err(LmError::Reparametrised);
        }
        if directions.len() != self.shape.layers() {
            let (found, layers) = (directions.len(), self.shape.layers());
            let why = format!("directions of {found} layers for a model of {layers}");
            return Err(candle_core::Error::msg(why).into());
        }
        let model = Self::with_weights(self.shape.clone(), self.copied()?, Vec::new())?;
        for (layer, directions) in directions.iter().enumerate() {
            let keys = model.matrix(&format!("layers.{layer}.attention.key"))?;
            let altered = without(&keys.to_dtype(DType::F32)?, directions.view())?;
            keys.set(&altered)?;
        }
        Ok(model)
    }

    /// A copy to whose heads a linear position bias is added, also to an existing one. `added` holds, by layer and head, the
    /// number added to the slope m of −m |j − i|. The slopes of the copy count as learned.
    ///
    /// # Errors
    /// `Reparametrised` if the model uses sigma-reparam; a number of slopes other than the number of heads.
    pub fn with_slopes_added(&self, added: &[Vec<f32>]) -> Result<Self, LmError> {
        if self.shape.sigma_reparam {
            return Err(LmError::Reparametrised);
        }
        let heads = self.shape.heads.iter().map(Vec::len);
        if !heads.eq(added.iter().map(Vec::len)) {
            return Err(candle_core::Error::msg("slopes of other layers or heads").into());
        }
        let name = |layer: usize| format!("layers.{layer}.attention.slopes");
        let mut weights = self.copied()?;
        weights.retain(|weight| (0..added.len()).all(|layer| weight.name != name(layer)));
        for (layer, (added, block)) in added.iter().zip(&self.decoder.blocks).enumerate() {
            let added = Tensor::from_slice(added, added.len(), &Device::Cpu)?;
            let slopes = match block.slopes() {
                Some(own) => (own + added)?,
                None => added,
            };
            weights.push(Weight { name: name(layer), variable: Var::from_tensor(&slopes)? });
        }
        let shape = ModelShape { slopes: Slopes::Learned, ..self.shape.clone() };
        Self::with_weights(shape, weights, Vec::new())
    }

    fn copied(&self) -> Result<Vec<Weight>, LmError> {
        let copied = |weight: &Weight| -> Result<Weight, LmError> {
            let variable = Var::from_tensor(&weight.variable.copy()?)?;
            Ok(Weight { name: weight.name.clone(), variable })
        };
        self.weights.iter().map(copied).collect()
    }
}

/// (I − U·Uᵀ)·W.
fn without(w: &Tensor, u: ArrayView2<'_, f64>) -> Result<Tensor, LmError> {
    let (c, outputs) = w.dims2()?;
    if u.nrows() != c {
        let why = format!("directions of {} channels for {c}", u.nrows());
        return Err(candle_core::Error::msg(why).into());
    }
    let data = w.flatten_all()?.to_vec1::<f32>()?.into_iter().map(f64::from).collect();
    let w = Array2::from_shape_vec((c, outputs), data).map_err(candle_core::Error::wrap)?;
    let read = product(u.t(), w.view());
    let altered = &w - &product(u, read.view());
    let data = altered.iter().map(|&v| v as f32).collect::<Vec<f32>>();
    Ok(Tensor::from_vec(data, (c, outputs), &Device::Cpu)?)
}

impl Model {
    /// For each head whose largest logit S in `statistics` (by layer and head) exceeds `threshold`
    /// τ, scales its columns of W_Q and W_K by √(τ/S), so that the same input has a largest logit of τ.
    ///
    /// QK-Clip of Kimi K2 (arXiv 2507.20534), for heads without shared rotary keys.
    ///
    /// # Errors
    /// Only errors of the tensor library.
    pub(in crate::lm) fn clip_queries_and_keys(
        &self,
        statistics: &[Vec<HeadStatistics>],
        threshold: f64,
    ) -> candle_core::Result<()> {
        for (layer, heads) in statistics.iter().enumerate() {
            let factor = |head: &HeadStatistics| {
                (threshold / f64::from(head.max_logit).max(threshold)).sqrt() as f32
            };
            let factors: Vec<f32> = heads.iter().map(factor).collect();
            if factors.iter().all(|&factor| factor == 1.0) {
                continue;
            }
            for part in ["query", "key"] {
                let name = format!("layers.{layer}.attention.{part}");
                scale_heads(self.matrix(&name)?, &factors)?;
            }
        }
        Ok(())
    }
}

/// Multiplies the columns of each head of a matrix by the factor of that head.
pub(super) fn scale_heads(weight: &Var, factors: &[f32]) -> candle_core::Result<()> {
    let (_, outputs) = weight.dims2()?;
    let d_head = outputs / factors.len();
    let columns = factors.iter().flat_map(|factor| std::iter::repeat_n(*factor, d_head));
    let columns = Tensor::from_iter(columns, weight.device())?;
    weight.set(&weight.as_detached_tensor().broadcast_mul(&columns)?)
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::*;
    use crate::lm::model::tests::every_kind;

    /// The first layer's input is unchanged, so there K' = X'·W_k with X' = X − (X·u)·uᵀ and nothing else changes.
    #[test]
    fn keys_no_longer_read_a_direction() {
        let passage = [3, 1, 4, 1, 5, 9, 2, 6];
        for model in every_kind() {
            let c = model.shape.d_model;
            let u = Array2::from_shape_fn((c, 1), |(row, _)| f64::from(row as u32 % 3 == 1));
            let u = &u / u.mapv(|v| v * v).sum().sqrt();
            let edited = model.with_keys_without(&[u.clone(), u.clone()]);
            if model.shape.sigma_reparam {
                assert!(matches!(edited, Err(LmError::Reparametrised)));
                continue;
            }
            let (before, after) =
                (model.probe(&passage).unwrap(), edited.unwrap().probe(&passage).unwrap());
            let (before, after) = (&before[0], &after[0]);
            let d = before.keys.ncols();
            let x = before.inputs.stream.mapv(f64::from);
            let trend = product(product(x.view(), u.view()).view(), u.t());
            let w = model.matrix("layers.0.attention.key").unwrap().to_vec2::<f32>().unwrap();
            let w = Array2::from_shape_fn((c, d), |(row, column)| f64::from(w[row][column]));
            let expected = product((&x - &trend).view(), w.view());
            let off = (&after.inputs.projected[1].mapv(f64::from) - &expected).mapv(f64::abs);
            let off = off.iter().fold(0.0f64, |most, &v| most.max(v));
            assert!(off < 1e-5, "{:?}: {off}", model.shape);
            assert_eq!(before.queries, after.queries);
            let lost = (&before.inputs.projected[1] - &after.inputs.projected[1]).mapv(f32::abs);
            assert!(lost.sum() > 1e-3, "{:?}: the keys did not change", model.shape);
        }
    }

    /// Added slopes change attention as the probe states; adding zero changes nothing.
    #[test]
    fn slopes_are_added_to_those_that_are_there() {
        let passage = [3, 1, 4, 1, 5, 9, 2, 6];
        for model in every_kind().into_iter().filter(|model| !model.shape.sigma_reparam) {
            let loss = |model: &Model| model.passage_loss(&passage, &mut |_| Ok(None)).unwrap();
            let none = model.with_slopes_added(&[vec![0.0; 3], vec![0.0; 3]]).unwrap();
            assert!((loss(&none) - loss(&model)).abs() < 1e-6, "{:?}", model.shape);
            let added = [vec![0.5, 0.25, 1.0], vec![0.0, 2.0, 0.125]];
            let sloped = model.with_slopes_added(&added).unwrap();
            let by_hand = |probe: &crate::lm::HeadProbe| {
                let slope = probe.slope.unwrap_or(0.0) + added[probe.layer][probe.head];
                Ok(Some(crate::lm::HeadProbe { slope: Some(slope), ..probe.clone() }.attention()))
            };
            let expected = model.passage_loss(&passage, &mut |probe| by_hand(probe)).unwrap();
            let off = (loss(&sloped) - expected).abs();
            assert!(off < 1e-5, "{:?}: {off}", model.shape);
            assert!((expected - loss(&model)).abs() > 1e-6, "{:?}: no change", model.shape);
            assert!(model.with_slopes_added(&added[..1]).is_err());
        }
    }

    #[test]
    fn directions_of_other_sizes_are_refused() {
        let model = &every_kind()[0];
        assert!(model.with_keys_without(&[array![[1.0]]]).is_err());
        assert!(model.with_keys_without(&[array![[1.0]], array![[1.0]]]).is_err());
    }
}

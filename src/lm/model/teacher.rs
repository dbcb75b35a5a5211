//! The teacher of an attention distillation.

use candle_core::{Result, Tensor};

use super::distillation::{DistillationTarget, LayerTarget};
use super::language_model::Model;
use super::shape::ModelShape;
use crate::lm::{LmError, Slopes};

/// A trained model whose attention is distilled into another model's heads, layer by layer and head by head.
pub struct Teacher {
    model: Model,
    weight: f64,
}

impl Teacher {
    /// `weight` is the weight of Σ over layers and heads of the mean over rows of KL(teacher ‖ student), relative to the
    /// cross-entropy.
    ///
    /// # Errors
    /// A weight that is not above 0; a student with other numbers of layers, heads or symbols; a softcap or a position bias,
    /// with which attention is not softmax(QKᵀ/√D).
    pub fn new(
        model: Model,
        weight: f64,
        student: &ModelShape,
    ) -> std::result::Result<Self, LmError> {
        let sizes = |shape: &ModelShape| {
            (shape.layers(), shape.heads.first().map_or(0, Vec::len), shape.vocabulary_size)
        };
        let wrong = |why: String| Err(cannot_teach(&why));
        let (own, theirs) = (sizes(model.shape()), sizes(student));
        if !(weight.is_finite() && weight > 0.0) {
            return wrong(format!("its weight is {weight}, not a number above 0"));
        }
        if own != theirs {
            return wrong(format!(
                "the teacher has {} layers, {} heads and {} symbols, the student {}, {} and {}",
                own.0, own.1, own.2, theirs.0, theirs.1, theirs.2
            ));
        }
        if model.shape().softcap.is_some() || student.softcap.is_some() {
            return wrong("attention with a softcap cannot be distilled".to_owned());
        }
        if [model.shape(), student].iter().any(|shape| shape.slopes != Slopes::None) {
            return wrong("attention with a linear position bias cannot be distilled".to_owned());
        }
        Ok(Self { model, weight })
    }

    /// The teacher's queries and keys on a batch, (B, T) of uint32.
    pub(in crate::lm) fn target(&self, ids: &Tensor) -> Result<DistillationTarget> {
        let sizes = ids.dims2()?;
        let decoder = &self.model.decoder;
        let mut x = decoder.embed(ids, 0)?.0;
        let mut layers = Vec::new();
        for block in &decoder.blocks {
            let ([q, k, _], _) = block.heads_of(&x, sizes, 0)?;
            x = block.forward(&x, sizes)?.x;
            layers.push(LayerTarget {
                q,
                k,
                kinds: block.heads.kinds.clone(),
                weight: self.weight,
            });
        }
        Ok(DistillationTarget { layers })
    }
}

/// The error that a model cannot be the teacher, with the reason.
pub(in crate::lm) fn cannot_teach(why: &str) -> LmError {
    LmError::Refused(format!(
        "the teacher cannot be used: {why}; name a run with the same layers, heads and vocabulary"
    ))
}

#[cfg(test)]
mod tests {
    use candle_core::Device;

    use super::*;
    use crate::lm::TrainDefinition;
    use crate::targets::HeadKind;

    fn shape(arm: &str) -> ModelShape {
        let mut definition = TrainDefinition {
            layers: 2,
            d_model: 12,
            heads: 3,
            window: 4,
            context: 20,
            ..TrainDefinition::default()
        };
        definition.set("arm", arm).unwrap();
        ModelShape::new(&definition, 17)
    }

    fn wave(count: usize, shift: f32) -> Vec<f32> {
        (0..count).map(|i| (i as f32 * 0.61 + shift).sin()).collect()
    }

    #[test]
    fn the_gradient_is_that_of_the_divergence() {
        let teacher = Teacher::new(Model::new(shape("ls"), 0.8, 1).unwrap(), 0.7, &shape("mhsa"));
        let ids = Tensor::from_iter((0..2 * 9).map(|i| (i * i % 17) as u32), &Device::Cpu).unwrap();
        let target = teacher.unwrap().target(&ids.reshape((2, 9)).unwrap()).unwrap();
        let layer = &target.layers[1];
        let dims = (2, 9, 3, 4);
        let count = 2 * 9 * 3 * 4;
        let kinds = [HeadKind::Global; 3];
        let value = |q: &[f32], k: &[f32]| {
            let [q, k] = [q, k].map(|x| Tensor::from_slice(x, dims, &Device::Cpu).unwrap());
            layer.gradients(&q, &k, &kinds).unwrap()
        };
        let (q, k) = (wave(count, 0.3), wave(count, 1.1));
        let (gradients, kl) = value(&q, &k);
        assert!(kl > 0.1, "{kl}");
        for (which, gradient) in gradients.iter().enumerate() {
            let gradient = gradient.flatten_all().unwrap().to_vec1::<f32>().unwrap();
            for at in (0..count).step_by(7) {
                let moved = |offset: f32| {
                    let mut both = [q.clone(), k.clone()];
                    both[which][at] += offset;
                    value(&both[0], &both[1]).1
                };
                let difference = 0.7 * (moved(1e-2) - moved(-1e-2)) / 2e-2;
                let off = (f64::from(gradient[at]) - difference).abs();
                assert!(off < 2e-4, "{which} {at}: {} against {difference}", gradient[at]);
            }
        }
    }

    #[test]
    fn a_student_that_is_its_teacher_has_nothing_to_learn() {
        let model = || Model::new(shape("ls"), 0.8, 1).unwrap();
        let teacher = Teacher::new(model(), 1.0, &shape("ls")).unwrap();
        let ids = Tensor::from_iter((0..2 * 9).map(|i| (i * i % 17) as u32), &Device::Cpu).unwrap();
        let ids = ids.reshape((2, 9)).unwrap();
        let targets = ids.flatten_all().unwrap();
        let target = teacher.target(&ids).unwrap();
        let batch = (ids, targets);
        let taught = model().gradients(&batch, 0.0, false, Some(&target)).unwrap();
        let alone = model().gradients(&batch, 0.0, false, None).unwrap();
        assert!(taught.pattern_kl_nats.unwrap().abs() < 1e-5);
        let pairs = taught.gradients.unwrap().into_iter().zip(alone.gradients.unwrap());
        for (taught, alone) in pairs {
            let off = (taught - alone).unwrap().abs().unwrap().flatten_all().unwrap();
            assert!(off.max(0).unwrap().to_scalar::<f32>().unwrap() < 1e-5);
        }
    }

    #[test]
    fn what_cannot_teach_is_refused() {
        let model = || Model::new(shape("ls"), 0.8, 1).unwrap();
        let refused = |teacher: std::result::Result<Teacher, LmError>, part: &str| {
            let Err(error) = teacher else { panic!("{part} was accepted") };
            assert!(error.to_string().contains(part), "{error}");
        };
        refused(Teacher::new(model(), 0.0, &shape("mhsa")), "weight is 0");
        let wider = ModelShape { heads: vec![vec![HeadKind::Global; 4]; 2], ..shape("mhsa") };
        refused(Teacher::new(model(), 1.0, &wider), "3 heads");
        let capped = ModelShape { softcap: Some(5.0), ..shape("mhsa") };
        refused(Teacher::new(model(), 1.0, &capped), "softcap");
        let sloped = ModelShape { slopes: Slopes::Alibi, ..shape("mhsa") };
        refused(Teacher::new(model(), 1.0, &sloped), "linear position bias");
    }
}

//! A model's tensors by name, and the gradients of its weights as a backward pass finds them.

use std::collections::HashMap;

use candle_core::{DType, Result, Tensor, bail};

use crate::lm::operators::plus;

/// A model's tensors by name.
pub(super) struct Tensors<'a> {
    pub(super) parameters: HashMap<&'a str, Parameter>,
    pub(super) vectors: HashMap<&'a str, Tensor>,
}

impl Tensors<'_> {
    /// A weight that the model must have.
    pub(super) fn parameter(&self, name: &str) -> Result<Parameter> {
        match self.parameters.get(name) {
            Some(parameter) => Ok(parameter.clone()),
            None => bail!("the model has no weight {name}"),
        }
    }

    /// A singular vector that the model must have.
    pub(super) fn vector(&self, name: &str) -> Result<Tensor> {
        match self.vectors.get(name) {
            Some(vector) => Ok(vector.clone()),
            None => bail!("the model has no {name}"),
        }
    }
}

/// A weight, and its place among a model's.
#[derive(Clone)]
pub(super) struct Parameter {
    pub(super) index: usize,
    /// Shares its elements with the variable that the optimiser moves.
    pub(super) tensor: Tensor,
}

/// Numbers that one kind of model trains and another has fixed.
pub(super) enum Values {
    Trained(Parameter),
    Fixed(Tensor),
}

impl Values {
    pub(super) fn tensor(&self) -> &Tensor {
        let (Self::Trained(Parameter { tensor, .. }) | Self::Fixed(tensor)) = self;
        tensor
    }

    /// The weight, where it is one.
    pub(super) fn trained(&self) -> Option<&Parameter> {
        match self {
            Self::Trained(parameter) => Some(parameter),
            Self::Fixed(_) => None,
        }
    }
}

/// The gradients of a model's weights, as far as they are known.
pub(super) struct Gradients {
    pub(super) by_weight: Vec<Option<Tensor>>,
    /// Σ over the layers taught so far, nats.
    pub(super) pattern_kl_nats: f64,
}

impl Gradients {
    /// Adds to the gradient of a weight.
    pub(super) fn add(&mut self, of: &Parameter, gradient: Tensor) -> Result<()> {
        let gradient = gradient.to_dtype(DType::F32)?;
        let so_far = &mut self.by_weight[of.index];
        *so_far = Some(plus(so_far.take(), gradient)?);
        Ok(())
    }

    /// Adds to how far the heads are from a teacher's.
    pub(super) fn add_pattern_kl(&mut self, kl_nats: f64) {
        self.pattern_kl_nats += kl_nats;
    }
}

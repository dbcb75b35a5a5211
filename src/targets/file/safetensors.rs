//! Safetensors files, which can hold several tensors.

use std::io::Write;

use half::{bf16, f16};
use ndarray::{Array2, ArrayD};
use safetensors::tensor::{Dtype, SafeTensors, TensorView, serialize};

use super::stack::Problem;
use crate::system::nearest::nearest;

/// Reads the tensor `name`. Without a name the file must have exactly one tensor of two or more dimensions.
pub(super) fn read(bytes: &[u8], name: Option<&str>) -> Result<ArrayD<f64>, Problem> {
    let tensors = SafeTensors::deserialize(bytes)
        .map_err(|error| format!("not a whole .safetensors file: {error}"))?;
    let tensor = match name {
        Some(name) => named(&tensors, name)?,
        None => only_matrix(&tensors)?,
    };
    let data = tensor.data();
    let values = match tensor.dtype() {
        Dtype::F64 => numbers(data, f64::from_le_bytes),
        Dtype::F32 => numbers(data, |bytes| f32::from_le_bytes(bytes).into()),
        Dtype::F16 => numbers(data, |bytes| f16::from_le_bytes(bytes).into()),
        Dtype::BF16 => numbers(data, |bytes| bf16::from_le_bytes(bytes).into()),
        other => {
            return Err(format!("unsupported tensor type {other:?}; save it as F32 or F64").into());
        }
    };
    ArrayD::from_shape_vec(tensor.shape(), values).map_err(|error| error.to_string().into())
}

fn named<'a>(tensors: &SafeTensors<'a>, name: &str) -> Result<TensorView<'a>, String> {
    tensors.tensor(name).map_err(|_| {
        // Sorted because ties go to the first name and the header's map has no fixed order.
        let mut names = tensors.names();
        names.sort_unstable();
        let nearest = nearest(name, &names);
        format!("no tensor {name:?}; did you mean {nearest:?}?")
    })
}

fn only_matrix<'a>(tensors: &SafeTensors<'a>) -> Result<TensorView<'a>, String> {
    let mut matrices: Vec<(String, TensorView<'a>)> =
        tensors.tensors().into_iter().filter(|(_, tensor)| tensor.shape().len() >= 2).collect();
    matrices.sort_by(|a, b| a.0.cmp(&b.0));
    match (matrices.pop(), matrices.len()) {
        (Some((_, only)), 0) => Ok(only),
        (None, _) => Err("no tensor with two dimensions; save a matrix".to_owned()),
        (Some((name, _)), others) => {
            let count = others + 1;
            Err(format!(
                "{count} tensors have two or more dimensions; name one, such as FILE#{name}"
            ))
        }
    }
}

fn numbers<const WIDTH: usize>(data: &[u8], number: impl Fn([u8; WIDTH]) -> f64) -> Vec<f64> {
    data.as_chunks::<WIDTH>().0.iter().map(|&bytes| number(bytes)).collect()
}

pub(super) fn write(dense: &Array2<f64>, name: &str, file: &mut impl Write) -> Result<(), String> {
    let data: Vec<u8> = dense.iter().flat_map(|value| value.to_le_bytes()).collect();
    let shape = dense.shape().to_vec();
    let tensor = TensorView::new(Dtype::F64, shape, &data).map_err(|error| error.to_string())?;
    let bytes = serialize([(name, tensor)], None).map_err(|error| error.to_string())?;
    file.write_all(&bytes).map_err(|error| error.to_string())
}

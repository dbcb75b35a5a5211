//! Safetensors files, which can hold several tensors.

use std::io::{self, Write};

use half::{bf16, f16};
use ndarray::{Array2, ArrayD};
use safetensors::tensor::{Dtype, SafeTensors, TensorView, serialize};

use super::stack::chosen;
use crate::targets::TargetError;

/// Reads the tensor `name`. Without a name the file must have exactly one tensor of two or more dimensions.
pub(super) fn read(bytes: &[u8], name: Option<&str>) -> Result<ArrayD<f64>, TargetError> {
    let tensors = SafeTensors::deserialize(bytes)
        .map_err(|error| format!("not a whole .safetensors file: {error}"))?;
    let mut tensors = tensors.tensors();
    tensors.retain(|(_, tensor)| name.is_some() || tensor.shape().len() >= 2);
    // The header's map has no fixed order.
    tensors.sort_by(|a, b| a.0.cmp(&b.0));
    let names: Vec<&str> = tensors.iter().map(|(name, _)| name.as_str()).collect();
    let name = chosen(&names, name)?;
    let (_, tensor) = tensors.iter().find(|(of, _)| of == name).expect("one of the names");
    let values = floats(tensor.dtype(), tensor.data()).ok_or_else(|| {
        format!("unsupported tensor type {:?}; save it as F32 or F64", tensor.dtype())
    })?;
    ArrayD::from_shape_vec(tensor.shape(), values).map_err(|error| error.to_string().into())
}

/// The numbers of a type that the bytes hold, in little-endian order; `None` if the type is not one of floats.
pub(super) fn floats(dtype: Dtype, data: &[u8]) -> Option<Vec<f64>> {
    match dtype {
        Dtype::F64 => Some(numbers(data, f64::from_le_bytes)),
        shorter => short_floats(shorter, data),
    }
}

/// As [`floats`] of at most 32 bits, which every `T` holds exactly; `None` for other types.
pub(crate) fn short_floats<T>(dtype: Dtype, data: &[u8]) -> Option<Vec<T>>
where
    T: From<f32> + From<f16> + From<bf16>,
{
    Some(match dtype {
        Dtype::F32 => numbers(data, |bytes| f32::from_le_bytes(bytes).into()),
        Dtype::F16 => numbers(data, |bytes| f16::from_le_bytes(bytes).into()),
        Dtype::BF16 => numbers(data, |bytes| bf16::from_le_bytes(bytes).into()),
        _ => return None,
    })
}

fn numbers<T, const WIDTH: usize>(data: &[u8], number: impl Fn([u8; WIDTH]) -> T) -> Vec<T> {
    data.as_chunks::<WIDTH>().0.iter().map(|&bytes| number(bytes)).collect()
}

pub(super) fn write(dense: &Array2<f64>, name: &str, file: &mut impl Write) -> io::Result<()> {
    let data: Vec<u8> = dense.iter().flat_map(|value| value.to_le_bytes()).collect();
    let shape = dense.shape().to_vec();
    let tensor = TensorView::new(Dtype::F64, shape, &data).map_err(io::Error::other)?;
    file.write_all(&serialize([(name, tensor)], None).map_err(io::Error::other)?)
}

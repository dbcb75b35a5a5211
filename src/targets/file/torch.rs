//! PyTorch's .pt and .pth files: a tensor, or tensors in dicts, lists and tuples, as `torch.save` writes them since version
//! 1.6. The pickle inside names Python functions; none of them is called.

use std::io::Cursor;

use candle_core::pickle::{Object, Stack};
use ndarray::{ArrayD, ArrayViewD, IxDyn, ShapeBuilder as _};
use safetensors::tensor::Dtype;
use zip::ZipArchive;

use super::npz::entry;
use super::safetensors::floats;
use super::stack::chosen;
use crate::system::check_memory;
use crate::targets::TargetError;

/// Most bytes of a pickle. One that describes a thousand tensors has 100 kB.
const MOST_BYTES: usize = 1 << 18;

/// A tensor as the pickle describes it.
struct Stored<'p> {
    /// The number of the storage, which is a file of the archive.
    storage: &'p str,
    /// Its class, such as `FloatStorage`.
    class: &'p str,
    /// The place of the first element in the storage.
    offset: usize,
    shape: Vec<usize>,
    strides: Vec<usize>,
}

/// Reads the tensor `name`: the key of a dict or the place in a list, joined by dots. Without a name the file must have exactly
/// one tensor of two or more dimensions.
pub(super) fn read(bytes: &[u8], name: Option<&str>) -> Result<ArrayD<f64>, TargetError> {
    let damaged = |error: &dyn std::fmt::Display| {
        format!("not a whole file of torch.save (PyTorch 1.6 or later): {error}")
    };
    let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(|error| damaged(&error))?;
    let names: Vec<String> =
        archive.file_names().filter_map(|name| Some(name.ok()?.into_owned())).collect();
    let pickle = names.iter().find(|name| name.ends_with("data.pkl"));
    let pickle = pickle.ok_or_else(|| damaged(&"it has no data.pkl"))?;
    let folder = pickle.strip_suffix(".pkl").unwrap_or_default();
    let saved = entry(&mut archive, pickle).map_err(|error| damaged(&error))?;
    if saved.len() > MOST_BYTES {
        let advice = "too many objects; save the matrix alone, by torch.save(matrix, path)";
        return Err(advice.to_owned().into());
    }
    if !is_whole(&saved) {
        return Err(damaged(&"data.pkl is cut off").into());
    }
    let mut stack = Stack::empty();
    stack.read_loop(&mut saved.as_slice()).map_err(|error| damaged(&error))?;
    let saved = stack.finalize().map_err(|error| damaged(&error))?;
    let mut tensors = Vec::new();
    collect(&saved, "", &mut tensors);
    tensors.retain(|(_, tensor)| name.is_some() || tensor.shape.len() >= 2);
    let names: Vec<&str> = tensors.iter().map(|(name, _)| name.as_str()).collect();
    let name = chosen(&names, name)?;
    let (_, tensor) = tensors.iter().find(|(of, _)| of == name).expect("one of the names");
    let data = entry(&mut archive, &format!("{folder}/{}", tensor.storage));
    tensor.values(&data.map_err(|error| damaged(&error))?)
}

/// Whether the arguments of every opcode lie within the pickle, up to its end. The reader takes memory of the length that a
/// string announces, before it reads the string.
fn is_whole(pickle: &[u8]) -> bool {
    let line = |rest: &[u8]| rest.iter().position(|&byte| byte == b'\n').map(|end| end + 1);
    let mut rest = pickle;
    while let Some((&opcode, arguments)) = rest.split_first() {
        let length = match opcode {
            b'.' => return true,
            0x80 | b'K' | b'h' | b'q' => Some(1),
            b'M' => Some(2),
            b'J' | b'j' | b'r' => Some(4),
            b'G' => Some(8),
            0x8a => arguments.first().map(|&length| 1 + usize::from(length)),
            b'X' => arguments.first_chunk().map(|&length| 4 + u32::from_le_bytes(length) as usize),
            b'c' => line(arguments).and_then(|end| Some(end + line(&arguments[end..])?)),
            _ => Some(0),
        };
        match length.and_then(|length| arguments.get(length..)) {
            Some(after) => rest = after,
            None => return false,
        }
    }
    false
}

impl Stored<'_> {
    /// The elements, in the order of the shape.
    fn values(&self, data: &[u8]) -> Result<ArrayD<f64>, TargetError> {
        let dtype = match self.class {
            "DoubleStorage" => Dtype::F64,
            "FloatStorage" => Dtype::F32,
            "HalfStorage" => Dtype::F16,
            "BFloat16Storage" => Dtype::BF16,
            other => {
                return Err(format!("unsupported tensor type {other}; save matrix.float()").into());
            }
        };
        let values = floats(dtype, data).unwrap_or_default();
        let size = self.shape.iter().map(|&length| length as f64).product::<f64>();
        check_memory(8.0 * size).map_err(|room| format!("the tensor needs {room}"))?;
        let held = values.get(self.offset..).unwrap_or_default();
        let shape = IxDyn(&self.shape).strides(IxDyn(&self.strides));
        let view = ArrayViewD::from_shape(shape, held);
        Ok(view.map_err(|error| format!("a tensor exceeds its storage: {error}"))?.to_owned())
    }
}

/// Lists the tensors of an object by name.
fn collect<'p>(object: &'p Object, name: &str, into: &mut Vec<(String, Stored<'p>)>) {
    let within = |key: &str| match name {
        "" => key.to_owned(),
        _ => format!("{name}.{key}"),
    };
    match object {
        Object::Dict(entries) => {
            for (key, value) in entries {
                match key {
                    Object::Unicode(key) => collect(value, &within(key), into),
                    Object::Int(key) => collect(value, &within(&key.to_string()), into),
                    _ => {}
                }
            }
        }
        Object::List(values) | Object::Tuple(values) => {
            for (at, value) in values.iter().enumerate() {
                collect(value, &within(&at.to_string()), into);
            }
        }
        _ => into.extend(tensor(object).map(|tensor| {
            let name = if name.is_empty() { "tensor" } else { name };
            (name.to_owned(), tensor)
        })),
    }
}

/// The tensor that a call of `torch._utils._rebuild_tensor_v2` or `_rebuild_parameter` would make.
fn tensor(object: &Object) -> Option<Stored<'_>> {
    let Object::Reduce { callable, args } = object else { return None };
    let (Object::Class { class_name, .. }, Object::Tuple(args)) = (&**callable, &**args) else {
        return None;
    };
    match (class_name.as_str(), args.as_slice()) {
        ("_rebuild_parameter", [data, ..]) => tensor(data),
        ("_rebuild_tensor_v2", [Object::PersistentLoad(storage), offset, shape, strides, ..]) => {
            let Object::Tuple(storage) = &**storage else { return None };
            let [_, Object::Class { class_name, .. }, Object::Unicode(number), ..] = &storage[..]
            else {
                return None;
            };
            Some(Stored {
                storage: number,
                class: class_name,
                offset: whole(offset)?,
                shape: wholes(shape)?,
                strides: wholes(strides)?,
            })
        }
        _ => None,
    }
}

fn whole(object: &Object) -> Option<usize> {
    match object {
        Object::Int(value) => usize::try_from(*value).ok(),
        Object::Long(value) => usize::try_from(*value).ok(),
        _ => None,
    }
}

fn wholes(object: &Object) -> Option<Vec<usize>> {
    match object {
        Object::Tuple(values) | Object::List(values) => values.iter().map(whole).collect(),
        _ => None,
    }
}

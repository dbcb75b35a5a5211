//! Launches kernels on the storage of tensors.

use std::sync::OnceLock;

use candle_core::cuda::cudarc::driver::{DevicePtr, LaunchConfig, PushKernelArg};
use candle_core::cuda::{CudaDType, CudaStorageSlice, WrapErr};
use candle_core::{CudaDevice, CudaStorage, DType, Device, Result, Shape, Storage, Tensor, bail};

use crate::lm::LmError;

/// One file of kernels, compiled into the crate.
#[derive(Clone, Copy)]
pub(super) struct Kernels {
    name: &'static str,
    ptx: &'static str,
}

pub(super) const ATTENTION: Kernels =
    Kernels { name: "attention", ptx: include_str!(concat!(env!("OUT_DIR"), "/attention.ptx")) };
pub(super) const ROWS: Kernels =
    Kernels { name: "rows", ptx: include_str!(concat!(env!("OUT_DIR"), "/rows.ptx")) };

/// An argument of a kernel.
#[derive(Clone, Copy)]
pub(super) enum Argument {
    /// The first element of a contiguous tensor.
    Pointer(u64),
    Int(i32),
    Long(i64),
    Float(f32),
}

impl Argument {
    /// A size; kernels take it as a 32-bit integer. Fails if it is too large.
    fn size(size: usize) -> Result<Self> {
        match i32::try_from(size) {
            Ok(size) => Ok(Self::Int(size)),
            Err(_) => bail!("a size of {size} is too large for a kernel"),
        }
    }

    /// A number of elements.
    pub(super) fn count(count: usize) -> Self {
        Self::Long(count as i64)
    }

    /// A contiguous tensor on the GPU.
    fn tensor(tensor: &Tensor) -> Result<Self> {
        fn address<T: CudaDType>(storage: &CudaStorage, start: usize) -> Result<u64> {
            let stream = storage.device.cuda_stream();
            let (first, _guard) = storage.as_cuda_slice::<T>()?.device_ptr(&stream);
            Ok(first + (start * size_of::<T>()) as u64)
        }
        let (storage, layout) = tensor.storage_and_layout();
        let Storage::Cuda(storage) = &*storage else { bail!("a tensor is not on the GPU") };
        let Some((start, _)) = layout.contiguous_offsets() else {
            bail!("a tensor of shape {:?} is not contiguous", layout.shape());
        };
        let address = match &storage.slice {
            CudaStorageSlice::F32(_) => address::<f32>(storage, start)?,
            CudaStorageSlice::BF16(_) => address::<half::bf16>(storage, start)?,
            CudaStorageSlice::U32(_) => address::<u32>(storage, start)?,
            _ => bail!("a kernel takes float32, bfloat16 or uint32"),
        };
        Ok(Self::Pointer(address))
    }
}

/// The arguments of a kernel: tensors, then sizes, then numbers.
pub(super) fn arguments(
    tensors: &[&Tensor],
    sizes: &[usize],
    numbers: &[f32],
) -> Result<Vec<Argument>> {
    let tensors = tensors.iter().copied().map(Argument::tensor);
    let numbers = numbers.iter().map(|&number| Ok(Argument::Float(number)));
    tensors.chain(sizes.iter().copied().map(Argument::size)).chain(numbers).collect()
}

/// Blocks in x and y, threads in a block, and bytes of dynamic shared memory.
#[derive(Clone, Copy)]
pub(super) struct Grid {
    pub(super) blocks: [usize; 2],
    pub(super) threads: u32,
    pub(super) shared_bytes: usize,
}

impl Grid {
    /// A one-dimensional grid of `blocks` blocks with `threads` threads each.
    pub(super) fn of(blocks: usize, threads: u32) -> Self {
        Self { blocks: [blocks, 1], threads, shared_bytes: 0 }
    }

    /// For kernels that stride over `count` elements.
    pub(super) fn elements(count: usize) -> Self {
        Self::of(count.div_ceil(1024).clamp(1, 4096), 256)
    }
}

/// Queues a kernel. The call returns before the kernel has run.
pub(super) fn launch(
    device: &CudaDevice,
    kernels: Kernels,
    name: &str,
    grid: Grid,
    arguments: &[Argument],
) -> Result<()> {
    let function = device.get_or_load_custom_func(name, kernels.name, kernels.ptx)?;
    let mut builder = function.builder();
    for argument in arguments {
        match argument {
            Argument::Pointer(x) => builder.arg(x),
            Argument::Int(x) => builder.arg(x),
            Argument::Long(x) => builder.arg(x),
            Argument::Float(x) => builder.arg(x),
        };
    }
    let [x, y] = grid.blocks;
    let configuration = LaunchConfig {
        grid_dim: (x as u32, y as u32, 1),
        block_dim: (grid.threads, 1, 1),
        shared_mem_bytes: grid.shared_bytes as u32,
    };
    // SAFETY: every caller passes the arguments of the kernel's signature, with tensors of the sizes that
    // they state. All work goes to one stream, so storage outlives the kernels queued on it.
    unsafe { builder.launch(configuration) }.w()?;
    Ok(())
}

/// The GPU of a tensor; fails if it is on the CPU.
pub(super) fn device_of(tensor: &Tensor) -> Result<&CudaDevice> {
    match tensor.device() {
        Device::Cuda(device) => Ok(device),
        _ => bail!("a tensor is not on the GPU"),
    }
}

/// An uninitialised tensor, every element of which the next kernel writes.
pub(super) fn unwritten(
    shape: impl Into<Shape>,
    dtype: DType,
    device: &CudaDevice,
) -> Result<Tensor> {
    // SAFETY: every element is written before it is read.
    unsafe { Tensor::empty(shape, dtype, &Device::Cuda(device.clone())) }
}

/// A kernel's name for one dtype.
pub(super) fn named(name: &str, dtype: DType) -> Result<String> {
    Ok(format!("{name}_{}", suffix(dtype)?))
}

/// The suffix of kernel names for one dtype.
pub(super) fn suffix(dtype: DType) -> Result<&'static str> {
    match dtype {
        DType::F32 => Ok("f32"),
        DType::BF16 => Ok("bf16"),
        other => bail!("kernels are for float32 and bfloat16, not {other:?}"),
    }
}

/// The first GPU. It is opened once, because tensors of two handles cannot be combined.
///
/// # Errors
/// A machine without a driver or a device.
pub(in crate::lm) fn device() -> std::result::Result<Device, LmError> {
    static DEVICE: OnceLock<Device> = OnceLock::new();
    if let Some(device) = DEVICE.get() {
        return Ok(device.clone());
    }
    // One stream for all threads rather than one per thread: work queued by any thread of a pool stays in order.
    let device = Device::new_cuda_with_stream(0)
        .map_err(|e| LmError::NoDevice { why: format!("no GPU found: {e}") })?;
    if let Device::Cuda(cuda) = &device {
        // SAFETY: events order the work of several streams, and there is only one.
        unsafe { cuda.disable_event_tracking() };
    }
    Ok(DEVICE.get_or_init(|| device).clone())
}

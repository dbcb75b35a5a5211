"""Arrays of any library as float64 matrices of numpy."""

from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]


def as_numpy(array: Any) -> NDArray[Any]:
    """An array of numpy, torch, JAX or any library with `__array__` or DLPack, on the CPU."""
    if hasattr(array, "detach"):
        # A tensor of torch: numpy has no bfloat16, and takes nothing that needs a gradient.
        array = array.detach().cpu()
        if "bfloat16" in str(array.dtype):
            array = array.float()
    if not hasattr(array, "__array__") and hasattr(array, "__dlpack__"):
        return np.from_dlpack(array)
    return np.asarray(array)


def as_matrix(array: Any, head: int | None = None) -> Matrix:
    """A square matrix as float64.

    Parameters
    ----------
    array
        Shape (n, n), or a stack (heads, n, n), of which `head` chooses one. Leading axes of length 1 are removed.

    Raises
    ------
    ValueError
        Another shape, or numbers that are not real.
    """
    if isinstance(array, (str, PathLike)):
        raise ValueError(f"attention must be an array ({array!r} found); read the file first, as with numpy.load")
    found = as_numpy(array)
    if found.dtype.kind not in "fiub" and found.dtype.name != "bfloat16":
        raise ValueError(f"attention must hold real numbers (dtype {found.dtype} found)")
    shape = found.shape
    while found.ndim > 3 and found.shape[0] == 1:
        found = found[0]
    if found.ndim == 3:
        heads = found.shape[0]
        if head is None and heads == 1:
            head = 0
        if head is None or not 0 <= head < heads:
            raise ValueError(f"attention is a stack of {heads} heads (shape {shape}); give head=0 to {heads - 1}")
        found = found[head]
    elif head is not None:
        raise ValueError(f"head={head} needs a stack of heads (shape {shape} found); leave head out")
    if found.ndim != 2:
        more = "; choose a layer and a sequence first, such as attention[0, 0]" if found.ndim > 3 else ""
        raise ValueError(f"attention must be a matrix, or a stack of heads (shape {shape} found){more}")
    return np.ascontiguousarray(found, dtype=np.float64)

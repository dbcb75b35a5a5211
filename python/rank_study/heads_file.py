"""Writes heads of any model as a file that `diagnose` reads: the format of FORMAT.md, from arrays."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .arrays import as_numpy

#: The entry of the header that describes the file, and the version of its format.
NOTE = "rank-study-heads"
VERSION = 1

#: Largest part of queries or keys that may not be a projection of the layer's input.
_RESIDUAL = 0.01


def write_heads(
    path: str | os.PathLike[str],
    layers: Mapping[int, tuple[Any, Any, Any]],
    tokens: Any,
    *,
    scale: float | None = None,
    causal: bool = True,
    window: int | None = None,
    softcap: float | None = None,
    bias: bool | None = None,
    rotary: tuple[Any, Any, str] | None = None,
    model: str = "model",
    kind: str = "custom",
    step: int | None = None,
    model_layers: int | None = None,
) -> None:
    """Writes queries, keys and inputs of attention layers to `path`, for `diagnose`.

    Use it for a model that no library knows. Call it with what the model computed on whole passages of one length,
    without padding and without dropout.

    Parameters
    ----------
    path
        A `.safetensors` file.
    layers
        For each layer, (Q, K, X): queries (P, H, T, D) and keys (P, K, T, D) as they enter the product, and the
        layer's input X (P, T, C) from which they are projected, after its normalisation. P passages of T tokens.
    tokens
        Token ids of shape (P, T).
    scale
        The factor of QKᵀ; 1/√D by default.
    causal, window
        Whether a token attends only to itself and earlier ones, and to how many.
    softcap
        The c of c·tanh(z/c), if the model has it.
    bias
        Whether the projections of queries or keys have a bias; by default found from the arrays.
    rotary
        (cos, sin, pairs) of rotary positions: cos and sin of shape (T, R/2), and `"halves"` if channels i and
        i + R/2 rotate together or `"neighbours"` if 2i and 2i + 1 do.
    model, kind, step, model_layers
        The model's name, its type, the training step, and its number of layers; written to the rows.

    Raises
    ------
    ValueError
        Arrays whose shapes do not fit, or that are NaN or infinite.

    Warns
    -----
    UserWarning
        Queries or keys are no projection of X: the input factor would be wrong.
    """
    from safetensors.numpy import save_file

    if not layers:
        raise ValueError("layers is empty; give at least one layer's (Q, K, X)")
    ids = as_numpy(tokens)
    if ids.ndim != 2 or ids.dtype.kind not in "iu":
        raise ValueError(f"tokens must be whole numbers of shape (passages, T) ({ids.dtype} of {ids.shape} found)")
    turned = None if rotary is None else _rotation(rotary, ids.shape[1])
    tensors: dict[str, NDArray[Any]] = {}
    heads: list[dict[str, object]] = []
    for layer, arrays in sorted(layers.items()):
        if len(arrays) != 3:
            raise ValueError(f"layer {layer}: layers must map to (Q, K, X), three arrays ({len(arrays)} found)")
        q, k, x = arrays
        queries, keys, stream = (_stored(name, layer, array) for name, array in (("Q", q), ("K", k), ("X", x)))
        _check_shapes(layer, queries, keys, stream, ids)
        before = [rows if turned is None else _turned_back(rows, turned) for rows in (queries, keys)]
        has_bias = _has_bias(stream, before) if bias is None else bias
        for side, rows in zip(("queries", "keys"), before):
            residual = _residual(stream, rows, has_bias)
            if residual > _RESIDUAL:
                warnings.warn(
                    f"layer {layer}: {side} are not a projection of X ({residual:.0%} of them is left over), so the input "
                    "factor would be wrong; give the input of the projection, after its normalisation, and rotary=(cos, sin, "
                    "pairs) if positions rotate",
                    stacklevel=2,
                )
        named = {"queries": queries, "keys": keys, "stream": stream}
        if turned is not None:
            named |= {"cos": turned[0], "sin": turned[1]}
        tensors |= {f"layers.{layer}.{name}": tensor for name, tensor in named.items()}
        heads.append(
            {
                "layer": int(layer),
                "scale": float(queries.shape[-1] ** -0.5 if scale is None else scale),
                "causal": causal,
                "window": window,
                "softcap": softcap,
                "bias": has_bias,
                "pairs": turned and turned[2],
                "norm": None,
            }
        )
    about = {
        "version": VERSION,
        "made_with": "rank_study.write_heads",
        "model": model,
        "type": kind,
        "step": step,
        "layers": max(layers) + 1 if model_layers is None else model_layers,
        "context": None,
        "tokens": ids.tolist(),
        "heads": heads,
    }
    path = os.fspath(path)
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    # Renamed when it is whole.
    save_file(tensors, path + ".part", {NOTE: json.dumps(about)})
    os.replace(path + ".part", path)


def _stored(name: str, layer: int, array: Any) -> NDArray[np.float32]:
    stored = np.ascontiguousarray(as_numpy(array), dtype=np.float32)
    if not np.isfinite(stored).all():
        raise ValueError(f"layer {layer}: {name} has values that are NaN or infinite; write finite ones, such as those of an earlier step")
    return stored


def _check_shapes(
    layer: int, queries: NDArray[Any], keys: NDArray[Any], stream: NDArray[Any], ids: NDArray[Any]
) -> None:
    shapes = f"Q {queries.shape}, K {keys.shape}, X {stream.shape}, tokens {ids.shape}"
    wanted = "give Q (P, H, T, D), K (P, K, T, D) with H a multiple of K, X (P, T, C), tokens (P, T)"
    fits = queries.ndim == keys.ndim == 4 and stream.ndim == 3
    if fits:
        passages, count, length, width = queries.shape
        fits = (
            keys.shape[0] == passages
            and keys.shape[2:] == (length, width)
            and keys.shape[1] > 0
            and count % keys.shape[1] == 0
            and stream.shape[:2] == ids.shape == (passages, length)
        )
    if not fits:
        raise ValueError(f"layer {layer}: shapes do not fit ({shapes}); {wanted}")


def _rotation(rotary: tuple[Any, Any, str], length: int) -> tuple[NDArray[np.float32], NDArray[np.float32], str]:
    cos, sin = (np.ascontiguousarray(as_numpy(angle), dtype=np.float32) for angle in rotary[:2])
    if cos.shape != sin.shape or cos.ndim != 2 or len(cos) != length:
        raise ValueError(f"rotary: cos and sin must have shape ({length}, R/2) ({cos.shape} and {sin.shape} found)")
    if rotary[2] not in ("halves", "neighbours"):
        raise ValueError(f"rotary: pairs must be 'halves' or 'neighbours' ({rotary[2]!r} found)")
    return cos, sin, rotary[2]


def _residual(stream: NDArray[np.float32], rows: NDArray[np.float32], bias: bool) -> float:
    """The part of rows (P, H, T, D) that is no X·W, or X·W + b: with another X the input factor would describe another model."""
    x = stream.reshape(-1, stream.shape[-1]).astype(np.float64)
    if bias:
        x = np.hstack([x, np.ones((len(x), 1))])
    if len(x) <= x.shape[1]:
        return 0.0  # Fewer tokens than channels: every matrix is a projection.
    y = rows.transpose(0, 2, 1, 3).reshape(len(x), -1).astype(np.float64)
    weights, *_ = np.linalg.lstsq(x, y, rcond=None)
    return float(np.linalg.norm(x @ weights - y)) / max(float(np.linalg.norm(y)), 1e-30)


def _has_bias(stream: NDArray[np.float32], sides: Sequence[NDArray[np.float32]]) -> bool:
    """Whether rows are X·W + b and not X·W: less is left over by far."""
    without, with_one = (max(_residual(stream, rows, bias) for rows in sides) for bias in (False, True))
    return without > 1e-5 and with_one < 0.1 * without


def _turned_back(
    rows: NDArray[np.float32], turned: tuple[NDArray[np.float32], NDArray[np.float32], str]
) -> NDArray[np.float32]:
    cos, sin, pairs = turned
    half = cos.shape[1]
    first, rest = rows[..., : 2 * half], rows[..., 2 * half :]
    halves = pairs == "halves"
    x, y = (first[..., :half], first[..., half:]) if halves else (first[..., ::2], first[..., 1::2])
    length = cos**2 + sin**2
    back = ((x * cos + y * sin) / length, (y * cos - x * sin) / length)
    joined = np.concatenate(back, -1) if halves else np.stack(back, -1).reshape(first.shape)
    return np.concatenate([joined, rest], -1)


__all__: Sequence[str] = ["NOTE", "VERSION", "write_heads"]

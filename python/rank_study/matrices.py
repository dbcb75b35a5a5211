"""Fits of an attention matrix, its floor, lower bounds and spectrum."""

from __future__ import annotations

import dataclasses
import html
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from . import _native
from .arrays import Matrix, as_matrix

#: Columns of a fit that are shown first.
_SHOWN = ("cap", "kl_nats", "max_abs_logit", "floor_kl_nats", "floor_max_abs_logit", "inflation", "outcome")


@dataclasses.dataclass(frozen=True)
class Fit:
    """What a fit found.

    Attributes
    ----------
    frontier
        One row per logit bound, or one row for a tolerance. The columns are those of `frontier.csv`.
    queries, keys
        One entry per row, each of shape (heads, n, d_head), or None where a row has no fit. The logits of head h are
        `queries[row][h] @ keys[row][h].T / sqrt(d_head)`.
    sentences
        What the rows say.
    """

    frontier: _native.Table
    queries: list[Any]
    keys: list[Any]
    sentences: list[str]

    @property
    def summary(self) -> str:
        """The sentences as one text."""
        return " ".join(self.sentences)

    @property
    def max_abs_logit(self) -> list[float | None]:
        """The max |logit| of each row; None where the fit reached nothing."""
        return self.frontier["max_abs_logit"]

    @property
    def kl_nats(self) -> list[float | None]:
        """The error of each row: the mean over rows of KL(A ‖ softmax(QKᵀ/√d)), in nats."""
        return self.frontier["kl_nats"]

    @property
    def floor(self) -> list[float | None]:
        """The least max |logit| at unlimited rank for the error of each row."""
        return self.frontier["floor_max_abs_logit"]

    @property
    def lower_bound(self) -> list[float | None]:
        """A proven lower bound on max |logit| at this rank, for the error of each row."""
        return self.frontier["lower_bound_max_abs_logit"]

    def plot(self, ax: Any = None) -> Any:
        """Draws error against max |logit|, with the full-rank minimum. Needs matplotlib; returns the axes."""
        if ax is None:
            import matplotlib.pyplot as plt

            _, ax = plt.subplots()
        rows = zip(self.frontier["cap"], self.frontier["kl_nats"], self.frontier["floor_kl_nats"])
        points = sorted(row for row in rows if row[0] is not None and row[1] is not None)
        if points:
            bounds, errors, floors = zip(*points)
            ax.plot(bounds, errors, "o-", label=f"rank {self.frontier['rank'][0]}")
            ax.plot(bounds, floors, "--", color="grey", label="unlimited rank")
        ax.set(xlabel="bound on max |logit|", ylabel="error (KL, nats)", xscale="log")
        ax.legend()
        return ax

    def __repr__(self) -> str:
        return f"Fit({self.summary!r})"

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{name}</th>" for name in _SHOWN)
        rows = zip(*(self.frontier[name] for name in _SHOWN))
        body = "".join("<tr>" + "".join(f"<td>{_short(cell)}</td>" for cell in row) + "</tr>" for row in rows)
        return f"<p>{html.escape(self.summary)}</p><table><tr>{head}</tr>{body}</table>"


def _short(cell: object) -> str:
    if cell is None:
        return "–"
    return f"{cell:.4g}" if isinstance(cell, float) else html.escape(str(cell))


class LowerBound(NamedTuple):
    """A proven lower bound on max |logit|, the argument that proves it, and the floor."""

    max_abs_logit: float
    by: str
    floor: float


class Spectrum(NamedTuple):
    """Singular values in descending order, the numerical rank and the effective rank."""

    singular_values: Any
    numerical_rank: int
    effective_rank: float


def fit(
    attention: Any,
    d_head: int,
    *,
    max_logit: float | Sequence[float] | None = None,
    tolerance: float | None = None,
    mask: str = "causal",
    softmax: bool = False,
    head: int | None = None,
    layout: str = "global",
    starts: int | None = None,
    iterations: int | None = None,
    dtype: str = "f64",
    seed: int = 0,
    threads: int | None = None,
    progress: Callable[[float], object] | bool | None = None,
) -> Fit:
    """Fits queries and keys of rank `d_head` to an attention matrix A.

    Either finds the least error KL(A ‖ softmax(QKᵀ/√d)) within each bound on max |logit|, or the least max |logit| within
    an error. The numbers are those of `rank-study fit`, bit for bit.

    Parameters
    ----------
    attention
        A of shape (n, n), or a stack (heads, n, n) with `head`: an array of numpy, torch, JAX or any library with
        `__array__` or DLPack. Rows sum to one.
    d_head
        The rank d of QKᵀ.
    max_logit
        One or several bounds on max |logit|.
    tolerance
        The error in nats. Give this or `max_logit`.
    mask
        `"causal"` or `"bidirectional"`.
    softmax
        Whether `attention` holds logits; A is then their softmax.
    layout
        Heads that reproduce A together, joined by `+`: `global` or `local:W`.
    starts, iterations
        The number of starts and the most iterations of each fit. The defaults fit most matrices.
    dtype
        `"f64"` or `"f32"`.
    seed
        The seed of the starts.
    threads
        The number of threads. The default is one per core. It does not change the result.
    progress
        A function that is called with the share that is done, 0 to 1. True shows a bar if tqdm is installed.

    Raises
    ------
    ValueError
        A matrix that is not attention under the mask, or a parameter out of range.
    KeyboardInterrupt
        Ctrl-C stops the search.
    """
    _check_goal(tolerance, max_logit)
    bounds = [] if max_logit is None else [_number("max_logit", bound) for bound in _several(max_logit)]
    if tolerance is None and not bounds:
        raise ValueError("max_logit is empty; give at least one bound")
    for name, value in (("d_head", d_head), ("starts", starts), ("iterations", iterations), ("threads", threads)):
        if value is not None and not (_is_whole(value) and value >= 1):
            raise ValueError(f"{name} must be a whole number, at least 1 ({value!r} found); call fit for each of several")
    if tolerance is not None:
        tolerance = _number("tolerance", tolerance)
    matrix = as_matrix(attention, head)
    if d_head >= len(matrix):
        warnings.warn(f"d_head = {d_head} is no restriction: the matrix has rank {len(matrix)} at most", stacklevel=2)
    report, close = _reporter(progress)
    try:
        rows, factors, sentences = _native.fit(
            matrix, mask, softmax, d_head, layout, bounds, tolerance, starts, iterations, dtype, seed,
            threads or _cores(), report,
        )  # fmt: skip
    finally:
        close()
    queries = [pair and pair[0] for pair in factors]
    keys = [pair and pair[1] for pair in factors]
    return Fit(rows, queries, keys, sentences)


def floor(
    attention: Any,
    tolerance: float | None = None,
    *,
    max_logit: float | None = None,
    mask: str = "causal",
    softmax: bool = False,
    head: int | None = None,
) -> float | None:
    """The minimum at unlimited rank: of max |logit| within an error, or of the error within a logit bound.

    Returns None where no logits reach it. Give `tolerance` (nats) or `max_logit`. The other parameters are those of
    `fit`.
    """
    _check_goal(tolerance, max_logit)
    return _native.floor(as_matrix(attention, head), mask, softmax, tolerance, max_logit)


def lower_bound(
    attention: Any,
    d_head: int,
    tolerance: float,
    *,
    mask: str = "causal",
    softmax: bool = False,
    head: int | None = None,
) -> LowerBound | None:
    """A bound below which no queries and keys of rank `d_head` reach the error `tolerance` (nats).

    Returns None where no logits reach the error. The other parameters are those of `fit`.
    """
    found = _native.lower_bound(as_matrix(attention, head), mask, softmax, d_head, tolerance)
    return found and LowerBound(*found)


def spectrum(attention: Any, *, mask: str = "causal", softmax: bool = False, head: int | None = None) -> Spectrum:
    """Singular values of an attention matrix, its numerical rank, and its effective rank exp(entropy of σ/Σσ)."""
    return Spectrum(*_native.spectrum(as_matrix(attention, head), mask, softmax))


def _check_goal(tolerance: object, max_logit: object) -> None:
    if max_logit is None and tolerance is None:
        raise ValueError("neither max_logit nor tolerance is given; give one of them")
    if max_logit is not None and tolerance is not None:
        raise ValueError("max_logit and tolerance are both given; give one of them, not both")


def _is_whole(value: object) -> bool:
    return hasattr(value, "__index__") and not isinstance(value, bool)


def _number(name: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be one number ({value!r} found); call again for each of several") from None


def _several(bounds: float | Sequence[float]) -> Sequence[float]:
    try:
        return list(bounds)  # type: ignore[arg-type]
    except TypeError:
        return [bounds]  # type: ignore[list-item]


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _reporter(progress: Callable[[float], object] | bool | None) -> tuple[Callable[[float], object] | None, Any]:
    """A function that takes the share that is done, and one to call at the end."""
    if callable(progress):
        return progress, lambda: None
    if not progress:
        return None, lambda: None
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return lambda share: sys.stderr.write(f"\rfit: {share:4.0%} of the most iterations"), lambda: print(
            file=sys.stderr
        )
    bar = tqdm(total=100, desc="fit", bar_format="{desc}: {percentage:3.0f}%|{bar}| {elapsed}")
    return lambda share: bar.update(int(100 * share) - bar.n), bar.close


__all__ = ["Fit", "LowerBound", "Matrix", "Spectrum", "fit", "floor", "lower_bound", "spectrum"]

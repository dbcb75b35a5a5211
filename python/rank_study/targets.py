"""Synthetic attention matrices: one function per family, each returns a float64 array of shape (n, n).

Every family except `permuted` is causal. `seed` chooses the draw of the random ones.
"""

from __future__ import annotations

import json
from typing import Any

from . import _native
from .arrays import Matrix


def build(family: str, n: int, *, seed: int = 0, mask: str = "causal", **parameters: Any) -> Matrix:
    """The matrix of a family by its name, as `rank-study target --family NAME` builds it.

    `lambda_` is the parameter `lambda` of mixture.
    """
    if n < 1:
        raise ValueError(f"n must be at least 1 ({n} found)")
    named = {name.rstrip("_"): value for name, value in parameters.items() if value is not None}
    return _native.target(family, n, seed, mask, json.dumps(named))


def uniform_band(n: int, window: int) -> Matrix:
    """Equal weights on the last `window` tokens."""
    return build("uniform-band", n, window=window)


def decay_band(n: int, window: int, tau: float | None = None) -> Matrix:
    """Weights e^(−(i − j)/τ) on the last `window` tokens; τ defaults to window/4."""
    return build("decay-band", n, window=window, tau=tau)


def dirichlet_band(n: int, window: int, alpha: float = 1.0, seed: int = 0) -> Matrix:
    """Each row drawn from the symmetric Dirichlet(alpha) on the last `window` tokens: dense, local, of high rank."""
    return build("dirichlet-band", n, seed=seed, window=window, alpha=alpha)


def lognormal_band(n: int, window: int, sigma: float = 1.0, seed: int = 0) -> Matrix:
    """Weights e^(σ·g) on the last `window` tokens, g a standard normal for each pair."""
    return build("lognormal-band", n, seed=seed, window=window, sigma=sigma)


def previous_token(n: int, k: int = 1) -> Matrix:
    """All weight of row i on column max(0, i − k)."""
    return build("previous-token", n, k=k)


def landmark(n: int, m: int, seed: int = 0) -> Matrix:
    """Dirichlet(1) weights on `m` columns that all rows share: sparse, global, of rank at most m."""
    return build("landmark", n, seed=seed, m=m)


def random_sparse(n: int, k: int, seed: int = 0) -> Matrix:
    """Dirichlet(1) weights on `k` columns drawn for each row."""
    return build("random-sparse", n, seed=seed, k=k)


def clustered(n: int, c: int, seed: int = 0) -> Matrix:
    """Equal weights on the earlier tokens of the row's own one of `c` clusters."""
    return build("clustered", n, seed=seed, c=c)


def induction(n: int, vocabulary: int, seed: int = 0) -> Matrix:
    """All weight of a row on the token after the last occurrence of its own token."""
    return build("induction", n, seed=seed, vocabulary=vocabulary)


def prefix(n: int) -> Matrix:
    """Equal weights on all tokens so far."""
    return build("prefix", n)


def mixture(n: int, local: str, global_: str, lambda_: float = 0.5, seed: int = 0, **parameters: Any) -> Matrix:
    """λ·local + (1 − λ)·global. `parameters` are those of both families, such as window=24, m=8."""
    return build("mixture", n, seed=seed, local=local, global_=global_, lambda_=lambda_, **parameters)


def permuted(n: int, of: str, seed: int = 0, **parameters: Any) -> Matrix:
    """A family with rows and columns in one random order. It keeps the spectrum, and is bidirectional."""
    return build("permuted", n, seed=seed, mask="bidirectional", of=of, **parameters)

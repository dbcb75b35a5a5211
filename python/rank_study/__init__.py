"""How large must attention logits be to reproduce an attention matrix with queries and keys of rank d?

>>> import rank_study
>>> A = rank_study.targets.dirichlet_band(48, window=8)
>>> print(rank_study.fit(A, 8, tolerance=0.1).summary)       # doctest: +SKIP
Rank 8 reaches KL 0.100 nats with max |logit| 2.41: at most 1.00 × the floor of 2.41, ...

- `fit`: the smallest max \\|logit\\|, or the smallest error, at a rank, with the queries and keys found
- `floor`, `lower_bound`, `spectrum`: what needs no search
- `targets`: synthetic attention matrices
- `diagnose`: a page on the heads of a model, in memory or in a folder
- `write_heads`: a file of the heads of any model, for `diagnose`
- `Monitor`: the logits of every head while your own PyTorch loop trains (needs torch)
- `train`, `read`: a training run with logits logged, and the tables of studies and runs
- `export`: heads of a transformers model (needs torch and transformers)
"""

from __future__ import annotations

import typing

from . import targets
from ._native import Table, __version__
from .diagnosis import Diagnosis, diagnose
from .heads_file import write_heads
from .matrices import Fit, fit, floor, lower_bound, spectrum
from .program import ProgramError, Stopped
from .runs import read, train

if typing.TYPE_CHECKING:
    from .monitor import Monitor

__all__ = [
    "Diagnosis",
    "Fit",
    "Monitor",
    "ProgramError",
    "Stopped",
    "Table",
    "__version__",
    "diagnose",
    "fit",
    "floor",
    "lower_bound",
    "read",
    "spectrum",
    "targets",
    "train",
    "write_heads",
]


def __getattr__(name: str) -> object:
    # It needs torch, which the rest does not.
    if name == "Monitor":
        try:
            from .monitor import Monitor
        except ModuleNotFoundError as error:
            raise ImportError(f"Monitor needs torch ({error}); pip install torch") from error
        return Monitor
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

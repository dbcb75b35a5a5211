from collections.abc import Callable, Iterator, Sequence
from os import PathLike
from typing import Any

from numpy import float64
from numpy.typing import NDArray

__version__: str

class Table:
    """Rows as columns. polars.DataFrame(t), pandas.DataFrame.from_arrow(t) and pyarrow.table(t) take it."""

    @property
    def columns(self) -> list[str]: ...
    def __len__(self) -> int: ...
    def __getitem__(self, name: str) -> list[Any]: ...
    def rows(self) -> list[dict[str, Any]]: ...
    def __iter__(self) -> Iterator[dict[str, Any]]: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

def run(words: Sequence[str]) -> int: ...
def read_table(path: str | PathLike[str]) -> Table: ...
def fit(
    matrix: NDArray[float64],
    mask: str,
    logits: bool,
    rank: int,
    layout: str,
    max_logit: Sequence[float],
    tolerance: float | None,
    starts: int | None,
    iterations: int | None,
    dtype: str,
    seed: int,
    threads: int,
    progress: Callable[[float], object] | None,
) -> tuple[Table, list[tuple[NDArray[float64], NDArray[float64]] | None], list[str]]: ...
def floor(
    matrix: NDArray[float64], mask: str, logits: bool, tolerance: float | None, max_logit: float | None
) -> float | None: ...
def lower_bound(
    matrix: NDArray[float64], mask: str, logits: bool, rank: int, tolerance: float
) -> tuple[float, str, float] | None: ...
def spectrum(matrix: NDArray[float64], mask: str, logits: bool) -> tuple[NDArray[float64], int, float]: ...
def target(family: str, n: int, seed: int, mask: str, parameters: str) -> NDArray[float64]: ...

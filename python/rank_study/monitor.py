"""Watches the attention logits of a PyTorch model while somebody else's loop trains it."""

from __future__ import annotations

import contextlib
import csv
import queue
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from .matrices import floor
from .program import run

#: Columns of a row, in order.
COLUMNS = (
    "step", "layer", "head", "max_abs_logit", "max_logit", "half_range", "floor", "entropy_nats", "first_token", "kl_bf16",
)  # fmt: skip
_ATTENTION = torch.nn.functional.scaled_dot_product_attention
#: Looks that wait for the thread that measures them. One more would keep another copy of queries and keys.
_WAITING = 2


class Monitor:
    """Measures every head's attention logits at every `every`-th forward pass of a model in training.

    It looks at calls of `torch.nn.functional.scaled_dot_product_attention`, which most models make: a plain module, or
    one of transformers with `attn_implementation="sdpa"`. The training step is not changed. Queries and keys are copied
    when they are used, and measured by another thread.

    Parameters
    ----------
    model
        The module whose forward is called once per step, such as a GPT; also wrapped by DistributedDataParallel, where
        rank 0 looks.
    every
        Steps between two looks.
    layers
        The layers to look at, by the order in which they attend; all by default.
    log
        Where rows go: a function that takes a list of dicts; a SummaryWriter of TensorBoard; a run of Weights & Biases;
        or the path of a new .csv file.
    alert
        Warns when the largest max |logit| is above this and higher than at the look before.
    sequences
        At most so many sequences of a batch are looked at.
    tolerance
        The error, in nats, of the floor: the least max |logit|, at unlimited rank, that gives the attention of the first sequence
        within it. None leaves the floor out.

    Attributes
    ----------
    rows
        One dict per step, layer and head. Steps are forward passes in training mode, counted from 1: with every=100 it looks
        at steps 1, 101, 201. `max_abs_logit`, `max_logit`: the largest |z| and the largest z over the pairs
        that the mask allows. `half_range`: half of the largest (max − min) of a row, on which softmax depends.
        `entropy_nats`: the mean over rows. `first_token`: the mean weight on the first token that a row attends to.
        `kl_bf16`: KL divergence in nats between the attention and that of logits rounded to bfloat16.

    Examples
    --------
    >>> with rank_study.Monitor(model, every=100, log="heads.csv") as monitor:   # doctest: +SKIP
    ...     for x, y in batches:
    ...         loss = criterion(model(x), y)
    ...         loss.backward(); optimizer.step(); optimizer.zero_grad()
    """

    def __init__(
        self,
        model: nn.Module,
        every: int = 100,
        layers: Sequence[int] | None = None,
        log: Any = None,
        alert: float = 50.0,
        sequences: int = 4,
        tolerance: float | None = 0.01,
    ) -> None:
        for name, value in (("every", every), ("sequences", sequences)):
            if value < 1:
                raise ValueError(f"{name} must be at least 1 ({value} found)")
        if tolerance is not None and not tolerance > 0.0:
            raise ValueError(f"tolerance must be above 0 ({tolerance} found)")
        self.model, self.every, self.alert, self.sequences, self.tolerance = model, every, alert, sequences, tolerance
        self.layers = None if layers is None else frozenset(layers)
        self.rows: list[dict[str, Any]] = []
        self.step = 0
        # All workers run the same lines, and name the same file.
        self._log = _logger(log if _is_first_worker() else None)
        self._waiting: queue.Queue[tuple[int, list[_Call]] | None] = queue.Queue(_WAITING)
        self._look: _Recorder | None = None
        self._open: contextlib.ExitStack | None = None
        self._hooks: list[Any] = []
        self._thread: threading.Thread | None = None
        self._failed: BaseException | None = None
        self._largest = float("inf")

    def __enter__(self) -> Monitor:
        if _is_first_worker():
            self._hooks = [
                self.model.register_forward_pre_hook(self._before),
                self.model.register_forward_hook(self._after, always_call=True),
            ]
            self._thread = threading.Thread(target=self._measure, name="rank-study monitor", daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for hook in self._hooks:
            hook.remove()
        self._hooks = []
        if self._thread is not None:
            self._waiting.put(None)
            self._thread.join()
            self._thread = None
        if self._failed is not None and error is None:
            raise self._failed
        if not self.step and error is None and _is_first_worker():
            warnings.warn("no pass in training mode was seen; call model.train(), and run the model itself", stacklevel=2)

    def plot(self, column: str = "max_abs_logit", ax: Any = None) -> Any:
        """Draws a column against the step, a line per head. Needs matplotlib; returns the axes."""
        if column not in COLUMNS[3:]:
            raise ValueError(f"column must be one of {', '.join(COLUMNS[3:])} ({column!r} found)")
        if ax is None:
            import matplotlib.pyplot as plt

            _, ax = plt.subplots()
        heads: dict[tuple[int, int], list[dict[str, Any]]] = {}
        for row in self.rows:
            heads.setdefault((row["layer"], row["head"]), []).append(row)
        for (layer, head), rows in sorted(heads.items()):
            label = f"layer {layer}, head {head}"
            ax.plot([row["step"] for row in rows], [row[column] for row in rows], label=label)
        ax.set(xlabel="step", ylabel="max |logit|" if column == "max_abs_logit" else column)
        if len(heads) <= 12:
            ax.legend(fontsize="small", loc="center left", bbox_to_anchor=(1.0, 0.5))
        return ax

    def page(self, folder: str | Path) -> Path:
        """Writes what was seen so far as a page: folder/index.html, beside heads.csv, figures and tables.

        The same page is made of the file of `log` by `rank-study show heads.csv --out folder`. Returns the path of the page.
        """
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        rows = list(self.rows)
        with (folder / "heads.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS)
            writer.writeheader()
            writer.writerows(rows)
        run(["show", str(folder / "heads.csv"), "--out", str(folder)])
        return folder / "index.html"

    def _before(self, module: nn.Module, _: Any) -> None:
        """Records the calls of a pass that is looked at."""
        # Evaluation, and passes within a pass, are no steps.
        if not module.training or not torch.is_grad_enabled() or self._open is not None:
            return
        self.step += 1
        if (self.step - 1) % self.every:
            return
        self._open = contextlib.ExitStack()
        # A compiled model makes no calls that can be seen: this pass runs as it is written.
        stance = getattr(torch.compiler, "set_stance", None)
        if stance is not None:
            self._open.enter_context(stance("force_eager"))
        self._look = self._open.enter_context(_Recorder(self.layers, self.sequences))

    def _after(self, module: nn.Module, _: Any, __: Any) -> None:
        if self._open is None or self._look is None:
            return
        self._open.close()
        look, self._look, self._open = self._look, None, None
        if not look.count:
            warnings.warn(
                f"{type(module).__name__} made no call of scaled_dot_product_attention, so nothing is measured; "
                'call it in a model of your own, or load one of transformers with attn_implementation="sdpa"',
                stacklevel=2,
            )
        elif look.calls and self._failed is None:
            # Waits only if two looks are not measured yet.
            self._waiting.put((self.step, look.calls))

    def _measure(self) -> None:
        while (look := self._waiting.get()) is not None:
            if self._failed is not None:
                continue
            try:
                step, calls = look
                rows = [{"step": step, **row} for call in calls for row in call.rows(self.tolerance)]
                self.rows += rows
                self._log(rows)
                self._warn(rows)
            except BaseException as error:  # noqa: BLE001 - raised again when the monitor is closed
                self._failed = error

    def _warn(self, rows: Sequence[dict[str, Any]]) -> None:
        worst = max(rows, key=lambda row: float(row["max_abs_logit"]))
        largest = float(worst["max_abs_logit"])
        if largest > self.alert and largest > self._largest:
            sys.stderr.write(
                f"rank-study: step {worst['step']}: layer {worst['layer']}, head {worst['head']} has max |logit| "
                f"{largest:.3g} and rising (half-range {worst['half_range']:.3g}); lower the learning rate, or see "
                "docs/findings.md: what lowers large logits\n"
            )
        self._largest = largest


class _Call:
    """Queries (B, H, T, D) and keys (B, K, S, D) of one layer, with its mask."""

    def __init__(self, layer: int, query: Tensor, key: Tensor, mask: Tensor | None, causal: bool, scale: float) -> None:
        self.layer, self.query, self.key, self.mask, self.causal, self.scale = layer, query, key, mask, causal, scale

    @torch.no_grad()
    def rows(self, tolerance: float | None) -> Iterator[dict[str, Any]]:
        """One row per head."""
        groups = self.query.shape[1] // self.key.shape[1]
        for head in range(self.query.shape[1]):
            query, key = self.query[:, head].float(), self.key[:, head // groups].float()
            z = query @ key.transpose(-1, -2) * self.scale
            mask = self.mask
            if mask is not None:
                mask = mask[:, head if mask.shape[1] > 1 else 0].expand_as(z)
            seen = _seen(z, mask, self.causal)
            if mask is not None and mask.dtype != torch.bool:
                # A finite part is a bias that softmax receives.
                z = z + mask.float().where(seen, 0.0)
            least = float("nan") if tolerance is None else _floor(z[0], seen[0], tolerance)
            yield {"layer": self.layer, "head": head, **_measured(z, seen), "floor": least}


def _seen(z: Tensor, mask: Tensor | None, causal: bool) -> Tensor:
    """The pairs that attend."""
    seen = torch.ones_like(z, dtype=torch.bool)
    if causal:
        seen = seen.tril()
    if mask is not None:
        seen = seen & (mask if mask.dtype == torch.bool else mask > torch.finfo(mask.dtype).min / 2)
    return seen


def _measured(z: Tensor, seen: Tensor) -> dict[str, float]:
    """The columns of one head. Rows that attend to nothing, as padding does, are left out."""
    z, seen = z[seen.any(-1)], seen[seen.any(-1)]
    if not len(z):
        return dict.fromkeys(COLUMNS[3:], float("nan"))
    inf = float("inf")
    high, low = z.where(seen, -inf).amax(-1), z.where(seen, inf).amin(-1)
    log_p = z.where(seen, -inf).log_softmax(-1)
    p = log_p.exp()
    log_q = z.bfloat16().float().where(seen, -inf).log_softmax(-1)
    first = seen.to(torch.uint8).argmax(-1, keepdim=True)
    held = {
        "max_abs_logit": torch.maximum(high, -low).max(),
        "max_logit": high.max(),
        "half_range": ((high - low) / 2).max(),
        "entropy_nats": -(p * log_p.where(seen, 0.0)).sum(-1).mean(),
        "first_token": p.gather(-1, first).mean(),
        "kl_bf16": (p * (log_p - log_q).where(seen, 0.0)).sum(-1).mean(),
    }
    return {name: value.item() for name, value in held.items()}


def _floor(z: Tensor, seen: Tensor, tolerance: float) -> float:
    """The floor of one sequence without its padding: rows that attend to nothing, and keys that no row attends to."""
    rows, keys = seen.any(1), seen.any(0)
    z, seen = z[rows][:, keys], seen[rows][:, keys]
    ones = torch.ones_like(seen)
    if not len(z) or z.shape[0] != z.shape[1]:
        return float("nan")
    if torch.equal(seen, ones.tril()):
        mask = "causal"
    elif torch.equal(seen, ones):
        mask = "bidirectional"
    else:
        return float("nan")
    least = floor(z.double().where(seen, -float("inf")).softmax(-1), tolerance, mask=mask)
    return float("nan") if least is None else least


class _Recorder(TorchFunctionMode):
    """Copies what attention is given, and computes it as before."""

    def __init__(self, layers: frozenset[int] | None, sequences: int) -> None:
        super().__init__()
        self.layers, self.sequences, self.count = layers, sequences, 0
        self.calls: list[_Call] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is _ATTENTION:
            if self.layers is None or self.count in self.layers:
                self.calls.append(self._call(*args, **kwargs))
            self.count += 1
        return func(*args, **kwargs)

    def _call(
        self, query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, dropout_p: float = 0.0,
        is_causal: bool = False, scale: float | None = None, enable_gqa: bool = False,
    ) -> _Call:  # fmt: skip
        def copied(tensor: Tensor) -> Tensor:
            four = tensor.detach()
            while four.ndim < 4:
                four = four[None]
            return four[: self.sequences].clone()

        mask = attn_mask
        if mask is not None:
            while mask.ndim < 4:
                mask = mask[None]
            mask = mask.detach()[: self.sequences].clone()
        return _Call(
            self.count, copied(query), copied(key), mask, is_causal,
            query.shape[-1] ** -0.5 if scale is None else float(scale),
        )  # fmt: skip


def _is_first_worker() -> bool:
    distributed = torch.distributed
    return not (distributed.is_available() and distributed.is_initialized() and distributed.get_rank() > 0)


def _logger(log: Any) -> Callable[[list[dict[str, Any]]], object]:
    """A function that takes rows."""
    if log is None:
        return lambda rows: None
    if isinstance(log, (str, Path)):
        path = Path(log)
        path.parent.mkdir(parents=True, exist_ok=True)
        # Rows of an earlier training are not lost.
        try:
            with path.open("x", newline="") as file:
                csv.writer(file).writerow(COLUMNS)
        except FileExistsError:
            raise FileExistsError(f"log: {path} exists; name another file, or remove it") from None

        def append(rows: list[dict[str, Any]]) -> None:
            with path.open("a", newline="") as file:
                csv.DictWriter(file, COLUMNS).writerows(rows)

        return append
    if hasattr(log, "add_scalar"):

        def to_tensorboard(rows: list[dict[str, Any]]) -> None:
            for name, value in _scalars(rows).items():
                log.add_scalar(name, value, rows[0]["step"])

        return to_tensorboard
    if hasattr(log, "log"):
        return lambda rows: log.log(_scalars(rows), step=rows[0]["step"])
    if callable(log):
        return log  # type: ignore[no-any-return]
    raise ValueError(f"log is a {type(log).__name__}; give a function, a SummaryWriter, a W&B run or the path of a .csv")


def _scalars(rows: Sequence[dict[str, Any]]) -> dict[str, float]:
    """One value per head and column, by name."""
    return {
        f"attention/layer{row['layer']}.head{row['head']}/{name}": row[name] for row in rows for name in COLUMNS[3:]
    }

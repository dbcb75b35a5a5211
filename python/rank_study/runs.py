"""Training runs and the tables of studies."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from . import _native, program

_Path = str | os.PathLike[str]


def read(folder: _Path) -> dict[str, _native.Table]:
    """The tables of a study, a training run, a fit or a diagnosis, by name.

    Parameters
    ----------
    folder
        A folder that rank-study wrote: `data/STUDY`, `runs/NAME`, or the `--out` of a command.

    Returns
    -------
    dict
        Such as `rows` of a study, `steps`, `eval` and `heads` of a run, `frontier` of a fit.
    """
    files = sorted(Path(folder).glob("*.parquet")) + sorted(Path(folder).glob("*.csv"))
    if not files:
        raise FileNotFoundError(f"{os.fspath(folder)} has no tables; name the folder of a study, a run or a fit")
    tables: dict[str, _native.Table] = {}
    for file in files:
        # The .csv of rows holds the same as their .parquet.
        if file.stem not in tables:
            tables[file.stem] = _native.read_table(file)
    return tables


def train(
    definition: _Path,
    out: _Path,
    *,
    text: _Path | None = None,
    valid_text: _Path | None = None,
    settings: Mapping[str, object] | None = None,
    resume: bool = False,
    threads: int | None = None,
    on_evaluation: Callable[[dict[str, Any]], object] | None = None,
    verbose: bool = False,
) -> dict[str, _native.Table]:
    """Trains the language model of a definition, with the logits of every head logged.

    Parameters
    ----------
    definition
        A TOML file, such as analysis/nanogpt-small.toml.
    out
        The folder of the run.
    text, valid_text
        The training and validation text. By default a part of `text` validates.
    settings
        Keys of the definition with other values, such as `{"arm": "ls", "window": 16}`.
    resume
        Whether to continue a stopped run.
    on_evaluation
        Called with each new row of the evaluations: step, split, tokens, loss_nats, perplexity.
    verbose
        Whether progress is printed on standard error.

    Returns
    -------
    dict
        `steps`, `eval` and `heads`, as `read(out)` gives them.
    """
    words = ["train", os.fspath(definition), "--out", os.fspath(out)]
    for flag, path in (("--text", text), ("--valid-text", valid_text)):
        words += [] if path is None else [flag, os.fspath(path)]
    for key, value in (settings or {}).items():
        words += ["--set", f"{key}={str(value).lower() if isinstance(value, bool) else value}"]
    words += ["--resume"] if resume else []
    words += [] if threads is None else ["--threads", str(threads)]
    evaluations, seen = Path(out) / "eval.csv", 0

    def watch() -> None:
        nonlocal seen
        if on_evaluation is None or not evaluations.exists():
            return
        rows = _native.read_table(evaluations).rows()
        for row in rows[seen:]:
            on_evaluation(row)
        seen = len(rows)

    if resume and evaluations.exists():
        seen = len(_native.read_table(evaluations))
    program.run(words, watch, verbose)
    watch()
    return read(out)

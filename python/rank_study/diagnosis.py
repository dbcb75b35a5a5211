"""Diagnoses of models' heads."""

from __future__ import annotations

import html
import os
import re
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from . import _native, program
from .arrays import as_numpy
from .runs import read


class Diagnosis:
    """What `diagnose` found: rows, sentences and a page.

    Attributes
    ----------
    heads
        One row per head.
    sentences
        The conclusion and the most suspicious heads, worst first.
    folder
        The folder with `index.html` and `rows.csv`.
    """

    def __init__(self, folder: Path, printed: str) -> None:
        self.folder = folder
        self.heads: _native.Table = read(folder)["rows"]
        # Files are listed after an empty line.
        self.sentences: list[str] = printed.split("\n\n")[0].replace("--above", "above").splitlines()

    @property
    def summary(self) -> str:
        """The conclusion: how many heads have large logits, and the largest."""
        return self.sentences[0] if self.sentences else ""

    @property
    def html(self) -> str:
        """The page. It works offline."""
        return (self.folder / "index.html").read_text(encoding="utf-8")

    def worst(self, count: int = 8) -> list[dict[str, Any]]:
        """The rows of the heads with the largest max |logit|, as dicts."""
        return sorted(self.heads, key=lambda row: -(row["actual"] or 0.0))[:count]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Copies the page to a .html file, or page and rows to a folder."""
        if os.fspath(path).endswith(".html"):
            # The files that the page names are not beside it.
            alone = re.sub(r'<a href="(?:rows|manifest)\.[a-z]+">([^<]*)</a>', r"\1", self.html)
            Path(path).write_text(alone, encoding="utf-8")
        else:
            shutil.copytree(self.folder, path, dirs_exist_ok=True)

    def __repr__(self) -> str:
        return f"Diagnosis({self.summary!r})"

    def _repr_html_(self) -> str:
        page = html.escape(self.html, quote=True)
        return f'<iframe srcdoc="{page}" style="width:100%;height:40em;border:1px solid #ccc"></iframe>'


def diagnose(
    model: Any,
    text: str | os.PathLike[str] | None = None,
    *,
    input_ids: Any = None,
    tokenizer: Any = None,
    layers: Sequence[int] | None = None,
    tokens: int | None = None,
    passages: int | None = None,
    tolerance: float = 0.01,
    above: float | None = None,
    most: int | None = None,
    threads: int | None = None,
    out: str | os.PathLike[str] | None = None,
    verbose: bool = False,
) -> Diagnosis:
    """Finds the heads with large logits, what their attention needs, and what makes up the rest.

    Parameters
    ----------
    model
        A model of transformers or plain PyTorch in memory, or a path: a folder that transformers saved, a `.gguf` file, the folder of
        a training run, or a file of `write_heads` or `export`.
    text
        A text file for a model in a folder. For a model in memory, a text file or the text itself, with `tokenizer`.
    input_ids
        For a model in memory, token ids of shape (passages, T), in place of `text`.
    layers
        The layers to look at; all by default.
    tokens, passages
        Tokens per passage and passages per fit. For a model in memory, at most 256 tokens and 2 passages are cut from
        `text`.
    tolerance
        ε, the error within which the least max |logit| is searched (KL, nats).
    above, most
        Fits only heads whose max |logit| is above this (default 20), and at most this many (default 16). Other heads are
        compared with their floor alone. `above=0` fits small models too.
    out
        The folder to write to; a temporary one by default.
    verbose
        Whether progress is printed on standard error.
    """
    # A run that was made here is removed with the process's temporary files, not before: the page is read later.
    folder = Path(out) if out is not None else Path(tempfile.mkdtemp(prefix="rank-study-")) / "diagnosed"
    words = ["--tolerance", str(tolerance), "--out", str(folder)]
    for flag, value in (("--above", above), ("--most", most), ("--threads", threads)):
        words += [] if value is None else [flag, str(value)]
    if isinstance(model, (str, os.PathLike)):
        if input_ids is not None or tokenizer is not None:
            raise ValueError("input_ids and tokenizer are for a model in memory; give text, a file")
        source = os.fspath(model)
        words += [] if text is None else ["--text", os.fspath(text)]
        for flag, value in (("--tokens", tokens), ("--passages", passages)):
            words += [] if value is None else [flag, str(value)]
        for layer in layers or ():
            words += ["--layer", str(layer)]
        return Diagnosis(folder, program.run(["diagnose", source, *words], verbose=verbose))
    from . import export

    ids = _passages(text, input_ids, tokenizer, tokens or 256, passages or 2)
    with tempfile.TemporaryDirectory(prefix="rank-study-") as made:
        name = getattr(getattr(model, "config", None), "_name_or_path", "") or type(model).__name__
        heads = os.path.join(made, name.rsplit("/", 1)[-1] + ".safetensors")
        export.export(model, ids, heads, layers)
        words += ["--passages", str(len(ids))]
        return Diagnosis(folder, program.run(["diagnose", heads, *words], verbose=verbose))


def _passages(text: Any, input_ids: Any, tokenizer: Any, length: int, most: int) -> list[list[int]]:
    if (input_ids is None) == (text is None):
        raise ValueError("give input_ids of shape (passages, T), or text with tokenizer")
    if input_ids is not None:
        ids = as_numpy(input_ids)
        return (ids[None] if ids.ndim == 1 else ids).tolist()  # type: ignore[no-any-return]
    if tokenizer is None:
        raise ValueError("tokenizer is missing; give the model's, such as AutoTokenizer.from_pretrained(...)")
    path = os.fspath(text)
    words = Path(path).read_text(encoding="utf-8") if len(path) < 4096 and os.path.exists(path) else path
    # Eight characters per token are more than any passage needs.
    ids = tokenizer(words[: 8 * length * most], add_special_tokens=False)["input_ids"]
    whole = [ids[at : at + length] for at in range(0, len(ids) - length + 1, length)][:most]
    if not whole:
        raise ValueError(f"text has {len(ids)} tokens; give at least {length}, or a smaller tokens")
    return whole

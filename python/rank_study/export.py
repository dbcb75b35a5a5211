"""Writes attention heads of a PyTorch model as one file that `rank-study diagnose` reads.

    from rank_study import export

    with export.capture(model, layers=[0, 7], path="heads.safetensors"):
        model(**inputs)                                   # as often as there are passages, all of one length

    export.export(model, tokens, "heads.safetensors", layers=[0, 7])                 # tokens: (passages, T)

It needs torch, safetensors and, for its models, transformers (4.53 or later; tried with 5.23), and no other file of the
package: it may be copied beside your code. Of other models it records the calls of scaled_dot_product_attention, and those
of softmax on a product of matrices. What the model computes does not change: its attention is called as before. While heads are
captured the model is in eval mode, so that nothing is dropped out, and runs uncompiled. In a training loop, a file
every 100 steps:

    if step % 100 == 0:
        export.export(model, passages, f"heads/step-{step:06}.safetensors", layers=[0, 1], step=step)

The same for transformers' Trainer, as `Trainer(..., callbacks=[ExportHeads(passages, every=100, folder="heads")])`:

    class ExportHeads(transformers.TrainerCallback):
        def __init__(self, passages, every, folder, layers=None):
            self.passages, self.every, self.folder, self.layers = passages, every, folder, layers

        def on_step_end(self, args, state, control, model, **kwargs):
            step = state.global_step
            if step % self.every == 0:
                path = f"{self.folder}/step-{step:06}.safetensors"
                export.export(model, self.passages, path, layers=self.layers, step=step)

The format is that of python/FORMAT.md. How queries and keys are made is not taken from the model's type but found
from what its modules are given and return, and held against them; where that fails, nothing is written and the
error says why.

Shapes: B passages of a call, P of a file, T tokens, C channels, H heads of queries, K heads of keys, D channels of
a head, R ≤ D of which positions turn.
"""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

try:
    import transformers
except ModuleNotFoundError:
    # Models of plain PyTorch do without.
    transformers = None
if transformers is not None:
    try:
        from transformers import AttentionInterface
        from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS, AttentionMaskInterface
        from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
    except ImportError as error:
        raise ImportError(
            f"transformers {transformers.__version__} has no attention interface; take 4.53 or later"
        ) from error

# The note that says what is in the file, and the version of its format.
NOTE = "rank-study-heads"
VERSION = 1

# How near to 1 the mean cosine between the channels of a head and those that its modules made has to be.
_AGREES = {torch.float32: 0.9999, torch.float64: 0.9999}
_AGREES_IN_HALF_PRECISION = 0.99
# Rows that are looked at to find how queries and keys are made.
_LOOKED_AT = 256
# The recorders of the attention modules that are being captured, by the module's id.
_RECORDERS: dict[int, "_Layer"] = {}


class ExportError(ValueError):
    """Heads that cannot be exported, in one line."""


def export(
    model: nn.Module,
    tokens: Tensor | Sequence[Sequence[int]],
    path: str | os.PathLike[str],
    layers: Sequence[int] | None = None,
    step: int | None = None,
    name: str | None = None,
) -> None:
    """Runs a model on passages, tokens (P, T), one at a time and without gradients, and writes its heads to `path`.

    `layers` are all where none are named; `step` is that of a training; `name` is what rows call the model, in
    place of its own name."""
    try:
        passages = torch.as_tensor(tokens, dtype=torch.long)
    except (TypeError, ValueError) as error:
        raise ExportError("tokens are no whole numbers of shape (passages, T): passages have one length") from error
    if passages.ndim != 2:
        raise ExportError(f"tokens have shape {tuple(passages.shape)}; give (passages, T)")
    device = next(model.parameters()).device
    with capture(model, path, layers, step, name), torch.no_grad():
        named = "input_ids" in inspect.signature(_inner(model).forward).parameters
        for passage in passages:
            one = passage[None].to(device)
            model(input_ids=one) if named else model(one)


@contextlib.contextmanager
def capture(
    model: nn.Module,
    path: str | os.PathLike[str],
    layers: Sequence[int] | None = None,
    step: int | None = None,
    name: str | None = None,
) -> Iterator[None]:
    """Captures the heads of `layers` of every pass within, and writes them to `path` at its end.

    The passes are over whole passages of one length, (B, T) of `input_ids`, without tokens kept from before. Tokens that
    the model's `attention_mask` (B, T) hides, at the left or at the right, are left out, and so is what a passage has
    beyond the shortest of its pass; the file counts them in `left_out`. If the model reads images, sounds or
    embeddings, the tokens in the file are places, counted from 0 through all passages. Of a model of several parts, give the part: `capture(model.language_model, ...)`."""
    attention = _attention_modules(model)
    chosen = sorted(attention) if layers is None else list(dict.fromkeys(layers))
    for layer in chosen:
        if layer not in attention:
            raise ExportError(f"the model has layers 0 to {max(attention)}, not {layer}")
    padding = _Padding()
    captured = {layer: _Layer(layer, *attention[layer], padding) for layer in chosen}
    tokens: list[Tensor] = []
    with contextlib.ExitStack() as stack:
        stack.enter_context(_in_eval_mode(model))
        stack.enter_context(_uncompiled())
        stack.callback(_inner(model).register_forward_pre_hook(padding.see, with_kwargs=True).remove)

        def keep(_: nn.Module, args: tuple[Any, ...]) -> None:
            # Images and sounds are no tokens, and positions have no passages.
            if args and isinstance(args[0], Tensor) and not args[0].is_floating_point() and args[0].ndim == 2:
                tokens.append(padding.without(args[0], 1).cpu())

        for embeddings in _embeddings(model):
            stack.callback(embeddings.register_forward_pre_hook(keep).remove)
        for one in captured.values():
            stack.enter_context(one.hooked())
        by_interface = any(_calls_interface(module) for _, module in attention.values())
        stack.enter_context(_through_recorders(model) if by_interface else _Calls(list(captured.values())))
        yield
    about = _about(model, max(attention) + 1, step, name) | {"left_out": padding.left_out}
    _write(path, about, tokens, list(captured.values()))


class _Padding:
    """The rows of a pass that are kept: of each passage those that its attention_mask shows, from the first on, as many as
    the shortest passage has."""

    def __init__(self) -> None:
        # (B, L), or None where all are kept.
        self.rows: Tensor | None = None
        self.length = 0
        # Whether a passage has more rows than are kept.
        self.cuts = False
        self.left_out = 0

    def see(self, model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        given = inspect.signature(type(model).forward).bind_partial(model, *args, **kwargs).arguments
        mask = {**given.get("kwargs", {}), **given}.get("attention_mask")
        self.rows, self.cuts = None, False
        if not isinstance(mask, Tensor) or mask.ndim != 2 or mask.bool().all():
            return
        shown = mask.bool()
        lengths, firsts = shown.sum(1), shown.int().argmax(1)
        places = torch.arange(mask.shape[1], device=mask.device)
        if not shown.equal((places >= firsts[:, None]) & (places < (firsts + lengths)[:, None])):
            raise ExportError("attention_mask hides tokens within a passage; pad passages at one end")
        self.length, least = mask.shape[1], int(lengths.min())
        if least == 0:
            raise ExportError("attention_mask hides a whole passage; leave it out")
        self.rows = firsts[:, None] + places[:least]
        self.cuts = bool((lengths > least).any())
        self.left_out += mask.numel() - self.rows.numel()

    def without(self, tensor: Tensor, axis: int) -> Tensor:
        """The kept rows of a tensor (B, …, T, …) with T on `axis`."""
        if self.rows is None:
            return tensor
        rows = self.rows.to(tensor.device)
        shape = [1] * tensor.ndim
        shape[0], shape[axis] = rows.shape
        sizes = [*tensor.shape[:axis], rows.shape[1], *tensor.shape[axis + 1 :]]
        return tensor.gather(axis, rows.view(shape).expand(sizes))


def _attention_modules(model: nn.Module) -> dict[int, tuple[str, nn.Module]]:
    """The modules that compute attention on their own input, by layer: those that call transformers' attention
    interface or, if there are none, PyTorch's functions."""

    def is_cross(name: str, module: nn.Module) -> bool:
        of_decoder = any(part in name for part in ("cross", "encoder_attn", "EncDec"))
        return getattr(module, "is_cross_attention", False) or of_decoder

    own = [(name, module) for name, module in model.named_modules() if not is_cross(name, module)]
    found = [(n, m) for n, m in own if _calls_interface(m)] or [(n, m) for n, m in own if _calls_functions(m)]
    if not found:
        raise ExportError(
            f"{type(model).__name__} has no module that calls transformers' attention interface, "
            "scaled_dot_product_attention or softmax; "
            "write queries, keys and inputs of its layers with rank_study.write_heads"
        )
    modules: dict[int, tuple[str, nn.Module]] = {}
    for place, (name, module) in enumerate(found):
        layer = getattr(module, "layer_idx", None)
        layer = place if layer is None else int(layer)
        if layer in modules:
            raise ExportError(
                f"{modules[layer][0]} and {name} are both layer {layer}; name the part of the model with one of them"
            )
        modules[layer] = (name, module)
    return modules


def _calls_interface(module: nn.Module) -> bool:
    code = getattr(inspect.unwrap(type(module).forward), "__code__", None)
    return code is not None and "ALL_ATTENTION_FUNCTIONS" in code.co_names


def _calls_functions(module: nn.Module) -> bool:
    own = (getattr(method, "__code__", None) for method in vars(type(module)).values())
    names = {name for code in own if code is not None for name in code.co_names}
    # Routers of experts call softmax too.
    has_softmax = "softmax" in names and "att" in type(module).__name__.lower()
    return has_softmax or "scaled_dot_product_attention" in names


def _embeddings(model: nn.Module) -> list[nn.Module]:
    """What is given the tokens: one, or several with the same weights; none of models without, such as those of sound."""
    tables = [module for module in model.modules() if isinstance(module, nn.Embedding)]
    if not any(map(_is_pretrained, model.modules())):
        return list(tables[:1])
    for module in model.modules():
        with contextlib.suppress(AttributeError, NotImplementedError):
            found = module.get_input_embeddings()
            return [one for one in tables if one is found or one.weight is getattr(found, "weight", None)]
    return []


@contextlib.contextmanager
def _in_eval_mode(model: nn.Module) -> Iterator[None]:
    training = [module for module in model.modules() if module.training]
    model.eval()
    try:
        yield
    finally:
        for module in training:
            module.training = True


def _uncompiled() -> contextlib.AbstractContextManager[None]:
    """Hooks that are set after a model was compiled are not in what was compiled."""
    set_stance = getattr(torch.compiler, "set_stance", None)
    return set_stance("force_eager") if set_stance else contextlib.nullcontext()


@contextlib.contextmanager
def _through_recorders(model: nn.Module) -> Iterator[None]:
    """Has every part of the model call its attention through `_RECORDERS`, by an implementation of its own name."""
    found: list[Any] = [getattr(module, "config", None) for module in model.modules()]
    configs = {id(config): config for config in found if hasattr(config, "_attn_implementation")}
    before = [(config, config._attn_implementation or "eager") for config in configs.values()]
    try:
        for config, implementation in before:
            config._attn_implementation_internal = _recorded(implementation)
        yield
    finally:
        for config, implementation in before:
            config._attn_implementation_internal = implementation


def _recorded(implementation: str) -> str:
    """Registers an attention that is recorded and then computed as `implementation` does, with its mask."""

    def attention(
        module: nn.Module, query: Tensor, key: Tensor, value: Tensor, mask: Any, *args: Any, **kwargs: Any
    ) -> Any:
        recorder = _RECORDERS.get(id(module))
        if recorder is not None:
            recorder.record(query, key, mask, kwargs, implementation)
        return _computed_by(implementation, module)(module, query, key, value, mask, *args, **kwargs)

    name = f"rank_study_{implementation}"
    AttentionInterface.register(name, attention)
    if implementation in ALL_MASK_ATTENTION_FUNCTIONS:
        AttentionMaskInterface.register(name, ALL_MASK_ATTENTION_FUNCTIONS[implementation])
    return name


def _computed_by(implementation: str, module: nn.Module) -> Callable[..., Any]:
    """Eager attention is a function of the file that defines the module, the others are registered."""
    if implementation in ALL_ATTENTION_FUNCTIONS:
        return ALL_ATTENTION_FUNCTIONS[implementation]
    for cls in type(module).__mro__:
        eager = getattr(sys.modules.get(cls.__module__), "eager_attention_forward", None)
        if eager is not None:
            return eager
    raise ExportError(f"{type(module).__name__} has no eager attention; load the model with attn_implementation='sdpa'")


class _Calls(TorchFunctionMode):
    """Records the attention that modules compute by PyTorch's functions."""

    def __init__(self, layers: Sequence[_Layer]) -> None:
        super().__init__()
        self.layers = layers

    def __torch_function__(
        self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        returned = function(*args, **(kwargs or {}))
        for layer in self.layers:
            if layer.is_running:
                layer.calls(getattr(function, "__name__", ""), args, kwargs or {})
        return returned


@dataclasses.dataclass
class _Made:
    """What a module within an attention module was given and returned."""

    module: nn.Module
    given: Tensor
    returned: Tensor


@dataclasses.dataclass(frozen=True)
class _Rotation:
    """How positions turn pairs of channels: cos and sin of (B, T, R/2), channels i and i + R/2 ("halves") or 2i and
    2i + 1 ("neighbours") together."""

    pairs: str
    cos: Tensor
    sin: Tensor

    def undone(self, rows: Tensor) -> Tensor:
        """Rows (B, H, T, D) before they were turned."""
        length = self.cos.square() + self.sin.square()
        return _Rotation(self.pairs, self.cos / length, -self.sin / length).turned(rows)

    def turned(self, rows: Tensor) -> Tensor:
        """Rows (B, H, T, D) that were not turned, turned."""
        half = self.cos.shape[-1]
        cos, sin = self.cos[:, None], self.sin[:, None]
        turned, rest = rows[..., : 2 * half], rows[..., 2 * half :]
        halves = self.pairs == "halves"
        x, y = turned.split(half, -1) if halves else (turned[..., ::2], turned[..., 1::2])
        x, y = x * cos - y * sin, y * cos + x * sin
        turned = torch.cat((x, y), -1) if halves else torch.stack((x, y), -1).flatten(-2)
        return torch.cat((turned, rest), -1)


@dataclasses.dataclass
class _Norm:
    """How rows are normalised: over a head's D channels ("head") or those of all heads ("layer"); gains (H, D), and
    the rows before, (B, H, T, D)."""

    over: str
    centred: bool
    epsilon: float
    gains: Tensor
    before: Tensor


@dataclasses.dataclass
class _Origin:
    """How queries or keys are made: whether their projection has a bias, how they are normalised, and the mean
    cosine between what that gives and what they are."""

    bias: bool
    norm: _Norm | None
    agreement: float


class _Layer:
    """One layer's heads as they are captured."""

    def __init__(self, layer: int, name: str, module: nn.Module, padding: _Padding) -> None:
        self.layer, self.name, self.module, self.padding = layer, name, module, padding
        self.about: dict[str, Any] | None = None
        self.once: dict[str, Tensor] = {}
        self.by_passage: dict[str, list[Tensor]] = {}
        self._given: dict[str, Any] = {}
        self._made: list[_Made] = []
        # Queries and keys (…, T, D) of the last product of these.
        self._factors: tuple[Tensor, Tensor] | None = None

    @property
    def is_running(self) -> bool:
        """Whether its module was called and has not computed its attention."""
        return bool(self._given)

    @contextlib.contextmanager
    def hooked(self) -> Iterator[None]:
        hooks = [self.module.register_forward_pre_hook(self._before, with_kwargs=True)]
        hooks += [m.register_forward_hook(self._within) for m in self.module.modules() if m is not self.module]
        _RECORDERS[id(self.module)] = self
        try:
            yield
        finally:
            del _RECORDERS[id(self.module)]
            for hook in hooks:
                hook.remove()

    def _before(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Keeps what the attention module is given."""
        given = inspect.signature(type(module).forward).bind_partial(module, *args, **kwargs).arguments
        self._given = {**given.pop("kwargs", {}), **given}
        self._made, self._factors = [], None

    def _within(self, module: nn.Module, args: tuple[Any, ...], returned: Any) -> None:
        if args and isinstance(args[0], Tensor) and isinstance(returned, Tensor):
            self._made.append(_Made(module, args[0], returned))

    def calls(self, function: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Looks at a call of a PyTorch function in its module for the queries and keys of its attention."""
        given = [x for x in (*args, *kwargs.values()) if isinstance(x, Tensor)]
        if function == "scaled_dot_product_attention":
            named = dict(zip(("query", "key", "value", "attn_mask", "dropout_p", "is_causal"), args)) | kwargs
            mask = named.get("attn_mask")
            if mask is not None:
                mask = mask[(None,) * (4 - mask.ndim)]
            about = {"scaling": named.get("scale"), "is_causal": bool(named.get("is_causal", False))}
            self.record(named["query"], named["key"], mask, about, "sdpa")
        elif function in ("matmul", "__matmul__", "bmm", "baddbmm") and len(given) >= 2:
            query, key = given[-2], given[-1]
            if query.ndim >= 3 and query.shape[-2:] == key.shape[-2:][::-1]:
                self._factors = query, key.mT
        elif function == "softmax" and self._factors is not None:
            with torch.no_grad():
                batch = next(x for x in self._given.values() if isinstance(x, Tensor) and x.ndim == 3).shape[0]
                query, key, logits = (x.reshape(batch, -1, *x.shape[-2:]) for x in (*self._factors, given[0]))
                scale, added = self._added(query, key, logits)
            self.record(query, key, added, {"scaling": scale}, "eager")

    def _added(self, query: Tensor, key: Tensor, logits: Tensor) -> tuple[float, Tensor]:
        """The s of logits (B, H, T, T), and what was added to s·QKᵀ: the s that leaves least that is no mask and no
        position bias."""
        groups = query.shape[1] // key.shape[1]
        product = query.float() @ key.float().repeat_interleave(groups, 1).mT
        hidden = logits <= torch.finfo(logits.dtype).min / 2
        numbers = (getattr(self.module, name) for name in vars(self.module))
        scales = {1.0, query.shape[-1] ** -0.5} | {float(x) for x in numbers if isinstance(x, float) and x > 0}
        ways = []
        for scale in sorted(scales):
            added = (logits.float() - scale * product).masked_fill(hidden, -torch.inf)
            ways.append((_position_bias(added)[1], scale, added))
        _, scale, added = min(ways, key=lambda way: way[0])
        return scale, added

    def record(self, query: Tensor, key: Tensor, mask: Any, kwargs: dict[str, Any], implementation: str) -> None:
        """Keeps queries (B, H, T, D) and keys (B, K, T, D), turned and normalised, and how they were made."""
        with torch.no_grad():
            stream = next((v for v in self._given.values() if isinstance(v, Tensor) and v.ndim == 3), None)
            if stream is None or query.shape[2] != key.shape[2] or stream.shape[:2] != (query.shape[0], query.shape[2]):
                raise self.error(
                    f"{query.shape[2]} queries of {key.shape[2]} keys; run whole passages, without a cache"
                )
            if self.padding.rows is not None and self.padding.length != stream.shape[1]:
                raise self.error("its attention_mask does not count its rows; run inputs of one length, without padding")
            if kwargs.get("cu_seq_lens_q") is not None:
                raise self.error("its attention takes cu_seq_lens_q, which the format does not have")
            if not all(tensor.isfinite().all() for tensor in (stream, query, key)):
                raise self.error("its input, queries or keys are NaN or infinite; export an earlier step")
            agrees = _AGREES.get(query.dtype, _AGREES_IN_HALF_PRECISION)
            query, key = query.float(), key.float()
            stream, rotation, origins = self._origins(stream, query, key, agrees)
            causal, window = self._sight(mask, kwargs, implementation, query.shape[2])
            bias, slack = self._bias(mask, kwargs, query, key, agrees)
            if self.padding.cuts and not causal:
                raise self.error("passages have different lengths, and tokens see later ones; run those of each length alone")
            self._keep(query, key, stream, rotation, origins)
            norm = origins[0].norm
            scale, softcap, sinks = (kwargs.get(key) for key in ("scaling", "softcap", "s_aux"))
            about = {
                "layer": self.layer,
                "scale": float(query.shape[-1] ** -0.5 if scale is None else scale),
                "causal": causal,
                "window": window,
                "softcap": None if softcap is None else float(softcap),
                "bias": any(origin.bias for origin in origins),
                "pairs": rotation and rotation.pairs,
                "norm": norm and {"over": norm.over, "centred": norm.centred, "epsilon": norm.epsilon},
            }
            self._once("sinks", None if sinks is None else sinks.flatten())
            self._once("position_bias", bias, slack)
            if self.about not in (None, about):
                raise self.error("passages are read in different ways; run all in one way")
            self.about = about
            self._made, self._given = [], {}

    def _keep(
        self, query: Tensor, key: Tensor, stream: Tensor, rotation: _Rotation | None, origins: Sequence[_Origin]
    ) -> None:
        without = self.padding.without
        query, key, stream = without(query, 2), without(key, 2), without(stream, 1)
        if rotation is not None and self.padding.rows is not None:
            # Logits have differences of positions alone, so that every passage may have those of the first.
            cos, sin = (without(x.expand(len(stream), -1, -1), 1) for x in (rotation.cos, rotation.sin))
            own, rotation = (_Rotation(rotation.pairs, cos[:k], sin[:k]) for k in (None, 1))
            query, key = rotation.turned(own.undone(query)), rotation.turned(own.undone(key))
        kept = {"queries": query, "keys": key, "stream": stream}
        for side, origin in zip(("queries", "keys"), origins):
            if origin.norm is not None:
                kept[f"{side}_before"] = without(origin.norm.before, 2)
                self._once(f"{side}_gains", origin.norm.gains)
        for name, tensor in kept.items():
            self.by_passage.setdefault(name, []).append(_as_stored(tensor))
        for name in ("cos", "sin"):
            angles = None if rotation is None else getattr(rotation, name)
            if angles is not None and not angles.eq(angles[:1]).all():
                raise self.error("passages have different positions; run each from its first token on, without padding")
            self._once(name, None if angles is None else angles[0])

    def _once(self, name: str, tensor: Tensor | None, slack: float = 0.0) -> None:
        """Keeps what is the same for all passages."""
        if tensor is None:
            return
        stored = _as_stored(tensor)
        before = self.once.setdefault(name, stored)
        # Gains are found from the passages.
        if before.shape != stored.shape or not torch.allclose(before, stored, rtol=1e-2, atol=max(1e-2, slack)):
            raise self.error(
                f"{name} is not the same on all passages; run passages of one length, at the same positions"
            )

    def error(self, why: str) -> ExportError:
        return ExportError(f"layer {self.layer} ({self.name}): {why}")

    def _origins(
        self, stream: Tensor, query: Tensor, key: Tensor, agrees: float
    ) -> tuple[Tensor, _Rotation | None, tuple[_Origin, _Origin]]:
        """What queries and keys are projected from and how, by the way of turning that agrees best with what the modules
        returned. The module's own input comes first, then what a norm within has made of it."""
        found: list[tuple[_Rotation | None, tuple[_Origin, _Origin]]] = []
        matrices = [m.given for m in self._made if getattr(getattr(m.module, "weight", None), "ndim", 0) == 2]
        for source in (stream, *(given for given in matrices if given.ndim == 3)):
            for rotation in _rotations(self._given.get("position_embeddings"), query.shape[-1]):
                sides = [rotation.undone(rows) if rotation else rows for rows in (query, key)]
                of_queries, of_keys = (_origin(rows, source, self._made, agrees) for rows in sides)
                if of_queries and of_keys:
                    found.append((rotation, (of_queries, of_keys)))
            if found:
                break
        if not found:
            raise self.error(
                "its queries and keys are no projection of its input, normalised and then turned by position_embeddings; "
                "write queries, keys and inputs with rank_study.write_heads"
            )
        rotation, origins = max(found, key=lambda one: min(origin.agreement for origin in one[1]))
        if key.shape[1] == 1 and origins[0].norm and origins[1].norm:
            # Of one head, a head's channels and those of all heads are the same.
            origins[1].norm.over = origins[0].norm.over
        norms = [origin.norm and (origin.norm.over, origin.norm.centred, origin.norm.epsilon) for origin in origins]
        if norms[0] != norms[1]:
            raise self.error("its queries and keys are normalised in different ways, which the format does not have")
        return source, rotation, origins

    def _sight(self, mask: Any, kwargs: dict[str, Any], implementation: str, tokens: int) -> tuple[bool, int | None]:
        """Whether a row sees nothing after itself, and how many tokens from itself on, w of |i − j| < w."""
        window = kwargs.get("sliding_window")
        window = None if window is None else int(window)
        if isinstance(mask, Tensor) and mask.ndim == 2 and (self.padding.rows is not None or mask.bool().all()):
            mask = None
        if mask is None:
            causal = kwargs.get("is_causal")
            causal = getattr(self.module, "is_causal", True) if causal is None else causal
            # Eager attention hides nothing of itself.
            causal = bool(causal) and implementation != "eager"
            return causal, window if causal else None
        if not isinstance(mask, Tensor) or mask.ndim != 4:
            raise self.error("its mask is no matrix; load the model with attn_implementation='sdpa'")
        if mask.dtype == torch.bool:
            seen = mask
        else:
            seen = mask > torch.finfo(mask.dtype).min / 2
        seen = seen[..., :tokens]
        if self.padding.rows is not None:
            seen = seen.expand(len(self.padding.rows), -1, -1, -1)
            seen = self.padding.without(self.padding.without(seen, 2), 3)
            tokens = seen.shape[-1]
        seen = seen.flatten(0, 1)
        lag = torch.arange(tokens, device=seen.device)[:, None] - torch.arange(tokens, device=seen.device)
        widest = int(seen[0, -1].sum())
        for causal in (True, False):
            allowed = lag >= 0 if causal else torch.ones_like(lag, dtype=torch.bool)
            if seen.eq(allowed).all():
                return causal, window if causal and window is not None and window >= tokens else None
            if seen.eq(allowed & (lag.abs() < widest)).all():
                return causal, widest
        raise self.error(
            "what rows see is neither all, nor all before, nor a window; run passages whole, without padding"
        )

    def _bias(self, mask: Any, kwargs: dict[str, Any], query: Tensor, key: Tensor, agrees: float) -> tuple[Tensor | None, float]:
        """b (H, 2T − 1) of j − i that its logits have beside s·QKᵀ, if any, and what rounding may change of it."""
        added = kwargs.get("position_bias")
        if isinstance(mask, Tensor) and mask.is_floating_point() and mask.ndim == 4:
            hidden = mask <= torch.finfo(mask.dtype).min / 2
            mask = mask.float().masked_fill(hidden, -torch.inf)
            added = mask if added is None else added + mask
        if added is None:
            return None, 0.0
        added = added[..., : query.shape[2]].float().expand(len(query), query.shape[1], -1, -1)
        added = self.padding.without(self.padding.without(added, 2), 3)
        bias, off = _position_bias(added)
        # What rounding leaves.
        rounding = 1e-5 if agrees > _AGREES_IN_HALF_PRECISION else 2e-2
        scale = kwargs.get("scaling") or query.shape[-1] ** -0.5
        largest = scale * query.norm(dim=-1).max().item() * key.norm(dim=-1).max().item()
        slack = rounding * max(1.0, largest)
        if off > slack:
            raise self.error(
                f"something is added to its logits that is no function of j − i ({off:.3g} is left over); "
                "attention of this kind is not exported"
            )
        return bias if bias.abs().max() > slack else None, slack


def _position_bias(added: Tensor) -> tuple[Tensor, float]:
    """b (H, 2T − 1) of j − i in what is added to logits (B, H, T, T), with b(0) = 0, since constants of rows change no
    attention; and the largest that is left over. −∞ hides."""
    tokens = added.shape[-1]
    own = added.diagonal(dim1=-2, dim2=-1)[..., None]
    seen = added.isfinite() & own.isfinite()
    rest = (added - own).masked_fill(~seen, 0.0)
    at = torch.arange(tokens, device=added.device)
    places = at - at[:, None] + tokens - 1

    def summed(of: Tensor) -> Tensor:
        return of.new_zeros(of.shape[1], 2 * tokens - 1).index_add(1, places.flatten(), of.sum(0).flatten(1))

    bias = summed(rest) / summed(seen.to(rest.dtype)).clamp_min(1.0)
    off = (rest - bias[:, places]).masked_fill(~seen, 0.0).abs().max().item()
    return bias, off


def _as_stored(tensor: Tensor) -> Tensor:
    return tensor.detach().to("cpu", torch.float32, copy=True).contiguous()


def _rotations(embeddings: Any, width: int) -> Iterator[_Rotation | None]:
    """The ways in which positions may turn queries and keys of D = `width` channels by the cos and sin that their
    module is given: not at all; each angle is given once, or twice, by halves or as neighbours."""
    yield None
    if embeddings is None:
        return
    cos, sin = (embeddings.real, embeddings.imag) if isinstance(embeddings, Tensor) else embeddings
    cos, sin = (x.float().reshape(-1, *x.shape[-2:]) for x in (cos, sin))
    many = cos.shape[-1]
    ways = [slice(0, many)] if 2 * many <= width else []
    if many <= width and many % 2 == 0:
        by_halves = (slice(0, many // 2), slice(many // 2, many))
        as_neighbours = (slice(0, many, 2), slice(1, many, 2))
        ways += [
            a
            for a, b in (by_halves, as_neighbours)
            if cos[..., a].equal(cos[..., b]) and sin[..., a].equal(sin[..., b])
        ]
    for way in ways:
        for pairs in ("halves", "neighbours"):
            yield _Rotation(pairs, cos[..., way], sin[..., way])


def _origin(rows: Tensor, stream: Tensor, made: Sequence[_Made], agrees: float) -> _Origin | None:
    """How rows (B, H, T, D), not turned, are made of the stream (B, T, C): by a projection, or by one that is
    normalised; whichever agrees better."""
    ways: list[_Origin] = []
    projections = [m for m in made if m.given.shape == stream.shape and m.given.equal(stream)]
    for projection in projections:
        for returned in _by_heads(projection.returned, rows):
            ways.append(_Origin(_has_bias(projection.module), None, _agreement(rows, returned)[0]))
    for module in made:
        if module.given.shape != module.returned.shape:
            continue
        for given, returned in zip(_by_heads(module.given, rows), _by_heads(module.returned, rows)):
            agreement, places = _agreement(rows, returned)
            norm = _norm(module, given[:, places], rows, agrees) if agreement >= agrees else None
            before = norm and _origin(norm.before, stream, projections, agrees)
            if norm and before and before.norm is None:
                ways.append(_Origin(before.bias, norm, agreement))
    best = max(ways, key=lambda way: way.agreement, default=None)
    return best if best and best.agreement >= agrees else None


def _by_heads(tensor: Tensor, rows: Tensor) -> Iterator[Tensor]:
    """What a module was given or returned, as (B, M, T, D) blocks of D channels, in the orders that its shape
    allows."""
    b, _, t, d = rows.shape
    if tensor.numel() % (b * t * d):
        return
    if tensor.ndim != 4 or tensor.shape[1] == t:
        yield tensor.float().reshape(b, t, -1, d).transpose(1, 2)
    if tensor.ndim == 4 and tensor.shape[2] == t:
        yield tensor.float().reshape(b, -1, t, d)


def _agreement(rows: Tensor, blocks: Tensor) -> tuple[float, Tensor]:
    """The mean cosine of the channels of rows (B, H, T, D) with those of the most similar of blocks (B, M, T, D),
    of the head for which it is least; and the block of each head, (H)."""

    def unit(x: Tensor) -> Tensor:
        x = x.transpose(1, 2).flatten(0, 1)[:_LOOKED_AT]
        return nn.functional.normalize(x, dim=0)

    one, other = unit(rows), unit(blocks)
    # A channel of zeros has no direction, and agrees with another.
    zeros = torch.einsum("hd,md->hm", (one == 0).all(0).float(), (other == 0).all(0).float())
    cosines = (torch.einsum("nhd,nmd->hm", one, other) + zeros) / rows.shape[-1]
    best, places = cosines.max(1)
    return best.min().item(), places


def _norm(module: _Made, given: Tensor, rows: Tensor, agrees: float) -> _Norm | None:
    """How a module made rows of what it was given, (B, H, T, D) both: the gains are those that give the rows
    best."""
    heads, d = rows.shape[1], rows.shape[-1]
    over = {heads * d: "layer", d: "head"}.get(module.given.shape[-1])
    epsilon = next(
        (
            getattr(module.module, name)
            for name in ("eps", "variance_epsilon", "epsilon")
            if hasattr(module.module, name)
        ),
        0.0,
    )
    epsilon = torch.finfo(module.given.dtype).eps if epsilon is None else float(epsilon)
    if over is None:
        return None
    axes = (-1,) if over == "head" else (1, -1)
    ways: list[tuple[float, _Norm]] = []
    for centred in (False, True) if over == "head" else (False,):
        unit = given - given.mean(axes, keepdim=True) if centred else given
        unit = unit * (unit.square().mean(axes, keepdim=True) + epsilon).rsqrt()
        gains = (unit * rows).sum((0, 2)) / unit.square().sum((0, 2)).clamp_min(1e-30)
        off = (unit * gains[:, None] - rows).norm() / rows.norm().clamp_min(1e-30)
        ways.append((off.item(), _Norm(over, centred, epsilon, gains, given)))
    off, norm = min(ways, key=lambda way: way[0])
    return norm if off <= (1.0 - agrees) ** 0.5 else None


def _has_bias(module: nn.Module) -> bool:
    return getattr(module, "bias", None) is not None


def _inner(model: nn.Module) -> nn.Module:
    """The model that a compiled or distributed one holds."""
    return next(filter(_is_pretrained, model.modules()), model)


def _is_pretrained(module: nn.Module) -> bool:
    return transformers is not None and isinstance(module, transformers.PreTrainedModel)


def _about(model: nn.Module, layers: int, step: int | None, name: str | None) -> dict[str, Any]:
    inner = _inner(model)
    config = getattr(inner, "config", None)
    versions = f"torch {torch.__version__}"
    if transformers is not None:
        versions += f", transformers {transformers.__version__}"
    return {
        "version": VERSION,
        "made_with": versions,
        "model": name or getattr(config, "_name_or_path", "") or type(inner).__name__,
        "type": getattr(config, "model_type", None) or type(inner).__name__,
        "step": step,
        "layers": layers,
        "context": getattr(config, "max_position_embeddings", None),
    }


def _write(
    path: str | os.PathLike[str], about: dict[str, Any], tokens: Sequence[Tensor], layers: Sequence[_Layer]
) -> None:
    """Writes the file beside `path` and renames it, so that a file of that name is always whole."""
    for layer in layers:
        if layer.about is None:
            raise layer.error("was not run; run the model within capture, by its own forward")
    if not tokens:
        # A model of images or sounds, or one that was given embeddings: its rows have places alone.
        passages, length = torch.cat(layers[0].by_passage["stream"]).shape[:2]
        tokens = [torch.arange(passages * length).view(passages, length)]
    lengths = sorted({one.shape[-1] for one in tokens})
    if len(lengths) > 1:
        raise ExportError(f"passages of {lengths[0]} and of {lengths[-1]} tokens; run passages of one length")
    about["tokens"] = torch.cat(list(tokens)).tolist()
    tensors: dict[str, Tensor] = {}
    for layer in layers:
        stored = {name: torch.cat(parts) for name, parts in layer.by_passage.items()} | layer.once
        tensors |= {f"layers.{layer.layer}.{name}": tensor for name, tensor in stored.items()}
    about["heads"] = [layer.about for layer in layers]
    path = os.fspath(path)
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    # One note, since notes are written in no order.
    save_file(tensors, path + ".part", {NOTE: json.dumps(about)})
    os.replace(path + ".part", path)

"""Twelve training steps of a tiny two-layer model, in PyTorch, for each variant that has its own step.

Prints replay.csv: the losses, and the gradient norms before clipping, that tests/training/replay.rs holds the
trainer to. The model starts from the weights that rank-study itself draws, so both sides begin at the same point:

    rank-study train replay.toml --text replay.txt --set steps=1 --set learning_rate=1e-30 --out start
    rank-study train replay.toml --text replay.txt --set steps=1 --set learning_rate=1e-30 --out gam \
        --set heads=1 --set arm=gam --set memory_slots=24
    rank-study train replay.toml --text replay.txt --set steps=1 --set learning_rate=1e-30 --out routed \
        --set arm=mhsa --set layers=3 --set recursions=3 --set router=expert
    rank-study train replay.toml --text folder --set steps=1 --set learning_rate=1e-30 --out two
    python replay.py {start,gam,routed,two}/checkpoint/training.safetensors

with replay.toml and replay.txt as in tests/training/replay.rs, and folder as its function `upstream` writes it. Needs torch
2.9 or later and safetensors. Computed in float64. torch.optim.Muon orthogonalises in bfloat16: `Muon` here does the
same in float64, and `check_muon` compares the two.
"""

import math
import sys

import torch
from safetensors.torch import load_file

from decoder import Arm, forward, objective

HEADS, CONTEXT = 2, 16
STEPS, WARMUP, PEAK, LAST, DECAY = 12, 3, 1e-2, 0.1, 0.1
TEXT = "To be, or not to be, that is the q"
GLOBAL = [[None, None], [None, None]]
ROUTED = {"recursions": 3, "router_scale": 0.5, "router_loss": 0.2}
# As in tests/training/replay.rs; the threshold is of the heads' largest logit.
ARMS = {
    "ls": (Arm([[None, 4], [None, 4]]), None, False),
    "qk-clip": (Arm(GLOBAL), 0.2, False),
    "sigma-reparam": (Arm(GLOBAL, sigma_reparam=True), None, False),
    "z-loss": (Arm(GLOBAL, z_loss=0.1), None, False),
    "ternary": (Arm(GLOBAL, ternary=True), None, False),
    "loss-exponent": (Arm(GLOBAL, loss_exponent=0.5), None, False),
    "gam": (Arm([[None], [None]], gated_memory=True), None, False),
    "expert": (Arm([[None, None]] * 3, **ROUTED, router="expert"), None, False),
    "expert with shared keys": (Arm([[None, None]] * 3, **ROUTED, router="expert", shared_keys=True), None, False),
    "token": (Arm([[None, None]] * 3, **ROUTED, router="token"), None, False),
    "muon": (Arm(GLOBAL), None, True),
    "muon with qk-clip": (Arm(GLOBAL), 0.2, True),
    "ternary with trilm": (Arm(GLOBAL, ternary=True), None, False),
    "re-warmed": (Arm([[None, 4], [None, 4]]), None, False),
}
# Of "re-warmed": the first steps read another text, at a peak rate of their own, with one step of warm-up.
UPSTREAM, UPSTREAM_PEAK = 5, 2e-2
UPSTREAM_TEXT = "Whether 'tis nobler in the mind to"

stored, without_attention, routed, of_two_texts = map(load_file, sys.argv[1:])


def window(text, symbols):
    """The training half has context + 1 characters, so every window of the batch of two is the same one."""
    tokens = torch.tensor([symbols.index(c) for c in text[: CONTEXT + 1]])
    return tokens[:-1].repeat(2, 1), tokens[1:].repeat(2, 1)


def cosine(done, steps):
    return LAST + (1 - LAST) * 0.5 * (1 + math.cos(math.pi * done / steps))


def plan(name):
    """The inputs, targets, learning rate and weight decay of each step."""
    if name == "ternary with trilm":
        for step in range(1, STEPS + 1):
            rate = step / WARMUP if step <= WARMUP else (STEPS - step) / (STEPS - WARMUP)
            rate *= 2 / 3 if step > STEPS / 2 else 1
            yield *window(TEXT, sorted(set(TEXT))), PEAK * rate, DECAY if step <= STEPS * 2 / 3 else 0.0
        return
    if name != "re-warmed":
        for step in range(1, STEPS + 1):
            rate = step / WARMUP if step <= WARMUP else cosine(step - WARMUP, STEPS - WARMUP)
            yield *window(TEXT, sorted(set(TEXT))), PEAK * rate, DECAY
        return
    symbols = sorted(set(TEXT + UPSTREAM_TEXT))
    for step in range(1, UPSTREAM + 1):
        yield *window(UPSTREAM_TEXT, symbols), UPSTREAM_PEAK * cosine(step - 1, UPSTREAM - 1), DECAY
    first, left = LAST * UPSTREAM_PEAK, STEPS - UPSTREAM
    for step in range(1, left + 1):
        warm = first + (PEAK - first) * step / WARMUP
        rate = warm if step <= WARMUP else PEAK * cosine(step - WARMUP, left - WARMUP)
        yield *window(TEXT, symbols), rate, DECAY


class Muon(torch.optim.Optimizer):
    """torch.optim.Muon with adjust_lr_fn="match_rms_adamw", in the precision of the weights."""

    def __init__(self, params, lr, weight_decay):
        super().__init__(params, {"lr": lr, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for w in group["params"]:
                momentum = self.state[w].setdefault("momentum", torch.zeros_like(w))
                momentum.lerp_(w.grad, 0.05)
                x = w.grad.lerp(momentum, 0.95)
                x = x.T if len(x) > len(x.T) else x
                x = x / x.norm().clamp(min=1e-7)
                for _ in range(5):
                    gram = x @ x.T
                    x = 3.4445 * x + (-4.7750 * gram + 2.0315 * gram @ gram) @ x
                x = x if x.shape == w.shape else x.T
                w.mul_(1 - group["lr"] * group["weight_decay"])
                w.sub_(x, alpha=0.2 * group["lr"] * max(w.shape) ** 0.5)


def check_muon():
    """Compares Muon with PyTorch's own over ten steps along fixed gradients, in units of a step's size."""
    generator = torch.Generator().manual_seed(1)
    for shape in [(24, 24), (16, 40), (40, 16)]:
        start = torch.randn(shape, generator=generator)
        ours, theirs = (torch.nn.Parameter(start.clone()) for _ in range(2))
        optimisers = [
            Muon([ours], 0.01, 0.1),
            torch.optim.Muon([theirs], lr=0.01, weight_decay=0.1, adjust_lr_fn="match_rms_adamw"),
        ]
        for _ in range(10):
            gradient = torch.randn(shape, generator=generator)
            for w, optimiser in zip([ours, theirs], optimisers):
                w.grad = gradient.clone()
                optimiser.step()
        off = (ours - theirs).norm() / (ours - start).norm()
        assert off < 0.01, (shape, off)
        print(f"Muon differs from torch.optim.Muon by {off:.1e} of ten steps, {shape}", file=sys.stderr)


def iterate(weights, vectors):
    """One step of power iteration for every matrix."""
    for name, v in vectors.items():
        w = weights[name].detach()
        v = w.T @ (w @ v)
        vectors[name] = v / v.norm()


def clip(weights, largest, threshold):
    """QK-Clip: heads above the threshold have their queries' and keys' weights scaled."""
    factors = (threshold / largest.clamp(min=threshold)).sqrt()
    for layer, heads in enumerate(factors):
        for part in ("query", "key"):
            w = weights[f"layers.{layer}.attention.{part}"]
            with torch.no_grad():
                w.view(len(w), HEADS, -1).mul_(heads[:, None])


def start_of(name, arm):
    if name == "re-warmed":
        return of_two_texts
    return without_attention if arm.gated_memory else routed if arm.router else stored


def steps(name, arm, threshold, with_muon):
    start = start_of(name, arm)
    weights = {name: w.double().clone().requires_grad_() for name, w in start.items() if "moment" not in name}
    vectors = {}
    if arm.sigma_reparam:
        matrices = [name for name, w in weights.items() if w.dim() == 2 and "embedding" not in name]
        for name in matrices:
            weights[f"{name}.gain"] = torch.ones(1, dtype=torch.float64, requires_grad=True)
            vectors[name] = torch.ones(weights[name].shape[1], dtype=torch.float64)
        for _ in range(100):
            iterate(weights, vectors)
    matrices = {n for n, w in weights.items() if with_muon and w.dim() > 1 and n.startswith("layers.")}
    groups = [
        {"params": [w for n, w in weights.items() if w.dim() > 1 and n not in matrices], "weight_decay": 0.1},
        {"params": [w for w in weights.values() if w.dim() == 1], "weight_decay": 0.0},
    ]
    optimisers = [torch.optim.AdamW(groups, lr=PEAK, betas=(0.9, 0.99))]
    if with_muon:
        optimisers.append(Muon([weights[name] for name in sorted(matrices)], PEAK, 0.1))
    for inputs, targets, rate, decay in plan(name):
        for group in (group for optimiser in optimisers for group in optimiser.param_groups):
            group["lr"] = rate
            group["weight_decay"] = decay if group["params"][0].dim() > 1 else 0.0
        scores, largest, router_loss = forward(arm, weights, vectors, inputs)
        value, loss = objective(arm, scores, targets, router_loss)
        for optimiser in optimisers:
            optimiser.zero_grad()
        value.backward()
        length = torch.nn.utils.clip_grad_norm_(list(weights.values()), 1.0)
        for optimiser in optimisers:
            optimiser.step()
        if threshold:
            clip(weights, largest, threshold)
        iterate(weights, vectors)
        yield loss.item(), length.item()


check_muon()
print("variant,step,loss_nats,grad_norm")
for name, (arm, threshold, with_muon) in ARMS.items():
    for step, (loss, length) in enumerate(steps(name, arm, threshold, with_muon), 1):
        print(f"{name},{step},{loss:.6f},{length:.6f}")

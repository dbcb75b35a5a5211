"""Twelve training steps of a tiny two-layer model, in PyTorch, for each arm that has its own step.

The losses and gradient norms that tests/training/replay.rs holds the trainer to. The model starts from the
weights that rank-study itself draws, so both sides begin at the same point:

    rank-study train replay.toml --text replay.txt --set steps=1 --set learning_rate=1e-30 --out start
    python replay.py start/checkpoint/training.safetensors

with replay.toml and replay.txt as in tests/training/replay.rs. Needs torch and safetensors. Computed in float64.
"""

import math
import sys

import torch
from safetensors.torch import load_file

from decoder import Arm, forward, objective

HEADS, CONTEXT = 2, 16
STEPS, WARMUP, PEAK, LAST = 12, 3, 1e-2, 0.1
TEXT = "To be, or not to be, that is the q"
GLOBAL = [[None, None], [None, None]]
# As in tests/training/replay.rs; the threshold is of the heads' largest logit.
ARMS = {
    "ls": (Arm([[None, 4], [None, 4]]), None),
    "qk-clip": (Arm(GLOBAL), 0.2),
    "sigma-reparam": (Arm(GLOBAL, sigma_reparam=True), None),
    "z-loss": (Arm(GLOBAL, z_loss=0.1), None),
}

stored = load_file(sys.argv[1])
symbols = sorted(set(TEXT))
# The training half has context + 1 characters, so every window of the batch of two is the same one.
tokens = torch.tensor([symbols.index(c) for c in TEXT[: CONTEXT + 1]])
inputs, targets = tokens[:-1].repeat(2, 1), tokens[1:].repeat(2, 1)


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


def steps(arm, threshold):
    weights = {name: w.double().clone().requires_grad_() for name, w in stored.items() if "moment" not in name}
    vectors = {}
    if arm.sigma_reparam:
        matrices = [name for name, w in weights.items() if w.dim() == 2 and "embedding" not in name]
        for name in matrices:
            weights[f"{name}.gain"] = torch.ones(1, dtype=torch.float64, requires_grad=True)
            vectors[name] = torch.ones(weights[name].shape[1], dtype=torch.float64)
        for _ in range(100):
            iterate(weights, vectors)
    groups = [
        {"params": [w for w in weights.values() if w.dim() > 1], "weight_decay": 0.1},
        {"params": [w for w in weights.values() if w.dim() == 1], "weight_decay": 0.0},
    ]
    optimiser = torch.optim.AdamW(groups, lr=PEAK, betas=(0.9, 0.99))
    for step in range(1, STEPS + 1):
        done = (step - WARMUP) / (STEPS - WARMUP)
        cosine = LAST + (1 - LAST) * 0.5 * (1 + math.cos(math.pi * done))
        for group in optimiser.param_groups:
            group["lr"] = PEAK * (step / WARMUP if step <= WARMUP else cosine)
        scores, largest = forward(arm, weights, vectors, inputs)
        value, loss = objective(arm, scores, targets)
        optimiser.zero_grad()
        value.backward()
        length = torch.nn.utils.clip_grad_norm_(list(weights.values()), 1.0)
        optimiser.step()
        if threshold:
            clip(weights, largest, threshold)
        iterate(weights, vectors)
        yield loss.item(), length.item()


for name, (arm, threshold) in ARMS.items():
    print(name)
    for loss, length in steps(arm, threshold):
        print(f"    ({loss:.6f}, {length:.6f}),")

"""Twelve training steps of a tiny two-layer model with one global and one local head a layer, in PyTorch.

The losses and gradient norms that tests/replay.rs holds the trainer to. The model starts from the
weights that rank-study itself draws, so both sides begin at the same point:

    rank-study train replay.toml --text replay.txt --set steps=1 --set learning_rate=1e-30 --out start
    python replay.py start/checkpoint/training.safetensors

with replay.toml and replay.txt as in tests/replay.rs. Needs torch and safetensors. Computed in float64.
"""

import math
import sys

import torch
import torch.nn.functional as F
from safetensors.torch import load_file

LAYERS, HEADS, WIDTH, CONTEXT, WINDOW = 2, 2, 32, 16, 4
STEPS, WARMUP, PEAK, LAST = 12, 3, 1e-2, 0.1
TEXT = "To be, or not to be, that is the q"

stored = load_file(sys.argv[1])
weights = {name: w.double().requires_grad_() for name, w in stored.items() if "moment" not in name}

symbols = sorted(set(TEXT))
# The training half has context + 1 characters, so every window of the batch of two is the same one.
tokens = torch.tensor([symbols.index(c) for c in TEXT[: CONTEXT + 1]])
inputs, targets = tokens[:-1].repeat(2, 1), tokens[1:].repeat(2, 1)

place = torch.arange(CONTEXT)
causal = place[None, :] <= place[:, None]
visible = torch.stack([causal, causal & (place[None, :] > place[:, None] - WINDOW)])


def norm(x, gain):
    return F.layer_norm(x, (WIDTH,), gain, None, 1e-5)


def heads(x):
    return x.view(2, CONTEXT, HEADS, WIDTH // HEADS).transpose(1, 2)


def loss():
    x = weights["token_embedding"][inputs] + weights["position_embedding"]
    for layer in range(LAYERS):
        w = lambda part: weights[f"layers.{layer}.{part}"]
        y = norm(x, w("attention.norm"))
        q, k, v = (heads(y @ w(f"attention.{part}")) for part in ("query", "key", "value"))
        logits = (q @ k.transpose(-1, -2)) / math.sqrt(WIDTH // HEADS)
        p = logits.masked_fill(~visible, -math.inf).softmax(-1)
        x = x + (p @ v).transpose(1, 2).reshape(2, CONTEXT, WIDTH) @ w("attention.output")
        y = norm(x, w("mlp.norm"))
        x = x + F.gelu(y @ w("mlp.input"), approximate="tanh") @ w("mlp.output")
    scores = norm(x, weights["norm"]) @ weights["token_embedding"].T
    return F.cross_entropy(scores.view(-1, len(symbols)), targets.reshape(-1))


decayed = [w for w in weights.values() if w.dim() > 1]
gains = [w for w in weights.values() if w.dim() == 1]
groups = [{"params": decayed, "weight_decay": 0.1}, {"params": gains, "weight_decay": 0.0}]
optimiser = torch.optim.AdamW(groups, lr=PEAK, betas=(0.9, 0.99))
for step in range(1, STEPS + 1):
    done = (step - WARMUP) / (STEPS - WARMUP)
    cosine = LAST + (1 - LAST) * 0.5 * (1 + math.cos(math.pi * done))
    for group in optimiser.param_groups:
        group["lr"] = PEAK * (step / WARMUP if step <= WARMUP else cosine)
    value = loss()
    optimiser.zero_grad()
    value.backward()
    length = torch.nn.utils.clip_grad_norm_(list(weights.values()), 1.0)
    optimiser.step()
    print(f"    ({value.item():.6f}, {length.item():.6f}),")

"""The language model in PyTorch, every arm of it, over weights as rank-study names and shapes them."""

import dataclasses
import math

import torch
import torch.nn.functional as F


@dataclasses.dataclass
class Arm:
    """What is computed: each layer's windows (None sees all), positions, stabilisers."""

    windows: list
    positions: str = "learned"
    qk_norm: bool = False
    sigma_reparam: bool = False
    softcap: float | None = None
    z_loss: float = 0.0
    loss_exponent: float = 1.0
    ternary: bool = False
    gated_memory: bool = False
    recursions: int = 1
    router: str | None = None
    router_scale: float = 1.0
    router_loss: float = 0.0
    shared_keys: bool = False
    alibi: bool = False


def norm(x, gain):
    return F.layer_norm(x, (len(gain),), gain, None, 1e-5)


def visible(windows, time):
    """Which pairs each head of a layer sees, (heads, time, time)."""
    place = torch.arange(time)
    lag = place[:, None] - place[None, :]
    return torch.stack([(lag >= 0) & (lag < (window or time)) for window in windows])


def turned(x):
    """Rotary positions on (batch, heads, time, d): neighbouring channels are a complex number."""
    time, d = x.shape[-2:]
    rates = 10000.0 ** (-torch.arange(0, d, 2, dtype=x.dtype) / d)
    angles = torch.arange(time, dtype=x.dtype)[:, None] * rates
    pairs = torch.view_as_complex(x.unflatten(-1, (d // 2, 2)).contiguous())
    return torch.view_as_real(pairs * torch.polar(torch.ones_like(angles), angles)).flatten(-2)


def gated_memory(weights, at, y):
    """What a layer of Gated Associative Memory adds to the residual stream, and its largest score, (1)."""
    channels = y.shape[-1]
    taps, memory = weights[at + "convolution"], weights[at + "memory"]
    past = F.pad(y.transpose(1, 2), (len(taps) - 1, 0))
    local = F.conv1d(past, taps.T[:, None], groups=channels).transpose(1, 2)
    scores = y @ memory.T
    gates = torch.sigmoid(y @ weights[at + "gate"])
    recalled = scores.softmax(-1) @ memory
    return gates[..., :channels] * local + gates[..., channels:] * recalled, scores.amax().view(1)


def forward(arm, weights, vectors, tokens):
    """The output logits (batch, time, symbols), each head's largest attention logit, (layers, heads), and the loss of a router."""

    def project(x, name):
        w = weights[name]
        if arm.sigma_reparam:
            w = weights[f"{name}.gain"] / (w @ vectors[name]).norm() * w
        if arm.ternary:
            scale = w.abs().mean()
            # The gradient goes straight through.
            w = w + ((w / scale).clamp(-1, 1).round() * scale - w).detach()
        return x @ w

    def mlp(x, at):
        y = norm(x, weights[at + "mlp.norm"])
        return x + project(F.gelu(project(y, at + "mlp.input"), approximate="tanh"), at + "mlp.output")

    batch, time = tokens.shape
    x = weights["token_embedding"][tokens]
    if arm.positions == "learned":
        x = x + weights["position_embedding"][:time]
    largest = []

    def block(x, layer, active=None, kept=None):
        """The stream after a layer. Only `active` tokens, (batch, time), are seen and count for the largest logit; with `kept`, keys and values are
        those that it holds of the first call."""
        at, windows = f"layers.{layer}.", arm.windows[layer]
        y = norm(x, weights[at + "attention.norm"])
        if arm.gated_memory:
            mixed, most = gated_memory(weights, at + "attention.", y)
            largest.append(most)
            return mlp(x + mixed, at)
        by_head = lambda part: project(y, at + part).view(batch, time, len(windows), -1)
        q, k, v = (by_head(f"attention.{part}") for part in ("query", "key", "value"))
        if arm.qk_norm:
            q = norm(q, weights[at + "attention.query_norm"])
            k = norm(k, weights[at + "attention.key_norm"])
        q, k, v = (x.transpose(1, 2) for x in (q, k, v))
        if arm.positions == "rope":
            q, k = turned(q), turned(k)
        if kept is not None:
            k, v = kept.setdefault("keys", k), kept.setdefault("values", v)
        z = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
        seen = visible(windows, time)
        if active is not None:
            asks = active[:, None, :, None]
            # A token sees itself, so that the rows of the others, which are not used, stay finite.
            seen = seen & (active[:, None, None, :] if kept is None else True) | torch.eye(time, dtype=bool)
            largest.append(z.masked_fill(~(seen & asks), -math.inf).amax((0, 2, 3)))
        else:
            largest.append(z.masked_fill(~seen, -math.inf).amax((0, 2, 3)))
        if arm.softcap:
            z = arm.softcap * torch.tanh(z / arm.softcap)
        if arm.alibi:
            slopes = 2.0 ** (-8 * torch.arange(1, len(windows) + 1) / len(windows))
            place = torch.arange(time)
            z = z - slopes[:, None, None] * (place[:, None] - place[None, :])
        p = z.masked_fill(~seen, -math.inf).softmax(-1)
        return mlp(x + project((p @ v).transpose(1, 2).reshape(x.shape), at + "attention.output"), at)

    router_loss = 0.0
    if arm.recursions == 1:
        for layer in range(len(arm.windows)):
            x = block(x, layer)
    else:
        middle = range(1, len(arm.windows) - 1)
        kept = {layer: {} if arm.shared_keys else None for layer in middle}

        def recursion(x, active):
            for layer in middle:
                x = block(x, layer, active, kept[layer])
            return x

        x, router_loss = recurse(arm, weights, block(x, 0), recursion)
        x = block(x, len(arm.windows) - 1)
    scores = norm(x, weights["norm"]) @ weights["token_embedding"].T
    return scores, torch.stack(largest).detach(), router_loss


def recurse(arm, weights, x, recursion):
    """The stream after all recursions, and the router's loss. All tokens are computed; those that are not active keep their values."""
    batch, time, _ = x.shape
    everyone = torch.ones(batch, time, dtype=bool)
    count = arm.recursions
    if arm.router is None:
        for _ in range(count):
            x = recursion(x, everyone)
        return x, 0.0
    if arm.router == "expert":
        active, loss = everyone, 0.0
        for r in range(count):
            z = x @ weights["router"][:, r]
            most = max(1, time * (count - r) // count)
            order = z.masked_fill(~active, -math.inf).topk(most, dim=1).indices
            chosen = torch.zeros_like(active).scatter(1, order, True)
            pairs = F.binary_cross_entropy_with_logits(z[active], chosen[active].to(z.dtype))
            loss = loss + arm.router_loss * pairs
            change = arm.router_scale * z.sigmoid()[..., None] * recursion(x, chosen)
            x = x + torch.where(chosen[..., None], change, 0.0)
            active = chosen
        return x, loss
    p = (x @ weights["router"]).softmax(-1)
    depth = p.argmax(-1)
    u = x
    for r in range(count):
        active = depth >= r
        if active.any():
            u = torch.where(active[..., None], recursion(u, active), u)
    x = x + arm.router_scale * p.gather(-1, depth[..., None]) * u
    shares = F.one_hot(depth, count).to(p.dtype).mean(1)
    return x, arm.router_loss * (count * (shares * p.mean(1)).sum(-1)).mean()


def objective(arm, scores, targets, router_loss):
    """What is minimised, and the cross-entropy alone."""
    losses = F.cross_entropy(scores.flatten(0, 1), targets.flatten(), reduction="none")
    minimised = (losses**arm.loss_exponent).mean() + arm.z_loss * scores.logsumexp(-1).square().mean()
    minimised = minimised + router_loss
    return minimised, losses.mean().detach()

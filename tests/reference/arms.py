"""The gradients of every weight of every arm, in PyTorch: what src/lm/model/tests holds ours to.

    python arms.py

writes arms.safetensors beside this script: for each case its loss and, as CASE/WEIGHT, the gradients. For the cases of
CURVED it writes hessians.safetensors: the Hessian's product with a direction, its trace and its largest eigenvalue.
Weights, singular vectors and tokens follow from their names by formulas that the test repeats.
Needs torch and safetensors. Computed in float64.
"""

import math
import pathlib

import torch
from safetensors.torch import save_file

from decoder import Arm, forward, objective

SYMBOLS, WIDTH, HEADS, CONTEXT, BATCH, SLOTS = 11, 8, 2, 9, 2, 5
GLOBAL, LOCAL = [None, None], [3, 3]
CASES = {
    "mhsa": Arm([GLOBAL, GLOBAL]),
    "ls": Arm([[None, 3], [None, 3]]),
    "local-only": Arm([LOCAL, LOCAL]),
    "layer-alternating": Arm([LOCAL, GLOBAL]),
    "qk-norm": Arm([GLOBAL, GLOBAL], qk_norm=True),
    "sigma-reparam": Arm([GLOBAL, GLOBAL], sigma_reparam=True),
    "softcap": Arm([GLOBAL, GLOBAL], softcap=0.5),
    "z-loss": Arm([GLOBAL, GLOBAL], z_loss=0.1),
    "ternary": Arm([GLOBAL, GLOBAL], ternary=True),
    "loss-exponent": Arm([GLOBAL, GLOBAL], loss_exponent=0.5),
    "rope": Arm([GLOBAL, GLOBAL], positions="rope"),
    "none": Arm([GLOBAL, GLOBAL], positions="none"),
    "gam": Arm([[None], [None]], gated_memory=True),
    "recursions": Arm([GLOBAL] * 3, recursions=3),
    "recursions-ls": Arm([[None, 3]] * 4, recursions=2, shared_keys=True),
    "expert": Arm([GLOBAL] * 3, recursions=3, router="expert", router_scale=0.7, router_loss=0.4),
    "expert-shared": Arm(
        [GLOBAL] * 4, "rope", qk_norm=True, recursions=3, router="expert", router_scale=0.7, router_loss=0.4, shared_keys=True
    ),
    "token": Arm([GLOBAL] * 3, "rope", recursions=3, router="token", router_scale=0.7, router_loss=0.4),
    "token-shared": Arm([GLOBAL] * 3, recursions=3, router="token", router_loss=0.1, shared_keys=True),
    "alibi": Arm([GLOBAL, GLOBAL], positions="none", alibi=True),
    "all": Arm([[None, 3], [None, 3]], "rope", qk_norm=True, sigma_reparam=True, softcap=0.5, z_loss=0.1),
}
CURVED = ["mhsa", "ls", "qk-norm", "rope", "alibi"]


def wave(name, *shape):
    """sin(b + 0.37 i^2) of entry i, b the sum of the name's bytes."""
    place = torch.arange(math.prod(shape), dtype=torch.float64)
    return torch.sin(sum(name.encode()) + 0.37 * place**2).view(shape)


def weights_of(arm):
    matrix = lambda name, *shape: (name, (0.5 * wave(name, *shape)).float())
    gain = lambda name, size: (name, (1 + 0.3 * wave(name, size)).float())
    weights = dict([matrix("token_embedding", SYMBOLS, WIDTH), gain("norm", WIDTH)])
    if arm.positions == "learned":
        weights |= dict([matrix("position_embedding", CONTEXT, WIDTH)])
    if arm.router:
        weights |= dict([matrix("router", WIDTH, arm.recursions)])
    vectors = {}
    for layer in range(len(arm.windows)):
        at = f"layers.{layer}."
        weights |= dict(gain(at + part, WIDTH) for part in ("attention.norm", "mlp.norm"))
        if arm.qk_norm:
            parts = ("attention.query_norm", "attention.key_norm")
            weights |= dict(gain(at + part, WIDTH // HEADS) for part in parts)
        square = [f"attention.{part}" for part in ("query", "key", "value", "output")]
        sizes = {part: (WIDTH, WIDTH) for part in square}
        if arm.gated_memory:
            parts = {"convolution": (3, WIDTH), "memory": (SLOTS, WIDTH), "gate": (WIDTH, 2 * WIDTH)}
            sizes = {f"attention.{part}": shape for part, shape in parts.items()}
        sizes |= {"mlp.input": (WIDTH, 4 * WIDTH), "mlp.output": (4 * WIDTH, WIDTH)}
        for part, shape in sizes.items():
            weights |= dict([matrix(at + part, *shape)])
            if arm.sigma_reparam:
                weights |= dict([gain(f"{at}{part}.gain", 1)])
                vectors[at + part] = wave(f"{at}{part}.singular_vector", shape[1]).float().double()
    return {name: w.double().requires_grad_() for name, w in weights.items()}, vectors


def hessian_of(value, weights):
    """Hv by weight, with v of wave(WEIGHT.direction), the trace of H and its largest eigenvalue."""
    all_weights = list(weights.values())
    slopes = torch.autograd.grad(value, all_weights, create_graph=True)
    flat = torch.cat([slope.flatten() for slope in slopes])

    def row(of):
        return torch.autograd.grad(of, all_weights, retain_graph=True)

    v = torch.cat([wave(f"{name}.direction", w.numel()) for name, w in weights.items()])
    found = dict(zip(weights, row(flat @ v)))
    hessian = torch.stack([torch.cat([part.flatten() for part in row(one)]) for one in flat])
    eigenvalues = torch.linalg.eigvalsh((hessian + hessian.T) / 2)
    return found | {"trace": eigenvalues.sum().view(1), "eigenvalue": eigenvalues[-1].view(1)}


place = torch.arange(BATCH * (CONTEXT + 1))
text = ((place * place + 3) % SYMBOLS).view(BATCH, CONTEXT + 1)
stored, hessians = {}, {}
for case, arm in CASES.items():
    weights, vectors = weights_of(arm)
    scores, _, router_loss = forward(arm, weights, vectors, text[:, :-1])
    value, loss = objective(arm, scores, text[:, 1:], router_loss)
    if case in CURVED:
        for name, found in hessian_of(value, weights).items():
            hessians[f"{case}/{name}"] = found.float().contiguous()
    value.backward()
    stored[f"{case}/loss"] = loss.float().view(1)
    for name, w in weights.items():
        stored[f"{case}/{name}"] = w.grad.float().contiguous()
for name, tensors in [("arms", stored), ("hessians", hessians)]:
    save_file(tensors, pathlib.Path(__file__).with_name(f"{name}.safetensors"))

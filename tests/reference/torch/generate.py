"""Files of torch.save, which tests/solver/torch_files.rs reads. Made with torch 2.x:

    python tests/reference/torch/generate.py

Matrix m of 6 tokens has A_ij = w_ij / Σ_k≤i w_ik for j ≤ i, with w_ij = 1 + (3i + 5j + m) mod 7.
"""

import pathlib

import torch

HERE = pathlib.Path(__file__).resolve().parent


def attention(matrix: int) -> torch.Tensor:
    i, j = torch.meshgrid(torch.arange(6), torch.arange(6), indexing="ij")
    weights = (1.0 + (3 * i + 5 * j + matrix) % 7).double() * (j <= i)
    return weights / weights.sum(1, keepdim=True)


stack = torch.stack([attention(matrix) for matrix in range(4)])
# A part of a larger storage, with an offset.
torch.save(stack[2], HERE / "view.pt")
# As output_attentions of transformers: a tuple of (batch, heads, n, n).
torch.save((stack[:2].half()[None], stack[2:].half()[None]), HERE / "attentions.pt")
state = {
    "step": 500,
    "run": "mhsa",
    "transposed": stack[1].T.contiguous().T.float(),
    "parameter": torch.nn.Parameter(stack[3].float()),
    "layers": {"0": [stack[0].bfloat16()]},
    "bias": torch.zeros(6),
    "ids": torch.arange(36).reshape(6, 6),
}
torch.save(state, HERE / "state.pth")
torch.save({"step": 500, "losses": [1.5, 1.4]}, HERE / "none.pt")
torch.save(stack[2], HERE / "old.pt", _use_new_zipfile_serialization=False)

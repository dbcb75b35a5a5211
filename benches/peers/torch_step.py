"""One training step of the language model in PyTorch: forward, backward, clip, AdamW.

The model of `rank-study bench step`, plain: fused attention (`scaled_dot_product_attention`), causal or,
for a local head, through a mask, or FlexAttention compiled for the windows; float32, or bfloat16 by autocast;
PyTorch's fused AdamW; on a CPU or a GPU.
"""

import argparse
import json
import platform
import resource

import torch
import torch.nn.functional as F

import peer

ARMS = ("mhsa", "ls")
DTYPES = ("f32", "bf16")


def masked(mask):
    """Fused attention, causal or through a mask."""
    return lambda q, k, v: F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=mask is None)


def windowed(windows, options):
    """FlexAttention, compiled, over the blocks that the windows touch."""
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    windows = torch.tensor(windows, device=options.device)
    seen = lambda _batch, head, row, column: (column <= row) & (row - column < windows[head])
    sizes = (options.heads, options.context, options.context)
    blocks = create_block_mask(seen, None, *sizes, device=options.device)
    attend = torch.compile(flex_attention)
    return lambda q, k, v: attend(q, k, v, block_mask=blocks)


class Block(torch.nn.Module):
    def __init__(self, width, heads, attend):
        super().__init__()
        self.heads, self.attend = heads, attend
        self.norms = torch.nn.ModuleList(torch.nn.LayerNorm(width, bias=False) for _ in range(2))
        linear = lambda inputs, outputs: torch.nn.Linear(inputs, outputs, bias=False)
        self.queries_keys_values, self.attention_output = linear(width, 3 * width), linear(width, width)
        self.mlp_input, self.mlp_output = linear(width, 4 * width), linear(4 * width, width)

    def forward(self, x):
        batch, time, width = x.shape
        parts = self.queries_keys_values(self.norms[0](x)).split(width, dim=-1)
        q, k, v = (part.view(batch, time, self.heads, -1).transpose(1, 2) for part in parts)
        y = self.attend(q, k, v)
        x = x + self.attention_output(y.transpose(1, 2).reshape(x.shape))
        return x + self.mlp_output(F.gelu(self.mlp_input(self.norms[1](x)), approximate="tanh"))


class Model(torch.nn.Module):
    def __init__(self, options):
        super().__init__()
        # One global head, the others local.
        windowed_heads = options.heads - 1 if options.arm == "ls" else 0
        windows = [options.context] * (options.heads - windowed_heads) + [options.window] * windowed_heads
        mask = None
        if windowed_heads and options.attention == "sdpa":
            place = torch.arange(options.context, device=options.device)
            lag = place[:, None] - place[None, :]
            mask = torch.stack([(lag >= 0) & (lag < window) for window in windows])[None]
        attend = windowed(windows, options) if options.attention == "flex" else masked(mask)
        self.tokens = torch.nn.Embedding(options.vocab, options.d_model)
        self.positions = torch.nn.Embedding(options.context, options.d_model)
        self.blocks = torch.nn.ModuleList(
            Block(options.d_model, options.heads, attend) for _ in range(options.layers)
        )
        self.norm = torch.nn.LayerNorm(options.d_model, bias=False)
        for parameter in self.parameters():
            if parameter.dim() > 1:
                torch.nn.init.normal_(parameter, std=0.02)

    def forward(self, ids, targets):
        x = self.tokens(ids) + self.positions.weight
        for block in self.blocks:
            x = block(x)
        return F.cross_entropy((self.norm(x) @ self.tokens.weight.T).flatten(0, 1), targets.flatten())


def flags():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--variant", dest="arm", choices=ARMS, default="mhsa")
    sizes = {"batch": 1, "context": 2048, "layers": 6, "d-model": 192, "heads": 6, "vocab": 8192, "window": 50}
    for name, value in (sizes | {"threads": 2, "repeats": 10}).items():
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--dtype", choices=DTYPES, default="f32")
    parser.add_argument("--attention", choices=("sdpa", "flex"), default="sdpa")
    parser.add_argument("--json", action="store_true", help="print one JSON line")
    options = parser.parse_args()
    for name in (*sizes, "threads", "repeats"):
        if getattr(options, name.replace("-", "_")) < 1:
            parser.error(f"--{name} must be at least 1")
    peer.hold_to_cores(parser, options.threads)
    return options


def main():
    options = flags()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    model = Model(options).to(options.device)
    optimiser = torch.optim.AdamW(model.parameters(), lr=3e-5, betas=(0.9, 0.99), weight_decay=0.1, fused=True)
    text = torch.randint(options.vocab, (options.batch, options.context + 1)).to(options.device)
    rounded = torch.autocast(options.device, torch.bfloat16, enabled=options.dtype == "bf16")

    def step():
        optimiser.zero_grad()
        with rounded:
            loss = model(text[:, :-1], text[:, 1:])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        loss.item()

    seconds = peer.median_seconds(step, options.repeats)
    result = {
        "side": f"torch-{options.attention}",
        **{name: value for name, value in vars(options).items() if name != "json"},
        "step_s": seconds,
        "tokens_per_s": options.batch * options.context / seconds,
        "peak_rss_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "versions": {"torch": torch.__version__, "python": platform.python_version()},
    }
    if options.json:
        print(json.dumps(result))
    else:
        print(f"torch-{options.attention}, {options.arm}: {1e3 * seconds:.1f} ms a step")


if __name__ == "__main__":
    main()

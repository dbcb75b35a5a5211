"""One training step of the language model in PyTorch: forward, backward, clip, AdamW.

The model of `rank-study bench step`, plain: fused attention (`scaled_dot_product_attention`), causal or,
for a local head, through a mask; float32; PyTorch's fused AdamW.
"""

import argparse
import json
import platform
import resource

import torch
import torch.nn.functional as F

import peer

ARMS = ("mhsa", "ls")


class Block(torch.nn.Module):
    def __init__(self, width, heads, mask):
        super().__init__()
        self.heads, self.mask = heads, mask
        self.norms = torch.nn.ModuleList(torch.nn.LayerNorm(width, bias=False) for _ in range(2))
        linear = lambda inputs, outputs: torch.nn.Linear(inputs, outputs, bias=False)
        self.queries_keys_values, self.attention_output = linear(width, 3 * width), linear(width, width)
        self.mlp_input, self.mlp_output = linear(width, 4 * width), linear(4 * width, width)

    def forward(self, x):
        batch, time, width = x.shape
        parts = self.queries_keys_values(self.norms[0](x)).split(width, dim=-1)
        q, k, v = (part.view(batch, time, self.heads, -1).transpose(1, 2) for part in parts)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=self.mask, is_causal=self.mask is None)
        x = x + self.attention_output(y.transpose(1, 2).reshape(x.shape))
        return x + self.mlp_output(F.gelu(self.mlp_input(self.norms[1](x)), approximate="tanh"))


class Model(torch.nn.Module):
    def __init__(self, options):
        super().__init__()
        mask = None
        if options.arm == "ls":
            # One global head, the others local.
            place = torch.arange(options.context)
            lag = place[:, None] - place[None, :]
            windows = [options.context] + [options.window] * (options.heads - 1)
            mask = torch.stack([(lag >= 0) & (lag < window) for window in windows])[None]
        self.tokens = torch.nn.Embedding(options.vocab, options.d_model)
        self.positions = torch.nn.Embedding(options.context, options.d_model)
        self.blocks = torch.nn.ModuleList(
            Block(options.d_model, options.heads, mask) for _ in range(options.layers)
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
    parser.add_argument("--arm", choices=ARMS, default="mhsa")
    sizes = {"batch": 1, "context": 2048, "layers": 6, "d-model": 192, "heads": 6, "vocab": 8192, "window": 50}
    for name, value in (sizes | {"threads": 2, "repeats": 10}).items():
        parser.add_argument(f"--{name}", type=int, default=value)
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
    model = Model(options)
    optimiser = torch.optim.AdamW(model.parameters(), lr=3e-5, betas=(0.9, 0.99), weight_decay=0.1, fused=True)
    text = torch.randint(options.vocab, (options.batch, options.context + 1))

    def step():
        optimiser.zero_grad()
        loss = model(text[:, :-1], text[:, 1:])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        loss.item()

    seconds = peer.median_seconds(step, options.repeats)
    result = {
        "side": "torch-sdpa",
        **{name: value for name, value in vars(options).items() if name != "json"},
        "step_s": seconds,
        "tokens_per_s": options.batch * options.context / seconds,
        "peak_rss_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "versions": {"torch": torch.__version__, "python": platform.python_version()},
    }
    if options.json:
        print(json.dumps(result))
    else:
        print(f"torch-sdpa, {options.arm}: {1e3 * seconds:.1f} ms a step")


if __name__ == "__main__":
    main()

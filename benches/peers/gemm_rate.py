"""The best rate of matrix products that this machine's libraries reach, in GFLOP/s: what a share is taken of."""

import argparse
import json
import time

import numpy as np
import torch
from threadpoolctl import threadpool_limits

import peer

# Rows, inner length and columns: the product of an evaluation (n = 2048, d = 64), and a square one.
SHAPES = [(2048, 64, 2048), (2048, 2048, 2048)]


def best_seconds(product, repeats):
    for _ in range(peer.WARM_UP):
        product()
    seconds = []
    for _ in range(repeats):
        begun = time.perf_counter()
        product()
        seconds.append(time.perf_counter() - begun)
    return min(seconds)


def products(left, right):
    """The same product by each library, into memory that is there already."""
    out = np.empty((left.shape[0], right.shape[1]), left.dtype)
    a, b, c = torch.from_numpy(left), torch.from_numpy(right), torch.from_numpy(np.empty_like(out))
    yield "numpy", np.__version__, lambda: np.matmul(left, right, out=out)
    yield "torch", torch.__version__, lambda: torch.mm(a, b, out=c)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=30, help="products; the fastest counts")
    parser.add_argument("--json", action="store_true", help="print one JSON line")
    options = parser.parse_args()
    peer.hold_to_cores(parser, options.threads)
    torch.set_num_threads(options.threads)
    rates = []
    with threadpool_limits(options.threads, user_api="blas"):
        for dtype, name in ((np.float32, "f32"), (np.float64, "f64")):
            for rows, inner, columns in SHAPES:
                rng = np.random.default_rng(0)
                left = rng.normal(size=(rows, inner)).astype(dtype)
                right = rng.normal(size=(inner, columns)).astype(dtype)
                for side, version, product in products(left, right):
                    seconds = best_seconds(product, options.repeats)
                    rates.append({
                        "side": side,
                        "dtype": name,
                        "rows": rows,
                        "inner": inner,
                        "columns": columns,
                        "threads": options.threads,
                        "seconds": seconds,
                        "gflop_per_s": 2e-9 * rows * inner * columns / seconds,
                        "version": f"{side} {version}",
                    })  # fmt: skip
    if options.json:
        print(json.dumps(rates))
    else:
        for r in rates:
            shape = f"{r['rows']} x {r['inner']} x {r['columns']}"
            print(f"{r['side']:6}{r['dtype']}  {shape:18}{r['gflop_per_s']:8.1f} GFLOP/s")


if __name__ == "__main__":
    main()

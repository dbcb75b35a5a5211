"""What the peers share: flags, data, timing and the one JSON line that each prints.

A peer does one evaluation, with the gradients in Q and K, of

    value = (1/n) sum_i KL(A_i || P_i) + (slope / 2n) sum_{i, j visible} max(|z_ij| - cap, 0)^2,
    P_i = softmax of z_ij over the visible j,    z = Q K^T / sqrt(d),

A (n x n) row-stochastic and zero outside the last `window` tokens, Q and K (n x d). Visible is j <= i,
or, for a local head, i - window < j <= i. Both sides of the comparison read the same A, Q and K, and
print the same value and the same gradient norms.
"""

import argparse
import dataclasses
import json
import os
import pathlib
import platform
import resource
import statistics
import time

import numpy as np

CAP, SLOPE = 4.0, 0.1
# A hidden pair's logit: its weight is then exactly 0, and unlike -inf it leaves 0 * log P at 0.
HIDDEN = -1e9
# Evaluations before the clock starts: allocation, page faults, thread pools; compilation in the first.
WARM_UP = 3


@dataclasses.dataclass
class Data:
    """The inputs of an evaluation, in the precision that it is computed in."""

    q: np.ndarray  # (n, d)
    k: np.ndarray  # (n, d)
    band: np.ndarray  # (n, window): A_ij at j = i - window + 1 + column, zero where j < 0
    negative_entropy: float  # (1/n) sum A log A, so that value = this - (1/n) sum A log P + penalty

    @property
    def n(self):
        return len(self.q)

    @property
    def window(self):
        return self.band.shape[1]

    def target(self):
        """A as a dense matrix, (n, n)."""
        dense = np.zeros((self.n, self.n), self.band.dtype)
        columns = band_columns(self.n, self.window)
        inside = columns >= 0
        dense[np.nonzero(inside)[0], columns[inside]] = self.band[inside]
        return dense


def band_columns(n, window):
    """The column of A that each entry of the band stands for, (n, window); negative before the first."""
    return np.arange(n)[:, None] - window + 1 + np.arange(window)


def draw_factors(n, d, seed):
    """Normal Q and K, float64, with logits of standard deviation 2: one in twenty lies above the cap."""
    q, k = np.random.default_rng([seed, 1]).normal(scale=np.sqrt(2.0), size=(2, n, d))
    return q, k


def draw_band(n, window, seed):
    """Rows of Dirichlet(1) weights on the last `window` tokens, float64."""
    band = np.random.default_rng([seed, 2]).exponential(size=(n, window))
    band[band_columns(n, window) < 0] = 0.0
    return band / band.sum(axis=1, keepdims=True)


def load(flag, path):
    try:
        return np.load(path)
    except (OSError, ValueError) as error:
        raise SystemExit(f"{flag}: {path} is no readable .npy file ({error})") from error


def read_band(path, n, window):
    """The band of a dense target; an error where the file has weight outside it."""
    a = load("--target", path)
    if a.shape != (n, n):
        raise SystemExit(f"--target {path}: holds {a.shape}, not ({n}, {n}); give its own --n")
    columns = band_columns(n, window)
    band = np.where(columns >= 0, np.take_along_axis(a, np.maximum(columns, 0), axis=1), 0.0)
    outside = np.abs(band.sum(axis=1) - 1.0).max()
    if outside > 1e-9:
        raise SystemExit(f"--target {path}: {outside:.3g} of a row lies outside --window {window}; give its own window")
    return band


def read_factors(folder, n, d):
    """q.npy and k.npy of a folder, (n, d) or (1, n, d)."""
    factors = []
    for name in ("q.npy", "k.npy"):
        x = load("--factors", pathlib.Path(folder) / name)
        if x.shape not in ((n, d), (1, n, d)):
            raise SystemExit(f"--factors {folder}: {name} holds {x.shape}, not (1, {n}, {d}); give its --n and --rank")
        factors.append(x.reshape(n, d))
    return factors


def flags(description, more=None):
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--n", type=int, default=2048, help="sequence length")
    parser.add_argument("--rank", type=int, default=64, help="head dimension d")
    parser.add_argument("--window", type=int, default=50, help="lags of the dense-local target")
    parser.add_argument("--dtype", choices=["f32", "f64"], default="f32")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=9, help="timed evaluations; eval_s is their median")
    parser.add_argument("--seed", type=int, default=0, help="of target and factors where no file is given")
    parser.add_argument("--target", metavar="FILE", help="dense target, .npy, (n, n)")
    parser.add_argument("--factors", metavar="DIR", help="folder with q.npy and k.npy, (1, n, d)")
    parser.add_argument("--json", action="store_true", help="print one JSON line")
    if more:
        more(parser)
    options = parser.parse_args()
    for name in ("n", "rank", "window", "threads", "repeats"):
        if getattr(options, name) < 1:
            parser.error(f"--{name} is {getattr(options, name)}; give at least 1")
    hold_to_cores(parser, options.threads)
    return options


def hold_to_cores(parser, threads):
    """Holds this process, and the threads it will start, to as many cores as it may use threads."""
    cores = sorted(os.sched_getaffinity(0))
    if threads > len(cores):
        parser.error(f"--threads is {threads}, but there are {len(cores)} cores; give at most {len(cores)}")
    os.sched_setaffinity(0, cores[:threads])


def read(options):
    dtype = np.float32 if options.dtype == "f32" else np.float64
    n, d, window = options.n, options.rank, options.window
    band = read_band(options.target, n, window) if options.target else draw_band(n, window, options.seed)
    q, k = read_factors(options.factors, n, d) if options.factors else draw_factors(n, d, options.seed)
    on = band[band > 0]
    return Data(q.astype(dtype), k.astype(dtype), band.astype(dtype), float((on * np.log(on)).sum() / n))


def median_seconds(evaluate, repeats):
    for _ in range(WARM_UP):
        evaluate()
    seconds = []
    for _ in range(repeats):
        begun = time.perf_counter()
        evaluate()
        seconds.append(time.perf_counter() - begun)
    return statistics.median(seconds)


def report(options, side, evaluate, versions, **more):
    """Times `evaluate`, which returns the value and the gradients in Q and K, and prints what came out."""
    seconds = median_seconds(evaluate, options.repeats)
    value, gradient_q, gradient_k = evaluate()
    norms = [float(np.linalg.norm(np.asarray(g, dtype=np.float64))) for g in (gradient_q, gradient_k)]
    result = {
        "side": side,
        "n": options.n,
        "rank": options.rank,
        "window": options.window,
        "dtype": options.dtype,
        "threads": options.threads,
        "repeats": options.repeats,
        "eval_s": seconds,
        "value": float(value),
        "gradient_q_norm": norms[0],
        "gradient_k_norm": norms[1],
        "peak_rss_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "versions": versions | {"python": platform.python_version()},
        **more,
    }
    if options.json:
        print(json.dumps(result))
    else:
        print(f"{side}: {seconds:.4f} s an evaluation, value {float(value):.12g}")

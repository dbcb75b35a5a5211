"""A whole fit by scipy: L-BFGS-B in an augmented Lagrangian, as tests/reference/generate.py does it.

From the spectral start (and, with --starts, normal ones) straight to the cap; the time is that until
the best kl_nats was first reached, without what the imports take.
"""

import argparse
import json
import pathlib
import sys
import time

import numpy as np
import scipy
from threadpoolctl import threadpool_limits

import peer

REFERENCE = pathlib.Path(__file__).resolve().parents[2] / "tests" / "reference"
sys.path.append(str(REFERENCE))

import generate  # noqa: E402, from the folder above

# Rank and each head's window (None: global) of the targets stored there.
CASES = {"dense-local-n96": (8, [None]), "mixture-n96": (4, [24, None])}
# Of L-BFGS-B in a round, and rounds of the Lagrangian: the defaults of generate.py.
ITERATIONS, ROUNDS = 400, 14


class Timed(generate.Problem):
    """A problem that notes when each point within the cap was found, and what it reaches."""

    def __init__(self, *problem):
        super().__init__(*problem)
        self.begun, self.reached = time.perf_counter(), []

    def value(self, x):
        value = super().value(x)
        self.reached.append((value, time.perf_counter() - self.begun))
        return value


def fit(name, cap, starts):
    """The best kl_nats of all starts, and the seconds until it was reached."""
    rank, windows = CASES[name]
    a = np.load(REFERENCE / f"{name}.npy")
    problem = Timed(a, [generate.visible(len(a), window) for window in windows], rank)
    for start in range(starts):
        rng = np.random.default_rng([2025, start])
        x = generate.random_start(rng, problem) if start else generate.spectral_start(problem, cap)
        problem.fit(x, cap, ITERATIONS, ROUNDS)
    kl_nats, seconds = min(problem.reached)
    return {"n": len(a), "rank": rank, "kl_nats": kl_nats, "fit_s": seconds, "evaluations": problem.evaluations}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--case", choices=CASES, default="dense-local-n96", help="a target of tests/reference")
    parser.add_argument("--cap", type=float, default=4.0, help="bound on |logit|, in nats")
    parser.add_argument("--starts", type=int, default=1, help="the first spectral, the others normal")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", action="store_true", help="print one JSON line")
    options = parser.parse_args()
    if options.starts < 1:
        parser.error(f"--starts is {options.starts}; give at least 1")
    peer.hold_to_cores(parser, options.threads)
    with threadpool_limits(options.threads, user_api="blas"):
        result = fit(options.case, options.cap, options.starts)
    result |= {"side": "scipy", "case": options.case, "cap": options.cap, "versions": {"scipy": scipy.__version__}}
    if options.json:
        print(json.dumps(result))
    else:
        print(f"scipy: kl_nats {result['kl_nats']:.6f} after {result['fit_s']:.2f} s")


if __name__ == "__main__":
    main()

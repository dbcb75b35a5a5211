"""An independent reference for capped low-rank logits: numpy and scipy only.

    pip install numpy scipy
    OPENBLAS_NUM_THREADS=1 python tests/reference/generate.py

It writes, beside itself, the targets (.npy), the best factors found (.npy) and what they reach
(.csv). Nothing of the Rust code is used or known here: the targets come from numpy's generator,
the fits from scipy's L-BFGS-B inside an augmented Lagrangian.

Problem: for a row-stochastic causal A (n x n), over heads h with factors Q_h, K_h (n x d) and
weights pi on the simplex,

    minimise  kl_nats = (1/n) sum_i KL(A_i || P_i),   P = sum_h pi_h softmax_{visible_h}(Z_h),
    Z_h = Q_h K_h^T / sqrt(d),   subject to  |Z_h[i, j]| <= L on the visible pairs of each head.

Method: the constraint enters as the augmented Lagrangian of Powell, Hestenes and Rockafellar,
(1/(2 rho)) sum (max(0, lambda + rho (|z| - L))^2 - lambda^2); L-BFGS-B minimises over the factors,
lambda <- max(0, lambda + rho (|z| - L)), rho grows slowly. The factors are then shrunk so that the cap
holds exactly, and kl_nats is evaluated at those. The problem is not convex, so every start goes up
the caps and down again, each from the one before; then the best of each cap is fitted again from
itself, from its neighbours, and from itself with noise added. What is reported is an upper bound on
the optimum, by construction. With --continue the factors already beside the script are one start.

The floors (no rank limit) are convex, row by row: L-BFGS-B over z in the box [-L, L].
"""

import argparse
import csv
import pathlib
import sys
import time

import numpy as np
import scipy
from scipy.optimize import brentq, minimize

HERE = pathlib.Path(__file__).resolve().parent
CAPS = [4.0, 8.0, 16.0, 32.0, 64.0]


# The targets.


def dirichlet_band(rng, n, window, alpha):
    a = np.zeros((n, n))
    for i in range(n):
        first = max(0, i + 1 - window)
        a[i, first : i + 1] = rng.dirichlet(np.full(i + 1 - first, alpha))
    return a


def landmark(rng, n, m):
    columns = np.sort(np.append(0, 1 + rng.permutation(n - 1)[: m - 1]))
    a = np.zeros((n, n))
    for i in range(n):
        seen = columns[columns <= i]
        a[i, seen] = rng.dirichlet(np.ones(len(seen)))
    return a


# The objective.


def visible(n, window=None):
    i, j = np.indices((n, n))
    return (j <= i) & (j > i - window if window else True)


def kl_nats(a, logits, masks, weight_logits):
    """kl_nats, its gradient in every head's logits, and its gradient in the weights' logits."""
    n = len(a)
    log_weights = weight_logits - np.logaddexp.reduce(weight_logits)
    log_heads = []
    for z, mask in zip(logits, masks):
        z = np.where(mask, z, -np.inf)
        top = z.max(axis=1, keepdims=True)
        log_heads.append(z - top - np.log(np.exp(z - top).sum(axis=1, keepdims=True)))
    if len(logits) == 1:
        log_p, shares = log_heads[0], [1.0]
    else:
        joint = np.array(log_heads) + log_weights[:, None, None]
        log_p = np.logaddexp.reduce(joint, axis=0)
        with np.errstate(invalid="ignore"):
            shares = np.where(np.isneginf(joint), 0.0, np.exp(joint - log_p))
    on = a > 0
    value = (a[on] * (np.log(a[on]) - log_p[on])).sum() / n
    logit_gradients, weight_gradient = [], []
    for log_head, share in zip(log_heads, shares):
        mass = a * share
        row_mass = mass.sum(axis=1, keepdims=True)
        logit_gradients.append((np.exp(log_head) * row_mass - mass) / n)
        weight_gradient.append(-mass.sum() / n)
    return value, logit_gradients, np.array(weight_gradient) + np.exp(log_weights)


class Problem:
    def __init__(self, a, masks, d):
        self.a, self.masks, self.d = a, masks, d
        self.shape = (2, len(masks), len(a), d)
        self.size = int(np.prod(self.shape))
        self.evaluations = 0

    def split(self, x):
        q, k = x[: self.size].reshape(self.shape)
        return q, k, x[self.size :]

    def logits(self, x):
        q, k, _ = self.split(x)
        return np.einsum("hid,hjd->hij", q, k, optimize=True) / np.sqrt(self.d)

    def largest(self, x):
        return max(np.abs(z[m]).max() for z, m in zip(self.logits(x), self.masks))

    def lagrangian(self, x, cap, multipliers, rho):
        self.evaluations += 1
        q, k, weight_logits = self.split(x)
        logits = [qh @ kh.T / np.sqrt(self.d) for qh, kh in zip(q, k)]
        value, gradients, weight_gradient = kl_nats(self.a, logits, self.masks, weight_logits)
        gradient = np.empty_like(x)
        gq, gk, gw = self.split(gradient)
        for h, (z, mask) in enumerate(zip(logits, self.masks)):
            if rho:
                pull = np.maximum(0.0, multipliers[h] + rho * (np.abs(z) - cap)) * mask
                value += ((pull**2).sum() - (multipliers[h] ** 2).sum()) / (2 * rho)
                gradients[h] += pull * np.sign(z)
            gq[h] = gradients[h] @ k[h] / np.sqrt(self.d)
            gk[h] = gradients[h].T @ q[h] / np.sqrt(self.d)
        gw[:] = weight_gradient
        return value, gradient

    def capped(self, x, cap):
        """x shrunk until |logits| <= cap exactly, in float64; never grown."""
        x = x.copy()
        while (largest := self.largest(x)) > cap:
            x[: self.size] *= np.sqrt(cap / largest) * (1 - 1e-15)
        return x

    def value(self, x):
        return kl_nats(self.a, self.logits(x), self.masks, self.split(x)[2])[0]

    def fit(self, x, cap, iterations, rounds):
        """The augmented Lagrangian at one cap from x: the best exactly capped point on the way."""
        multipliers = np.zeros((len(self.masks),) + self.a.shape)
        # Multipliers sum to about the slope of E*(L), so a penalty of a few 1e-3 is a soft start.
        rho = 0.02 / cap
        best, best_value = None, np.inf
        for _ in range(rounds):
            options = {"maxiter": iterations, "maxfun": 2 * iterations, "maxcor": 30, "ftol": 1e-15, "gtol": 1e-9}
            x = minimize(self.lagrangian, x, args=(cap, multipliers, rho), jac=True, method="L-BFGS-B", options=options).x
            excess = np.abs(self.logits(x)) - cap
            multipliers = np.maximum(0.0, multipliers + rho * excess) * np.array(self.masks)
            point = self.capped(x, cap)
            if (value := self.value(point)) < best_value:
                best, best_value = point, value
            rho *= 1.15
        return best, best_value


# The starts.


def random_start(rng, problem):
    x = np.concatenate([rng.normal(size=problem.size), np.zeros(len(problem.masks))])
    return x


def spectral_start(problem, cap):
    """The floor's own logits at the rank: hidden pairs filled in by repeated truncation."""
    x = np.zeros(problem.size + len(problem.masks))
    q, k, _ = problem.split(x)
    for h, mask in enumerate(problem.masks):
        z = np.zeros_like(problem.a)
        for i in range(len(z)):
            p = floor_row(problem.a[i, mask[i]], cap)
            z[i, mask[i]] = np.log(p) - (np.log(p).max() + np.log(p).min()) / 2
        filled = np.where(mask, z, 0.0)
        for _ in range(300):
            u, s, vt = np.linalg.svd(filled)
            low = (u[:, : problem.d] * s[: problem.d]) @ vt[: problem.d]
            filled = np.where(mask, z, low)
        root = np.sqrt(s[: problem.d] * np.sqrt(problem.d))
        q[h], k[h] = u[:, : problem.d] * root, vt[: problem.d].T * root
    return x


# The search.


def search(problem, caps, starts, stored, iterations, rounds, polish, log, save):
    best = {cap: (None, np.inf, "") for cap in caps}
    found = {cap: [] for cap in caps}
    for cap, (x, name, earlier) in zip(caps, stored):
        best[cap] = (x, problem.value(problem.capped(x, cap)), name)
        found[cap] += earlier

    def attempt(x, cap, name, iterations, rounds):
        x, value = problem.fit(x, cap, iterations, rounds)
        found[cap].append((value, name))
        if value < best[cap][1]:
            best[cap] = (x, value, name)
        log(f"cap {cap:g}  kl {value:.6f}  best {best[cap][1]:.6f}  {name}")
        return x

    for start in range(starts):
        rng = np.random.default_rng([2025, start])
        x = random_start(rng, problem) if start else spectral_start(problem, caps[0])
        name = f"random-{start}" if start else "spectral"
        for cap in caps:
            x = attempt(x, cap, f"{name}, up", iterations, rounds)
        for cap in reversed(caps[:-1]):
            x = attempt(x, cap, f"{name}, down", iterations, rounds)
        save(best, found)
    for round_ in range(polish):
        rng = np.random.default_rng([2026, round_, len(stored)])
        for at, cap in enumerate(caps):
            for near in [at, at - 1, at + 1]:
                if 0 <= near < len(caps):
                    x, _, name = best[caps[near]]
                    attempt(x, cap, f"{name.split(';')[0]}; again from {caps[near]:g}", 2 * iterations, rounds)
            for share in [0.1, 0.3]:
                x, _, name = best[cap]
                noise = share * x[: problem.size].std() * rng.normal(size=problem.size)
                x = x + np.append(noise, np.zeros(len(problem.masks)))
                attempt(x, cap, f"{name.split(';')[0]}; again with noise {share}", 2 * iterations, rounds)
            save(best, found)


# The floors.


def floor_row(a, cap):
    """The closed form under test: p_j = min(max(a_j, u), u e^{2 cap}) with u such that sum p = 1."""

    def p(log_u):
        u = np.exp(log_u)
        return np.minimum(np.maximum(a, u), u * np.exp(2 * cap))

    return p(brentq(lambda log_u: p(log_u).sum() - 1, -2 * cap - 60, 0.0, xtol=1e-15, rtol=1e-15))


def row_kl(a, p):
    on = a > 0
    return (a[on] * np.log(a[on] / p[on])).sum()


def floors(a, cap):
    """E0(cap) by the closed form and by scipy over z in [-cap, cap]; the worst |c - 1| and |p - p'|."""
    closed, convex, worst_c, worst_p = [], [], 0.0, 0.0
    for i in range(len(a)):
        row = a[i, : i + 1]
        p = floor_row(row, cap)

        def objective(z):
            top = z.max()
            log_p = z - top - np.log(np.exp(z - top).sum())
            on = row > 0
            value = (row[on] * (np.log(row[on]) - log_p[on])).sum()
            # L-BFGS-B measures progress against max(1, |f|), and floors can be of order 1e-7.
            return 1e8 * value, 1e8 * (np.exp(log_p) - row)

        z = minimize(
            objective,
            np.zeros(i + 1),
            jac=True,
            method="L-BFGS-B",
            bounds=[(-cap, cap)] * (i + 1),
            options={"maxiter": 20000, "maxfun": 40000, "maxcor": 30, "ftol": 0.0, "gtol": 1e-9},
        ).x
        found = np.exp(z - z.max()) / np.exp(z - z.max()).sum()
        inside = (np.abs(z) < cap * (1 - 1e-6)) & (row > 1e-6)
        if inside.any():
            worst_c = max(worst_c, np.abs(found[inside] / row[inside] - 1).max())
        worst_p = max(worst_p, np.abs(found - p).max())
        closed.append(row_kl(row, p))
        convex.append(row_kl(row, found))
    return np.mean(closed), np.mean(convex), worst_c, worst_p


# The files.


def write_csv(path, header, rows):
    with open(path, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


def write_fits(name, problem, best, found):
    caps = sorted(best)
    rows = []
    for cap in caps:
        x, value, start = best[cap]
        values = sorted(v for v, _ in found[cap])
        weights = np.exp(problem.split(x)[2] - np.logaddexp.reduce(problem.split(x)[2]))
        near = sum(v <= value + 1e-3 for v in values)
        rows.append([f"{cap:g}", repr(float(value)), repr(float(problem.largest(x))), len(values), near,
                     repr(float(np.median(values))), start, " ".join(repr(float(w)) for w in weights),
                     np.__version__, scipy.__version__, " ".join(f"{v:.6f}" for v in values)])  # fmt: skip
    header = ["cap", "kl_nats", "max_abs_logit", "attempts", "attempts_within_0.001", "median_kl_nats",
              "start", "weights", "numpy", "scipy", "every_kl_nats"]  # fmt: skip
    write_csv(HERE / f"{name}.csv", header, rows)
    # Shape (caps, 2, heads, n, d): Q, then K.
    factors = np.array([best[cap][0][: problem.size].reshape(problem.shape) for cap in caps])
    np.save(HERE / f"{name}-factors.npy", factors)


def read_fits(name, problem):
    """For every cap, the stored factors and weights, the start behind them, and every kl_nats found."""
    factors = np.load(HERE / f"{name}-factors.npy")
    with open(HERE / f"{name}.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    weights = [np.log([float(w) for w in row["weights"].split()]) for row in rows]
    earlier = [[(float(v), "earlier") for v in row["every_kl_nats"].split()] for row in rows]
    return [(np.append(f.ravel(), w), row["start"], e) for f, w, row, e in zip(factors, weights, rows, earlier)]


def check_gradient(problem, rng):
    x = random_start(rng, problem)
    direction = rng.normal(size=len(x))
    multipliers = np.full((len(problem.masks),) + problem.a.shape, 1e-3)
    f = lambda t: problem.lagrangian(x + t * direction, 1.0, multipliers, 0.1)
    numeric = (f(1e-6)[0] - f(-1e-6)[0]) / 2e-6
    analytic = f(0.0)[1] @ direction
    assert abs(numeric / analytic - 1) < 1e-5, (numeric, analytic)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--starts", type=int, default=8)
    parser.add_argument("--iterations", type=int, default=400, help="of L-BFGS-B, in each round")
    parser.add_argument("--rounds", type=int, default=14, help="of the augmented Lagrangian")
    parser.add_argument("--polish", type=int, default=2)
    parser.add_argument("--continue", dest="resume", action="store_true")
    parser.add_argument("--only", choices=["floors", "dense-local", "mixture"])
    options = parser.parse_args()
    begun = time.process_time()

    def log(line):
        print(f"{time.process_time() - begun:7.1f}s  {line}", file=sys.stderr, flush=True)

    def run(name, problem, caps, starts, rounds):
        check_gradient(problem, np.random.default_rng(0))
        stored = read_fits(name, problem) if options.resume else []
        # Written after every start, so that a run cut short leaves what it found.
        save = lambda best, found: write_fits(name, problem, best, found)
        search(problem, caps, starts, stored, options.iterations, rounds, options.polish, log, save)
        log(f"{name}: {problem.evaluations} evaluations")

    n, window, d = 96, 32, 8
    dense_local = dirichlet_band(np.random.default_rng(96032), n, window, 1.0)
    np.save(HERE / "dense-local-n96.npy", dense_local)
    rng = np.random.default_rng(96016)
    mixture = (dirichlet_band(rng, n, 24, 1.0) + landmark(rng, n, 8)) / 2
    np.save(HERE / "mixture-n96.npy", mixture)

    if options.only in (None, "floors"):
        rows = []
        for cap in [0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0]:
            values = floors(dense_local, cap)
            log("floor at {:g}: closed {:.9f} convex {:.9f}, |c - 1| {:.1e}, |p - p'| {:.1e}".format(cap, *values))
            rows.append([f"{cap:g}"] + [repr(float(v)) for v in values])
        header = ["cap", "closed_form_kl_nats", "convex_solver_kl_nats", "worst_c_error", "worst_p_error"]
        write_csv(HERE / "dense-local-n96-floors.csv", header, rows)
    if options.only in (None, "dense-local"):
        run("dense-local-n96", Problem(dense_local, [visible(n)], d), CAPS, options.starts, options.rounds)
    if options.only in (None, "mixture"):
        masks = [visible(n, 24), visible(n)]
        run("mixture-n96", Problem(mixture, masks, 4), CAPS[:3], options.starts // 2, options.rounds)


if __name__ == "__main__":
    main()

"""numpy with the gradient written by hand, as one would hand it to scipy.optimize.minimize(jac=True)."""

import numpy as np
from threadpoolctl import threadpool_limits

import peer
from peer import CAP, SLOPE


def evaluation(data):
    """One evaluation, in two n x n work arrays that are allocated once."""
    n, d = data.q.shape
    a, visible = data.target(), np.tril(np.ones((n, n), bool))
    hidden = ~visible
    share = a / n
    root = np.sqrt(d).astype(data.q.dtype)
    z, excess = np.empty_like(a), np.empty_like(a)

    def evaluate():
        np.matmul(data.q / root, data.k.T, out=z)
        np.multiply(z, visible, out=z)
        np.clip(z, -CAP, CAP, out=excess)
        np.subtract(z, excess, out=excess)
        penalty = SLOPE / (2 * n) * np.vdot(excess, excess)
        likelihood = np.vdot(a, z)
        np.copyto(z, -np.inf, where=hidden)
        top = z.max(axis=1, keepdims=True)
        np.exp(np.subtract(z, top, out=z), out=z)
        sums = z.sum(axis=1, keepdims=True)
        # The rows of A sum to one, so the normalisers enter the likelihood once a row.
        likelihood -= (top + np.log(sums)).sum()
        np.divide(z, n * sums, out=z)
        np.subtract(z, share, out=z)
        np.add(z, np.multiply(excess, SLOPE / n, out=excess), out=z)
        value = data.negative_entropy - likelihood / n + penalty
        return value, z @ (data.k / root), z.T @ (data.q / root)

    return evaluate


def main():
    options = peer.flags(__doc__)
    with threadpool_limits(options.threads, user_api="blas"):
        peer.report(options, "numpy", evaluation(peer.read(options)), {"numpy": np.__version__})


if __name__ == "__main__":
    main()

"""JAX: jit of value_and_grad, dense n x n and a causal mask."""

import jax
import jax.numpy as jnp

import peer
from peer import CAP, HIDDEN, SLOPE


def value(q, k, a, negative_entropy):
    n, d = q.shape
    hidden = jnp.triu(jnp.ones((n, n), bool), 1)
    z = (q / jnp.sqrt(d).astype(q.dtype)) @ k.T
    log_p = jax.nn.log_softmax(jnp.where(hidden, HIDDEN, z), axis=1)
    excess = jnp.where(hidden, 0.0, jnp.maximum(jnp.abs(z) - CAP, 0.0))
    return negative_entropy - (a * log_p).sum() / n + SLOPE / (2 * n) * jnp.square(excess).sum()


def main():
    options = peer.flags(__doc__)
    jax.config.update("jax_platforms", "cpu")
    # Without it JAX computes in float32 whatever it is given.
    jax.config.update("jax_enable_x64", options.dtype == "f64")
    data = peer.read(options)
    inputs = [jnp.asarray(x) for x in (data.q, data.k, data.target())]
    compiled = jax.jit(jax.value_and_grad(value, argnums=(0, 1)))

    def evaluate():
        loss, (gradient_q, gradient_k) = jax.block_until_ready(compiled(*inputs, data.negative_entropy))
        return float(loss), gradient_q, gradient_k

    peer.report(options, "jax-jit", evaluate, {"jax": jax.__version__})


if __name__ == "__main__":
    main()

"""Why ``partwise._small`` exists: one Sinkhorn sweep as reductions, written out, and under vmap.

python -m benchmarks.small_axes
"""

from __future__ import annotations

import time

import jax
import jax.numpy as jnp
import numpy as np

from partwise._small import total

SHAPE, BATCH, SWEEPS = (8, 11), 128, 500


def seconds_a_sweep(sweep, r: jax.Array, v: jax.Array) -> float:
    """Warm time of one sweep of one scene."""
    run = jax.jit(lambda r, v: jax.lax.fori_loop(0, SWEEPS, lambda _, v: sweep(r, v), v))
    jax.block_until_ready(run(r, v))
    times = []
    for _ in range(5):
        start = time.perf_counter()
        jax.block_until_ready(run(r, v))
        times.append(time.perf_counter() - start)
    return min(times) / SWEEPS / BATCH


def main() -> None:
    """Print the time of a sweep in four forms, and their ratios."""
    r = jnp.asarray(np.random.default_rng(0).random((*SHAPE, BATCH)), jnp.float32)
    v = jnp.ones((SHAPE[1], BATCH))

    def one_scene(r, v):
        return 1 / (r * (1 / (r * v[None]).sum(1))[:, None]).sum(0)

    def written_out(r, v):
        return 1 / total(r * (1 / total(r * v[None], 1))[:, None], 0)

    first, last = jnp.moveaxis(r, -1, 0), v.T
    forms = {
        "reductions, vmap over the first axis": seconds_a_sweep(jax.vmap(one_scene), first, last),
        "reductions, batch last": seconds_a_sweep(one_scene, r, v),
        "written out, batch last": seconds_a_sweep(written_out, r, v),
        "written out, vmap over the first axis": seconds_a_sweep(
            jax.vmap(written_out), first, last
        ),
    }
    fastest = min(forms.values())
    for name, seconds in forms.items():
        print(f"{name:40s} {seconds * 1e6:7.3f} us   {seconds / fastest:6.1f} x")


if __name__ == "__main__":
    main()

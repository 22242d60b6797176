"""Compile once: workers, and one run after the other, share what JAX compiles. Check shapes.

The array shapes in the signatures of the modules below are checked at every call that a test makes
(not those of the modules where users' own data come in: these answer wrong shapes in words).
"""

import jax
from jaxtyping import install_import_hook

import tests.shapes  # the checker must be there before the hook looks for it

SOLVERS = [
    "auto",
    "ccae",
    "exact",
    "groupings",
    "lanes",
    "mean_field",
    "packing",
    "ransac",
    "starting",
    "trace",
    "variational",
]

CHECKED = [
    "alignment",
    "batching",
    "evidence",
    "faces",
    "fitting",
    "frames",
    "inference",
    "learning",
    "neural",
    "plane",
    "poses",
    "posterior",
    "problem",
    "sampling",
    "sinkhorn",
    "sky",
    # Not solvers.hashing: Numba compiles functions that nothing has wrapped.
    *(f"solvers.{name}" for name in SOLVERS),
]

install_import_hook([f"partwise.{name}" for name in CHECKED], tests.shapes.CHECKER)


def pytest_configure(config):
    jax.config.update("jax_compilation_cache_dir", str(config.cache.mkdir("jax")))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.3)

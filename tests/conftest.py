"""Compile once: workers, and one run after the other, share what JAX compiles."""

import jax


def pytest_configure(config):
    jax.config.update("jax_compilation_cache_dir", str(config.cache.mkdir("jax")))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.3)

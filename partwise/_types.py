"""The array type of functions that take JAX's arrays and NumPy's alike."""

from __future__ import annotations

from typing import TypeAlias

import jax
import numpy as np

__all__ = ["Array"]

Array: TypeAlias = jax.Array | np.ndarray

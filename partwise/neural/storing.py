"""Networks as safetensors files: arrays and a few words, no code."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

import equinox as eqx
import jax
import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from partwise._checks import InputError, readable
from partwise.files import replacing

__all__ = ["load_leaves", "save_leaves"]

T = TypeVar("T")


def _named(tree: Any) -> dict[str, Any]:
    """The arrays of a pytree, by where they are in it."""
    leaves = jax.tree_util.tree_leaves_with_path(eqx.filter(tree, eqx.is_array))
    return {jax.tree_util.keystr(path): leaf for path, leaf in leaves}


def save_leaves(path: Path, tree: Any, about: dict[str, str], half: bool = False) -> None:
    """Write the arrays of ``tree``, with ``about`` beside them; ``half`` rounds to 16 bits."""
    arrays = {name: np.asarray(leaf) for name, leaf in _named(tree).items()}
    if half:
        arrays = {
            name: a.astype(np.float16) if a.dtype == np.float32 else a for name, a in arrays.items()
        }
    # (safetensors' own writer makes files that nobody else may read.)
    with replacing(path) as part:
        part.write_bytes(save(arrays, about))


def load_leaves(path: Path, like: T) -> tuple[T, dict[str, str]]:
    """A tree as ``like`` with the arrays of a file of :func:`save_leaves`, and its words."""
    path = readable(path)
    wanted = _named(like)
    try:
        with safe_open(path, "numpy") as file:
            about = file.metadata() or {}
            if set(file.keys()) != set(wanted):
                raise InputError(f"{path}: these are the weights of another network.")
            arrays = {name: file.get_tensor(name) for name in wanted}
    except SafetensorError as error:
        raise InputError(f"{path}: not a safetensors file ({error}); write it again.") from None
    if any(arrays[name].shape != leaf.shape for name, leaf in wanted.items()):
        raise InputError(f"{path}: these are the weights of a network of another size.")
    for name, array in arrays.items():
        if not np.isfinite(array).all():
            raise InputError(f"{path}: {name} holds NaN or infinity; write the file again.")
    leaves = [jax.numpy.asarray(arrays[name], leaf.dtype) for name, leaf in wanted.items()]
    dynamic, static = eqx.partition(like, eqx.is_array)
    return eqx.combine(jax.tree.unflatten(jax.tree.structure(dynamic), leaves), static), about

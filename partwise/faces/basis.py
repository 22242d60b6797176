"""A fitted face model as one file of arrays (``.npz``), without any code in it.

For every part ``<part>_mean`` (H, W), ``<part>_basis`` (codes, H, W) and ``<part>_mask`` (H, W);
``face_mask``; the factor analyser as ``loadings``, ``mean`` and ``noise_variance`` over the codes
of all parts in the order ``part_order``, ``part_dims`` codes each; ``part_xy``, their places in the
template. A part without a basis (PhotoFit's hair, whose images are not public) is drawn flat.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from partwise._checks import InputError, finite, readable
from partwise.faces.appearance import FaceModel
from partwise.faces.canvas import PARTS, SIZE
from partwise.files import read_arrays, replacing
from partwise.templates import Appearance

__all__ = ["FLAT", "read_basis", "write_basis"]

Array = np.ndarray

FLAT = 0.35
"""The grey level of a part that has no basis images."""

_WANTED = ("loadings", "mean", "noise_variance", "part_order", "part_dims", "part_xy", "face_mask")


def read_basis(path: str | Path) -> FaceModel:
    """The face model in a file."""
    path = readable(path)
    required = (*_WANTED, *(f"{part}_mask" for part in PARTS))
    drawn = tuple(f"{part}_{kind}" for part in PARTS for kind in ("mean", "basis"))
    read_arrays(path, ("part_order",))  # a file of something else is told by one name, not twelve
    arrays = read_arrays(path, required, drawn)
    try:
        return _model(arrays)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _model(arrays: dict[str, Any]) -> FaceModel:
    order = [str(name) for name in arrays["part_order"].ravel()]
    if sorted(order) != sorted(PARTS):
        raise InputError(f"part_order must hold {', '.join(PARTS)}; got {', '.join(order)}.")
    for name in ("loadings", "mean", "noise_variance", "part_dims", "part_xy"):
        if arrays[name].dtype.kind not in "iuf":
            raise InputError(f"{name} must hold numbers; got {arrays[name].dtype}.")
    dims = [int(d) for d in arrays["part_dims"].ravel()]
    stops, rows = np.cumsum(dims), [np.asarray(arrays[k], float) for k in _WANTED[:3]]
    if (
        len(dims) != len(order)
        or min(dims) < 1
        or [r.ndim for r in rows] != [2, 1, 1]
        or any(len(r) != stops[-1] for r in rows)
    ):
        raise InputError("loadings, mean and noise_variance must have a row for every code.")
    positions = finite("part_xy", np.asarray(arrays["part_xy"], float))
    if positions.shape != (len(order), 2):
        raise InputError(f"part_xy must hold a place for every part; got {positions.shape}.")
    split = [np.split(r, stops[:-1]) for r in rows]
    place = [order.index(part) for part in PARTS]
    means, bases, areas = [], [], []
    for part, n in zip(PARTS, place, strict=True):
        area = _image(arrays, f"{part}_mask")
        mean, basis = FLAT * area, np.zeros((dims[n], SIZE, SIZE), np.float32)
        if f"{part}_basis" in arrays and f"{part}_mean" in arrays:
            mean = _image(arrays, f"{part}_mean")
            given = arrays[f"{part}_basis"]
            if given.shape != (dims[n], SIZE, SIZE) or given.dtype.kind not in "iuf":
                raise InputError(
                    f"{part}_basis must hold numbers of shape {(dims[n], SIZE, SIZE)}; got "
                    f"{given.dtype} of shape {given.shape}."
                )
            basis = finite(f"{part}_basis", given.astype(float))
        means.append(mean)
        bases.append(basis.astype(np.float32))
        areas.append((area > 0.5).astype(np.float32))
    return FaceModel(
        np.stack(means),
        tuple(bases),
        np.clip(_image(arrays, "face_mask"), 0.0, 1.0),
        np.stack(areas),
        positions[place],
        Appearance(*(tuple(s[n] for n in place) for s in split)),
    )


def _image(arrays: dict[str, Any], name: str) -> Array:
    """A picture among the arrays."""
    if arrays[name].dtype.kind not in "biuf":
        raise InputError(f"{name} must hold numbers; got {arrays[name].dtype}.")
    image = np.asarray(arrays[name], float)
    if image.shape != (SIZE, SIZE):
        raise InputError(f"{name} must be {SIZE} x {SIZE} pixels; got {image.shape}.")
    return finite(name, image).astype(np.float32)


def write_basis(path: str | Path, model: FaceModel) -> None:
    """Write a face model that :func:`read_basis` reads."""
    arrays: dict[str, Any] = {
        "loadings": model.loadings,
        "mean": model.offset,
        "noise_variance": model.variance,
        "part_order": np.array(PARTS),
        "part_dims": np.array(model.looks.features),
        "part_xy": model.positions,
        "face_mask": model.opacity,
    }
    for n, part in enumerate(PARTS):
        arrays[f"{part}_mean"], arrays[f"{part}_basis"] = model.means[n], model.bases[n]
        arrays[f"{part}_mask"] = model.areas[n]
    with replacing(path) as part, part.open("wb") as file:
        np.savez_compressed(file, **arrays)

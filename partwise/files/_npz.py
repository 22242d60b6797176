"""Scenes in ``.npz`` files: arrays, labelled or not; never pickles."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

import numpy as np

from partwise._checks import InputError
from partwise.files._common import WIDTHS, kind_of, offsets_of, readable, reason, replacing
from partwise.scenes import LabelledScenes, SceneBatch

__all__ = ["read_arrays", "read_labelled", "read_npz", "write_labelled"]

Array = np.ndarray


def read_labelled(path: str | Path) -> LabelledScenes:
    """Labelled scenes from an ``.npz`` file with ``points``, ``present`` and ``object_id``."""
    path = readable(path)
    if kind_of(path) != ".npz":
        raise InputError(f"{path}: labelled scenes are .npz files; give one of those.")
    arrays = read_arrays(path, ("points", "present", "object_id"))
    points = _points(path, arrays["points"])
    shape = points.shape[:2]
    present = _present(path, arrays["present"], shape)
    object_id = arrays["object_id"]
    if object_id.dtype.kind not in "iu" or object_id.shape != shape:
        raise InputError(
            f"{path}: 'object_id' must be whole numbers of shape {shape}, one a slot; got "
            f"{object_id.dtype} of shape {object_id.shape}."
        )
    _finite_points(path, points, present)
    return LabelledScenes(points, present, object_id.astype(int))


def write_labelled(path: str | Path, labelled: LabelledScenes) -> None:
    """Labelled scenes as ``.npz``; :func:`read_labelled` reads them back."""
    if Path(path).suffix.lower() != ".npz":
        raise InputError(f"{path}: labelled scenes are .npz files; give a name that ends in .npz.")
    points = np.where(labelled.present[..., None], labelled.points, 0.0)
    with replacing(path) as part, part.open("wb") as file:
        np.savez_compressed(
            file,
            points=points.astype(np.float32),
            present=labelled.present,
            object_id=labelled.object_id.astype(np.int32),
        )


def read_npz(path: Path) -> SceneBatch:
    arrays = read_arrays(path, ("points",), ("present",))
    points = _points(path, arrays["points"])
    present = np.ones(points.shape[:2], bool)
    if "present" in arrays:
        present = _present(path, arrays["present"], points.shape[:2])
    _finite_points(path, points, present)
    return SceneBatch(points[present], offsets_of(present.sum(1)))


def read_arrays(path: Path, names: Iterable[str], optional: Iterable[str] = ()) -> dict[str, Array]:
    """The named arrays of an ``.npz`` file; never its pickles."""
    out = {}
    try:
        # Any failure here is a property of the file: zipfile, zlib, NumPy's header parser and its
        # refusal to unpickle each have exceptions of their own.
        with path.open("rb") as file:
            _check_magic(path, file)
            data = np.load(file, allow_pickle=False)
            missing = [name for name in names if name not in data.files]
            if missing:
                raise InputError(
                    f"{path}: has no array {' and no array '.join(map(repr, missing))} "
                    f"(it has {', '.join(sorted(data.files)) or 'none'}); add what is missing."
                )
            for name in (*names, *(o for o in optional if o in data.files)):
                out[name] = data[name]
    except InputError:
        raise
    except Exception as error:
        if "allow_pickle" in str(error):
            raise InputError(
                f"{path}: holds Python objects (pickle), which are not read; save plain numeric "
                "arrays."
            ) from None
        raise InputError(
            f"{path}: not a readable .npz file ({reason(error)}); write it again with numpy.savez."
        ) from None
    return out


def _check_magic(path: Path, file: BinaryIO) -> None:
    """``np.load`` takes whatever is no zip for a pickle, and says so; here it is a foreign file."""
    magic = file.read(6)
    file.seek(0)
    if magic == b"\x93NUMPY":
        raise InputError(f"{path}: a single array; save named arrays with numpy.savez.")
    if not magic.startswith(b"PK"):
        raise InputError(
            f"{path}: not an .npz file, whatever its name says; write it with numpy.savez."
        )


def _points(path: Path, points: Array) -> Array:
    if points.dtype.kind not in "fiu":
        raise InputError(f"{path}: 'points' must be numbers; got {points.dtype}.")
    if points.ndim != 3 or points.shape[2] not in WIDTHS:
        raise InputError(
            f"{path}: 'points' must have shape (scenes, slots, 2 to 4 numbers); got {points.shape}."
        )
    return points.astype(float)


def _present(path: Path, present: Array, shape: tuple[int, ...]) -> Array:
    if present.shape != shape or (
        present.dtype != bool
        and not (present.dtype.kind in "iu" and np.isin(present, (0, 1)).all())
    ):
        raise InputError(
            f"{path}: 'present' must be true or false, of shape {shape}; got {present.dtype} of "
            f"shape {present.shape}."
        )
    return present.astype(bool)


def _finite_points(path: Path, points: Array, present: Array) -> None:
    bad = present & ~np.isfinite(points).all(-1)
    if bad.any():
        scene, slot = np.argwhere(bad)[0]
        raise InputError(
            f"{path}: point {slot} of scene {scene} is NaN or infinite; remove or repair it."
        )

"""Simulated scenes with their whole truth, as ``.npz``: which object, which part, which pose."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from partwise._checks import InputError
from partwise.files._common import offsets_of, readable, replacing
from partwise.files._npz import read_arrays
from partwise.sampling import Sample
from partwise.scenes import SceneBatch

__all__ = ["read_sample", "write_sample"]

Array = np.ndarray


def write_sample(path: str | Path, sample: Sample) -> None:
    """Scenes of plain points and their truth; any reader of scenes can read the points.

    ``points`` (S, M, D) and ``present`` (S, M) are the scenes; ``object_id`` and ``part_id`` (S, M)
    say which possible object of the model, and which part of it, a point is (-1: clutter).
    ``pose_of`` (S, R) are the objects that are there (-1: none), ``poses`` (S, R, d) how.
    """
    if Path(path).suffix.lower() != ".npz":
        raise InputError(f"{path}: simulated scenes are .npz files; give a name that ends in .npz.")
    counts = sample.scenes.counts
    present = np.arange(counts.max(initial=0)) < counts[:, None]
    there = np.array([len(p) for p in sample.poses])
    listed = np.arange(there.max(initial=0)) < there[:, None]
    dim = next((len(pose) for p in sample.poses for pose in p.values()), 0)
    arrays = {
        "points": np.zeros((*present.shape, sample.scenes.parts.shape[1])),
        "object_id": np.full(present.shape, -1, np.int32),
        "part_id": np.full(present.shape, -1, np.int32),
        "pose_of": np.full(listed.shape, -1, np.int32),
        "poses": np.zeros((*listed.shape, dim)),
    }
    arrays["points"][present] = sample.scenes.parts
    for name, lists in (("object_id", sample.object_id), ("part_id", sample.part_id)):
        arrays[name][present] = np.concatenate(lists) if lists else []
    if listed.any():
        arrays["pose_of"][listed] = [k for p in sample.poses for k in p]
        arrays["poses"][listed] = [pose for p in sample.poses for pose in p.values()]
    with replacing(path) as part, part.open("wb") as file:
        np.savez_compressed(file, present=present, **arrays)


def read_sample(path: str | Path) -> Sample:
    """What :func:`write_sample` wrote."""
    names = ("points", "present", "object_id", "part_id", "pose_of", "poses")
    arrays = read_arrays(readable(path), names)
    points, present, pose_of = arrays["points"], arrays["present"], arrays["pose_of"]
    shape = present.shape
    right = points.ndim == 3 and points.shape[:2] == shape and present.dtype == bool
    right &= all(arrays[n].shape == shape for n in ("object_id", "part_id"))
    right &= arrays["poses"].ndim == 3 and arrays["poses"].shape[:2] == pose_of.shape
    right &= len(pose_of) == len(points) if right else False
    if not right:
        raise InputError(
            f"{path}: the arrays of this file do not fit together; write it with "
            "`partwise simulate --crowd`."
        )
    batch = SceneBatch(points[present].astype(float), offsets_of(present.sum(1)))
    cut = np.cumsum(present.sum(1))[:-1]
    return Sample(
        batch,
        np.split(arrays["object_id"][present].astype(int), cut),
        np.split(arrays["part_id"][present].astype(int), cut),
        [
            {int(k): pose for k, pose in zip(of, poses, strict=True) if k >= 0}
            for of, poses in zip(pose_of, arrays["poses"], strict=True)
        ],
    )

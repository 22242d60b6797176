"""From a model and scenes to the arrays that solvers work on, and back.

``Slots`` is the model as arrays: one *slot* per part of every possible object (the columns of R).
``Problem`` is a set of scenes of equal size in the solvers' frame. ``Solution`` is what a solver
returns for it, in the same frame; ``partwise.inference`` carries it back.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Bool, Float, Int

from partwise._checks import InputError, finite
from partwise._types import Traceable
from partwise.frames import Frames, canonical_order, scene_frames, template_frames
from partwise.model import Model
from partwise.scenes import SceneBatch

__all__ = [
    "Claims",
    "MeanField",
    "Problem",
    "Slots",
    "Solution",
    "check",
    "fewest_at_once",
    "problems",
    "slots_of",
]

Array = np.ndarray


@jax.tree_util.register_dataclass
@dataclass(frozen=True, eq=False)
class Slots:
    """The model as arrays, templates in canonical order and in the solvers' frame.

    N slots, K objects, features G = geometry g + appearance f (padded), pose d = geometry and
    factors.
    A part's observation is ``x = F y + m`` with noise variance 1/lambda on the first g features and
    ``1 / inverse_variance`` on the others (eqs. 2 to 4). Object k has ``sizes[k]`` slots, one after
    the other.
    """

    design: Float[Traceable, "N G d"]
    mean: Float[Traceable, "N G"]
    inverse_variance: Float[Traceable, "N f"]
    gram: Float[Traceable, "N d d"]
    gram_appearance: Float[Traceable, "N d d"]
    prior_mean: Float[Traceable, " d"]
    prior_precision: Float[Traceable, " d"]
    object: Int[Traceable, " N"]
    part: Int[Traceable, " N"]
    kind: Int[Traceable, " N"]
    template: Int[Traceable, " K"]
    sizes: tuple[int, ...] = field(metadata={"static": True})
    geometry: int = field(metadata={"static": True})
    pose_dim: int = field(metadata={"static": True})

    def rows(self, k: int) -> Int[Array, " Nk"]:
        """The slots of object k."""
        start = sum(self.sizes[:k])
        return np.arange(start, start + self.sizes[k])


@lru_cache(maxsize=64)
def slots_of(model: Model) -> Slots:
    """The arrays of ``model`` (cached: models are immutable)."""
    frames = template_frames(model)
    family, looks = model.pose, model.templates[0].appearance
    feature_counts = [
        0 if t.appearance is None else max(t.appearance.features) for t in model.templates
    ]
    factor_counts = [0 if t.appearance is None else t.appearance.factors for t in model.templates]
    g, f, d, width = model.part_size, max(feature_counts), family.dim, max(factor_counts)
    kinds = {name: i for i, name in enumerate(model.type_names)}
    rows: dict[str, list] = {key: [] for key in ("design", "mean", "inv", "object", "part", "kind")}
    templates: list[int] = []
    assert model.instances is not None
    for t in model.canonical_order:
        template = model.templates[t]
        parts = frames.of(int(t)).normalise(template.parts[None])[0]
        for _ in range(model.instances[t]):
            for n, part in enumerate(parts):
                design, mean = np.zeros((g + f, d + width)), np.zeros(g + f)
                inv = np.zeros(f)
                design[:g, :d], mean[:g] = family.design(part), family.offset(part)
                if looks is not None:
                    a = template.appearance
                    assert a is not None
                    stop = g + a.features[n]
                    design[g:stop, d : d + a.factors] = a.loadings[n]
                    mean[g:stop] = a.means[n]
                    inv[: a.features[n]] = 1.0 / a.variances[n]
                rows["design"].append(design)
                rows["mean"].append(mean)
                rows["inv"].append(inv)
                rows["object"].append(len(templates))
                rows["part"].append(n)
                rows["kind"].append(kinds[template.types[n]] if template.types else 0)
            templates.append(int(t))
    prior_mean, prior_precision = np.zeros(d + width), np.ones(d + width)
    if not family.scales:
        # The unit is the templates' and not the scene's: objects may lie far from the origin.
        prior_precision[:d] = 1e-4
    if model.prior is not None:
        prior_mean[:d], prior_precision[:d] = model.prior.mean, 1.0 / model.prior.variance
    f32, design = np.float32, np.array(rows["design"])
    inverse_variance = np.array(rows["inv"]).reshape(len(design), f)
    seen, looks_like = design[:, :g], design[:, g:]
    return Slots(
        design.astype(f32),
        np.array(rows["mean"], f32),
        inverse_variance.astype(f32),
        np.einsum("ngi,ngj->nij", seen, seen).astype(f32),
        np.einsum("nf,nfi,nfj->nij", inverse_variance, looks_like, looks_like).astype(f32),
        prior_mean.astype(f32),
        prior_precision.astype(f32),
        np.array(rows["object"], np.int32),
        np.array(rows["part"], np.int32),
        np.array(rows["kind"], np.int32),
        np.array(templates, np.int32),
        tuple(len(model.templates[t]) for t in templates),
        g,
        d,
    )


@dataclass(frozen=True, eq=False)
class Problem:
    """Scenes with equally many points, normalised and in canonical order.

    ``points`` is (B, M, G), padded where ``count`` < M; ``kind`` is the type of each part.
    Point m of scene b is row ``order[b, m]`` of scene ``index[b]`` of the batch.
    """

    model: Model
    slots: Slots
    points: Float[Array, "B M G"]
    count: Int[Array, " B"]
    kind: Int[Array, "B M"]
    frames: Frames
    index: Int[Array, " B"]
    order: Int[Array, "B M"]

    def __len__(self) -> int:
        return len(self.points)

    @property
    def size(self) -> int:
        """M, the number of rows of every scene here."""
        return self.points.shape[1]

    def trimmed(self) -> Problem:
        """The same scenes without padding."""
        count = int(self.count[0])
        return replace(
            self,
            points=self.points[:, :count],
            kind=self.kind[:, :count],
            order=self.order[:, :count],
        )


class MeanField(NamedTuple):
    """The variational posterior of Algorithm 2, for scenes in a batch."""

    assignment: Float[Array, "B M N"]
    clutter: Float[Array, "B M"]
    pose_mean: Float[Array, "B K d"]
    pose_precision: Float[Array, "B K d d"]
    beta: Float[Array, " B"]


class Claims(NamedTuple):
    """What a method says that gives points to objects but not to their parts (CCAE).

    ``owner[b, m]`` is the object that has point m, ``there[b, k]`` whether object k is there, and
    ``absent[b]`` the object that a slot without a point goes to: the published scores ask for one.
    """

    owner: Int[Array, "B M"]
    there: Bool[Array, "B K"]
    absent: Int[Array, " B"]


class Solution(NamedTuple):
    """What a solver found: for each possible object, which point is which part, and its pose.

    ``parts[b, k, n]`` is the point that is part n of object k, -1 where there is none;
    ``probability`` is 0 for objects that were not found. ``claims``, where there are any, are what
    is scored.
    """

    parts: Int[Array, "B K P"]
    pose: Float[Array, "B K d"]
    probability: Float[Array, "B K"]
    score: Float[Array, " B"]
    converged: Bool[Array, " B"]
    variational: MeanField | None = None
    claims: Claims | None = None


FEWEST_AT_ONCE = 64
"""Scenes with appearance go through compiled code at least so many at once."""


def fewest_at_once(model: Model) -> int:
    """The smallest chunk of scenes worth a compilation of its own (``batching.in_chunks``)."""
    return 1 if model.templates[0].appearance is None else FEWEST_AT_ONCE


def check(model: Model, batch: SceneBatch) -> None:
    """One clear sentence if ``batch`` cannot have come from ``model``."""
    finite("scenes: points", batch.parts)
    if len(batch.parts) and batch.parts.shape[1] != model.part_size:
        raise InputError(
            f"scenes: each part has {batch.parts.shape[1]} numbers, but this model's parts have "
            f"{model.part_size}; give scenes and templates the same columns."
        )
    if model.type_names and batch.types is None and len(batch.parts):
        raise InputError(
            f"scenes: this model's parts are typed ({', '.join(model.type_names)}); give each "
            "detected part its type."
        )
    if batch.types is not None and model.type_names:
        for name in sorted(set(batch.types) - set(model.type_names)):
            raise InputError(
                f"scenes: unknown part type {name!r}; this model knows "
                f"{', '.join(model.type_names)}."
            )
    looks = model.templates[0].appearance
    if looks is not None and batch.appearance is None and len(batch.parts):
        raise InputError("scenes: this model's parts have appearance; give each part its own.")
    if looks is not None and batch.appearance is not None:
        lengths: dict[str, set[int]] = {}
        for t in model.templates:
            assert t.appearance is not None
            for name, size in zip(t.types or ("",) * len(t), t.appearance.features, strict=True):
                lengths.setdefault(name, set()).add(size)
        for m, look in enumerate(batch.appearance):
            name = batch.types[m] if batch.types is not None and model.type_names else ""
            if len(look) not in lengths[name]:
                raise InputError(
                    f"scenes: the appearance of part {m}{f' ({name})' if name else ''} has "
                    f"{len(look)} numbers; the model's has {sorted(lengths[name])[0]}."
                )


def _padded_size(model: Model, count: int) -> int:
    """Scenes of up to 16 points keep their size; larger ones are padded to a few sizes.

    With appearance, whatever is compiled is dear: scenes are padded to whole objects.
    """
    if model.templates[0].appearance is not None:
        whole = max(map(len, model.templates))
        return -(-count // whole) * whole
    if count <= 16:
        return count
    step = 2 ** max(int(np.log2(count)) - 2, 2)
    return -(-count // step) * step


def problems(model: Model, batch: SceneBatch) -> list[Problem]:
    """The non-empty scenes of ``batch``, grouped by their number of points."""
    slots, kinds = slots_of(model), None
    if model.type_names and batch.types is not None:
        codes = {name: i for i, name in enumerate(model.type_names)}
        kinds = np.array([codes[t] for t in batch.types], np.int32)
    return [
        _problem(model, slots, batch, kinds, np.flatnonzero(batch.counts == count), count)
        for count in np.unique(batch.counts).tolist()
        if count
    ]


def _problem(model, slots, batch, kinds, index, count: int) -> Problem:
    size = _padded_size(model, count)
    dim, g = model.pose.scene_dim, model.part_size
    rows = batch.offsets[index][:, None] + np.arange(count)
    parts = batch.parts[rows]
    frames = scene_frames(model, parts)
    normal = frames.normalise(parts)
    order = canonical_order(normal, dim)
    kind = np.zeros((len(index), count), np.int32) if kinds is None else kinds[rows]
    if kinds is not None:
        # Types first: within a type, the geometric order.
        by_kind = np.argsort(np.take_along_axis(kind, order, 1), axis=1, kind="stable")
        order = np.take_along_axis(order, by_kind, 1)
    normal = np.take_along_axis(normal, order[..., None], 1)
    kind = np.take_along_axis(kind, order, 1)
    features = slots.design.shape[1]
    points = np.zeros((len(index), size, features), np.float32)
    points[:, :count, :g] = normal
    if batch.appearance is not None and features > g:
        for b, scene_rows in enumerate(np.take_along_axis(rows, order, 1)):
            for m, row in enumerate(scene_rows):
                look = batch.appearance[row]
                points[b, m, g : g + len(look)] = look
    pad = ((0, 0), (0, size - count))
    return Problem(
        model,
        slots,
        points,
        np.full(len(index), count, np.int32),
        np.pad(kind, pad, constant_values=-1),
        frames,
        index,
        np.pad(order, pad, constant_values=-1),
    )

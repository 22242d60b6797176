"""What the search is told: scenes as arrays, the tolerance of SubsetMatch, what may be assumed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int

from partwise._checks import InputError
from partwise._types import Array
from partwise.batching import in_chunks
from partwise.model import Model
from partwise.problem import Problem, fewest_at_once
from partwise.solvers.ransac.bases import BIG_SCENE

__all__ = ["Options", "Scene", "Scenes", "options", "over_scenes", "scene", "tolerance2"]

TOLERANCE = 1.3
"""The tolerance where objects are whole and alone, in template radii (see :func:`tolerance2`)."""

_CAUTIOUS = 0.3
_SIGMAS = 7.0


class Options(NamedTuple):
    """What the compiled code is specialised to.

    ``whole``: no part is ever missing; ``covered``: nor is there any clutter. ``linear``: the pose
    is a translation and a full matrix.
    """

    whole: bool
    covered: bool
    refit: bool
    scales: bool
    typed: bool
    scene_dim: int
    linear: bool


def options(model: Model, refit: bool) -> Options:
    """The options that follow from a model."""
    columns, rows = model.pose.template_dim, model.pose.scene_dim
    return Options(
        model.missing == 0,
        model.missing == 0 and model.clutter == 0,
        refit,
        model.pose.scales,
        bool(model.type_names),
        rows,
        model.pose.dim == rows * (columns + 1),
    )


def tolerance2(model: Model, tolerance: float | None) -> np.float32:
    """The squared tolerance in the solvers' unit (absolute frames have none of their own).

    The paper's 0.1 is a length in a scene that fills [-1, 1]; ours is relative to the object. By
    default, where every point belongs to a whole object, wide: a prediction from two noisy points
    is off by up to four sigma a coordinate, and the errors decide (measured on our generator,
    sigma 0.25, three seeds: scene accuracy .793, .850, .854, .854 at 0.6, 0.8, 1.0 and 1.3).

    Where parts may be missing or clutter stands in for them, it follows the noise, else it is 0.3.
    That is a rough choice: of 0.1, 0.2, 0.3, 0.5 and 0.8, on 100 scenes of one seed, 0.1 (6 sigma)
    was best at sigma 0.02 and 0.8 (10 sigma, little better than 0.5) at 0.1. The 7 itself was not
    among them.
    """
    if tolerance is None:
        sigma = model.noise.sigma
        if model.missing == 0 and model.clutter == 0:
            tolerance = TOLERANCE
        elif sigma is not None and model.noise.follows_scale:
            tolerance = float(np.clip(_SIGMAS * sigma / model.unit, 0.02, TOLERANCE))
        else:
            tolerance = _CAUTIOUS
    if not (np.isfinite(tolerance) and tolerance > 0):
        raise InputError(f"ransac: tolerance must be a positive number, or None; got {tolerance}.")
    return np.float32((tolerance * (model.unit if model.prior is not None else 1.0)) ** 2)


class Scenes(NamedTuple):
    """Scenes as they enter the compiled code, batch first."""

    points: Float[Array, "B M g"]
    kind: Int[Array, "B M"]
    count: Int[Array, " B"]


class Scene(NamedTuple):
    """The points x_m of a batch of scenes, which of them are free, and how dense these lie."""

    x: Float[Array, "g M B"]
    open: Bool[Array, "M B"]
    kind: Int[Array, "M B"]
    tol2: Float[Array, ""]
    density: Float[Array, " B"]


def over_scenes(problem: Problem, search: Callable[[Scenes], Any]) -> Any:
    """``search`` on all scenes of a problem, chunk by chunk."""
    scenes = Scenes(problem.points[..., : problem.model.part_size], problem.kind, problem.count)
    largest = 256 if problem.size <= BIG_SCENE else 16
    smallest = min(fewest_at_once(problem.model), largest)
    return in_chunks(lambda chunk, _: search(chunk), scenes, largest, smallest)


def scene(scenes: Scenes, tol2, dim: int, free: Bool[Array, "M B"] | None = None) -> Scene:
    """What the search needs to know of scenes whose points are all there, or only ``free``."""
    x = jnp.moveaxis(scenes.points, 0, -1).swapaxes(0, 1)
    open_ = jnp.arange(x.shape[1])[:, None] < scenes.count if free is None else free
    mass = jnp.maximum(open_.sum(0), 1)
    here = x[:dim] * open_
    centre = here.sum(1) / mass
    spread = ((here - centre[:, None]) ** 2 * open_).sum((0, 1)) / mass
    # A uniform cloud of that spread fills a box of this side.
    side = jnp.maximum(jnp.sqrt(12 / dim * spread), 1e-6)
    return Scene(x, open_, scenes.kind.T, tol2, mass / side**dim)

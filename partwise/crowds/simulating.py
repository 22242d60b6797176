"""The generator of crowds: random templates, and scenes in which their objects stand about.

Templates are 6 to 10 points drawn evenly from the unit disc. A scene holds 2 to 12 objects, each a
random one of the model's possible copies, at a scale of 1 to 4, turned by any angle, anywhere in a
square window whose side is 45 radii of a template (root mean square, ``Template.radius``: about 30
for the unit disc), so that objects overlap: the disc of each meets that of another one in every
second case. The noise is 0.02 of the radius, in the template's frame, so that it grows with the
object. Every part is hidden with probability 0.15. Clutter is spread evenly over the window: so
many points that it is 30 % of all points of the scene (60 % in the hard tier). That makes about 70
points a scene (120).

The window is our choice, and decides what is possible. At this size objects of four visible parts
are at the edge of what can be told from clutter, and in the hard tier those of five.
"""

from __future__ import annotations

import numpy as np

from partwise._checks import InputError
from partwise.model import Model, Noise
from partwise.poses import Similarity2D
from partwise.sampling import Sample, generator
from partwise.scenes import Scene, SceneBatch
from partwise.templates import Template

__all__ = ["COPIES", "NOISE", "OBJECTS", "WINDOW", "crowd_model", "simulate_clutter"]
__all__ += ["simulate_crowd"]

Array = np.ndarray

WINDOW = 45.0
"""The side of the square in which scenes lie, clutter included, in radii of a template."""

PARTS = (6, 10)
OBJECTS = (2, 12)
MISSING = 0.15
NOISE = 0.02

COPIES = 4
"""At most so many objects of one template: twelve objects of 20 templates seldom have five."""


def crowd_model(templates: int = 20, clutter: float = 0.3, key: object = 0) -> Model:
    """A model of random templates for crowds; ``clutter`` is its share of all points.

    >>> from partwise.crowds import crowd_model
    >>> len(crowd_model(20).templates)
    20
    """
    if not isinstance(templates, (int, np.integer)) or templates < 1:
        raise InputError(f"templates must be a whole number >= 1; got {templates!r}.")
    if not 0 <= clutter < 1:
        raise InputError(f"clutter must be a share of all points, in [0, 1); got {clutter!r}.")
    rng = generator(key)
    digits = len(str(templates - 1))
    shapes = []
    for t in range(templates):
        count = rng.integers(PARTS[0], PARTS[1] + 1)
        distance, angle = np.sqrt(rng.uniform(size=count)), rng.uniform(0, 2 * np.pi, count)
        points = distance[:, None] * np.stack([np.cos(angle), np.sin(angle)], 1)
        shapes.append(Template(points, f"shape {t:0{digits}d}"))
    objects = sum(OBJECTS) / 2
    visible = objects * float(np.mean([len(s) for s in shapes])) * (1 - MISSING)
    return Model(
        shapes,
        instances=[COPIES] * templates,
        noise=Noise(NOISE * float(np.mean([s.radius for s in shapes])), follows_scale=True),
        presence=min(objects / (COPIES * templates), 0.9),
        missing=MISSING,
        clutter=visible * clutter / (1 - clutter),
        scales=(1.0, 4.0),
    )


def simulate_crowd(model: Model, scenes: int = 100, key: object = 0) -> Sample:
    """Draw crowds from the templates of ``model``, with their truth.

    The model's ``missing``, ``noise`` (none where it is not known) and ``scales`` are used, and of
    ``clutter`` the share of all points that it is on average.
    """
    _check(model, scenes)
    rng = generator(key)
    whole = float(np.mean([len(t) for t in model.templates]))
    per_visible = model.clutter / (sum(OBJECTS) / 2 * whole * (1 - model.missing))
    drawn, objects, parts, poses = [], [], [], []
    copies = np.array(model.copies)
    for _ in range(scenes):
        most = min(int(rng.integers(OBJECTS[0], OBJECTS[1] + 1)), len(copies))
        here, rows, owner, part = {}, [], [], []
        for k in rng.permutation(len(copies))[:most].tolist():
            here[k], moved = _stand(model, int(copies[k]), rng)
            seen = np.flatnonzero(rng.random(len(moved)) >= model.missing)
            rows.append(moved[seen])
            owner.append(np.full(len(seen), k))
            part.append(seen)
        clutter = round(per_visible * sum(map(len, rows)))
        rows.append(rng.uniform(0, WINDOW * model.unit, (clutter, 2)))
        owner.append(np.full(clutter, -1))
        part.append(np.full(clutter, -1))
        order = rng.permutation(sum(map(len, rows)))
        drawn.append(Scene(np.concatenate(rows)[order]))
        objects.append(np.concatenate(owner)[order])
        parts.append(np.concatenate(part)[order])
        poses.append(here)
    return Sample(SceneBatch.collect(drawn), objects, parts, poses)


def simulate_clutter(
    model: Model, scenes: int = 100, points: int = 70, key: object = 0
) -> SceneBatch:
    """Scenes of ``points`` that belong to nothing, in the same window."""
    _check(model, scenes)
    if not isinstance(points, (int, np.integer)) or points < 0:
        raise InputError(f"points must be a whole number >= 0; got {points!r}.")
    rng = generator(key)
    side = WINDOW * model.unit
    return SceneBatch.collect([rng.uniform(0, side, (points, 2)) for _ in range(scenes)])


def _stand(model: Model, t: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """The pose of an object that stands somewhere in the window, and its parts there."""
    template = model.templates[t]
    scale = rng.uniform(*model.scales)
    pose = Similarity2D().from_parameters((0, 0), scale, rng.uniform(0, 2 * np.pi))
    noise = (model.noise.sigma or 0.0) * (scale if model.noise.follows_scale else 1.0)
    moved = model.pose.apply(pose, template.parts)
    moved = moved + noise * rng.standard_normal(moved.shape)
    low, high = moved.min(0), moved.max(0)
    # A template too large for the window stands in its middle.
    room = np.maximum(WINDOW * model.unit - (high - low), 0.0)
    shift = rng.uniform(size=2) * room - low
    pose[:2] += shift
    return pose, moved + shift


def _check(model: Model, scenes: int) -> None:
    if not isinstance(model, Model):
        raise InputError(f"model must be a partwise Model; got {type(model).__name__}.")
    if not isinstance(scenes, (int, np.integer)) or scenes < 1:
        raise InputError(f"scenes must be a whole number >= 1; got {scenes!r}.")
    plain = model.part_size == 2 and not model.type_names
    if (
        not isinstance(model.pose, Similarity2D)
        or not plain
        or model.templates[0].appearance is not None
    ):
        raise InputError("crowds are of plain, untyped points in the plane, moved by similarities.")

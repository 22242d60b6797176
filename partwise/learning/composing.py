"""Templates that were learned one by one, as one model (sec. 6: curriculum learning)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from partwise._checks import InputError
from partwise.learning.single import Learned
from partwise.model import Model, Noise
from partwise.templates import Template

__all__ = ["compose", "radii_of"]

QUIET = 1e-3
"""Noise below this share of a template's radius counts as none."""


def radii_of(sigmas: Sequence[float]) -> tuple[list[float], float]:
    """The radii at which templates of radius 1 have a common noise level, and that level.

    All templates of a model share one unit, in which the noise is measured. That objects are
    equally noisy says how large their templates are next to each other; without noise nothing does.
    """
    level = np.maximum(np.asarray(sigmas, float), QUIET)
    common = float(np.exp(np.log(level).mean()))
    if level.min() <= QUIET or len(level) == 1:
        return [1.0] * len(level), common
    return [common / float(s) for s in level], common


def compose(
    learned: Sequence[Learned], instances: Sequence[int] | None = None, **options: Any
) -> Model:
    """A model of all these objects; ``options`` are those of :class:`partwise.Model`.

    The noise level is that of learning, if every object had noise; else it is left open.
    """
    if not learned or not all(isinstance(one, Learned) for one in learned):
        raise InputError("compose takes a list of what learn returns, at least one.")
    radii, sigma = radii_of([one.sigma for one in learned])
    known = all(one.follows_scale and one.sigma > QUIET for one in learned)
    if not known:
        radii = [1.0] * len(learned)
    templates = [
        Template(one.parts * radius, one.name, one.types, one.appearance)
        for one, radius in zip(learned, radii, strict=True)
    ]
    options.setdefault("noise", Noise(sigma if known else None))
    options.setdefault("missing", float(np.mean([one.missing for one in learned])))
    return Model(templates, None if instances is None else list(instances), **options)

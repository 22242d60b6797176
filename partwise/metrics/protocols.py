"""The two protocols: labels as published, and after the best renaming of identical objects."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float, Int

from partwise._checks import InputError
from partwise.metrics.layouts import groups_of, layouts_of
from partwise.metrics.measures import measures
from partwise.metrics.renaming import Answer, best_renaming
from partwise.metrics.scores import Scores
from partwise.model import Model
from partwise.scenes import LabelledScenes

__all__ = ["exchangeable_scores", "published_scores"]

Array = np.ndarray


def published_scores(
    labelled: LabelledScenes, owner: Int[Array, "S N"], instantiated: Bool[Array, "S N"]
) -> Scores:
    """Scores of the labels ``(c(d) + 1) q(d)`` as they are."""
    owner, instantiated = _slot_arrays(labelled, owner, instantiated)
    truth = np.where(labelled.present, labelled.object_id + 1, 0)
    scene = np.flatnonzero(labelled.present.any(1))
    values = measures(truth[scene], ((owner + 1) * instantiated)[scene])
    return _scores(values, scene)


def exchangeable_scores(
    labelled: LabelledScenes,
    owner: Int[Array, "S N"],
    instantiated: Bool[Array, "S N"],
    model: Model,
) -> Scores:
    """Scores after the best renaming of the predicted instances of identical templates.

    ``model`` says which objects are identical. Per scene, best means: of the highest segmentation
    accuracy, among those of the highest adjusted Rand index, among those of the lowest variation of
    information.
    """
    owner, instantiated = _slot_arrays(labelled, owner, instantiated)
    truth = np.where(labelled.present, labelled.object_id + 1, 0)
    scene = np.flatnonzero(labelled.present.any(1))
    best = np.zeros((3, len(labelled)))
    for layout in layouts_of(labelled, model):
        index = np.intersect1d(layout.scenes, scene)
        if len(index):
            answer = Answer(
                truth[index], labelled.present[index], owner[index], instantiated[index]
            )
            best[:, index] = best_renaming(answer, layout, groups_of(model))
    return _scores(best[:, scene], scene)


def _slot_arrays(labelled: LabelledScenes, owner: object, instantiated: object):
    owner, instantiated = np.asarray(owner, int), np.asarray(instantiated, bool)
    for name, value in (("owner", owner), ("instantiated", instantiated)):
        if value.shape != labelled.present.shape:
            raise InputError(
                f"{name} must have one entry a slot, shape {labelled.present.shape}; "
                f"got {value.shape}."
            )
    return owner, instantiated


def _scores(values: Float[Array, "3 s"], scene: Int[Array, " s"]) -> Scores:
    if not len(scene):
        raise InputError("labelled scenes: every scene is empty; there is nothing to score.")
    # A scene is accurate where all of its N slots match: 1 - 1/N is the next lower value.
    return Scores(*values, scene_accuracy=(values[0] > 1 - 1e-9).astype(float), scene=scene)

"""From explanations to slots: what a solver said, in the terms of the truth."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Int

from partwise._checks import InputError
from partwise.metrics.layouts import layouts_of
from partwise.posterior import Explanations
from partwise.scenes import LabelledScenes

__all__ = ["INSTANTIATED", "predictions"]

Array = np.ndarray

INSTANTIATED = 1e-3
"""q(d) holds where the total responsibility of template part d exceeds this (DESIGN, sec. 3)."""


def predictions(
    explanations: Explanations, labelled: LabelledScenes
) -> tuple[Int[Array, "S N"], Bool[Array, "S N"]]:
    """``(owner, instantiated)``: what a solver said about ``labelled.scenes``, slot by slot.

    From a variational posterior, c is the object with most of the point's responsibility,
    ``argmax_k sum_n r_mnk``, and ``q(d) = sum_m r_md > 1e-3``. From detections, c is the instance
    that has the point (-1, no object, where there is none) and q(d) says that the part was matched.
    From a method that does not match parts (CCAE), q(d) says that the object is there. In absent
    slots c is 0, as published, but for such a method, which gives one for every slot.
    """
    if len(explanations) != len(labelled):
        raise InputError(
            f"explanations of {len(explanations)} scenes for {len(labelled)} labelled scenes; "
            "explain labelled.scenes."
        )
    point_owner, claimed = _from_detections(explanations)
    _from_posteriors(explanations, point_owner, claimed)
    if (claims := explanations.claims) is not None:
        point_owner = claims.owner
        claimed = np.broadcast_to(claims.there[..., None], claimed.shape)
    owner = np.zeros(labelled.present.shape, int)
    seen = np.zeros(labelled.present.shape, int)
    seen[labelled.present] = point_owner
    instantiated = np.zeros(labelled.present.shape, bool)
    for layout in layouts_of(labelled, explanations.model):
        index = layout.scenes
        # -1, "no object", stays -1.
        numbers = np.append(layout.object, -1)
        absent = 0 if claims is None else numbers[claims.absent[index]][:, None]
        owner[index] = np.where(labelled.present[index], numbers[seen[index]], absent)
        for k, slots in enumerate(layout.slots):
            slots = slots[slots >= 0]
            instantiated[np.ix_(index, slots)] = claimed[index, k, : len(slots)]
    return owner, instantiated


def _from_detections(explanations: Explanations) -> tuple[Int[Array, " total"], Array]:
    """Per observed point the object that has it, and per scene, object and part whether matched."""
    claimed = (explanations.parts >= 0) & explanations.found[:, :, None]
    scene, k, n = np.nonzero(claimed)
    point_owner = np.full(len(explanations.scenes.parts), -1)
    point_owner[explanations.scenes.offsets[scene] + explanations.parts[scene, k, n]] = k
    return point_owner, claimed


def _from_posteriors(explanations: Explanations, point_owner: Array, claimed: Array) -> None:
    """The same by responsibilities, in place, for the scenes that have a variational posterior."""
    if explanations.posteriors is None:
        return
    posteriors = explanations.posteriors
    counts = explanations.scenes.counts
    has = np.array([p is not None for p in posteriors], bool)
    for count in np.unique(counts[has]):
        index = np.flatnonzero(has & (counts == count))
        same = [p for i in index.tolist() if (p := posteriors[i]) is not None]
        r = np.stack([p.assignment for p in same])
        column_object = same[0].object
        one_hot = column_object[:, None] == np.arange(claimed.shape[1])
        rows = explanations.scenes.offsets[index][:, None] + np.arange(count)
        point_owner[rows] = np.einsum("smn,nk->smk", r, one_hot).argmax(2)
        total = r.sum(1) > INSTANTIATED
        claimed[index] = False
        for k in range(claimed.shape[1]):
            columns = np.flatnonzero(column_object == k)
            claimed[index, k, : len(columns)] = total[:, columns]

"""How good an answer is: the evaluation metrics of Appendix C, in two protocols.

A scene is a partition of the N *slots* (the parts of all the objects that it could hold) into those
of object 1, of object 2, ..., and the missing ones, 0. The truth gives ``label(d) = object + 1``
where slot d is present and 0 where it is not. A method gives two things: ``owner``, c(d), the
object it assigned to the observed point of slot d, and ``instantiated``, q(d), whether it claims
that template part d is there at all. Its label is ``(c(d) + 1) q(d)``.

- *published*: those labels as they are. It punishes a method that explains the only square in the
  scene by the *other* square's slots, although the two templates are identical.
- *exchangeable*: first, in each scene, the predicted instances of identical templates are renamed,
  in c and in the slots of q, in the way that agrees best with the truth.

Everything here works on all scenes at once: a scene is its table of overlaps
``table[i, j] = |V_i n V^_j|``, from which each metric is a closed form.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import permutations, product
from math import factorial, prod

import numpy as np
from jaxtyping import Bool, Float, Int

from partwise._checks import InputError
from partwise.model import Model
from partwise.posterior import Explanations
from partwise.scenes import LabelledScenes

__all__ = [
    "INSTANTIATED",
    "METRICS",
    "Scores",
    "adjusted_rand_index",
    "exchangeable_scores",
    "overlap_tables",
    "paired_t_tests",
    "predictions",
    "published_scores",
    "segmentation_accuracy",
    "variation_of_information",
]

Array = np.ndarray

INSTANTIATED = 1e-3
"""q(d) holds where the total responsibility of template part d exceeds this (DESIGN, sec. 3)."""

METRICS = (
    "segmentation_accuracy",
    "adjusted_rand_index",
    "variation_of_information",
    "scene_accuracy",
)
"""The metrics' names, in the order of Table 1."""

_MOST_RENAMINGS = 720
"""Renamings are tried one by one up to here (six copies of one template)."""

_MOST_LABELS = 5
"""Up to here the best matching of labels is found by trying all of them (5! = 120)."""


@dataclass(frozen=True, eq=False)
class Scores:
    """The metrics of every scored (non-empty) scene; ``scene`` says which scenes these are."""

    segmentation_accuracy: Float[Array, " s"]
    adjusted_rand_index: Float[Array, " s"]
    variation_of_information: Float[Array, " s"]
    scene_accuracy: Float[Array, " s"]
    scene: Int[Array, " s"]

    def __len__(self) -> int:
        return len(self.scene)

    def mean(self) -> dict[str, float]:
        """The average over scenes, as in Table 1.

        For segmentation accuracy the two averages of Appendix C agree: ``W(V, V) = N`` throughout.
        """
        return {name: float(getattr(self, name).mean()) for name in METRICS}

    def standard_error(self) -> dict[str, float]:
        """The standard error of :meth:`mean`, s / sqrt(n); 0 for a single scene."""
        count = len(self)
        if count < 2:
            return dict.fromkeys(METRICS, 0.0)
        return {n: float(getattr(self, n).std(ddof=1) / np.sqrt(count)) for n in METRICS}


# The metrics of one table of overlaps, vectorised over scenes ---------------------------------


def overlap_tables(truth: Int[Array, "S N"], predicted: Int[Array, "S N"]) -> Int[Array, "S A B"]:
    """``table[s, i, j] = |V_i n V^_j|``, the number of slots of label i that are called j.

    Labels are any whole numbers; what they are called makes no difference to the metrics.
    """
    rows, truth = _dense(truth)
    columns, predicted = _dense(predicted)
    count = len(truth)
    cell = (np.arange(count)[:, None] * rows + truth) * columns + predicted
    flat = np.bincount(cell.ravel(), minlength=count * rows * columns)
    return flat.reshape(count, rows, columns)


def _dense(labels: Array) -> tuple[int, Array]:
    """Labels as 0 .. n - 1, and n."""
    values, dense = np.unique(labels, return_inverse=True)
    return len(values), dense.reshape(labels.shape)


def variation_of_information(tables: Int[Array, "S A B"]) -> Float[Array, " S"]:
    """``VI = - sum_ij r_ij [log r_ij / p_i + log r_ij / q_j]``, natural logarithm (Appendix C)."""
    total = np.maximum(tables.sum((1, 2)), 1)[:, None, None]
    r = tables / total
    p, q = r.sum(2, keepdims=True), r.sum(1, keepdims=True)
    safe = np.where(tables > 0, r, 1.0)
    p, q = np.where(p > 0, p, 1.0), np.where(q > 0, q, 1.0)
    terms = r * (np.log(safe / p) + np.log(safe / q))
    return np.maximum(-terms.sum((1, 2)), 0.0)


def adjusted_rand_index(tables: Int[Array, "S A B"]) -> Float[Array, " S"]:
    """The Rand index corrected for chance (Hubert and Arabie), from pairs of slots.

    With TP, TN, FP, FN counted over ordered pairs as scikit-learn does,
    ``ARI = 2 (TP TN - FN FP) / [(TP + FN)(FN + TN) + (TP + FP)(FP + TN)]``; partitions that agree
    on every pair (two trivial ones, for example) have index 1.
    """
    n = tables.sum((1, 2))
    rows, columns = tables.sum(2), tables.sum(1)
    same = (tables**2).sum((1, 2))
    tp = same - n
    fp = (columns**2).sum(1) - same
    fn = (rows**2).sum(1) - same
    tn = n**2 - fp - fn - same
    bottom = (tp + fn) * (fn + tn) + (tp + fp) * (fp + tn)
    perfect = (fp == 0) & (fn == 0)
    return np.where(perfect, 1.0, 2.0 * (tp * tn - fn * fp) / np.where(bottom == 0, 1, bottom))


def segmentation_accuracy(tables: Int[Array, "S A B"]) -> Float[Array, " S"]:
    """``SA = W(V, V^) / N`` with W the maximum one-to-one matching of labels (Appendix C)."""
    total = np.maximum(tables.sum((1, 2)), 1)
    return _matching(tables) / total


def _matching(tables: Array) -> Array:
    """The weight of the best one-to-one matching of rows and columns, for every table."""
    if tables.shape[1] > tables.shape[2]:
        tables = tables.swapaxes(1, 2)
    rows, columns = tables.shape[1:]
    if columns <= _MOST_LABELS:
        best = np.zeros(len(tables), tables.dtype)
        for choice in permutations(range(columns), rows):
            np.maximum(best, sum(tables[:, i, j] for i, j in enumerate(choice)), out=best)
        return best
    from scipy.optimize import linear_sum_assignment

    unique, inverse = np.unique(tables.reshape(len(tables), -1), axis=0, return_inverse=True)
    unique = unique.reshape(-1, rows, columns)
    weight = [t[linear_sum_assignment(t, maximize=True)].sum() for t in unique]
    return np.array(weight, tables.dtype)[inverse.ravel()]


def _metrics(truth: Array, predicted: Array) -> Float[Array, "3 S"]:
    """Segmentation accuracy, adjusted Rand index and variation of information."""
    if not len(truth):
        return np.zeros((3, 0))
    tables = overlap_tables(truth, predicted)
    return np.stack(
        [
            segmentation_accuracy(tables),
            adjusted_rand_index(tables),
            variation_of_information(tables),
        ]
    )


# The protocols --------------------------------------------------------------------------------


def published_scores(
    labelled: LabelledScenes, owner: Int[Array, "S N"], instantiated: Bool[Array, "S N"]
) -> Scores:
    """Scores of the labels ``(c(d) + 1) q(d)`` as they are."""
    owner, instantiated = _slot_arrays(labelled, owner, instantiated)
    truth = np.where(labelled.present, labelled.object_id + 1, 0)
    scene = np.flatnonzero(labelled.present.any(1))
    values = _metrics(truth[scene], ((owner + 1) * instantiated)[scene])
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
    for layout in _layouts(labelled, model):
        index = np.intersect1d(layout.scenes, scene)
        if len(index):
            answer = _Answer(
                truth[index], labelled.present[index], owner[index], instantiated[index]
            )
            best[:, index] = _best_renaming(answer, layout, _groups(model))
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


def paired_t_tests(a: Scores, b: Scores) -> dict[str, dict[str, float]]:
    """Paired t-tests of a against b on the three clustering metrics, as in sec. 7.1.2.

    Per metric: the mean difference a - b, the statistic and the two-sided p-value.
    """
    if not np.array_equal(a.scene, b.scene):
        raise InputError("paired t-tests need two methods that were scored on the same scenes.")
    from scipy.stats import ttest_rel

    out = {}
    for name in METRICS[:3]:
        difference = getattr(a, name) - getattr(b, name)
        mean = float(difference.mean())
        if len(difference) < 2 or np.ptp(difference) == 0:
            # The statistic is 0 / 0 without any difference, infinite where all are alike.
            statistic, p = (0.0, 1.0) if mean == 0 else (float(np.copysign(np.inf, mean)), 0.0)
        else:
            statistic, p = map(float, ttest_rel(getattr(a, name), getattr(b, name)))
        out[name] = {"difference": mean, "statistic": statistic, "p_value": p}
    return out


# Slots of a file and objects of a model -------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Layout:
    """Which slot of the file is which part of which possible object (``model.copies``).

    ``slots[k, n]`` is the slot of part n of object k (-1: no such part), ``object[k]`` its number
    in the file. A file's slot order may differ from the model's.
    """

    scenes: Int[Array, " s"]
    slots: Int[Array, "K P"]
    object: Int[Array, " K"]

    @cached_property
    def parts(self) -> Bool[Array, "K P"]:
        return self.slots >= 0


def _layouts(labelled: LabelledScenes, model: Model) -> Iterator[_Layout]:
    """The layouts of a file: one, unless its slots mean different things in different scenes."""
    rows, inverse = np.unique(labelled.object_id, axis=0, return_inverse=True)
    for i, row in enumerate(rows):
        slots, objects = _match(row, model)
        yield _Layout(np.flatnonzero(inverse.ravel() == i), slots, objects)


def _match(object_id: Int[Array, " N"], model: Model) -> tuple[Array, Array]:
    """Objects of the file for objects of the model, by part count; in order among equal counts."""
    sizes = [len(model.templates[t]) for t in model.copies]
    values, counts = np.unique(object_id, return_counts=True)
    if sorted(sizes) != sorted(counts.tolist()):
        raise InputError(
            f"labelled scenes: objects have {sorted(counts.tolist())} slots, but the model's "
            f"objects have {sorted(sizes)} parts; evaluate with the model of these scenes."
        )
    if values[0] < 0:
        raise InputError("labelled scenes: object_id must be 0 or more in every slot.")
    free = {n: iter(values[counts == n]) for n in set(sizes)}
    objects = np.array([next(free[n]) for n in sizes], int)
    slots = np.full((len(sizes), max(sizes)), -1)
    for k, (value, n) in enumerate(zip(objects, sizes, strict=True)):
        slots[k, :n] = np.flatnonzero(object_id == value)
    return slots, objects


def _groups(model: Model) -> list[list[int]]:
    """The possible objects of the model, those with identical templates together."""
    groups: list[list[int]] = []
    for k, t in enumerate(model.copies):
        template = model.templates[t]
        for group in groups:
            other = model.templates[model.copies[group[0]]]
            if (
                np.array_equal(template.parts, other.parts)
                and template.types == other.types
                and (template.appearance is other.appearance)
            ):
                group.append(k)
                break
        else:
            groups.append([k])
    return groups


# Renaming -------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Answer:
    """Truth and prediction of scenes that share a layout."""

    truth: Int[Array, "s N"]
    present: Bool[Array, "s N"]
    owner: Int[Array, "s N"]
    instantiated: Bool[Array, "s N"]

    def renamed(self, layout: _Layout, name: tuple[int, ...]) -> Int[Array, "s N"]:
        """The labels if predicted object k is called ``name[k]`` instead, in c and in q.

        All of c is renamed, so that the slots that shared a label go on sharing it; that includes
        the 0 that c has, by convention, in absent slots.
        """
        new = np.arange(len(name))[list(name)]
        owner = self.owner.copy()
        for k, to in enumerate(new):
            owner[self.owner == layout.object[k]] = layout.object[to]
        instantiated = self.instantiated.copy()
        for k, to in enumerate(new):
            instantiated[:, layout.slots[to][layout.parts[to]]] = self.instantiated[
                :, layout.slots[k][layout.parts[k]]
            ]
        return (owner + 1) * instantiated


def _best_renaming(answer: _Answer, layout: _Layout, groups: list[list[int]]) -> Array:
    """The metrics of each scene under its best renaming."""
    if prod(factorial(len(g)) for g in groups) > _MOST_RENAMINGS:
        return _assigned_renaming(answer, layout, groups)
    best = None
    for name in _renamings(groups):
        values = _metrics(answer.truth, answer.renamed(layout, name))
        best = values if best is None else np.where(_better(values, best), values, best)
    assert best is not None
    return best


def _renamings(groups: list[list[int]]) -> Iterator[tuple[int, ...]]:
    """All permutations of the objects that only mix identical ones; the identity first."""
    size = sum(map(len, groups))
    for choice in product(*(permutations(g) for g in groups)):
        name = list(range(size))
        for group, new in zip(groups, choice, strict=True):
            for k, to in zip(group, new, strict=True):
                name[k] = to
        yield tuple(name)


def _better(a: Float[Array, "3 s"], b: Float[Array, "3 s"]) -> Bool[Array, " s"]:
    """Where a beats b: segmentation accuracy first, then Rand index, then information."""
    tolerance = 1e-9
    gain = (a - b) * np.array([[1.0], [1.0], [-1.0]])
    tie = np.abs(gain) <= tolerance
    return (gain[0] > tolerance) | (
        tie[0] & ((gain[1] > tolerance) | (tie[1] & (gain[2] > tolerance)))
    )


def _assigned_renaming(answer: _Answer, layout: _Layout, groups: list[list[int]]) -> Array:
    """Too many copies to try every renaming: the one by which most slots agree with the truth.

    The number of agreeing slots is a sum over renamed objects, so it is a linear assignment.
    """
    from scipy.optimize import linear_sum_assignment

    labels = np.zeros_like(answer.truth)
    agree = _agreement(answer, layout)
    for s, table in enumerate(agree):
        name = list(range(len(layout.object)))
        for group in groups:
            rows, columns = linear_sum_assignment(table[np.ix_(group, group)], maximize=True)
            for i, j in zip(rows, columns, strict=True):
                name[group[i]] = group[j]
        one = _Answer(*(getattr(answer, f.name)[s : s + 1] for f in fields(answer)))
        labels[s] = one.renamed(layout, tuple(name))[0]
    return _metrics(answer.truth, labels)


def _agreement(answer: _Answer, layout: _Layout) -> Int[Array, "s K K"]:
    """``[k, j]``: how many slots of object j are right if predicted object k is called j."""
    count = len(layout.object)
    out = np.zeros((len(answer.truth), count, count), int)
    for k, j in product(range(count), repeat=2):
        if layout.parts[k].sum() != layout.parts[j].sum():
            continue
        here, claimed = layout.slots[j][layout.parts[j]], layout.slots[k][layout.parts[k]]
        q = answer.instantiated[:, claimed]
        ours = answer.owner[:, here] == layout.object[k]
        right = np.where(answer.present[:, here], ours & q, ~q)
        out[:, k, j] = right.sum(1)
    return out


# From explanations to slots -------------------------------------------------------------------


def predictions(
    explanations: Explanations, labelled: LabelledScenes
) -> tuple[Int[Array, "S N"], Bool[Array, "S N"]]:
    """``(owner, instantiated)``: what a solver said about ``labelled.scenes``, slot by slot.

    From a variational posterior, c is the object with most of the point's responsibility,
    ``argmax_k sum_n r_mnk``, and ``q(d) = sum_m r_md > 1e-3``. From detections, c is the instance
    that has the point (-1, no object, where there is none) and q(d) says that the part was matched.
    c is 0 in absent slots, as published.
    """
    if len(explanations) != len(labelled):
        raise InputError(
            f"explanations of {len(explanations)} scenes for {len(labelled)} labelled scenes; "
            "explain labelled.scenes."
        )
    point_owner, claimed = _from_detections(explanations)
    _from_posteriors(explanations, point_owner, claimed)
    owner = np.zeros(labelled.present.shape, int)
    seen = np.zeros(labelled.present.shape, int)
    seen[labelled.present] = point_owner
    instantiated = np.zeros(labelled.present.shape, bool)
    for layout in _layouts(labelled, explanations.model):
        index = layout.scenes
        # -1, "no object", stays -1.
        numbers = np.append(layout.object, -1)
        owner[index] = np.where(labelled.present[index], numbers[seen[index]], 0)
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

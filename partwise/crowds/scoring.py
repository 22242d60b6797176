"""Which detections in crowds are right, how many objects were found, and how sure to be of them.

A detection is *right* where it is one of the scene's objects:

- its template is (or one with the very same parts),
- its pose is: it puts the template's parts within 0.1 of the object's size (scale times
  ``Template.radius``, root mean square over all parts, visible or not) of where they truly are,
- at least 80 % of the object's visible parts are among the points that it claims.

Which of two parts is which is left to the pose: templates of random points have parts that nearly
coincide, and no one can tell those apart. ``score_crowd(..., labels=True)`` asks for it, too.

No object counts twice. A detection is *made* where its probability is at least one half; precision,
recall and F1 are of those. Calibration looks at all detections that a solver reports, the unlikely
ones included.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from partwise._checks import InputError
from partwise.model import Model
from partwise.posterior import Explanations
from partwise.sampling import Sample

__all__ = ["CrowdScore", "score_crowd"]

Array = np.ndarray

POSE_TOLERANCE = 0.1
PARTS_RIGHT = 0.8
MADE = 0.5
BINS = 10


@dataclass(frozen=True, eq=False)
class CrowdScore:
    """Every detection and every object of many scenes.

    ``probability``, ``right`` and ``scene`` go with detections; ``found``, ``visible`` (the number
    of parts that can be seen) and ``scene_of_object`` with true objects that show any part.
    """

    scenes: int
    probability: Float[Array, " D"]
    right: Bool[Array, " D"]
    scene: Int[Array, " D"]
    found: Bool[Array, " O"]
    visible: Int[Array, " O"]
    scene_of_object: Int[Array, " O"]

    @classmethod
    def join(cls, scores: Sequence[CrowdScore]) -> CrowdScore:
        """The scores of several sets of scenes as one."""
        first = np.concatenate([[0], np.cumsum([s.scenes for s in scores])])

        def all_of(name: str, shift: bool = False) -> Array:
            arrays = [getattr(s, name) for s in scores]
            return np.concatenate([a + n * shift for a, n in zip(arrays, first, strict=False)])

        return cls(
            int(first[-1]),
            all_of("probability"),
            all_of("right").astype(bool),
            all_of("scene", True),
            all_of("found").astype(bool),
            all_of("visible"),
            all_of("scene_of_object", True),
        )

    @property
    def made(self) -> Bool[Array, " D"]:
        """Which detections have a probability of at least one half."""
        return self.probability >= MADE

    def summary(self) -> dict[str, float]:
        """Precision, recall, F1 with its standard error, and the expected calibration error."""
        return {
            "precision": float(self.right[self.made].mean()) if self.made.any() else 0.0,
            "recall": float(self.found.mean()) if len(self.found) else 0.0,
            "f1": self.f1,
            "f1_standard_error": self.f1_standard_error,
            "calibration_error": self.calibration_error,
        }

    def _counts(self) -> tuple[Array, Array]:
        """Scene by scene: objects found, and the mean of detections made and objects there."""
        made = np.bincount(self.scene[self.made], minlength=self.scenes)
        there = np.bincount(self.scene_of_object, minlength=self.scenes)
        found = np.bincount(self.scene_of_object[self.found], minlength=self.scenes)
        return found.astype(float), (made + there) / 2

    @property
    def f1(self) -> float:
        """2 found / (detections made + objects there), over all scenes together."""
        found, mean = self._counts()
        return float(found.sum() / max(mean.sum(), 1e-300))

    @property
    def f1_standard_error(self) -> float:
        """Of a ratio of sums over independent scenes."""
        found, mean = self._counts()
        rest = found - self.f1 * mean
        return float(np.sqrt((rest**2).sum()) / max(mean.sum(), 1e-300))

    def recall_by_visible(self) -> dict[int, tuple[float, int]]:
        """For each number of visible parts: the share of objects found, and of how many."""
        return {
            int(v): (float(self.found[self.visible == v].mean()), int((self.visible == v).sum()))
            for v in np.unique(self.visible)
        }

    def recall_from(self, visible: int) -> float:
        """The share of objects found, of those with so many visible parts or more."""
        enough = self.visible >= visible
        return float(self.found[enough].mean()) if enough.any() else float("nan")

    def reliability(self, bins: int = BINS) -> tuple[Array, Array, Array]:
        """In bins of equal width: mean probability, share that is right, and how many."""
        index = np.minimum((self.probability * bins).astype(int), bins - 1)
        count = np.bincount(index, minlength=bins)
        safe = np.maximum(count, 1)
        sure = np.bincount(index, self.probability, bins) / safe
        right = np.bincount(index, self.right, bins) / safe
        return sure, right, count

    @property
    def calibration_error(self) -> float:
        """Expected calibration error: bins' mean gap between probability and share right."""
        sure, right, count = self.reliability()
        return float((np.abs(sure - right) * count).sum() / max(count.sum(), 1))


def score_crowd(truth: Sample, found: Explanations, labels: bool = False) -> CrowdScore:
    """Compare detections with the truth of simulated crowds.

    With ``labels``, a visible part counts only if it is matched with its own point.
    """
    if len(truth.scenes) != len(found):
        raise InputError(
            f"explanations of {len(found)} scenes for {len(truth.scenes)} with a truth; explain "
            "the scenes of the sample."
        )
    model, same = found.model, _same_templates(found.model)
    probability, right, scene, hit, visible, owner = [], [], [], [], [], []
    for i in range(len(truth.scenes)):
        objects = [k for k in sorted(truth.poses[i]) if (truth.object_id[i] == k).any()]
        left = dict.fromkeys(objects, False)
        # The surest first: of two detections of one object, the other is wrong.
        for k in np.argsort(-found.probability[i], kind="stable")[: found.found[i].sum()]:
            sure = float(found.probability[i, k])
            match = _match(
                model, same, truth, i, found, int(k), [o for o in left if not left[o]], labels
            )
            if match is not None and sure >= MADE:
                left[match] = True
            probability.append(sure)
            right.append(match is not None)
            scene.append(i)
        hit += list(left.values())
        visible += [int((truth.object_id[i] == k).sum()) for k in objects]
        owner += [i] * len(objects)
    return CrowdScore(
        len(truth.scenes),
        np.array(probability, float),
        np.array(right, bool),
        np.array(scene, int),
        np.array(hit, bool),
        np.array(visible, int),
        np.array(owner, int),
    )


def _same_templates(model: Model) -> Int[Array, " T"]:
    """For each template the first one with the same parts."""
    seen: dict[bytes, int] = {}
    return np.array([seen.setdefault(t.parts.tobytes(), i) for i, t in enumerate(model.templates)])


def _match(
    model, same, truth: Sample, i: int, found: Explanations, k: int, objects, labels
) -> int | None:
    """Which of the objects of scene i detection k is."""
    copies = model.copies
    t = copies[k]
    template = model.templates[t]
    said = found.parts[i, k, : len(template)]
    for o in objects:
        if same[copies[o]] != same[t]:
            continue
        mine = truth.object_id[i] == o
        at = np.flatnonzero(mine)
        part = truth.part_id[i][at]
        pose = truth.poses[i][o]
        away = model.pose.apply(found.pose[i, k], template.parts)
        away = away - model.pose.apply(pose, template.parts)
        size = float(model.pose.scale(pose)) * template.radius
        near = np.sqrt((away**2).sum(1).mean()) <= POSE_TOLERANCE * size
        claimed = said[part] == at if labels else np.isin(at, said)
        if near and claimed.mean() >= PARTS_RIGHT:
            return o
    return None

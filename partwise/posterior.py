"""What inference returns: detections, labels, and how sure it is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, overload

import numpy as np
from jaxtyping import Bool, Float, Int

from partwise._checks import InputError
from partwise.model import Model
from partwise.problem import Claims
from partwise.scenes import Scene, SceneBatch

__all__ = ["Detection", "Explanation", "Explanations", "Posterior"]

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Detection:
    """One object that was found.

    ``parts[n]`` is the index of the observed point that is the template's part n, -1 where that
    part was not seen. ``pose`` carries the template into the scene. ``instance`` says which of the
    model's possible objects this is: a place in ``model.copies``.
    """

    model: Model
    template_index: int
    instance: int
    parts: Int[Array, " N"]
    pose: Float[Array, " d"]
    probability: float
    appearance: Float[Array, " l"] | None = None

    @property
    def template(self):
        """The template that was found."""
        return self.model.templates[self.template_index]

    @property
    def name(self) -> str:
        """The template's name."""
        return self.template.name

    @property
    def points(self) -> Int[Array, " n"]:
        """The observed points that belong to the object."""
        return self.parts[self.parts >= 0]

    @property
    def predicted(self) -> Float[Array, "N g"]:
        """Where the object's parts are, by its pose."""
        return self.model.pose.apply(self.pose, self.template.parts)

    @property
    def parameters(self) -> dict[str, Any]:
        """The pose in human terms: translation, scale and (clockwise) angle, or the matrix."""
        return self.model.pose.parameters(self.pose)

    def __repr__(self) -> str:
        parameters = ", ".join(f"{k}={np.round(v, 3).tolist()}" for k, v in self.parameters.items())
        return (
            f"Detection({self.name}, parts={self.parts.tolist()}, {parameters}, "
            f"probability={self.probability:.3f})"
        )

    def to_json(self) -> dict[str, Any]:
        """A JSON-ready dict."""
        return {
            "template": self.name,
            "parts": self.parts.tolist(),
            "pose": {k: np.asarray(v).tolist() for k, v in self.parameters.items()},
            "probability": float(self.probability),
        }


@dataclass(frozen=True, eq=False)
class Posterior:
    """The variational posterior of one scene (sec. 4): q(Z) by R, q(Y) by means and precisions.

    ``assignment[m, n]`` is r_mnk with (k, n) flattened, as the last update left it; ``clutter[m]``
    is the slack. ``object[n]`` is the object (of ``model.copies``) that slot n belongs to.
    """

    assignment: Float[Array, "M N"]
    clutter: Float[Array, " M"]
    pose_mean: Float[Array, "K d"]
    pose_precision: Float[Array, "K d d"]
    beta: float
    object: Int[Array, " N"]

    def plot(self, ax: Any = None) -> Any:
        """Draw R. See :func:`partwise.plotting.plot_assignment`."""
        from partwise.plotting import plot_assignment

        return plot_assignment(self.assignment, self.object, self.clutter, ax)

    def balanced(self, tolerance: float = 1e-6, max_sweeps: int = 20_000) -> Float[Array, "N N"]:
        """R with its dummy rows, and Algorithm 1 run to the end: rows and columns sum to one.

        The few sweeps of an update leave the rows of a GCM-DS posterior off by up to a few
        per cent.
        """
        points, slots = self.assignment.shape
        if points > slots or self.clutter.any():
            raise InputError(
                "balanced: with clutter, R is not square; its rows sum to one with `clutter`."
            )
        left = np.maximum(1.0 - self.assignment.sum(0), 1e-12)
        r = np.concatenate([self.assignment, np.tile(left, (slots - points, 1))])
        for _ in range(max_sweeps):
            r = r / r.sum(1, keepdims=True)
            r = r / r.sum(0, keepdims=True)
            if np.abs(r.sum(1) - 1).max() < tolerance:
                break
        return r


@dataclass(frozen=True, eq=False)
class Explanation:
    """What is in one scene.

    ``score`` says how well the scene is explained, among answers of one solver only: the ELBO
    (``ds``, ``gmm``), the log evidence (``exact``), the gain over pure clutter (packing), or minus
    the squared error (``ransac``).
    """

    scene: Scene
    objects: tuple[Detection, ...]
    score: float
    converged: bool
    model: Model
    posterior: Posterior | None = None

    @cached_property
    def labels(self) -> Int[Array, " M"]:
        """Per observation, the index of its detection in ``objects``; -1 for clutter."""
        labels = np.full(len(self.scene), -1)
        for i, detection in enumerate(self.objects):
            labels[detection.points] = i
        return labels

    def __repr__(self) -> str:
        inner = "\n  ".join(repr(o) for o in self.objects) or "nothing found"
        return f"Explanation(\n  {inner})"

    def plot(self, ax: Any = None) -> Any:
        """Draw the scene, coloured by detection. See :func:`partwise.plotting.plot_explanation`."""
        from partwise.plotting import plot_explanation

        return plot_explanation(self, ax)

    def plot_posterior(self, ax: Any = None) -> Any:
        """Draw q(Y) and q(Z) of ``ds`` or ``gmm``. See :func:`partwise.plotting.plot_poses`."""
        from partwise.plotting import plot_poses

        if (q := self.posterior) is None:
            raise InputError(
                'plot_posterior: this solver leaves no variational posterior; use "ds" or "gmm".'
            )
        r, means, precisions = q.assignment, q.pose_mean, q.pose_precision
        return plot_poses(self.model, self.scene, r, q.object, means, precisions, ax=ax)

    def to_json(self) -> dict[str, Any]:
        """A JSON-ready dict."""
        return {
            "objects": [o.to_json() for o in self.objects],
            "labels": self.labels.tolist(),
            "score": float(self.score),
            "converged": bool(self.converged),
        }


@dataclass(frozen=True, eq=False)
class Explanations(Sequence[Explanation]):
    """What is in many scenes: arrays, of which ``[i]`` makes one :class:`Explanation`.

    Row k of ``parts``, ``pose`` and ``probability`` is possible object k of the model
    (``model.copies``); it was found where its probability is above 0. ``claims`` is what a method
    says that does not match points with parts; its ``owner`` is one list over all scenes.
    """

    model: Model
    scenes: SceneBatch
    parts: Int[Array, "S K P"]
    pose: Float[Array, "S K d"]
    probability: Float[Array, "S K"]
    score: Float[Array, " S"]
    converged: Bool[Array, " S"]
    posteriors: Sequence[Posterior | None] | None = None
    appearance: Float[Array, "S K l"] | None = None
    claims: Claims | None = None

    def __len__(self) -> int:
        return len(self.scenes)

    def __iter__(self) -> Iterator[Explanation]:
        return (self[i] for i in range(len(self)))

    @property
    def found(self) -> Bool[Array, "S K"]:
        """Which objects were found in which scene."""
        return self.probability > 0

    @overload
    def __getitem__(self, index: int) -> Explanation: ...
    @overload
    def __getitem__(self, index: slice) -> list[Explanation]: ...
    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        i = range(len(self))[index]
        copies, model = self.model.copies, self.model
        objects = [
            Detection(
                model,
                copies[k],
                int(k),
                self.parts[i, k, : len(model.templates[copies[k]])],
                self.pose[i, k],
                float(self.probability[i, k]),
                None if self.appearance is None else self.appearance[i, k],
            )
            for k in np.flatnonzero(self.found[i])
        ]
        objects.sort(key=lambda o: (o.template_index, o.points.min(initial=len(self.scenes.parts))))
        return Explanation(
            self.scenes[i],
            tuple(objects),
            float(self.score[i]),
            bool(self.converged[i]),
            model,
            None if self.posteriors is None else self.posteriors[i],
        )

"""``infer``: scenes in, explanations out. Data flows scene -> problem -> solver -> explanation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, overload

import numpy as np

from partwise._checks import InputError
from partwise.frames import template_frames
from partwise.model import Model
from partwise.poses import PoseFamily
from partwise.posterior import Explanation, Explanations, Posterior
from partwise.problem import Claims, MeanField, Problem, check, problems
from partwise.scenes import Scene, SceneBatch
from partwise.solvers import Solver, named

__all__ = ["infer", "solve"]

Array = np.ndarray

SMALLEST = 1e-6
"""The least scale of an object, in the solvers' frame."""


@overload
def infer(model: Model, scenes: Scene, solver: Any = ..., seed: int = ...) -> Explanation: ...
@overload
def infer(model: Model, scenes: SceneBatch, solver: Any = ..., seed: int = ...) -> Explanations: ...
@overload
def infer(model: Model, scenes: Any, solver: Any = ..., seed: int = ...) -> Any: ...
def infer(model: Model, scenes: Any, solver: Solver | str = "auto", seed: int = 0) -> Any:
    """Find the objects of ``model`` in ``scenes``.

    ``scenes`` is one scene, an (M, 2) array or a ``Scene``, and the answer an ``Explanation``; or
    many (a list of arrays, a ``SceneBatch``, ``LabelledScenes``), and the answer ``Explanations``.

    Same seed, same machine, same answer; a scene's answer does not depend on the others.

    >>> import partwise as pw
    >>> model = pw.Model([pw.shapes.square()])
    >>> found = pw.infer(model, [[0, 0], [2, 0], [2, 2], [0, 2]])
    >>> found.objects[0].name
    'square'
    """
    batch, single = SceneBatch.of(scenes)
    found = solve(model, batch, solver, seed)
    return found[0] if single else found


def solve(
    model: Model,
    batch: SceneBatch,
    solver: Solver | str = "auto",
    seed: int = 0,
    progress: Callable[[int], None] | None = None,
) -> Explanations:
    """``infer`` for a batch; ``progress`` is told how many scenes have been done."""
    solver = named(solver) if isinstance(solver, str) else solver
    if not isinstance(model, Model):
        raise InputError(f"model must be a partwise Model; got {type(model).__name__}.")
    if not isinstance(solver, Solver) or isinstance(solver, type):
        raise InputError(f"solver must be a name or a solver such as Exact(); got {solver!r}.")
    if not isinstance(seed, (int, np.integer)) or seed < 0:
        raise InputError(f"seed must be a whole number >= 0; got {seed!r}.")
    check(model, batch)
    copies = model.copies
    widest = max(len(t) for t in model.templates)
    shape = (len(batch), len(copies))
    parts = np.full((*shape, widest), -1, np.int32)
    pose = np.zeros((*shape, model.pose.dim))
    probability = np.zeros(shape, np.float32)
    score, converged = np.zeros(len(batch)), np.ones(len(batch), bool)
    posteriors = _Posteriors(len(batch))
    claims = None
    looks = model.templates[0].appearance
    appearance = None if looks is None else np.zeros((*shape, looks.factors))
    rows = object_rows(model)
    for problem, solution in _solved(solver, problems(model, batch), seed):
        index = problem.index
        geometry = solution.pose[..., : model.pose.dim]
        # Points that coincide are no object, however well they fit one of no size.
        real = model.pose.scale(geometry.astype(float)) > SMALLEST
        outer = _to_scene_order(solution.parts, problem.order)
        parts[np.ix_(index, rows)] = np.where(real[..., None], outer, -1)
        probability[np.ix_(index, rows)] = np.where(real, solution.probability, 0.0)
        change = PoseChange.of(problem)
        pose[np.ix_(index, rows)] = change.poses(geometry)
        if appearance is not None:
            appearance[np.ix_(index, rows)] = solution.pose[..., model.pose.dim :]
        score[index], converged[index] = solution.score, solution.converged
        if solution.variational is not None:
            posteriors.add(problem, solution.variational, change)
        if (said := solution.claims) is not None:
            if claims is None:
                flat, each = np.full(len(batch.parts), -1), np.zeros(len(batch), int)
                claims = Claims(flat, np.zeros(shape, bool), each)
            count = said.owner.shape[1]
            where = batch.offsets[index][:, None] + problem.order[:, :count]
            claims.owner[where] = rows[said.owner]
            claims.there[np.ix_(index, rows)] = said.there
            claims.absent[index] = rows[said.absent]
        if progress is not None:
            progress(len(problem))
    return Explanations(
        model,
        batch,
        parts,
        pose,
        probability,
        score,
        converged,
        posteriors if posteriors.any else None,
        appearance,
        claims,
    )


def _solved(solver: Solver, scenes: list[Problem], seed: int):
    """Problems and solutions; a solver that divides all scenes among threads gets all at once."""
    if hasattr(solver, "solve_many"):
        yield from zip(scenes, solver.solve_many(scenes, seed), strict=True)  # pyright: ignore
        return
    for problem in scenes:
        yield problem, solver.solve(problem, seed)


def object_rows(model: Model) -> Array:
    """For each object of the solvers' order, its place among ``model.copies``."""
    assert model.instances is not None
    first = np.concatenate([[0], np.cumsum(model.instances)])
    return np.concatenate(
        [first[t] + np.arange(model.instances[t]) for t in model.canonical_order]
    ).astype(int)


def _to_scene_order(parts: Array, order: Array) -> Array:
    """Point indices of the canonical order as indices into the scene; -1 stays."""
    flat = parts.reshape(len(parts), -1)
    moved = np.take_along_axis(order, np.maximum(flat, 0), 1)
    return np.where(flat < 0, -1, moved).reshape(parts.shape)


class PoseChange:
    """Poses from the solvers' frames to the user's: scene frame, pose, template frame inverted."""

    def __init__(self, family: PoseFamily, scene: Array, template: Array):
        self.family, self.scene, self.template = family, scene, template

    @classmethod
    def of(cls, problem: Problem) -> PoseChange:
        model = problem.model
        template = np.linalg.inv(template_frames(model).matrix())[problem.slots.template]
        return cls(model.pose, problem.frames.matrix()[:, None], template[None])

    def poses(self, pose: Array) -> Array:
        """Pose vectors (B, K, d) in the user's frames."""
        return self.family.from_matrix(self.scene @ self.family.matrix(pose) @ self.template)

    def jacobian(self, objects: int) -> Array:
        """The (B, K, d, d) derivative of :meth:`poses`, which is affine in the pose."""
        dim = self.family.dim
        shape = (len(self.scene), objects, dim)
        zero = self.poses(np.zeros(shape))
        columns = [self.poses(np.broadcast_to(e, shape)) - zero for e in np.eye(dim)]
        return np.stack(columns, -1)

    def moments(self, mean: Array, precision: Array) -> tuple[Array, Array]:
        """Means and precisions of q(Y) in the user's frames; appearance factors stay."""
        dim, size = self.family.dim, mean.shape[-1]
        mean = mean.astype(float)
        mean[..., :dim] = self.poses(mean[..., :dim])
        back = np.broadcast_to(np.eye(size), (*mean.shape, size)).copy()
        back[..., :dim, :dim] = np.linalg.inv(self.jacobian(mean.shape[1]))
        return mean, np.swapaxes(back, -1, -2) @ precision.astype(float) @ back


class _Posteriors(Sequence[Posterior | None]):
    """The variational posteriors of many scenes, carried to the user's frames when looked at."""

    def __init__(self, scenes: int):
        self._where = np.full((scenes, 2), -1)
        self._parts: list[tuple[Problem, MeanField, PoseChange]] = []
        self._made: dict[int, list[Posterior]] = {}

    def add(self, problem: Problem, found: MeanField, change: PoseChange) -> None:
        """The posteriors of the scenes of one problem."""
        self._where[problem.index] = np.stack(
            [np.full(len(problem), len(self._parts)), np.arange(len(problem))], 1
        )
        self._parts.append((problem, found, change))

    @property
    def any(self) -> bool:
        """Whether there are posteriors at all."""
        return bool(self._parts)

    def __len__(self) -> int:
        return len(self._where)

    def __getitem__(self, index: Any) -> Any:
        part, row = self._where[index]
        if part < 0:
            return None
        if part not in self._made:
            self._made[part] = list(_posteriors(*self._parts[part]))
        return self._made[part][row]


def user_order(problem: Problem) -> tuple[Array, Array, Array]:
    """Objects and slots of the solvers' order in the order of ``model.copies``; owners of those."""
    objects, sizes = np.argsort(object_rows(problem.model)), problem.slots.sizes
    columns = np.concatenate([problem.slots.rows(k) for k in objects])
    return objects, columns, np.repeat(np.arange(len(objects)), [sizes[k] for k in objects])


def _posteriors(problem: Problem, v: MeanField, change: PoseChange):
    """The variational posteriors of a problem, one a scene, in the user's order and frames."""
    objects, columns, owner = user_order(problem)
    mean, precision = change.moments(v.pose_mean, v.pose_precision)
    for b in range(len(problem)):
        count = problem.count[b]
        back = np.argsort(problem.order[b, :count])
        yield Posterior(
            v.assignment[b, :count][back][:, columns],
            v.clutter[b, :count][back],
            mean[b][objects],
            precision[b][objects],
            float(v.beta[b]),
            owner,
        )

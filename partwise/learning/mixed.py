"""``learn_model``: templates from scenes that each show several unknown objects.

The paper leaves this open (sec. 6). Here, objects are discovered one after the other
(``discovery``), each in the points that those before it leave unexplained. After every discovery,
and at the end until nothing changes, EM goes over all scenes: the E-step is the solver ``auto``,
whose groupings and probabilities say which points are copies of which template; the M-step is
``em.run`` on those copies, each with its probability as weight, the ways to be parts summed over
again. The bounds on instances, the presence and the clutter of the model come from the same
answers. Nothing here knows what the scenes were drawn from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from partwise._checks import InputError, finite
from partwise.inference import solve
from partwise.learning.composing import radii_of
from partwise.learning.discovery import Found, apart, discover
from partwise.learning.em import Schedule, State, run
from partwise.learning.examples import Examples, examples_of
from partwise.learning.geometry import Shape
from partwise.learning.single import Learned, learn_from
from partwise.model import Model, Noise
from partwise.plane import from_complex, to_complex
from partwise.posterior import Explanations
from partwise.scenes import Scene, SceneBatch
from partwise.templates import Template

__all__ = ["LearnedModel", "learn_model"]

Array = np.ndarray

SIZES = (3, 4, 5)
"""Numbers of parts that are tried where they are not known."""

MOST_OBJECTS = 6
"""At most so many objects are looked for where their number is not known."""

MOST_COPIES = 4
"""More copies of one template are not looked for in a scene."""

RARE = 0.01
"""What happens in a smaller share of the scenes does not count as something the model allows."""

STILL = 1e-7
"""EM over the scenes stops when no template changes by a larger SMSE."""


@dataclass(frozen=True, eq=False)
class LearnedModel:
    """A model, its templates with how they were learned, and the course of learning.

    ``evidence`` has the total log evidence of the scenes, as the solver has it, at every round of
    EM over the scenes; it is comparable from the last discovery on.
    """

    model: Model
    templates: tuple[Learned, ...]
    evidence: tuple[float, ...]
    sigma: float
    converged: bool

    @property
    def precision(self) -> float:
        """lambda, the precision of the noise in the model's frame."""
        return 1.0 / self.sigma**2

    @property
    def iterations(self) -> int:
        """Rounds of EM over the scenes."""
        return len(self.evidence)


def learn_model(
    scenes: Any,
    parts: int | Sequence[int] | None = None,
    objects: int | None = None,
    *,
    rounds: int = 15,
    seed: int = 0,
    progress: Callable[[int], None] | None = None,
) -> LearnedModel:
    """Find the templates of the objects in ``scenes``, which show several, in any pose.

    ``parts`` are the numbers of parts of the objects (one number: of all ``objects`` of them); None
    where they are not known: then objects of 3 to 5 parts are looked for, up to ``objects`` of
    them, as long as the scenes speak for another one. Scenes may also hold points that belong to
    nothing. Only the points are looked at. Same seed, same answer.
    """
    batch = _checked(scenes)
    sizes = _sizes(parts, objects)
    if not isinstance(seed, (int, np.integer)) or seed < 0:
        raise InputError(f"seed must be a whole number >= 0; got {seed!r}.")
    search = _Search(batch, np.random.default_rng(seed), progress)
    if sizes is None:
        while len(search.shapes) < (objects or MOST_OBJECTS) and search.add(SIZES):
            count = len(search.shapes)
            search.settle(1)
            if len(search.shapes) < count:
                break  # what seemed to recur is explained by the others
    else:
        for size in sizes:
            if not search.add((size,)):
                raise InputError(
                    f"scenes: after {len(search.shapes)} of {len(sizes)} objects, nothing of "
                    f"{size} points recurs in what they leave over; ask for fewer objects, or give "
                    "more scenes."
                )
            search.settle(1)
        search.demand(len(sizes))
    if not search.shapes:
        raise InputError(
            "scenes: no configuration of 3 to 5 points recurs more often than chance explains; "
            "give more scenes, or scenes with less noise."
        )
    converged = search.settle(rounds)
    search.demand(len(sizes or search.shapes))
    return search.result(converged)


def _checked(scenes: Any) -> SceneBatch:
    batch = SceneBatch.of(scenes)[0]
    finite("scenes: points", batch.parts)
    if batch.parts.shape[1] != 2 or batch.types is not None or batch.appearance is not None:
        raise InputError(
            "scenes: objects are discovered among plain points of the plane; for typed, directed "
            "or three-dimensional parts, learn each object from scenes that show it alone."
        )
    batch = SceneBatch.collect([s for s in batch if len(s)])
    if len(batch) < 2:
        raise InputError(
            f"scenes: {len(batch)} of them hold points; what recurs takes at least 2 to see."
        )
    return batch


def _sizes(parts: int | Sequence[int] | None, objects: int | None) -> list[int] | None:
    """The number of parts of each object, largest first; None where not known."""
    if objects is not None and (not isinstance(objects, (int, np.integer)) or objects < 1):
        raise InputError(
            f"objects must be a whole number >= 1, how many there are; got {objects!r}."
        )
    if parts is None:
        return None
    if isinstance(parts, (int, np.integer)):
        parts = [int(parts)] * (objects or 1)
    sizes = list(parts)
    if not sizes or any(not isinstance(n, (int, np.integer)) or not 3 <= n <= 6 for n in sizes):
        raise InputError(f"parts must be whole numbers from 3 to 6, one an object; got {parts}.")
    if objects is not None and objects != len(sizes):
        raise InputError(
            f"parts names {len(sizes)} objects and objects is {objects}; make them agree."
        )
    return sorted((int(n) for n in sizes), reverse=True)


class _Search:
    """The templates so far, and what the scenes say about them."""

    def __init__(self, batch: SceneBatch, rng: np.random.Generator, progress: Any):
        self.batch, self.rng, self.progress = batch, rng, progress
        self.shapes: list[Shape] = []
        self.copies: list[int] = []
        self.share: list[float] = []
        self.evidence: list[float] = []
        self.used: list[set[int]] = [set() for _ in range(len(batch))]
        self.examples: list[Examples] = []

    # Discovery

    def add(self, sizes: Sequence[int]) -> bool:
        """The next object, if the scenes speak for one more."""
        found = [
            (size, one)
            for size in sizes
            if (one := discover(self.batch, size, self.used, self.rng)) is not None
        ]
        # BIC: a template has 2 n - 4 numbers and a noise level, and must occur more than once.
        worth = [
            (one.support - (size - 1.5) * np.log(len(self.batch)), size, one)
            for size, one in found
            if len(one.explained) >= max(2, RARE * len(self.batch))
        ]
        if not worth:
            return False
        gain, _, best = max(worth, key=lambda item: item[0])
        if gain <= 0:
            return False
        self.shapes.append(best.shape)
        self.copies.append(self._most(best))
        self.share.append(len(best.explained) / len(self.batch))
        for rows in best.explained:
            self.used[self._scene(rows)].update(rows.tolist())
        if self.progress is not None:
            self.progress(1)
        return True

    def _scene(self, rows: Array) -> int:
        return int(np.searchsorted(self.batch.offsets, rows[0], side="right")) - 1

    def _most(self, found: Found) -> int:
        """Room for one copy more than were seen in one scene."""
        counts = np.bincount([self._scene(rows) for rows in found.explained])
        return int(min(counts.max() + 1, MOST_COPIES))

    # EM over all scenes

    def settle(self, rounds: int) -> bool:
        """EM until no template changes; whether it came to that.

        Templates of which no two copies are left are dropped.
        """
        for _ in range(rounds):
            if not self.shapes:
                break
            before = list(self.shapes)
            self._round()
            if self.progress is not None:
                self.progress(1)
            same = len(self.shapes) == len(before)
            if same and all(
                apart(a.x, b.x) < STILL for a, b in zip(self.shapes, before, strict=True)
            ):
                return True
        return False

    def demand(self, count: int) -> None:
        """One clear sentence if an object was lost that was asked for."""
        if len(self.shapes) < max(count, 1):
            raise InputError(
                "scenes: an object that seemed to recur is explained by the others after all; ask "
                "for fewer objects, or give more scenes."
            )

    def _round(self) -> None:
        model = self.model()
        found = solve(model, self.batch, "auto")
        self.evidence.append(float(np.sum(found.score)))
        copies = np.array(model.copies)
        seen = found.probability >= 0.5
        self.used = [set() for _ in range(len(self.batch))]
        self.examples = []
        kept = []
        for t, shape in enumerate(self.shapes):
            here = seen & (copies == t) & (found.parts[..., : shape.parts] >= 0).all(-1)
            if here.sum() < 2:
                continue
            kept.append(t)
            self._count(t, here.sum(1))
            self._learn(t, shape, found, here)
        for name in ("shapes", "copies", "share"):
            setattr(self, name, [getattr(self, name)[t] for t in kept])

    def _count(self, t: int, counts: Array) -> None:
        """How many copies of template t a scene may hold, and how often one is there."""
        often = [c for c in range(1, MOST_COPIES + 1) if (counts >= c).mean() >= RARE]
        self.copies[t] = max(often, default=1)
        self.share[t] = float(counts.mean())

    def _learn(self, t: int, shape: Shape, found: Explanations, here: Array) -> None:
        """The M-step for one template: its copies are examples, weighted by their probability."""
        scenes, weight = [], []
        for i, k in np.argwhere(here):
            rows = self.batch.offsets[i] + found.parts[i, k, : shape.parts]
            self.used[i].update(rows.tolist())
            scenes.append(Scene(self.batch.parts[rows]))
            weight.append(float(found.probability[i, k]))
        examples = examples_of(SceneBatch.collect(scenes), shape.parts, weight=weight)
        self.examples.append(examples)
        schedule = Schedule(iterations=50, tolerance=1e-6)
        self.shapes[t] = run(examples, State(shape), schedule=schedule).state.shape

    # What was learned

    def left(self) -> float:
        """How many points of a scene belong to nothing, on average."""
        return float(np.mean(self.batch.counts - np.array([len(u) for u in self.used])))

    def model(self) -> Model:
        """The model so far."""
        radii, common = radii_of([s.sigma for s in self.shapes])
        templates = _templates(self.shapes, radii)
        presence = np.mean([s / c for s, c in zip(self.share, self.copies, strict=True)])
        left = self.left()
        return Model(
            templates,
            list(self.copies),
            noise=Noise(common),
            presence=float(np.clip(presence, 0.05, 0.95)),
            clutter=left if left > RARE * float(np.mean(self.batch.counts)) else 0.0,
        )

    def result(self, converged: bool) -> LearnedModel:
        """Every template learned once more from its copies, symmetric hypotheses weighed."""
        learned = [
            learn_from(examples, name=f"object {t + 1}", seed=0)
            for t, examples in enumerate(self.examples)
        ]
        self.shapes = [Shape(to_complex(one.positions), len(one), one.sigma) for one in learned]
        model = self.model()
        assert model.noise.sigma is not None
        return LearnedModel(
            model, tuple(learned), tuple(self.evidence), model.noise.sigma, converged
        )


def _templates(shapes: Sequence[Shape], radii: Sequence[float]) -> list[Template]:
    return [
        Template(radius * from_complex(s.x), f"object {t + 1}")
        for t, (s, radius) in enumerate(zip(shapes, radii, strict=True))
    ]

"""``learn``: one template from scenes that show it alone (sec. 6, App. B)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from partwise._checks import InputError, one_of
from partwise.learning.appearance import Looks
from partwise.learning.em import Run, Schedule, State, run
from partwise.learning.examples import MOST_WAYS, Examples, examples_of
from partwise.learning.geometry import SceneNoise, Shape
from partwise.learning.procrustes import Alignment, match_parts, procrustes
from partwise.learning.symmetry import nearly
from partwise.model import Model
from partwise.plane import from_complex
from partwise.scenes import SceneBatch
from partwise.templates import Template

__all__ = ["PAPER", "Learned", "learn", "learn_from"]

Array = np.ndarray

PAPER = Schedule(beta=0.01, factor=2.0, smse=1e-4)
"""Sec. 7.1.3: beta from 0.01, doubled each iteration, until the SMSE changes by less than 1e-4."""

PAPER_PRECISION = 1e4
"""The paper's first lambda (sec. 7.1.1)."""

FIRST_SIGMAS = (0.05, 0.1, 0.05, 0.2)
"""Noise levels of the starts, one after the other: a template's radius is 1."""

ROUGH = Schedule(tolerance=1e-3, iterations=60)
"""Every start is run so far; the best goes on."""

HOPELESS = 50.0
"""A symmetry that costs so many nats cannot have any weight."""


@dataclass(frozen=True, eq=False)
class Learned(Template):
    """A template, and how it was learned.

    ``sigma`` is the noise's standard deviation: in the template's frame where ``follows_scale``, in
    that of examples of radius one where not. ``elbo`` and ``betas`` have an entry an iteration;
    ``symmetry`` says how much each hypothesis about the template's symmetry weighs.
    """

    sigma: float = 0.0
    follows_scale: bool = True
    elbo: tuple[float, ...] = ()
    betas: tuple[float, ...] = ()
    converged: bool = True
    symmetry: tuple[tuple[str, float], ...] = (("none", 1.0),)
    examples: int = 0
    missing: float = 0.0

    @property
    def precision(self) -> float:
        """lambda, the precision of the noise."""
        return 1.0 / self.sigma**2

    @property
    def iterations(self) -> int:
        """How many iterations of EM it took."""
        return len(self.elbo)

    def compare(self, truth: Any) -> Alignment:
        """Align with ``truth``. See :func:`partwise.learning.procrustes`."""
        return procrustes(self, truth)

    def model(self, **options: Any) -> Model:
        """A model of this object; ``options`` are those of :class:`partwise.Model`."""
        from partwise.learning.composing import compose

        return compose([self], **options)

    def plot_learning(self, ax: Any = None) -> Any:
        """The bound after every iteration. See :func:`partwise.plotting.plot_learning`."""
        from partwise.plotting import plot_learning

        return plot_learning(self, ax)


def learn(
    examples: Any,
    parts: int,
    *,
    noise: Literal["template", "scene"] = "template",
    symmetry: bool = True,
    missing: bool = False,
    factors: int | None = None,
    name: str = "object",
    starts: int = 4,
    seed: int = 0,
    progress: Callable[[int], None] | None = None,
) -> Learned:
    """Learn a template with so many ``parts`` from scenes that each show the object alone.

    ``examples`` are scenes of any kind that ``infer`` takes, in any pose, parts in any order; with
    ``missing``, some parts may be hidden in some examples. Types and appearance are used where the
    examples have them; ``factors`` is the number of factors of the appearance.

    ``noise="template"``: noise that follows the object's scale, poses integrated out, noise level
    estimated. ``symmetry``: weigh the hypotheses that the template is symmetric (see
    ``partwise.learning.symmetry``). ``noise="scene"``: the algorithm of the paper, Appendix B.

    Nothing but points, types and appearance is looked at. Same seed, same answer.

    >>> import partwise as pw
    >>> square = pw.learn([[[0, 0], [2, 0], [2, 2], [0, 2]]], parts=4)
    >>> bool(square.compare(pw.shapes.square()).smse < 1e-9)
    True
    """
    one_of("noise", noise, ("template", "scene"))
    for what, value, least in (("starts", starts, 1), ("seed", seed, 0)):
        if not isinstance(value, (int, np.integer)) or value < least:
            raise InputError(f"{what} must be a whole number >= {least}; got {value!r}.")
    batch = SceneBatch.of(examples)[0]
    if len(batch.parts) == 0 and batch.types is None and len(batch):
        raise InputError("examples: every one of them is empty; there is nothing to learn from.")
    found = examples_of(batch, parts, missing)
    return learn_from(
        found,
        paper=noise == "scene",
        symmetry=symmetry,
        factors=factors,
        name=name,
        starts=starts,
        seed=seed,
        progress=progress,
    )


def learn_from(
    examples: Examples,
    *,
    paper: bool = False,
    symmetry: bool = True,
    factors: int | None = None,
    name: str = "object",
    starts: int = 4,
    seed: int = 0,
    progress: Callable[[int], None] | None = None,
) -> Learned:
    """:func:`learn`, for examples that are arrays already."""
    rng = np.random.default_rng(seed)
    if factors is not None and examples.features is None:
        raise InputError("factors: these examples have no appearance; leave it out.")
    if examples.features is not None and any(g.ways is None for g in examples.groups):
        raise InputError(
            f"examples: {examples.parts} parts with appearance can be listed in more than "
            f"{MOST_WAYS} ways, which are too many to sum over; give the parts types."
        )
    if paper:
        _check_paper(examples)
        start = _starts(examples, 1, factors, rng)[0]
        shape = start.shape._replace(sigma=PAPER_PRECISION**-0.5)
        best = run(examples, State(shape), SceneNoise(), PAPER, progress=progress)
        return _learned(examples, [(1.0, best)], name, follows=False)
    rough = [
        run(examples, start, schedule=ROUGH, progress=progress)
        for start in _starts(examples, starts, factors, rng)
    ]
    first = max(rough, key=lambda r: r.bound)
    best = first.then(run(examples, first.state, progress=progress))
    hypotheses = [best]
    if symmetry and _may_be_symmetric(examples):
        for restriction in nearly(best.state.shape, examples.kind):
            at = best.state.shape
            x = restriction.best(at.x, np.ones(examples.parts))
            begin = State(Shape(x, examples.parts, at.sigma).normalised())
            options: dict[str, Any] = {"restriction": restriction, "progress": progress}
            first = run(examples, begin, schedule=ROUGH, **options)
            if best.bound - first.bound < HOPELESS:
                hypotheses.append(first.then(run(examples, first.state, **options)))
    return _learned(examples, _weigh(examples, hypotheses), name, follows=True)


def _starts(
    examples: Examples, count: int, factors: int | None, rng: np.random.Generator
) -> list[State]:
    """Random examples that show every part, centred and scaled (App. B); no example twice."""
    whole = examples.whole
    chosen = rng.permutation(len(whole.weight))[:count]
    out = []
    for i, sigma in zip(chosen, FIRST_SIGMAS * (1 + count // len(FIRST_SIGMAS)), strict=False):
        looks = None
        if examples.features is not None:
            looks = Looks.start(examples, _factors(examples, factors), int(i), rng)
        out.append(State(Shape(whole.vectors[i], examples.parts, sigma).normalised(), looks))
    return out


def _factors(examples: Examples, factors: int | None) -> int:
    """How many factors the appearance has: as asked for, else few against features, examples."""
    assert examples.features is not None
    total = sum(examples.features)
    if factors is None:
        return max(1, min(4, total // 3, examples.count // 10))
    if not isinstance(factors, (int, np.integer)) or not 1 <= factors <= total:
        raise InputError(
            f"factors must be a whole number from 1 to {total}, the number of features of the "
            f"object; got {factors!r}."
        )
    return int(factors)


def _check_paper(examples: Examples) -> None:
    if examples.directed or examples.features is not None:
        raise InputError('noise "scene" (Appendix B) learns plain points; use noise "template".')
    if any(g.x.shape[1] < examples.parts for g in examples.groups):
        raise InputError(
            'noise "scene" (Appendix B) needs every part in every example; use noise "template".'
        )
    if any(g.ways is None for g in examples.groups):
        raise InputError(
            f'noise "scene" sums over all ways to list {examples.parts} parts, which are too many; '
            'use noise "template".'
        )


def _may_be_symmetric(examples: Examples) -> bool:
    """Only where parts of a type are interchangeable, and nothing else tells them apart."""
    plain = not examples.directed and examples.features is None
    return plain and len(np.unique(examples.kind)) < examples.parts


def _weigh(examples: Examples, hypotheses: list[Run]) -> list[tuple[float, Run]]:
    """Posterior weights of the hypotheses by BIC, the first the heaviest."""
    count = sum(g.weight.sum() for g in examples.groups)
    score = np.array(
        [
            h.bound - 0.5 * h.restriction.freedom(len(h.state.shape.vectors)) * np.log(count)
            for h in hypotheses
        ]
    )
    weight = np.exp(score - score.max())
    weight /= weight.sum()
    order = np.argsort(-weight, kind="stable")
    return [(float(weight[i]), hypotheses[i]) for i in order]


def _learned(
    examples: Examples, weighed: list[tuple[float, Run]], name: str, follows: bool
) -> Learned:
    """The mean of the hypotheses' templates, each aligned with the heaviest one's."""
    best = weighed[0][1]
    reference = best.state.shape
    mean = np.zeros_like(reference.vectors)
    variance = 0.0
    for weight, one in weighed:
        vectors = one.state.shape.vectors
        if one is not best:
            vectors = vectors[match_parts(vectors, reference.vectors, examples.kind)]
            vectors = vectors * np.exp(1j * np.angle(np.vdot(vectors, reference.vectors)))
        mean = mean + weight * vectors
        variance += weight * one.state.shape.sigma**2
    shape = Shape(mean, examples.parts, float(np.sqrt(variance)))
    if len(weighed) > 1:
        shape = shape.normalised()._replace(sigma=shape.sigma)
    parts = from_complex(shape.x)
    if examples.directed:
        parts = np.concatenate([parts, from_complex(np.conj(shape.d))], 1)
    looks = best.state.looks
    shown: dict[str, float] = {}
    for weight, one in weighed:
        label = one.restriction.name
        shown[label] = shown.get(label, 0.0) + weight
    seen = sum(g.weight.sum() * g.x.shape[1] for g in examples.groups)
    total = sum(g.weight.sum() for g in examples.groups) * examples.parts
    return Learned(
        parts,
        name,
        examples.types,
        None if looks is None or examples.features is None else looks.appearance(examples.features),
        sigma=shape.sigma,
        follows_scale=follows,
        elbo=tuple(best.bounds),
        betas=tuple(best.betas),
        converged=best.converged,
        symmetry=tuple(shown.items()),
        examples=examples.count,
        missing=float(1.0 - seen / total),
    )

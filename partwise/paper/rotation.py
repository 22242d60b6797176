"""Parts that do not turn, and parts that do (App. D, figure 2).

The paper shows that the parts which the part capsule autoencoder finds in a four change as it is
turned. Here it is measured, on test pictures: for every shipped training seed of PCAE, and for
parts that are read off the strokes and named by the template of a four that was learned from
others. And where the parts turn, the object can be found: is there a four, and at what angle?
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from partwise.digits.agreement import agreement, turned
from partwise.digits.matching import Found, Matching
from partwise.digits.mnist import load_digits
from partwise.digits.naming import shares
from partwise.digits.strokes import Strokes, strokes
from partwise.digits.turning import on_canvas
from partwise.digits.vocabulary import arm_length, ways_to_write
from partwise.neural.pcae import CANVAS
from partwise.neural.pcae_reading import compare, read
from partwise.neural.pcae_training import load
from partwise.neural.shipped import pcae_weights
from partwise.paper import rotation_figures as figures
from partwise.paper.experiment import Advance, Experiment
from partwise.paper.reporting import Report

__all__ = ["Cell", "Rotation"]

Array = np.ndarray

FOUR = 4
STEP = 15
"""Degrees from one angle to the next."""

EXAMPLES, OF_OTHERS = 400, 100
"""Training pictures of a four, and of every other digit, from which templates are learned."""

OTHERS = 11
"""Test pictures of every other digit that are not fours."""

RADIUS = CANVAS / 2 - 6
"""Pixels around the middle where a digit's parts may be."""

EVERY = 45
"""Degrees between the angles of recognition, and of the figure."""


@dataclass(frozen=True)
class Cell:
    """``what``: pcae (of a training ``seed``), strokes or recognition."""

    what: str
    seed: int | None = None

    @property
    def name(self) -> str:
        """The name of its file."""
        return self.what if self.seed is None else f"{self.what}-seed{self.seed}"


@dataclass(frozen=True)
class Rotation(Experiment[Cell]):
    """What is run; ``scenes`` is the number of test fours, None for all."""

    name = "rotation"

    step: int = STEP
    examples: int = EXAMPLES
    of_others: int = OF_OTHERS
    others: int = OTHERS

    @property
    def angles(self) -> Array:
        """The angles of the curves, in degrees."""
        return np.arange(0, 360, self.step)

    @property
    def fours(self) -> Array:
        """The test pictures."""
        return load_digits(FOUR).test[: self.scenes]

    def cells(self) -> Iterator[Cell]:
        """A cell a training seed, and two for the parts of strokes."""
        yield from (Cell("pcae", seed) for seed in pcae_weights())
        yield from (Cell("strokes"), Cell("recognition"))

    def size(self, cell: Cell) -> int:
        """About the tenths of a second that it takes."""
        return {"pcae": 100, "strokes": 150, "recognition": 200}[cell.what]

    def depends(self, cell: Cell) -> dict[str, Any]:
        """The weights."""
        if cell.seed is None:
            return {"step": self.step, "examples": [self.examples, self.of_others, self.others]}
        path = pcae_weights()[cell.seed]
        return {"step": self.step, "weights": hashlib.sha256(path.read_bytes()).hexdigest()}

    def compute(self, cell: Cell, advance: Advance) -> dict[str, Any]:
        """The curves of a part set, or how often fours are recognised."""
        if cell.seed is not None:
            return self._pcae(cell.seed)
        return self._strokes() if cell.what == "strokes" else self._recognition()

    def _pcae(self, seed: int) -> dict[str, Any]:
        model = load(pcae_weights()[seed])
        angles = jnp.deg2rad(jnp.asarray(self.angles, jnp.float32))
        curves = [jax.device_get(compare(model, digit, angles)) for digit in self.fours]
        shown = read(model, self.fours[0], jnp.deg2rad(jnp.arange(0.0, 360.0, EVERY)))
        return {
            **{name: _rows(curve[name] for curve in curves) for name in curves[0]},
            "labels": np.asarray(shown.shares.argmax(1)).tolist(),
            "mean": np.round(np.asarray(shown.mean, float), 3).tolist(),
            "templates": np.round(np.asarray(model.decoder.ink, float), 3).tolist(),
            "alpha": np.round(np.asarray(jnp.log(model.decoder.opacity), float), 3).tolist(),
        }

    def _strokes(self) -> dict[str, Any]:
        """Parts of strokes, named by the commonest template of a four."""
        examples = self._examples(FOUR, self.examples)
        four = ways_to_write(FOUR, examples)[0]
        matching = Matching([four.template], [1.0], RADIUS, arm_length(examples))
        turns = np.deg2rad(self.angles)
        pictures = [_turned(digit, self.angles) for digit in self.fours]
        scenes = [strokes(picture).scene() for several in pictures for picture in several]
        found = matching.find(scenes)
        out: dict[str, list] = {name: [] for name in ("agreement", "ceiling", "canvas", "off")}
        for i, several in enumerate(pictures):
            mine = found[i * len(turns) : (i + 1) * len(turns)]
            named = np.stack([shares(f, matching, CANVAS) for f in mine])
            fixed = np.broadcast_to(_sectors(len(named[0])), named.shape)
            there = _all_turned(named[0], turns)
            for name, first, others in (
                ("agreement", named[0], named),
                ("ceiling", named[0], there),
                ("canvas", fixed[0], fixed),
            ):
                out[name].append(np.asarray(_agreements(first, others, turns, several[0])).tolist())
            out["off"].append(_off(mine, turns).tolist())
        shown = _turned(self.fours[0], np.arange(0, 360, EVERY))
        parts = [strokes(picture) for picture in shown]
        names = [shares(f, matching, CANVAS) for f in matching.find([p.scene() for p in parts])]
        return {
            **out,
            "labels": [n.argmax(0).tolist() for n in names],
            "pictures": np.round(np.asarray(shown, float), 3).tolist(),
            "parts": [[p.position.tolist(), list(p.kind)] for p in parts],
            "template": [four.template.parts.tolist(), list(four.template.types or ())],
            "sigma": four.template.sigma,
        }

    def _recognition(self) -> dict[str, Any]:
        """At every angle, which of the pictures are fours, the others being as likely."""
        rng_of = {digit: self.examples if digit == FOUR else self.of_others for digit in range(10)}
        examples = {digit: self._examples(digit, count) for digit, count in rng_of.items()}
        written = [w for digit in examples for w in ways_to_write(digit, examples[digit])]
        arm = arm_length(one for some in examples.values() for one in some)
        weights = [w.share * (0.5 if w.digit == FOUR else 0.5 / 9) for w in written]
        matching = Matching([w.template for w in written], weights, RADIUS, arm)
        digits = np.array([w.digit for w in written])
        others = [d for n in range(10) if n != FOUR for d in load_digits(n).test[: self.others]]
        pictures = [*self.fours, *others]
        angles = np.arange(0, 360, EVERY)
        odds = []
        for angle in angles:
            seen = [strokes(_turned(p, [float(angle)])[0]).scene() for p in pictures]
            found = matching.find(seen)
            evidence = np.maximum(np.stack([f.evidence for f in found]), -1e4)
            mine = np.logaddexp.reduce(evidence[:, digits == FOUR], 1)
            rest = np.logaddexp.reduce(evidence[:, digits != FOUR], 1)
            odds.append((mine - rest).tolist())
        truth = [1] * len(self.fours) + [0] * len(others)
        return {"angles": angles.tolist(), "odds": odds, "truth": truth, "templates": len(written)}

    def _examples(self, digit: int, count: int) -> list[Strokes]:
        """The parts of training pictures, each turned by an angle of its own."""
        pictures = load_digits(digit).train[:count]
        angles = np.random.default_rng([self.seed, digit]).uniform(0, 360, len(pictures))
        return [strokes(_turned(p, [a])[0]) for p, a in zip(pictures, angles, strict=True)]

    def report(self, results: dict[Cell, Any]) -> Report:
        """The tables and pictures."""
        named = {cell.name: result for cell, result in results.items()}
        return figures.report(named, self.angles, self.out)


@jax.jit
def _on_canvas(digit: Any, angles: Any) -> Any:
    return jax.vmap(lambda angle: on_canvas(digit, angle, jnp.zeros(2), CANVAS))(angles)


def _turned(digit: Array, degrees: Sequence[float] | Array) -> Array:
    """A digit in the middle of the canvas, turned by every angle."""
    return np.asarray(_on_canvas(digit, np.deg2rad(np.asarray(degrees, np.float32))))


_all_turned = jax.jit(jax.vmap(turned, (None, 0)))
_agreements = jax.jit(jax.vmap(agreement, (None, 0, 0, None)))


def _sectors(count: int) -> Array:
    """A labelling that does not turn: sectors around the middle of the canvas."""
    at = np.arange(CANVAS) - (CANVAS - 1) / 2
    angle = np.arctan2(at[:, None], at[None, :]) % (2 * np.pi)
    sector = (angle * count / (2 * np.pi)).astype(int)
    return (sector == np.arange(count)[:, None, None]).astype(np.float32)


def _off(found: Sequence[Found], turns: Array) -> Array:
    """By how many degrees each turn is found wrong, against the upright digit's; NaN: not found.

    Eq. 2 turns clockwise where y points up; in pictures it points down.
    """
    angle = np.array([np.arctan2(f.pose[3], f.pose[2]) for f in found])
    return np.abs(np.rad2deg(np.angle(np.exp(1j * (angle - angle[0] + turns)))))


def _rows(arrays: Iterable[Any]) -> list[list[float]]:
    return [np.round(np.asarray(a, float), 5).tolist() for a in arrays]

"""Parts of strokes, the number that says whether parts turn, and matching by evidence."""

from itertools import permutations

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import dblquad
from scipy.special import softmax
from sklearn.metrics import cohen_kappa_score

pytest.importorskip("skimage")

from partwise.digits.agreement import agreement, kappa, turned
from partwise.digits.matching import Matching, _ways
from partwise.digits.naming import shares
from partwise.digits.strokes import Strokes, strokes
from partwise.digits.turning import on_canvas
from partwise.digits.vocabulary import ways_to_write
from partwise.learning import Learned
from partwise.scenes import Scene

SIDE = 40


def drawn(lines, width=1.4):
    """Straight strokes with soft edges, in the coordinates of ``Strokes``."""
    at = np.arange(SIDE) - (SIDE - 1) / 2
    p = np.stack(np.meshgrid(at, at), -1)
    nearest = np.full((SIDE, SIDE), np.inf)
    for a, b in lines:
        a, b = np.array(a, float), np.array(b, float)
        along = np.clip(((p - a) @ (b - a)) / ((b - a) @ (b - a)), 0, 1)
        nearest = np.minimum(nearest, np.linalg.norm(p - (a + along[..., None] * (b - a)), axis=-1))
    return np.clip(width + 0.5 - nearest, 0, 1)


def rotated(points, angle):
    """Clockwise where y points down."""
    c, s = np.cos(angle), np.sin(angle)
    return np.asarray(points) @ np.array([[c, s], [-s, c]])


FOUR = [((-6, -8), (-7, 2)), ((-7, 2), (8, 2)), ((3, -9), (2, 10))]
ENDS, CORNER, JUNCTION = [(-6, -8), (8, 2), (3, -9), (2, 10)], (-7, 2), (2.4, 2)


@pytest.mark.parametrize("degrees", range(0, 360, 15))
def test_ends_corners_and_junctions_are_where_they_are_drawn(degrees):
    angle = np.deg2rad(degrees)
    picture = drawn([rotated(line, angle) for line in FOUR])
    found = strokes(picture)
    for kind, places in (("end", ENDS), ("corner", [CORNER]), ("junction", [JUNCTION])):
        mine = found.position[np.array(found.kind) == kind]
        assert len(mine) == len(places)
        away = np.linalg.norm(mine[:, None] - rotated(places, angle), axis=2)
        assert away.min(0).max() < 2.0
    # From an end the arm points into the stroke.
    for n in np.flatnonzero(np.array(found.kind) == "end"):
        assert np.hypot(*found.arm[n]) > 1.5
        assert found.position[n] @ found.arm[n] < 0


def test_nothing_and_one_dot_have_no_parts():
    assert strokes(np.zeros((SIDE, SIDE))).kind == ()
    assert len(strokes(drawn([((0, 0), (0, 0.1))])).kind) <= 2


def test_arms_turn_as_directed_parts_do():
    """The scene of a turned picture is the turned scene: arms are no positions for the pose."""
    four = strokes(drawn(FOUR)).scene()
    template = Learned(four.parts, types=four.types, sigma=0.05)
    matching = Matching([template], [1.0], 14.0, 4.0)
    for angle in (0.5, 2.0, 4.0):
        found = matching.find([strokes(drawn([rotated(x, angle) for x in FOUR])).scene()])[0]
        turn = np.arctan2(found.pose[3], found.pose[2])
        assert np.cos(turn + angle) > np.cos(np.deg2rad(4))
        assert np.hypot(*found.pose[2:]) == pytest.approx(1.0, abs=0.08)
        assert (found.parts >= 0).sum() >= len(template) - 1


def labels_of(points, side=SIDE):
    """A labelling that turns: the nearest of some points."""
    at = np.arange(side) - (side - 1) / 2
    p = np.stack(np.meshgrid(at, at), -1)
    square = ((p - np.asarray(points)[:, None, None]) ** 2).sum(-1)
    return softmax(-square / 18, axis=0).astype(np.float32)


def test_a_labelling_that_turns_agrees():
    picture = drawn(FOUR)
    for degrees in (0, 15, 45, 90, 200, 330):
        angle = np.deg2rad(degrees)
        found = labels_of(rotated(ENDS, angle))
        assert float(agreement(labels_of(ENDS), found, angle, picture)) > 0.97
        # Turned the wrong way, or not at all, it does not.
        if degrees in (45, 90, 200):
            wrong = labels_of(rotated(ENDS, -angle))
            assert float(agreement(labels_of(ENDS), wrong, angle, picture)) < 0.7
            assert float(agreement(labels_of(ENDS), labels_of(ENDS), angle, picture)) < 0.7


def test_labels_by_chance_do_not_agree():
    rng = np.random.default_rng(0)
    picture = drawn(FOUR)
    values = []
    for _ in range(40):
        one, other = (np.eye(4)[rng.integers(4, size=(SIDE, SIDE))] for _ in range(2))
        one, other = (np.moveaxis(a, -1, 0).astype(np.float32) for a in (one, other))
        values.append(float(agreement(one, other, 0.0, picture)))
    assert abs(np.mean(values)) < 0.03


def test_kappa_is_scikit_learns():
    rng = np.random.default_rng(1)
    one = rng.integers(5, size=300)
    other = np.where(rng.uniform(size=300) < 0.6, one, rng.integers(5, size=300))
    where = rng.uniform(size=300) < 0.7
    ours = float(kappa(jnp.asarray(one), jnp.asarray(other), jnp.asarray(where), 5))
    assert ours == pytest.approx(cohen_kappa_score(one[where], other[where]), abs=1e-5)


def test_turned_there_and_back():
    blob = labels_of(ENDS)
    there = turned(blob, 0.7)
    np.testing.assert_allclose(there[1], on_canvas(blob[1], 0.7, jnp.zeros(2), SIDE), atol=1e-6)


def template(rng, count, types, sigma=0.2):
    return Learned(rng.normal(size=(count, 4)), types=types, sigma=sigma)


def test_evidence_is_the_integral_over_poses():
    """One template of three parts, one of them hidden or not: against numerical integration."""
    rng = np.random.default_rng(3)
    one = template(rng, 2, ("a", "b"), 0.4)
    parts = rng.normal(size=(2, 4)) * 2
    radius, arm, missing, clutter = 10.0, 2.0, 0.1, 0.5
    found = Matching([one], [1.0], radius, arm, missing, clutter).find([Scene(parts, ("a", "b"))])
    # Over log scale (width log 100) and turn; the translation of Gaussians in closed form.
    p, d = one.parts[:, :2] @ [1, 1j], one.parts[:, 2:] @ [1, -1j]
    x, e = parts[:, :2] @ [1, 1j], parts[:, 2:] @ [1, -1j]

    def density(turn, log_scale):
        w = np.exp(1j * turn - log_scale)
        rest = w * (x - x.mean()) - (p - p.mean())
        square = (np.abs(rest) ** 2).sum() + (np.abs(w * e - d) ** 2).sum()
        v = one.sigma**2
        # |w|^2 a vector, of which the translation takes one.
        return np.abs(w) ** 6 * np.exp(-square / (2 * v)) / (2 * np.pi * v) ** 3 / 2

    area = np.pi * radius**2
    low, high = np.log(radius) - np.log(100), np.log(radius)
    value = dblquad(density, low, high, 0, 2 * np.pi)[0] / (2 * np.pi * np.log(100) * area)
    expected = np.log(value) + 2 * np.log(1 - missing) - clutter
    assert found[0].evidence[0] == pytest.approx(expected, abs=0.02)


def test_ways_are_all_typed_matches():
    template, seen = ("a", "a", "b"), ("b", "a", "a", "a")
    ways = {tuple(w) for w in _ways(template, seen, 1)}
    expected = set()
    for order in permutations([0, 1, 2, 3, -1, -2, -3], 3):
        way = tuple(max(m, -1) for m in order)
        typed = all(m < 0 or seen[m] == template[n] for n, m in enumerate(way))
        if typed and way.count(-1) <= 1:
            expected.add(way)
    assert ways == expected
    assert len(ways) == len(_ways(template, seen, 1))


def test_no_match_is_said():
    rng = np.random.default_rng(0)
    matching = Matching([template(rng, 3, ("a", "a", "b"))], [1.0], 10.0, 2.0)
    nothing, one = matching.find([Scene(np.zeros((0, 4)), ()), Scene(np.ones((1, 4)), ("a",))])
    for found in (nothing, one):
        assert found.template == -1
        assert found.evidence[0] == -np.inf
    assert shares(nothing, matching, 10)[-1].all()


def test_the_order_of_pictures_and_parts_changes_nothing():
    rng = np.random.default_rng(5)
    types = ("a", "b", "b")
    matching = Matching([template(rng, 3, types), template(rng, 3, types)], [0.7, 0.3], 10.0, 2.0)
    parts = rng.normal(size=(4, 4))
    kinds = ("b", "a", "b", "b")
    order = [2, 0, 3, 1]
    again = Scene(parts[order], tuple(kinds[i] for i in order))
    one, two = matching.find([Scene(parts, kinds), again])
    np.testing.assert_allclose(one.evidence, two.evidence, rtol=1e-5)
    assert [order[m] if m >= 0 else -1 for m in two.parts] == one.parts.tolist()
    np.testing.assert_allclose(one.pose, two.pose, atol=1e-9)


def test_ways_to_write():
    rng = np.random.default_rng(0)
    shape = np.array([[0.0, 0], [3, 0], [0, 5]])

    def example(count, kind):
        angle = rng.uniform(0, 6)
        arms = np.tile([1.0, 0.0], (3, 1))
        position = shape + rng.normal(0, 0.1, (3, 2))
        return Strokes(rotated(position, angle)[:count], rotated(arms, angle)[:count], kind[:count])

    kinds = ("end", "end", "corner")
    examples = [example(3, kinds) for _ in range(12)] + [example(2, kinds) for _ in range(6)]
    examples.append(Strokes(np.zeros((0, 2)), np.zeros((0, 2)), ()))
    first, second = ways_to_write(4, examples)
    assert (len(first.template), len(second.template)) == (3, 2)
    assert (first.share, second.share) == (12 / 18, 6 / 18)
    assert first.template.name == "4"
    assert first.template.sigma < 0.15

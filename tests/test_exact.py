"""Exact inference beside brute force: numerical integration, and every permutation written out."""

from itertools import permutations
from math import log

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import dblquad

import partwise as pw
from partwise.evidence import SCALE_RANGE, Match, SceneNoise, TemplateNoise
from partwise.inference import solve
from partwise.poses import Affine2D, Translation
from partwise.problem import problems, slots_of
from partwise.solvers.exact import Exact
from partwise.solvers.groupings import groupings
from partwise.solvers.packing import Packing, greedy, pack


def match_of(model, points, seen=None):
    """Points as the parts of the first object, in order."""
    slots = slots_of(model)
    rows = slots.rows(0)
    return slots, Match(
        jnp.asarray(slots.design[rows]),
        jnp.asarray(slots.mean[rows]),
        jnp.asarray(points, jnp.float32),
        None if seen is None else jnp.asarray(seen, jnp.float32),
    )


@pytest.mark.parametrize("sigma", [0.05, 0.3])
@pytest.mark.parametrize("shape", ["square", "triangle"])
def test_template_noise_is_the_integral_over_poses(sigma, shape):
    """Translation by hand, then turn and log scale by quadrature, of the density of the points."""
    template = getattr(pw.shapes, shape)()
    model = pw.Model([template])
    rng = np.random.default_rng(0)
    p = slots_of(model).design[:, 0, 2:4].astype(float)
    x = 0.4 * (p + sigma * rng.normal(size=p.shape)) @ np.array([[0.8, -0.6], [0.6, 0.8]])
    slots, match = match_of(model, x)
    value = float(TemplateNoise.of(slots, match, 0.0).log_evidence(jnp.float32(sigma)))

    z, q = x @ [1, 1j], p @ [1, 1j]
    n = len(z)

    def density(angle, log_scale):
        a = np.exp(log_scale - 1j * angle)
        # Noise in the template's frame: deviation s sigma in the scene; best translation, and the
        # Gaussian integral around it.
        spread = abs(a) * sigma
        away = z - a * q
        away = away - away.mean()
        log_density = -(abs(away) ** 2).sum() / (2 * spread**2) - n * log(2 * np.pi * spread**2)
        return np.exp(log_density + log(2 * np.pi * spread**2 / n))

    integral = dblquad(density, log(0.4) - 3, log(0.4) + 3, 0, 2 * np.pi, epsabs=1e-7)[0]
    assert value == pytest.approx(log(integral / (2 * np.pi * SCALE_RANGE)), abs=0.01)


def test_scene_noise_is_a_gaussian_density():
    model = pw.Model([pw.shapes.square()], pose=Affine2D(), noise=pw.Noise(0.1, False))
    rng = np.random.default_rng(1)
    x = rng.normal(size=(4, 2)) * 0.3
    slots, match = match_of(model, x)
    value = float(SceneNoise.of(slots, match, 0.0).log_evidence(jnp.float32(0.1)))
    f = slots.design.reshape(8, 6).astype(float)
    covariance = f @ f.T + 0.01 * np.eye(8)
    quadratic = x.ravel() @ np.linalg.solve(covariance, x.ravel())
    expected = -0.5 * (quadratic + np.linalg.slogdet(2 * np.pi * covariance)[1])
    assert value == pytest.approx(expected, abs=0.01)


def test_parts_that_are_not_seen_do_not_count():
    square = pw.Model([pw.shapes.square()])
    corner = pw.Model([pw.Template(pw.shapes.square().parts[:3])])
    rng = np.random.default_rng(2)
    x = rng.normal(size=(4, 2))
    _, partial = match_of(square, x, [1, 1, 1, 0])
    slots = slots_of(square)
    p = jnp.asarray(slots.design[:3])
    whole = Match(p, jnp.asarray(slots.mean[:3]), jnp.asarray(x[:3], jnp.float32))
    for sigma in (0.05, 0.4):
        a = TemplateNoise.of(slots, partial, 0.3).log_evidence(jnp.float32(sigma))
        b = TemplateNoise.of(slots, whole, 0.3).log_evidence(jnp.float32(sigma))
        assert float(a) == pytest.approx(float(b), rel=1e-3)
    assert corner.templates[0].parts.shape == (3, 2)


def brute_force(model, scene):
    """Each grouping's log weight at each noise level, with plain loops over everything."""
    problem = problems(model, pw.SceneBatch.collect([scene]))[0]
    slots, x = problem.slots, problem.points[0, :, :2].astype(float)
    table = groupings(model, len(x), 0.0, 20_000)
    from partwise.evidence import log_scene_volume, noise_levels

    volume, levels = log_scene_volume(model, len(x)), noise_levels(problem)[0]

    @jax.jit
    def log_evidence(design, mean, points):
        statistics = TemplateNoise.of(slots, Match(design, mean, points), volume)
        return jnp.stack([statistics.log_evidence(s) for s in levels])

    evidence = []
    for c in table.candidates:
        rows = slots.rows(c.object)
        for subset in c.subsets:
            terms = []
            for order in permutations(range(len(rows))):
                slot = rows[list(order)]
                points = x[subset].astype(np.float32)
                terms.append(log_evidence(slots.design[slot], slots.mean[slot], points))
            evidence.append(np.logaddexp.reduce(np.array(terms), 0))
    weights = []
    for row, prior in zip(table.rows, table.log_prior, strict=True):
        per_level = sum(evidence[c] for c in row if c >= 0) + prior
        weights.append(np.logaddexp.reduce(per_level) - log(len(levels)))
    return table, np.array(weights), problem


def test_the_posterior_is_brute_forces():
    model = pw.constellations()
    lab = pw.simulate_constellations(60, 0.25, 8)
    scene = next(s for s in lab.scenes if len(s) == 7)
    table, weights, problem = brute_force(model, scene)
    posterior = np.exp(weights - np.logaddexp.reduce(weights))
    found = pw.infer(model, scene, solver="exact")
    assert found.score == pytest.approx(np.logaddexp.reduce(weights), abs=0.02)
    best = table.rows[posterior.argmax()]
    subsets = [s for c in table.candidates for s in c.subsets]
    order = problem.order[0]
    expected = {tuple(sorted(order[subsets[c]].tolist())) for c in best if c >= 0}
    assert {tuple(sorted(o.points.tolist())) for o in found.objects} == expected
    for o in found.objects:
        holds = [
            any(set(order[subsets[c]].tolist()) == set(o.points.tolist()) for c in row if c >= 0)
            for row in table.rows
        ]
        assert o.probability == pytest.approx(posterior[holds].sum(), abs=2e-3)


def test_number_of_groupings():
    """165 triangles times 35 pairs of squares; 35 triangles beside a square; and so on."""
    model = pw.constellations()
    assert [len(groupings(model, m, 0.0, 10**5).rows) for m in (3, 4, 7, 8, 11)] == [
        1, 1, 35, 35, 5775,
    ]  # fmt: skip
    assert groupings(model, 11, 0.0, 5000) is None
    # At once: nobody looks for a way to explain 15 points with 11 parts.
    assert groupings(model, 15, 0.0, 5000) is None
    # Five points are a square and one left over, or a triangle and two: as few as possible.
    five = groupings(model, 5, 0.0, 1000)
    assert len(five.rows) == 5
    clutter = pw.Model([pw.shapes.triangle()], clutter=1.0)
    assert len(groupings(clutter, 4, -1.0, 1000).rows) == 5  # one of four triangles, or none


def test_ways_that_a_turn_undoes_are_counted_once():
    table = groupings(pw.constellations(), 7, 0.0, 1000)
    ways = {len(c.subsets[0]): (len(c.parts), np.exp(c.log_ways).sum()) for c in table.candidates}
    assert ways[4] == (6, pytest.approx(24))
    assert ways[3] == (6, pytest.approx(6))


def test_clutter_missing_parts_and_probabilities():
    rng = np.random.default_rng(0)
    shape = pw.Template(rng.normal(size=(5, 2)), "shape")
    model = pw.Model([shape], missing=0.2, clutter=2.0, noise=pw.Noise(0.02))
    points = np.concatenate([shape.parts[:4] * 2 + 3, [[9.0, -4.0], [-3.0, 8.0]]])
    found = pw.infer(model, points, solver="exact")
    assert found.objects[0].parts.tolist() == [0, 1, 2, 3, -1]
    assert found.objects[0].probability > 0.99
    assert found.labels.tolist() == [0, 0, 0, 0, -1, -1]
    nothing = pw.infer(model, rng.normal(size=(5, 2)) * 4, solver="exact")
    assert all(o.probability < 0.5 for o in nothing.objects)


def test_a_scene_that_is_too_large_says_so():
    with pytest.raises(pw.InputError, match="auto"):
        pw.infer(pw.constellations(), np.random.default_rng(0).normal(size=(40, 2)), solver="exact")


def test_translations_keep_their_scale():
    model = pw.Model([pw.shapes.square()], pose=Translation())
    big = pw.infer(model, pw.shapes.square().parts + 7.0)
    np.testing.assert_allclose(big.objects[0].parameters["translation"], [7, 7], atol=1e-3)


def test_packing_is_the_best_of_all_sets():
    rng = np.random.default_rng(5)
    for _ in range(20):
        weight = rng.normal(1.0, 2.0, 12)
        members = rng.random((12, 8)) < 0.3
        template, rooms = rng.integers(0, 2, 12), np.array([2, 1])

        def allowed(rows, members=members, template=template, rooms=rooms):
            fits = members[rows].sum(0).max(initial=0) <= 1
            return fits and (np.bincount(template[rows], minlength=2) <= rooms).all()

        sets = [[i for i in range(12) if bits >> i & 1] for bits in range(2**12)]
        best = max(weight[s].sum() for s in sets if allowed(np.array(s, int)))
        chosen, value = pack(weight, members, template, rooms)
        assert allowed(np.array(chosen, int))
        assert value == pytest.approx(best)
        assert greedy(weight, members, template, rooms)[1] <= best + 1e-9


def test_packing_agrees_with_exact():
    model = pw.constellations()
    scenes = [s for s in pw.simulate_constellations(160, 0.1, 6).scenes if len(s) == 7]
    batch = pw.SceneBatch.collect(scenes)
    exact, packed = solve(model, batch, Exact()), solve(model, batch, Packing())
    same = [
        {tuple(sorted(o.points)) for o in a.objects} == {tuple(sorted(o.points)) for o in b.objects}
        for a, b in zip(exact, packed, strict=True)
    ]
    assert np.mean(same) >= 0.95

"""Geometric hashing against slow references, and on crowds of known truth."""

from itertools import combinations, permutations
from math import log

import numpy as np
import pytest

import partwise as pw
from partwise.crowds import crowd_model, score_crowd, simulate_clutter, simulate_crowd
from partwise.evidence import SCALE_RANGE, Match, TemplateNoise
from partwise.inference import solve
from partwise.problem import problems, slots_of
from partwise.solvers.hashing import Hashing
from partwise.solvers.hashing.bases import edges, invariants
from partwise.solvers.hashing.choosing import choose, overlaps
from partwise.solvers.hashing.solving import templates_of
from partwise.solvers.hashing.table import REACH, table
from partwise.solvers.hashing.weights import ANYWHERE, Setting, match_weight, scale_prior

MODEL = crowd_model(12, key=100)
CROWD = simulate_crowd(MODEL, 24, 101)


@pytest.fixture(scope="module")
def answers():
    """The answer to ``CROWD``; the first one compiles."""
    return solve(MODEL, CROWD.scenes, "hashing")


@pytest.mark.parametrize("count", range(2, 13))
@pytest.mark.parametrize("groups", [2, 3])
def test_any_visible_parts_hold_a_basis(count, groups):
    rng = np.random.default_rng(count)
    parts = rng.normal(size=count) + 1j * rng.normal(size=count)
    pairs = {tuple(p) for p in edges(parts, groups).tolist()}
    for seen in combinations(range(count), min(groups + 1, count)):
        assert any(p in pairs for p in combinations(seen, 2))
    if count > 5:  # Turan: no fewer pairs will do
        sizes = [count // groups + (g < count % groups) for g in range(groups)]
        assert len(pairs) == sum(s * (s - 1) // 2 for s in sizes)


def test_a_look_into_one_cell_finds_what_a_loop_over_all_entries_finds():
    templates = templates_of(MODEL)
    sigma = 0.02
    made = table(templates, sigma, 3)
    assert (np.diff(made.length) >= 0).all()
    rng = np.random.default_rng(0)
    found, expected = set(), set()
    for n, v in enumerate(rng.uniform(-2, 3, 300) + 1j * rng.uniform(-2.5, 2.5, 300)):
        i, j = (int((x - made.low) / made.cell) for x in (v.real, v.imag))
        for e in range(made.start[i * made.side + j], made.start[i * made.side + j + 1]):
            u, w, reach2 = made.where[e]
            if (u - v.real) ** 2 + (w - v.imag) ** 2 < reach2:
                found.add((n, int(made.basis[e]), int(made.part[e])))
        for b, (t, pair) in enumerate(zip(made.template, made.pair, strict=True)):
            parts = templates.parts[templates.first[t] : templates.first[t + 1]]
            u = invariants(parts, pair)
            tau = sigma / made.length[b] * np.sqrt(1 + np.abs(1 - u) ** 2 + np.abs(u) ** 2)
            near = (np.abs(u - v) < REACH * tau) & (np.abs(u) < 3) & (np.abs(1 - u) < 3)
            near[pair] = False
            expected |= {(n, b, int(k)) for k in np.flatnonzero(near)}
    assert len(expected) > 50
    assert len(found ^ expected) <= 0.01 * len(expected)  # single precision at the rim


def flat_setting(sigma=0.02):
    """No range of scales is preferred."""
    return Setting(
        sigma, -1.0, log(0.85), log(0.15), -2.0, 3.0, 3.0, 1e-9, 2e-9, 4.0, 0.0
    )  # fmt: skip


def test_weights_are_the_closed_form_evidence():
    """Against ``evidence.TemplateNoise``, which has the same formula for other purposes."""
    slots, template = slots_of(MODEL), MODEL.canonical_order[0]
    parts = (MODEL.templates[template].parts - MODEL.templates[template].centre) / MODEL.unit
    rng, setting = np.random.default_rng(1), flat_setting()
    n = len(parts)
    for seen in (2, 3, 4, 5, n):
        at = rng.choice(n, seen, replace=False)
        x = 0.3 * parts[at] @ [[0.6, 0.8], [-0.8, 0.6]] + 0.004 * rng.normal(size=(seen, 2))
        match = np.full(n, -1)
        match[at] = range(seen)
        points = x @ [1, 1j]
        weight = match_weight(setting, parts @ [1, 1j], points, match)
        stats = TemplateNoise.of(slots, Match(slots.design[at], slots.mean[at], x), 3.0)
        assert scale_prior(setting, 0.3) == pytest.approx(ANYWHERE / SCALE_RANGE)
        expected = (
            float(stats.log_evidence(np.float32(0.02))) + log(ANYWHERE)
            - 1.0 + seen * (log(0.85) + 2.0) + (n - seen) * log(0.15)
        )  # fmt: skip
        assert weight == pytest.approx(expected, abs=0.02)


@pytest.mark.parametrize("sized", [0.0, 1.0, 5.0])
def test_the_prior_over_scales_is_that_of_an_unknown_unit(sized):
    """Scales uniform in (u, 4 u); u is seen through ``sized`` scales: by a plain sum over u."""
    setting = flat_setting()._replace(largest=9.0, u0=0.5, u1=0.9, ratio=4.0, sized=sized)
    u = np.exp(np.linspace(log(0.5), log(0.9), 20_001))
    for scale in (0.4, 0.55, 0.8, 1.5, 2.1, 3.0, 3.7):
        likely = u**-sized
        density = np.where((u <= scale) & (scale <= 4 * u), scale / (3 * u), 0.0)
        expected = (1 - ANYWHERE) * (likely * density).sum() / likely.sum() + ANYWHERE / SCALE_RANGE
        assert scale_prior(setting, scale) == pytest.approx(expected, rel=2e-3)


def brute(weight, conflict):
    """Every consistent set."""
    total, share, best = 0.0, np.zeros(len(weight)), (-np.inf, None)
    for bits in range(1 << len(weight)):
        rows = [h for h in range(len(weight)) if bits >> h & 1]
        if any(conflict[a, b] for a, b in combinations(rows, 2)):
            continue
        value = weight[rows].sum()
        best = max(best, (value, rows), key=lambda v: v[0])
        total += np.exp(value)
        share[rows] += np.exp(value)
    return best, share / total


@pytest.mark.parametrize("seed", range(20))
def test_choice_and_probabilities_are_those_of_all_sets(seed):
    rng = np.random.default_rng(seed)
    match = np.stack([rng.permutation(14)[:4] for _ in range(11)]).astype(np.int32)
    match[rng.random(match.shape) < 0.2] = -1
    conflict = overlaps(match, 14)
    shared = [[bool(set(a[a >= 0]) & set(b[b >= 0])) for b in match] for a in match]
    np.testing.assert_array_equal(conflict, shared)
    weight = rng.normal(1, 2, 11)
    chosen, probability, value = choose(weight, conflict)
    (best, rows), share = brute(weight, conflict)
    assert value == pytest.approx(best)
    assert np.flatnonzero(chosen).tolist() == sorted(rows)
    np.testing.assert_allclose(probability, share, atol=2e-3)


def test_the_best_hypothesis_is_the_best_of_all():
    """One object and two points of clutter: every match of every template by brute force."""
    model = crowd_model(3, 0.2, key=7)
    scene = simulate_crowd(model, 6, 8)
    templates = templates_of(model)
    for i in range(6):
        k = next(iter(scene.poses[i]))
        mine = np.flatnonzero(scene.object_id[i] == k)[:5]
        rest = np.flatnonzero(scene.object_id[i] < 0)[:2]
        points = scene.scenes[i].parts[np.concatenate([mine, rest])]
        found = pw.infer(model, points, "hashing")
        problem = problems(model, pw.SceneBatch.collect([points]))[0]
        z = problem.points[0, :, :2].astype(float) @ [1, 1j]
        setting = flat_setting()
        best = (-np.inf, None, None)
        for t in range(3):
            parts = templates.parts[templates.first[t] : templates.first[t + 1]]
            for which in permutations(range(len(parts)), 5):
                match = np.full(len(parts), -1)
                match[list(which)] = np.argsort(problem.order[0])[:5]
                weight = match_weight(setting, parts, z, match)
                best = max(best, (weight, t, match), key=lambda v: v[0])
        assert found.objects, "an object of five parts among two points of clutter"
        assert found.objects[0].template_index == best[1] == model.copies[k]
        top = set(problem.order[0][best[2][best[2] >= 0]].tolist())
        assert len(top & set(found.objects[0].points.tolist())) >= 4


def test_crowds_are_found(answers):
    score = score_crowd(CROWD, answers)
    assert score.f1 > 0.96
    assert score.recall_from(5) > 0.97
    assert score.calibration_error < 0.03


def test_clutter_alone_is_nothing():
    found = solve(MODEL, simulate_clutter(MODEL, 40, 25, 5), "hashing")
    assert (found.probability >= 0.5).any(1).mean() <= 0.05


def moved(points, angle, scale, offset):
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    return scale * points @ turn.T + offset


@pytest.mark.parametrize(("scale", "offset"), [(1.0, 1e5), (1e-4, 0.0), (300.0, -7.0)])
def test_crowds_that_are_moved_and_shuffled(answers, scale, offset):
    rng = np.random.default_rng(0)
    for i in range(4):
        points = CROWD.scenes[i].parts
        order = rng.permutation(len(points))
        there = pw.infer(MODEL, moved(points[order], 2.0, scale, offset), "hashing")
        same = {(o.name, tuple(sorted(order[o.points]))) for o in there.objects}
        assert same == {(o.name, tuple(sorted(o.points.tolist()))) for o in answers[i].objects}
        for o in there.objects:
            near = np.abs(
                o.predicted[o.parts >= 0] - moved(points, 2.0, scale, offset)[order][o.points]
            )
            assert near.max() < 0.5 * scale


def test_a_template_given_twice_is_one_kind_of_object(answers):
    twice = pw.Model(
        [*MODEL.templates, MODEL.templates[0]],
        instances=[4] * 12 + [1], noise=MODEL.noise, presence=MODEL.presence,
        missing=MODEL.missing, clutter=MODEL.clutter,
    )  # fmt: skip
    with_it = [i for i in range(24) if any(MODEL.copies[k] == 0 for k in CROWD.poses[i])]
    for i in with_it[:3]:
        found = pw.infer(twice, CROWD.scenes[i], "hashing")
        sure = [o.probability for o in found.objects if o.template_index in (0, 12)]
        before = [o.probability for o in answers[i].objects if o.template_index == 0]
        np.testing.assert_allclose(sorted(sure), sorted(before), atol=0.05)


def test_no_noise_duplicates_and_noise_that_is_not_known():
    exact = MODEL.replace(noise=pw.Noise(0.0))
    scene = simulate_crowd(exact, 3, 9)
    assert score_crowd(scene, solve(exact, scene.scenes, "hashing")).recall_from(5) == 1
    doubled = np.concatenate([scene.scenes[0].parts] * 2)
    for o in pw.infer(exact, doubled, "hashing").objects:
        assert len(set(o.points.tolist())) == len(o.points)
    unknown = MODEL.replace(noise=pw.Noise(None))
    batch = CROWD.scenes[:6]
    told = score_crowd(crowd_part(6), solve(unknown, batch, "hashing"))
    assert told.f1 > 0.9


def crowd_part(n):
    """The first n scenes with their truth."""
    return type(CROWD)(*(value[:n] for value in CROWD))


def test_types_are_kept_apart():
    square = pw.Template(pw.shapes.square().parts, types=["a", "a", "b", "b"])
    model = pw.Model([square], noise=pw.Noise(0.02), clutter=1.0, missing=0.1)
    points = square.parts * 2.0
    right = pw.infer(model, pw.Scene(points, types=["a", "a", "b", "b"]), "hashing")
    assert right.objects[0].parts.tolist() == [0, 1, 2, 3]
    wrong = pw.infer(model, pw.Scene(points, types=["a", "b", "a", "b"]), "hashing")
    assert not wrong.objects or wrong.objects[0].probability < 0.5


def test_scenes_do_not_see_each_other_and_threads_do_not_matter(answers):
    again = solve(MODEL, CROWD.scenes, Hashing())
    np.testing.assert_array_equal(again.parts, answers.parts)
    np.testing.assert_array_equal(again.probability, answers.probability)
    for i in (3, 7):
        alone = pw.infer(MODEL, CROWD.scenes[i], "hashing")
        assert [o.to_json() for o in alone.objects] == [o.to_json() for o in answers[i].objects]


def test_other_families_get_one_sentence():
    square = pw.shapes.square()
    for model in (
        pw.Model([square], pose=pw.poses.Affine2D()),
        pw.Model([square], noise=pw.Noise(0.1, follows_scale=False)),
        pw.Model([square, pw.Template([[0, 0], [1, 0]])], noise=pw.Noise(0.02)),
    ):
        with pytest.raises(pw.InputError, match="auto"):
            pw.infer(model, square.parts, "hashing")
    with pytest.raises(pw.InputError, match="groups"):
        Hashing(groups=0)


def test_scenes_without_an_answer():
    spot, line = np.zeros((20, 2)), np.outer(np.arange(30.0), [1, 2])
    scenes = [np.zeros((0, 2)), np.zeros((1, 2)), CROWD.scenes[0].parts[:2], spot, line]
    for explained in pw.infer(MODEL, scenes, "hashing"):
        assert explained.objects == ()


def test_auto_leaves_templates_of_two_parts_to_packing():
    from partwise.solvers.auto import Auto

    pair = pw.Template([[0, 0], [1, 0]])
    assert Auto().hashes(MODEL)
    assert not Auto().hashes(MODEL.replace(templates=[pair], instances=[1]))

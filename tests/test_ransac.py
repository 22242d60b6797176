"""RANSAC: perfect without noise, the same however the scene lies, for every pose family."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partwise import (
    Appearance,
    InputError,
    Model,
    Noise,
    PosePrior,
    Scene,
    SceneBatch,
    Template,
    constellations,
    infer,
    poses,
    shapes,
    simulate_constellations,
)
from partwise.problem import problems
from partwise.solvers.ransac import Ransac, appearance, candidates

MODEL = constellations()


def _drawn(scenes: int, noise: float, key: int, sizes=(7, 11)):
    """Constellations of few sizes: each is compiled for, and each has ``scenes`` scenes."""
    labelled = simulate_constellations(8 * scenes, noise, key)
    points = labelled.present.sum(1)
    return labelled.select(np.concatenate([np.flatnonzero(points == n)[:scenes] for n in sizes]))


def _grouping(found) -> frozenset:
    return frozenset((o.name, frozenset(o.points.tolist())) for o in found.objects)


def _truth(labelled, i: int) -> frozenset:
    ids = labelled.object_id[i][labelled.present[i]]
    names = [t.name for t in (MODEL.templates[t] for t in MODEL.copies)]
    return frozenset((names[k], frozenset(np.flatnonzero(ids == k).tolist())) for k in set(ids))


def _accuracy(labelled, solver) -> float:
    found = infer(MODEL, labelled, solver=solver)
    return float(
        np.mean([_grouping(found[i]) == _truth(labelled, i) for i in range(len(labelled))])
    )


@pytest.mark.parametrize("combine", ["best", "sequential"])
def test_perfect_without_noise(combine):
    assert _accuracy(_drawn(60, 0.0, 5), Ransac(combine=combine)) == 1.0


def test_accuracy_with_noise_and_what_all_bases_add():
    labelled = _drawn(100, 0.25, 6)
    best = _accuracy(labelled, Ransac())
    assert best > 0.6
    assert best > _accuracy(labelled, Ransac(bases="fixed"))


def test_pose_is_the_least_squares_fit():
    points = np.random.default_rng(0).normal(0, 0.05, (4, 2)) + 3 * shapes.square().parts + 7
    found = infer(Model([shapes.square()]), points, solver="ransac").objects[0]
    expected = MODEL.pose.solve(shapes.square().parts, points[found.parts])
    np.testing.assert_allclose(found.pose, expected, atol=1e-4)


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 30),
    st.floats(-np.pi, np.pi),
    st.floats(-5, 5),
    st.floats(-100, 100),
    st.booleans(),
)
def test_equivariance(index, angle, power, offset, swap):
    """Shuffled, turned, scaled, moved, its templates swapped: the same answer, carried along."""
    points = _drawn(8, 0.1, 9, (7,)).scenes[index % 8].parts
    rng = np.random.default_rng(index)
    shuffle, c, s = rng.permutation(len(points)), np.cos(angle), np.sin(angle)
    moved = 10**power * (points @ np.array([[c, -s], [s, c]]) + offset)
    model = Model(MODEL.templates[::-1], instances=[1, 2]) if swap else MODEL
    before = infer(MODEL, points, solver="ransac")
    after = infer(model, moved[shuffle], solver="ransac")
    carried = frozenset((n, frozenset(shuffle[list(g)].tolist())) for n, g in _grouping(after))
    assert carried == _grouping(before)
    scales = sorted(o.parameters["scale"] for o in before.objects)
    moved_scales = sorted(o.parameters["scale"] for o in after.objects)
    np.testing.assert_allclose(moved_scales, 10**power * np.array(scales), rtol=1e-3)


def _shape(family, directed: bool) -> Template:
    rng = np.random.default_rng(3)
    parts = rng.normal(size=(6, family.template_dim))
    if not directed:
        return Template(parts, "thing")
    return Template.directed(parts, rng.uniform(0.5, 1, 6), rng.uniform(0, 6, 6), "thing")


FAMILIES = [(name, False) for name in sorted(poses.FAMILIES)]
FAMILIES += [("similarity", True), ("affine2d", True), ("translation", True)]


@pytest.mark.parametrize(("name", "directed"), FAMILIES)
def test_every_family_and_basis_size(name, directed):
    family = poses.FAMILIES[name]
    model = Model([_shape(family, directed)], pose=family, presence=0.99)
    drawn = model.sample(1, 4)
    found = infer(model, drawn.scenes, solver=Ransac(bases="fixed"))
    for i, here in enumerate(drawn.poses):
        if not here:
            continue
        (thing,) = found[i].objects
        np.testing.assert_array_equal(drawn.part_id[i][thing.parts], np.arange(6))
        np.testing.assert_allclose(thing.predicted, drawn.scenes[i].parts[thing.parts], atol=1e-3)


def test_missing_parts_and_clutter():
    """A known shape with two of eight parts hidden, among twelve points of clutter."""
    rng = np.random.default_rng(0)
    template = Template(rng.normal(size=(8, 2)), "thing")
    model = Model([template], missing=0.2, clutter=12.0, noise=Noise(0.01))
    found_all = 0
    for _ in range(5):
        pose = model.pose.from_parameters(rng.normal(size=2) * 5, 2.0, rng.uniform(0, 6))
        hidden = rng.permutation(8)[:2]
        kept = np.setdiff1d(np.arange(8), hidden)
        moved = model.pose.apply(pose, template.parts)[kept] + rng.normal(0, 0.02, (6, 2))
        low, high = moved.min(0) - 1, moved.max(0) + 1
        points = np.concatenate([moved, rng.uniform(low, high, (12, 2))])
        (thing,) = infer(model, points, solver="ransac").objects
        found_all += set(kept.tolist()) <= {n for n in range(8) if thing.parts[n] >= 0}
        right = [n for n in range(8) if thing.parts[n] >= 0 and n in kept]
        assert all(kept[thing.parts[n]] == n for n in right if thing.parts[n] < 6)
        np.testing.assert_allclose(thing.pose, pose, atol=0.2)
    assert found_all >= 4


def test_nothing_is_found_in_clutter():
    model = Model([shapes.square()], missing=0.1, clutter=10.0, noise=Noise(0.01))
    points = np.random.default_rng(1).uniform(size=(12, 2))
    assert infer(model, points, solver="ransac").objects == ()


def test_a_large_scene_is_searched_in_blocks():
    rng = np.random.default_rng(2)
    square = shapes.square().parts
    poses_ = [
        MODEL.pose.from_parameters((9 * i, 5 * j), 1.5, i + j) for i in range(4) for j in (0, 1)
    ]
    points = np.concatenate([MODEL.pose.apply(y, square) for y in poses_])
    shuffle = rng.permutation(len(points))
    model = Model([shapes.square()], instances=[9])
    found = infer(model, points[shuffle], solver="ransac")
    groups = {frozenset((shuffle[o.points] // 4).tolist()) for o in found.objects}
    assert groups == {frozenset([k]) for k in range(8)}


@pytest.mark.parametrize(
    ("points", "combine"),
    [
        ([[1.0, 2.0]], "best"),
        ([[1.0, 2.0], [3.0, 1.0]], "best"),
        ([[1.0, 1.0]] * 7, "best"),
        ([[1.0, 1.0]] * 7, "sequential"),
        ([[1e6, 1e6]] * 7, "best"),
        ([[i, 2.0 * i] for i in range(7)], "best"),
        ([[i, 2.0 * i] for i in range(7)], "sequential"),
    ],
)
def test_degenerate_scenes(points, combine):
    found = infer(MODEL, np.array(points), solver=Ransac(combine=combine))
    for thing in found.objects:
        assert np.isfinite(thing.pose).all()
        assert thing.parameters["scale"] > 0
        assert len(set(thing.points.tolist())) == len(thing.template)
    if len(set(map(tuple, points))) < 3:
        assert found.objects == ()


def test_objects_never_share_points():
    found = infer(MODEL, np.random.default_rng(0).normal(size=(80, 11, 2)), solver="ransac")
    for i in range(80):
        used = np.concatenate([o.points for o in found[i].objects] or [np.zeros(0, int)])
        assert len(set(used.tolist())) == len(used)


def test_candidates_are_distinct_sorted_and_true_to_their_error():
    labelled = _drawn(16, 0.1, 2, (7,))
    for problem in problems(MODEL, labelled.scenes):
        table = candidates(problem, limit=40)
        for b in range(len(problem)):
            seen = set()
            for h in np.flatnonzero(table.valid[b]):
                t = int(table.template[b, h])
                size = len(MODEL.templates[t])
                parts = table.parts[b, h][:size]
                key = (t, frozenset(parts.tolist()))
                assert key not in seen
                seen.add(key)
                rows = problem.slots.rows(int(np.flatnonzero(problem.slots.template == t)[0]))
                design, x = problem.slots.design[rows].reshape(-1, 4), problem.points[b, parts]
                pose, (away,), *_ = np.linalg.lstsq(design, x.ravel())
                assert table.error[b, h] == pytest.approx(away / (pose[2:] ** 2).sum(), abs=1e-4)
            per_part = table.error[b] / np.maximum((table.parts[b] >= 0).sum(1), 1)
            assert (np.diff(per_part[table.valid[b]]) >= 0).all()


def _faces() -> Model:
    rng = np.random.default_rng(4)
    kinds = ("eye", "nose", "mouth")
    looks = Appearance(
        tuple(rng.normal(size=(f, 2)) for f in (3, 4, 5)),
        tuple(rng.normal(size=f) for f in (3, 4, 5)),
        tuple(rng.uniform(0.01, 0.05, f) for f in (3, 4, 5)),
    )
    template = Template.directed(
        [[0, 2], [0, 0], [0.5, -2]], [1, 1, 1], [0, 0.3, 1], "face", types=kinds, appearance=looks
    )
    prior = PosePrior(np.array([0, 0, 1.0, 0]), np.ones(4))
    return Model([template], instances=[3], presence=0.999, prior=prior, noise=Noise(0.0))


def test_typed_parts_with_appearance():
    model = _faces()
    drawn = model.sample(3, 12)
    found = infer(model, drawn.scenes, solver="ransac")
    for i in range(12):
        got = {frozenset(o.points.tolist()) for o in found[i].objects}
        ids = drawn.object_id[i]
        assert got == {frozenset(np.flatnonzero(ids == k).tolist()) for k in set(ids.tolist())}
        for thing in found[i].objects:
            types = [drawn.scenes[i].types[m] for m in thing.parts]
            assert tuple(types) == model.templates[0].types


def test_appearance_is_the_posterior_of_factor_analysis():
    model = _faces()
    problem = max(problems(model, model.sample(3, 12).scenes), key=lambda p: p.size)
    solution = Ransac().solve(problem, 0)
    looks = model.templates[0].appearance
    found = np.argwhere(solution.probability > 0)
    assert len(found)
    for b, k in found:
        precision, total = np.eye(2), np.zeros(2)
        for n, m in enumerate(solution.parts[b, k]):
            size = looks.features[n]
            weighted = looks.loadings[n].T / looks.variances[n]
            precision = precision + weighted @ looks.loadings[n]
            total = total + weighted @ (problem.points[b, m, 4 : 4 + size] - looks.means[n])
        np.testing.assert_allclose(
            solution.pose[b, k, 4:], np.linalg.solve(precision, total), atol=1e-4
        )
    mean = Ransac(appearance="basis-mean").solve(problem, 0).pose
    sample = Ransac(appearance="basis-sample").solve(problem, 0).pose
    again = Ransac(appearance="basis-sample").solve(problem, 0).pose
    other = Ransac(appearance="basis-sample").solve(problem, 1).pose
    b, k = found[0]
    assert not np.allclose(mean[b, k, 4:], solution.pose[b, k, 4:], atol=1e-5)
    assert not np.allclose(mean[b, k, 4:], sample[b, k, 4:], atol=1e-5)
    np.testing.assert_array_equal(sample, again)
    assert not np.array_equal(sample, other)
    nothing = np.full_like(solution.parts, -1)
    np.testing.assert_allclose(appearance(problem, nothing), 0)


def test_types_are_respected():
    template = Template([[0, 0], [1, 0], [0, 2]], "typed", types=("a", "b", "c"))
    model = Model([template])
    points = template.parts
    assert len(infer(model, Scene(points, ("a", "b", "c")), solver="ransac").objects) == 1
    # b and c change places: the mirror image, which no similarity makes.
    swapped = infer(model, Scene(points, ("a", "c", "b")), solver=Ransac(tolerance=0.1))
    assert swapped.objects == ()


def test_an_answer_does_not_depend_on_the_other_scenes():
    labelled = _drawn(24, 0.25, 11, (7,))
    together = infer(MODEL, labelled.scenes, solver="ransac")
    for i in range(0, len(labelled), 3):
        alone = infer(MODEL, SceneBatch.collect([labelled.scenes[i]]), solver="ransac")
        np.testing.assert_array_equal(alone.parts[0], together.parts[i])


@pytest.mark.parametrize(
    ("word", "options"),
    [
        ("bases", {"bases": "some"}),
        ("combine", {"combine": "all"}),
        ("appearance", {"appearance": "none"}),
        ("limit", {"limit": 0}),
        ("tolerance", {"tolerance": -1.0}),
    ],
)
def test_bad_options(word, options):
    with pytest.raises(InputError, match=word):
        infer(MODEL, shapes.square().parts, solver=Ransac(**options))

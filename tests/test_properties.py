"""What holds for every solver: motion, scale and order change the answer accordingly, no more."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import partwise as pw
from partwise.inference import solve

SOLVERS = {
    "ds": pw.Variational(),
    "gmm": pw.Variational(prior="gmm"),
    "ransac": pw.Ransac(),
    "exact": pw.Exact(),
    "packing": pw.Packing(),
    "hashing": pw.Hashing(),
    "auto": pw.Auto(),
}
RANDOM = ("ds", "gmm")
"""Solvers that start at random and find a local optimum."""

MODEL = pw.constellations()
SCENES = [
    s for noise in (0.0, 0.1) for s in pw.simulate_constellations(40, noise, 17).scenes
    if len(s) in (4, 7)
]  # fmt: skip

few = settings(max_examples=8, deadline=None, derandomize=True)
scenes = st.sampled_from(SCENES)
angles = st.floats(0, 2 * np.pi)
offsets = st.sampled_from([0.0, -3.0, 1e6])
scales = st.sampled_from([1e-6, 0.3, 1.0, 1e6])


def objects(found):
    """What was found: names and points."""
    return sorted((o.name, tuple(sorted(o.points.tolist()))) for o in found.objects)


def predictions(found):
    """Per observed point, where its object's pose puts its part."""
    out = np.full((len(found.scene), 2), np.nan)
    for o in found.objects:
        seen = o.parts >= 0
        out[o.parts[seen]] = o.predicted[seen]
    return out


def moved(points, angle, scale, offset):
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    return scale * points @ turn.T + offset


@pytest.mark.parametrize("name", [n for n in SOLVERS if n not in RANDOM])
@given(scene=scenes, angle=angles, scale=scales, offset=offsets)
@few
def test_motion_and_scale(name, scene, angle, scale, offset):
    offset = offset if scale >= 0.3 else offset * scale  # the scene must survive rounding
    points = moved(scene.parts, angle, scale, offset)
    here, there = (pw.infer(MODEL, p, SOLVERS[name]) for p in (scene.parts, points))
    assert objects(here) == objects(there)
    same_answer(here, there, angle, scale, offset)


def same_answer(here, there, angle, scale, offset):
    """Equal probabilities, and poses that moved with the scene."""
    sure = [o.probability for o in here.objects], [o.probability for o in there.objects]
    np.testing.assert_allclose(*sure, atol=0.02)
    expected = moved(predictions(here), angle, scale, offset)
    np.testing.assert_allclose(predictions(there), expected, atol=0.02 * scale, rtol=1e-6)


@pytest.mark.parametrize("name", RANDOM)
def test_motion_and_scale_but_for_rounding(name):
    """A turned scene is rounded otherwise, and now and then that decides between two optima."""
    rng = np.random.default_rng(0)
    change = [(rng.uniform(0, 2 * np.pi), rng.choice([1e-6, 0.3, 1.0, 1e6])) for _ in SCENES]
    turned = [moved(s.parts, *c, 0.0) for s, c in zip(SCENES, change, strict=True)]
    here = pw.infer(MODEL, [s.parts for s in SCENES], SOLVERS[name], 3)
    there = pw.infer(MODEL, turned, SOLVERS[name], 3)
    same = [objects(a) == objects(b) for a, b in zip(here, there, strict=True)]
    assert np.mean(same) > 0.9
    for s in np.flatnonzero(same):
        same_answer(here[int(s)], there[int(s)], *change[s], 0.0)


@pytest.mark.parametrize("name", SOLVERS)
@given(scene=scenes, order=st.randoms(use_true_random=False))
@few
def test_order_of_points(name, scene, order):
    shuffle = list(range(len(scene)))
    order.shuffle(shuffle)
    here = pw.infer(MODEL, scene.parts, SOLVERS[name])
    there = pw.infer(MODEL, scene.parts[shuffle], SOLVERS[name])
    renamed = sorted((n, tuple(sorted(shuffle[m] for m in points))) for n, points in objects(there))
    assert objects(here) == renamed


@pytest.mark.parametrize("name", SOLVERS)
def test_order_of_templates(name):
    turned = pw.Model(list(reversed(MODEL.templates)), instances=list(reversed(MODEL.instances)))
    for scene in SCENES[:6]:
        here, there = (pw.infer(m, scene, SOLVERS[name]) for m in (MODEL, turned))
        assert objects(here) == objects(there)


@pytest.mark.parametrize("name", SOLVERS)
def test_same_seed_same_answer_and_scenes_do_not_see_each_other(name):
    batch = pw.SceneBatch.collect(SCENES[:9])
    one, two = (solve(MODEL, batch, SOLVERS[name], seed=3) for _ in range(2))
    np.testing.assert_array_equal(one.parts, two.parts)
    np.testing.assert_array_equal(one.pose, two.pose)
    alone = [objects(pw.infer(MODEL, s, SOLVERS[name], 3)) for s in SCENES[:9]]
    assert alone == [objects(f) for f in one]


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize(
    "points",
    [
        np.zeros((0, 2)),
        [[1.0, 2.0]],
        [[1.0, 2.0]] * 4,
        [[float(i), 2.0 * i] for i in range(4)],
        np.array([[0, 0], [1, 0], [0, 1], [1, 1]]) * 1e-90,
        np.array([[0, 0], [1, 0], [0, 1], [1, 1]]) * 1e90,
    ],
    ids=["empty", "one point", "coincident", "collinear", "tiny", "huge"],
)
def test_odd_scenes_have_answers_that_make_sense(name, points):
    found = pw.infer(MODEL, points, SOLVERS[name])
    assert len(found.labels) == len(points)
    assert ((found.labels >= -1) & (found.labels < len(found.objects))).all()
    if len(np.unique(np.asarray(points), axis=0)) < 2:
        assert not found.objects
    for o in found.objects:
        assert np.isfinite(o.pose).all()
        assert 0 < o.probability <= 1
        assert len(set(o.points.tolist())) == len(o.points) > 0


@pytest.mark.parametrize("name", ["ds", "gmm", "ransac", "packing", "hashing", "auto"])
def test_more_points_than_parts(name):
    points = np.random.default_rng(0).normal(size=(7, 2))
    found = pw.infer(pw.Model([pw.shapes.square()]), points, SOLVERS[name])
    assert (found.labels == -1).sum() >= 3


@pytest.mark.parametrize(
    ("scene", "sentence"),
    [
        ([[0.0, np.nan], [1.0, 2.0]], "nan"),
        ([[0.0, np.inf], [1.0, 2.0]], "inf"),
        ([[0.0, 1e300], [1.0, 2.0]], "1e"),
        (np.zeros((4, 3)), "3"),
        (np.zeros((2, 4, 3)), "3"),
        ("square", "array of numbers"),
        ([[1.0, 2.0], [3.0]], "array of numbers"),
        (pw.Scene(np.zeros((1, 2)), types=["nose"]), None),
    ],
)
def test_bad_scenes_get_one_sentence(scene, sentence):
    typed = pw.Model([pw.Template(pw.shapes.square().parts, types=["eye"] * 4)])
    model, wanted = (typed, "nose") if sentence is None else (MODEL, sentence)
    with pytest.raises(pw.InputError) as error:
        pw.infer(model, scene)
    assert wanted in str(error.value)
    assert "\n" not in str(error.value)


def test_a_flat_batch_is_checked_too():
    batch = pw.SceneBatch(np.array([[0.0, np.nan]]), np.array([0, 1]))
    with pytest.raises(pw.InputError, match="nan"):
        pw.infer(MODEL, batch)


def test_missing_types_and_wrong_appearance():
    square = pw.shapes.square().parts
    typed = pw.Model([pw.Template(square, types=["eye"] * 4)])
    with pytest.raises(pw.InputError, match="type"):
        pw.infer(typed, square)
    look = pw.Appearance([np.ones((3, 1))] * 4, [np.zeros(3)] * 4, [np.ones(3)] * 4)
    model = pw.Model([pw.Template(square, appearance=look)])
    with pytest.raises(pw.InputError, match="appearance"):
        pw.infer(model, square)
    with pytest.raises(pw.InputError, match="2 numbers"):
        pw.infer(model, pw.Scene(square, appearance=[np.zeros(2)] * 4))


def test_unknown_solver():
    with pytest.raises(pw.InputError, match="auto"):
        pw.infer(MODEL, pw.shapes.square().parts, "magic")


def test_batches_may_begin_with_empty_scenes():
    found = pw.infer(MODEL, [[], pw.shapes.square().parts, np.zeros((0, 2))])
    assert [len(f.objects) for f in found] == [0, 1, 0]
    assert len(pw.infer(MODEL, [np.zeros((0, 2)), np.zeros((0, 2))])) == 2


def test_large_scenes_do_not_see_each_other():
    """Scenes of 17 and of 20 points are padded to one size and still solved apart."""
    square = pw.Model([pw.shapes.square()], instances=[5])
    rng = np.random.default_rng(0)
    one, other = rng.normal(size=(17, 2)), rng.normal(size=(20, 2))
    solver = pw.Variational(restarts=2, attempts=1)
    alone, together = pw.infer(square, one, solver), pw.infer(square, [one, other], solver)[0]
    assert objects(alone) == objects(together)
    assert alone.score == pytest.approx(together.score)


def test_clutter_that_coincides_is_no_object():
    kite = pw.Template([[0.0, 2.0], [1.0, 0.0], [0.0, -3.0], [-1.0, 0.0]], "kite")
    model = pw.Model([kite], instances=[3], missing=0.1, clutter=4.0)
    clutter = np.random.default_rng(0).uniform(-6, 6, (4, 2))
    for gap in (0.0, 1e-4):
        clutter[1] = clutter[0] + gap
        found = pw.infer(model, np.concatenate([kite.parts, clutter]))
        assert [o.parts.tolist() for o in found.objects] == [[0, 1, 2, 3]]


def test_identical_templates_share_their_probability():
    square = pw.shapes.square()
    found = pw.infer(pw.Model([square, square]), square.parts, "exact")
    assert found.objects[0].probability > 0.99


@pytest.mark.parametrize(
    "make",
    [
        lambda: pw.Model(pw.shapes.square(), instances=2),
        lambda: pw.Model([pw.shapes.square()], pose="similarity"),
        lambda: pw.Model([pw.shapes.square()], noise=0.1),
        lambda: pw.Model([pw.shapes.square()], presence="x"),
        lambda: pw.Model([pw.shapes.square()], scales=2.0),
        lambda: pw.infer("model.json", [[0.0, 1.0]]),
        lambda: pw.infer(MODEL, [[0.0, 1.0]], pw.Exact),
        lambda: pw.infer(MODEL, [[0.0, 1.0]], seed=-1),
        lambda: pw.infer(MODEL, np.ones((3, 2)) * 1j),
    ],
)
def test_wrong_arguments_get_one_sentence(make):
    with pytest.raises(pw.InputError):
        make()

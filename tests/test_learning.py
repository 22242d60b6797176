"""Learning one template: the equations, what EM promises, and what a user may rely on."""

from itertools import permutations

import numpy as np
import pytest
from scipy.integrate import dblquad
from scipy.stats import multivariate_normal
from sklearn.decomposition import FactorAnalysis

import partwise as pw
from partwise.evidence import Match, TemplateNoise
from partwise.learning.appearance import Looks
from partwise.learning.em import Schedule, State, run
from partwise.learning.examples import examples_of
from partwise.learning.geometry import FollowingNoise, SceneNoise, Shape
from partwise.learning.symmetry import Free, Mirror, Turn, nearly
from partwise.plane import from_complex, normal, to_complex
from partwise.problem import slots_of
from partwise.scenes import SceneBatch

KITE = np.array([[0.0, 2.0], [1.0, 0.0], [0.0, -3.0], [-1.5, 0.5]])


def examples(parts, sigma, count, seed=0, missing=0.0):
    """Copies of an object in any pose, noisy in its own frame, its points in any order."""
    rng = np.random.default_rng(seed)
    out = []
    for _ in range(count):
        z = to_complex(parts + sigma * rng.standard_normal(parts.shape))
        z = rng.uniform(1, 4) * np.exp(2j * np.pi * rng.random()) * z + rng.standard_normal()
        seen = rng.permutation(len(z))[: len(z) - rng.binomial(1, missing)]
        out.append(from_complex(z[seen]))
    return out


def batch(scenes):
    return SceneBatch.of(scenes)[0]


def start(found, sigma=0.1):
    return State(Shape(found.whole.vectors[0], found.parts, sigma).normalised())


# The equations --------------------------------------------------------------------------------


def test_moments_of_the_pose_are_those_of_quadrature():
    sigma = 0.3
    found = examples_of(batch(examples(KITE, 0.4, 2)), 4)
    group, shape = found.groups[0], Shape(normal(to_complex(KITE)), 4, sigma)
    expected = FollowingNoise().expect(group, shape)
    x = group.x[1]
    for a in (0, 7, 23):
        p = shape.x[group.ways[a]]

        def density(u, v, power, p=p):
            w = u + 1j * v
            misfit = (np.abs(w * x - p) ** 2).sum() / (2 * sigma**2)
            value = np.abs(w) ** 4 * np.exp(-misfit) / (2 * np.pi * sigma**2) ** 3 / 4
            return value * (w.real, w.imag, abs(w) ** 2, 1.0)[power]

        box = (-4, 4, -4, 4)
        real, imaginary, square, total = (
            dblquad(density, *box, args=(power,), epsabs=1e-13)[0] for power in range(4)
        )
        assert expected.log_evidence[1, a] == pytest.approx(np.log(total), abs=1e-6)
        assert expected.mean[1, a] == pytest.approx((real + 1j * imaginary) / total, abs=1e-5)
        assert expected.square[1, a] == pytest.approx(square / total, rel=1e-5)


@pytest.mark.parametrize("count", [4, 3])
def test_evidence_is_that_of_inference(count):
    """Another derivation, in single precision: constants differ, what depends on p does not."""
    scenes = examples(KITE, 0.3, 1)
    found = examples_of(batch([scenes[0], scenes[0][:count]]), 4, missing=True)
    group = found.groups[-1] if count == 3 else found.groups[0]
    ours, theirs = [], []
    for parts in (KITE, KITE[[0, 2, 1, 3]] + 0.3 * KITE[::-1]):
        shape = Shape(normal(to_complex(parts)), 4, 0.2)
        way = group.ways[5]
        ours.append(FollowingNoise().expect(group, shape).log_evidence[0, 5])
        slots = slots_of(pw.Model([pw.Template(from_complex(shape.x))]))
        match = Match(slots.design[way], slots.mean[way], from_complex(group.x[0]))
        theirs.append(TemplateNoise.of(slots, match, 3.0).log_evidence(np.float32(0.2)))
    assert ours[1] - ours[0] == pytest.approx(float(theirs[1] - theirs[0]), abs=2e-3)


def test_appendix_b_as_printed():
    """The update of p_n with loops over examples and permutations, one q(y) each."""
    lam, alpha = 200.0, 1.0
    found = examples_of(batch(examples(KITE, 0.2, 5)), 4)
    state = start(found, lam**-0.5)
    got = run(
        found, state, SceneNoise(alpha), Schedule(iterations=1, sigma=False)
    ).state.shape.vectors
    p, x = from_complex(state.shape.x), from_complex(found.groups[0].x)
    design = [np.array([[1, 0, a, b], [0, 1, b, -a]]) for a, b in p]
    precision = alpha * np.eye(4) + lam * sum(f.T @ f for f in design)
    vote = np.zeros((4, 2))
    for example in x:
        weights, votes = [], []
        for way in permutations(range(4)):
            stacked = np.concatenate([design[n] for n in way])
            mu = lam * np.linalg.solve(precision, stacked.T @ example.ravel())
            covariance = stacked @ stacked.T / alpha + np.eye(8) / lam
            weights.append(multivariate_normal.logpdf(example.ravel(), np.zeros(8), covariance))
            turn = np.array([[mu[2], mu[3]], [-mu[3], mu[2]]])
            moved = np.zeros((4, 2))
            moved[list(way)] = (example - mu[:2]) @ turn  # T^T (x - t)
            votes.append(moved)
        r = np.exp(np.array(weights) - max(weights))
        vote += np.einsum("a,anj->nj", r / r.sum(), np.array(votes))
    np.testing.assert_allclose(got, normal(to_complex(vote)), atol=1e-10)


# What EM promises -----------------------------------------------------------------------------


def falls(bounds):
    return max(0.0, -np.diff(bounds).min()) / np.abs(bounds).max()


@pytest.mark.parametrize("sigma", [0.02, 0.25])
@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("restricted", [False, True])
def test_the_bound_never_falls(sigma, missing, restricted):
    found = examples_of(batch(examples(KITE, sigma, 20, missing=missing)), 4, missing=True)
    restriction = Mirror(np.array([0, 3, 2, 1])) if restricted else Free()
    begin = start(found, 0.3)
    x = restriction.best(begin.shape.x, np.ones(4))  # a start that has the symmetry
    learned = run(found, State(Shape(x, 4, 0.3).normalised()), restriction=restriction)
    assert len(learned.bounds) > 3
    assert falls(learned.bounds) < 1e-12
    assert learned.converged


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("beta", [0.3, 1.0])
def test_the_bound_never_falls_with_appearance(missing, beta):
    rng = np.random.default_rng(0)
    loadings, scenes = rng.standard_normal((4, 2, 2)), []
    for _ in range(30):
        looks = loadings @ rng.standard_normal(2) + 0.3 * rng.standard_normal((4, 2))
        order = rng.permutation(4)[: 4 - rng.binomial(1, missing)]
        noisy = KITE + 0.3 * rng.standard_normal((4, 2))
        scenes.append(pw.Scene(noisy[order], None, list(looks[order])))
    found = examples_of(batch(scenes), 4, missing=True)
    looks = Looks.start(found, 2, 0, rng)
    looks = looks._replace(variances=0.01 * looks.variances)  # too little, at first
    begin = State(start(found, 0.3).shape, looks)
    learned = run(found, begin, schedule=Schedule(beta=beta, factor=1.0, iterations=60))
    assert len(learned.bounds) > 3
    assert falls(learned.bounds) < 1e-12


def test_the_bound_never_falls_with_directions():
    truth = pw.Template.directed(KITE, [0.5, 1.0, 0.7, 0.3], [0.0, 1.0, 2.0, -2.0])
    drawn = pw.Model([truth], noise=pw.Noise(0.3), presence=0.999).sample(0, 30).scenes
    found = examples_of(batch([s for s in drawn if len(s)]), 4)
    learned = run(found, start(found, 0.3))
    assert len(learned.bounds) > 3
    assert falls(learned.bounds) < 1e-12


def test_the_papers_bound_never_falls_at_fixed_beta():
    found = examples_of(batch(examples(KITE, 0.2, 20)), 4)
    for beta in (0.01, 0.3, 1.0):
        schedule = Schedule(beta=beta, factor=1.0, iterations=40, smse=0.0)
        learned = run(found, start(found, 0.01), SceneNoise(), schedule)
        assert falls(learned.bounds) < 1e-12
    estimated = run(found, start(found, 0.01), SceneNoise(), Schedule(iterations=200))
    assert falls(estimated.bounds) < 1e-12
    assert estimated.state.shape.sigma > 0.03


def test_the_mean_field_bound_never_falls_and_learns():
    rng = np.random.default_rng(3)
    parts = rng.standard_normal((8, 2))
    found = examples_of(batch(examples(parts, 0.05, 12, missing=0.5)), 8, missing=True)
    assert all(g.ways is None for g in found.groups)
    learned = run(found, start(found), schedule=Schedule(iterations=6))
    assert falls(learned.bounds) < 1e-7  # Algorithm 1 stops at 1e-9
    aligned = pw.procrustes(from_complex(learned.state.shape.x), parts)
    assert aligned.smse < 5 * 12 * 0.05**2 / (12 * 8)


def test_known_parts_reach_the_bound():
    """Where parts are identified, by types, the bound is (2N - 4) sigma^2 / (S N)."""
    truth = pw.Template(pw.shapes.triangle().parts, types=("a", "b", "c"))
    sigma, errors, sigmas = 0.2, [], []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        noisy = truth.parts + sigma * rng.standard_normal((64, 3, 2))
        learned = pw.learn([pw.Scene(e, truth.types) for e in noisy], 3)
        errors.append(learned.compare(truth).smse)
        sigmas.append(learned.sigma * truth.radius)
    bound = 2 * (sigma / truth.radius) ** 2 / (64 * 3)
    assert 0.6 * bound < np.mean(errors) < 1.5 * bound
    assert np.mean(sigmas) == pytest.approx(sigma, rel=0.03)


def test_factor_analysis_is_that_of_scikit_learn():
    """Geometry tells the parts apart; what is left is factor analysis of complete data."""
    rng = np.random.default_rng(1)
    sizes, count = (3, 2, 2), 200
    loadings = rng.standard_normal((sum(sizes), 2))
    looks = rng.standard_normal((count, 2)) @ loadings.T + 0.5 * rng.standard_normal((count, 7))
    looks += rng.standard_normal(7)
    cuts = np.cumsum(sizes)[:-1]
    types = ("eye", "mouth", "nose")
    scenes = [
        pw.Scene(p, types, np.split(look, cuts))
        for p, look in zip(KITE[:3] + 0.05 * rng.standard_normal((count, 3, 2)), looks, strict=True)
    ]
    learned = pw.learn(scenes, 3, factors=2)
    a = learned.appearance
    load, mean = np.concatenate(a.loadings), np.concatenate(a.means)
    covariance = load @ load.T + np.diag(np.concatenate(a.variances))
    ours = multivariate_normal.logpdf(looks, mean, covariance).mean()
    theirs = FactorAnalysis(2, svd_method="lapack", tol=1e-8, max_iter=5000).fit(looks)
    assert ours == pytest.approx(theirs.score(looks), abs=2e-3)
    np.testing.assert_allclose(covariance, theirs.get_covariance(), atol=0.05)
    assert learned.types == types
    assert a.features == sizes


def test_appearance_tells_parts_apart_and_survives_hidden_ones():
    """A square's corners, told apart by their looks alone; faces with size and orientation."""
    rng = np.random.default_rng(2)
    means, count = np.array([[0.0], [1.0], [2.0], [3.0]]), 80
    scenes = []
    for p in examples(np.arange(4)[:, None] + np.zeros((4, 2)), 0.0, count):
        order = rng.permutation(4)[: 4 - rng.binomial(1, 0.3)]
        square = pw.shapes.square().parts + 0.1 * rng.standard_normal((4, 2))
        turn = np.linalg.qr(p[:2] @ np.diag([1.0, 1.0]) + rng.standard_normal((2, 2)))[0]
        turn[:, 0] *= np.sign(np.linalg.det(turn))
        looks = means + 0.1 * rng.standard_normal((4, 1))
        scenes.append(pw.Scene((square @ turn)[order], None, list(looks[order])))
    learned = pw.learn(scenes, 4, missing=True, factors=1)
    order = np.argsort([m[0] for m in learned.appearance.means])
    np.testing.assert_allclose(
        [learned.appearance.means[i][0] for i in order], means[:, 0], atol=0.1
    )
    assert pw.procrustes(learned.parts[order], pw.shapes.square(), match=False).smse < 1e-3


def test_directed_parts():
    truth = pw.Template.directed(KITE, [0.5, 1.0, 0.7, 0.3], [0.0, 1.0, 2.0, -2.0])
    drawn = pw.Model([truth], noise=pw.Noise(0.02), presence=0.999).sample(0, 30).scenes
    learned = pw.learn([s for s in drawn if len(s)], 4)
    order = learned.compare(truth).order
    sizes = np.hypot(*truth.parts[:, 2:].T) / truth.radius
    np.testing.assert_allclose(np.hypot(*learned.parts[order, 2:].T), sizes, atol=0.02)
    assert learned.compare(truth).smse < 1e-3


# Symmetry -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("made", "points"),
    [
        (Turn(np.array([1, 2, 3, 0]), 4), 4),
        (Turn(np.array([1, 0, 3, 2]), 2), 4),
        (Turn(np.array([1, 2, 0, 3]), 3), 4),
        (Mirror(np.array([1, 0, 2])), 3),
        (Mirror(np.array([1, 0, 3, 2, 4])), 5),
    ],
)
def test_freedom_is_the_dimension_of_the_symmetric_shapes(made, points):
    """By the rank of numerical derivatives of the symmetric template, less centre, turn, scale."""
    rng = np.random.default_rng(0)
    weight = np.ones(points)

    def shape(v):
        z = made.best(v[:points] + 1j * v[points:], weight)
        z = z - z.mean()
        products = np.outer(np.conj(z), z) / (np.abs(z) ** 2).sum()  # invariant under poses
        return np.concatenate([products.real.ravel(), products.imag.ravel()])

    v = rng.standard_normal(2 * points)
    jacobian = [(shape(v + h) - shape(v - h)) / 2e-5 for h in 1e-5 * np.eye(2 * points)]
    assert np.linalg.matrix_rank(np.array(jacobian), tol=1e-5) == made.freedom(points)


def test_symmetries_of_known_shapes():
    square, triangle = (Shape(normal(to_complex(t.parts)), len(t), 0.1)
                        for t in (pw.shapes.square(), pw.shapes.triangle()))  # fmt: skip
    orders = {s.order for s in nearly(square, np.zeros(4, int)) if isinstance(s, Turn)}
    assert orders == {2, 4}
    assert sum(isinstance(s, Mirror) for s in nearly(square, np.zeros(4, int))) == 4
    assert nearly(Shape(normal(to_complex(KITE)), 4, 0.1), np.arange(4)) == []
    assert any(isinstance(s, Mirror) for s in nearly(triangle, np.zeros(3, int)))


def test_an_asymmetric_object_stays_asymmetric():
    learned = pw.learn(examples(KITE, 0.1, 64), 4)
    assert dict(learned.symmetry)["none"] > 0.99
    assert learned.compare(KITE).smse < 1e-3


def test_a_square_is_learned_as_one():
    free, weighed = [], []
    for seed in range(8):
        scenes = examples(pw.shapes.square().parts, 0.1, 64, seed)
        free.append(pw.learn(scenes, 4, symmetry=False).compare(pw.shapes.square()).smse)
        weighed.append(pw.learn(scenes, 4).compare(pw.shapes.square()).smse)
    assert np.mean(weighed) < np.mean(free) / 3


# What a user may rely on ----------------------------------------------------------------------


@pytest.mark.parametrize("noise", ["template", "scene"])
def test_labels_and_the_order_of_slots_change_nothing(noise):
    rng = np.random.default_rng(0)
    model = pw.Model([pw.Template(KITE)], presence=0.5)
    labelled = pw.simulate_constellations(20, 0.1, 0, model)
    order = np.stack([rng.permutation(4) for _ in range(20)])
    shuffled = pw.LabelledScenes(
        np.take_along_axis(labelled.points, order[..., None], 1),
        labelled.present,
        rng.integers(0, 9, labelled.object_id.shape),
    )
    one, two = (pw.learn(x, 4, noise=noise, seed=3) for x in (labelled, shuffled))
    np.testing.assert_array_equal(one.parts, two.parts)
    assert one.elbo == two.elbo


def test_motion_changes_nothing():
    scenes = examples(KITE, 0.1, 20)
    rng = np.random.default_rng(0)
    moved = []
    for s in scenes:
        z = to_complex(s) * rng.uniform(0.01, 100) * np.exp(2j * np.pi * rng.random())
        moved.append(from_complex(z) + 1e3 * rng.standard_normal(2))
    one, two = pw.learn(scenes, 4), pw.learn(moved, 4)
    assert two.compare(one).smse < 1e-9
    assert two.sigma == pytest.approx(one.sigma, rel=1e-6)


def test_same_seed_same_answer_and_noise_free_is_exact():
    scenes = examples(KITE, 0.0, 5)
    one, two = pw.learn(scenes, 4, seed=1), pw.learn(scenes, 4, seed=1)
    np.testing.assert_array_equal(one.parts, two.parts)
    assert one.compare(KITE).smse < 1e-9
    assert (one.parts**2).sum() == pytest.approx(4)


def test_a_learned_template_goes_into_a_model_at_once():
    learned = pw.learn(examples(KITE, 0.05, 30), 4, name="kite")
    found = pw.infer(learned.model(clutter=1.0), examples(KITE, 0.05, 1, seed=5)[0])
    assert found.objects[0].name == "kite"
    assert found.objects[0].probability > 0.9


def test_noise_of_one_object_is_not_that_of_another():
    """Without noise on one of them there is no common level; it is left open."""
    noisy, quiet = (pw.learn(examples(KITE, sigma, 20), 4) for sigma in (0.1, 0.0))
    assert pw.compose([noisy, noisy]).noise.sigma == pytest.approx(noisy.sigma)
    assert pw.compose([noisy, quiet]).noise.sigma is None
    assert pw.compose([quiet]).noise.sigma is None


def test_procrustes():
    truth = pw.shapes.triangle()
    moved = 3 * truth.parts[[2, 0, 1]] @ np.array([[0.6, 0.8], [-0.8, 0.6]]) + 7
    aligned = pw.procrustes(moved, truth)
    assert aligned.smse < 1e-12
    np.testing.assert_allclose(aligned.parts, truth.parts, atol=1e-9)
    assert pw.procrustes(moved, truth, match=False).smse > 0.01
    assert pw.procrustes(KITE * [1, -1], KITE).smse > 0.01  # a reflection is another shape
    many = np.random.default_rng(0).standard_normal((9, 2))
    assert pw.procrustes(many[::-1], many).smse < 1e-9


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: pw.learn([], 4), "there are none|empty"),
        (lambda: pw.learn(examples(KITE, 0, 3), 3), "3 of 3 do not have 3 points"),
        (lambda: pw.learn(examples(KITE, 0, 3), 2), "fewer than 3"),
        (lambda: pw.learn(examples(KITE, 0, 3), 4.5), "parts must be a whole number"),
        (lambda: pw.learn(examples(KITE, 0, 3), 5, missing=True), "none of them shows all 5"),
        (lambda: pw.learn([np.ones((4, 2))], 4), "coincide"),
        (lambda: pw.learn([np.ones((4, 3))], 4), "in the plane"),
        (lambda: pw.learn([np.full((4, 2), np.nan)], 4), "NaN|nan"),
        (lambda: pw.learn(examples(KITE, 0, 3), 4, noise="none"), "noise must be one of"),
        (lambda: pw.learn(examples(KITE, 0, 3), 4, starts=0), "starts"),
        (lambda: pw.learn(examples(KITE, 0, 3), 4, seed=-1), "seed"),
        (lambda: pw.learn(examples(KITE, 0, 3), 4, factors=2), "no appearance"),
        (lambda: pw.learn(examples(KITE, 0, 9, 0, 0.5), 4, noise="scene", missing=True), "every"),
        (
            lambda: pw.learn([pw.Scene(KITE, "abcd"), pw.Scene(KITE, "abce")], 4),
            "does not make 4 parts",
        ),
        (
            lambda: pw.learn([pw.Scene(np.eye(7, 2), None, list(np.eye(7)))] * 3, 7),
            "give the parts types",
        ),
        (lambda: pw.procrustes(KITE, KITE[:3]), "4 and 3 parts"),
    ],
)
def test_bad_input_is_one_sentence(call, says):
    with pytest.raises(pw.InputError, match=says) as caught:
        call()
    assert "\n" not in str(caught.value)

"""Algorithm 2: updates beside the slow reference, the ELBO beside Monte Carlo, and its rise."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import partwise as pw
from benchmarks import reference
from partwise.inference import solve
from partwise.problem import problems
from partwise.solvers.variational import Variational, start_state, update

MODEL = pw.constellations()


def one_problem(noise=0.1, points=7, seed=0, scenes=80):
    """The scenes of one size among some simulated ones."""
    lab = pw.simulate_constellations(scenes, noise, seed)
    return next(p for p in problems(MODEL, lab.scenes) if p.size == points)


def reference_templates(problem):
    """The templates as the solver's slots hold them."""
    slots = problem.slots
    return [slots.design[slots.rows(k), 0, 2:4].astype(float) for k in range(len(slots.sizes))]


def first(tree):
    """The first scene, without a batch axis."""
    return jax.tree.map(lambda a: jnp.asarray(a[0]), tree)


def run(solver, problem, updates, r=None, beta=None):
    """States after each of some updates of the first scene."""
    prior, slots, seen = solver.match_prior(problem), problem.slots, first(solver.observed(problem))
    r = jnp.asarray(solver.starts(problem, 0)[..., 0]) if r is None else r
    state = start_state(slots, prior, r, solver.beta if beta is None else beta)
    out = []
    once = jax.jit(lambda s: update(solver, prior, slots, seen, s))
    for _ in range(updates):
        state, poses, q = once(state)
        out.append((state, poses, q))
    return out


@pytest.mark.parametrize("points", [4, 7, 11])
def test_an_update_is_the_references(points):
    problem = one_problem(points=points)
    solver = Variational(sweeps=400)
    (state, poses, _), *_ = run(solver, problem, 1)
    templates, x = reference_templates(problem), problem.points[0, :, :2].astype(float)
    r0 = solver.starts(problem, 0)[..., 0].astype(float)
    mean, precision = reference.update_poses(templates, x, r0, np.zeros(4), 0.05, 1e4)
    np.testing.assert_allclose(poses.mean, mean, atol=2e-4)
    np.testing.assert_allclose(poses.precision, precision, rtol=1e-3, atol=0.05)
    density = reference.log_density(templates, x, mean, precision, 0.05, 1e4)
    r = reference.update_ds(density, None)
    np.testing.assert_allclose(state.r, r[: len(x)], atol=2e-3)
    full = reference.State(r, mean, precision, np.ones(r.shape[1]))
    bound = reference.elbo(templates, x, full, 0.05, reference.Settings())
    assert float(state.elbo) == pytest.approx(bound, abs=0.05)


def test_the_elbo_is_a_monte_carlo_mean():
    """E_q[log p(X, Y, Z) - log q(Y, Z)] with q(Z) the product of its entries (eq. 17)."""
    problem = one_problem(points=7)
    solver = Variational(sweeps=400)
    state, poses, _ = run(solver, problem, 6)[-1]
    templates, x = reference_templates(problem), problem.points[0, :, :2].astype(float)
    rng, draws, n = np.random.default_rng(0), 4000, 11
    mean, beta_lam = np.asarray(poses.mean, float), 0.05 * 1e4
    covariance = np.linalg.inv(np.asarray(poses.precision, float))
    y = np.stack(
        [rng.multivariate_normal(m, c, draws) for m, c in zip(mean, covariance, strict=True)]
    )
    log_py = -0.5 * (y**2).sum((0, 2)) - 0.5 * y.shape[0] * 4 * np.log(2 * np.pi)
    log_qy = 0.0
    for k in range(len(mean)):
        away = y[k] - mean[k]
        inverse = np.linalg.inv(covariance[k])
        quadratic = np.einsum("si,ij,sj->s", away, inverse, away)
        log_qy = log_qy - 0.5 * (quadratic + np.linalg.slogdet(covariance[k])[1])
        log_qy = log_qy - 2 * np.log(2 * np.pi)
    # z enters linearly: its expectation needs no draws.
    r = np.asarray(state.r, float)
    parts = [
        [reference.design(p) @ y[k].T for p in template] for k, template in enumerate(templates)
    ]
    predicted = np.stack([p for template in parts for p in template])  # N 2 s
    square = ((x[:, None, :, None] - predicted[None]) ** 2).sum(2)  # M N s
    density = np.log(beta_lam / (2 * np.pi)) - 0.5 * beta_lam * square
    log_x = (r[..., None] * density).sum((0, 1))
    dummy = np.repeat((1 - r.sum(0))[None] / (n - len(x)), n - len(x), 0)
    full = np.concatenate([r, dummy])
    log_z = -(full * (np.log(full) + np.log(n))).sum()
    values = log_x + log_z + log_py - log_qy
    error = values.std() / np.sqrt(draws)
    assert float(state.elbo) == pytest.approx(values.mean(), abs=5 * error + 0.02)


@pytest.mark.parametrize("prior", ["gmm", "ds"])
@pytest.mark.parametrize("beta", [0.05, 1.0])
def test_no_update_lowers_the_elbo_at_fixed_beta(prior, beta):
    """Each update is the best of its block (for GCM-DS, where Sinkhorn's algorithm converges)."""
    for points in (4, 11):
        solver = Variational(prior=prior, sweeps=300 if prior == "ds" else 1)
        bounds = [float(s.elbo) for s, *_ in run(solver, one_problem(points=points), 25, beta=beta)]
        # Near a permutation Sinkhorn's rows are still off by 1e-3 after 300 sweeps.
        slack = 1e-3 if prior == "ds" else 1e-4
        assert np.diff(bounds).min() > -slack * max(abs(bounds[-1]), 1.0)
        assert bounds[-1] > bounds[0]


def test_the_result_is_doubly_stochastic():
    scenes = pw.simulate_constellations(60, 0.25, 3).scenes
    for count in (4, 11):  # with dummy rows and without
        scene = next(s for s in scenes if len(s) == count)
        posterior = pw.infer(MODEL, scene, solver="ds").posterior
        np.testing.assert_allclose(posterior.assignment.sum(1), 1, atol=0.1)
        assert posterior.assignment.sum(0).max() < 1 + 1e-4
        r = posterior.balanced()
        np.testing.assert_allclose(r.sum(0), 1, atol=1e-5)
        np.testing.assert_allclose(r.sum(1), 1, atol=1e-3)
        np.testing.assert_array_equal(r[:count].argmax(1), posterior.assignment.argmax(1))


def test_noise_free_squares_are_found_with_certainty():
    points = pw.shapes.square().parts * 3 + np.array([5.0, -2.0])
    found = pw.infer(MODEL, points, solver="ds")
    assert [o.name for o in found.objects] == ["square"]
    assert found.objects[0].probability > 0.97
    assert found.objects[0].parameters["scale"] == pytest.approx(3, rel=1e-2)
    np.testing.assert_allclose(found.objects[0].parameters["translation"], [5, -2], atol=1e-2)


def test_the_posterior_is_in_the_users_frame():
    points = pw.shapes.square().parts * 3 + np.array([50.0, -20.0])
    found = pw.infer(MODEL, points, solver="ds")
    posterior, detection = found.posterior, found.objects[0]
    assert posterior.assignment.shape == (4, 11)
    assert posterior.object[posterior.assignment.argmax(1)].tolist() == [detection.instance] * 4
    np.testing.assert_allclose(posterior.pose_mean[detection.instance], detection.pose)
    # lambda = 1e4 in a frame where the square's radius is 0.2: here the noise is 15 sqrt(2) times.
    deviation = 1 / np.sqrt(posterior.pose_precision[detection.instance][0, 0])
    assert deviation == pytest.approx(0.01 * np.sqrt(18) / 0.2 / 2, rel=0.05)


def test_a_trace_watches_one_restart():
    """At fixed beta nothing but the test of convergence happens; the end is the solver's answer."""
    scene = next(s for s in pw.simulate_constellations(40, 0.1, 5).scenes if len(s) == 7)
    solver = pw.Variational(restarts=1, attempts=1)
    watched = pw.trace(MODEL, scene, solver, seed=4)
    answer = pw.infer(MODEL, scene, solver, seed=4).posterior
    assert len(watched) == len(watched.elbo) > 10
    assert (np.diff(watched.beta) >= 0).all()
    assert watched.beta[0] == pytest.approx(0.05)
    assert watched.beta[-1] == 1
    np.testing.assert_allclose(watched.assignment[-1], answer.assignment, atol=0.02)
    np.testing.assert_allclose(watched.pose_mean[-1], answer.pose_mean, atol=0.02)
    with pytest.raises(pw.InputError, match="one scene"):
        pw.trace(MODEL, np.zeros((0, 2)))


def test_typed_parts_go_to_slots_of_their_type():
    template = pw.Template(pw.shapes.square().parts, "square", types=("a", "b", "a", "b"))
    model = pw.Model([template], instances=[2])
    scene = pw.Scene(template.parts * 2.0 + 1.0, types=("a", "b", "a", "b"))
    found = pw.infer(model, scene, solver="ds")
    assert found.objects
    for o in found.objects:
        for n, m in enumerate(o.parts):
            assert m < 0 or scene.types[m] == template.types[n]


def test_appearance_tells_equal_shapes_apart():
    """Two squares of one shape, told apart by what their parts look like."""
    rng = np.random.default_rng(0)

    def look(level):
        return pw.Appearance(
            [rng.normal(size=(3, 2))] * 4, [np.full(3, level)] * 4, [np.ones(3)] * 4
        )

    square = pw.shapes.square().parts
    dark, light = look(-8.0), look(8.0)
    model = pw.Model(
        [
            pw.Template(square, "dark", appearance=dark),
            pw.Template(square, "light", appearance=light),
        ]
    )
    scene = pw.Scene(
        np.concatenate([square, square * 1.5 + 9]),
        appearance=[np.full(3, -8.0)] * 4 + [np.full(3, 8.0)] * 4,
    )
    for solver in ("ds", "exact"):
        found = pw.infer(model, scene, solver=solver)
        assert {o.name: sorted(o.points.tolist()) for o in found.objects} == {
            "dark": [0, 1, 2, 3],
            "light": [4, 5, 6, 7],
        }
        assert found.objects[0].appearance.shape == (2,)


def test_more_points_than_slots_and_clutter():
    rng = np.random.default_rng(3)
    square = pw.shapes.square().parts
    points = np.concatenate([square, rng.uniform(-8, 8, (5, 2))])
    crowded = pw.infer(pw.Model([pw.shapes.square()]), points, solver="ds")
    assert len(crowded.objects) <= 1
    assert (crowded.labels == -1).sum() >= 5
    model = pw.Model([pw.shapes.square()], clutter=5)
    assert len(pw.infer(model, points, solver="gmm").labels) == 9


def test_noise_that_follows_the_scale_is_an_option():
    lab = pw.simulate_constellations(240, 0.0, 4)
    whole = lab.select(lab.present.all(1))  # of one size: each is compiled for
    found = solve(MODEL, whole.scenes, Variational(follow_scale=True))
    right = [f.converged and len(f.objects) > 0 for f in found]
    assert np.mean(right) > 0.9


def test_random_starts_are_not_copied_for_every_scene(monkeypatch):
    from partwise.solvers import variational

    solve_chunk, shapes = variational._solve, []

    def watched(*args):
        shapes.append(args[4].shape)
        return solve_chunk(*args)

    monkeypatch.setattr(variational, "_solve", watched)
    drawn = pw.simulate_constellations(40, 0.0, 4)
    whole = drawn.select(drawn.present.all(1))
    solve(MODEL, whole.scenes, Variational(max_updates=2))
    assert set(shapes) == {(11, 11, 40)}


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"beta": 0.0}, "beta"),
        ({"beta": 2.0}, "beta"),
        ({"restarts": 0}, "restarts"),
        ({"tolerance": 0.0}, "tolerance"),
        ({"prior": "xy"}, "prior"),
        ({"precision": -1.0}, "precision"),
    ],
)
def test_bad_options_are_named(options, word):
    with pytest.raises(pw.InputError, match=word):
        Variational(**options)

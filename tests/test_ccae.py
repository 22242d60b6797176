"""The constellation capsule autoencoder: network, mixture, loss, and the solver that reads it."""

import json

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import norm
from typer.testing import CliRunner

import partwise as pw
from partwise import cli
from partwise.files import read_labelled
from partwise.metrics import METRICS
from partwise.neural import ccae_training
from partwise.neural.ccae import CAPSULES, VOTES, Ccae, Votes, explain, load, normalise, read
from partwise.neural.set_transformer import SetTransformer
from partwise.neural.shipped import ccae_weights
from partwise.neural.training import train
from partwise.paper.published import TABLE1, recorded_folder, recorded_name

MODEL = pw.constellations()


@pytest.fixture(scope="module")
def net():
    return Ccae(jax.random.key(0))


@pytest.fixture(scope="module")
def drawn():
    return pw.simulate_constellations(24, 0.1, 5)


def test_a_set_has_no_order_and_no_ghosts():
    sets = SetTransformer(2, 3, 5, layers=2, heads=2, width=16, key=jax.random.key(0))
    rng = np.random.default_rng(0)
    points = rng.normal(size=(7, 2)).astype(np.float32)
    seen = np.arange(7) < 5
    out = sets(points, seen)
    assert out.shape == (3, 5)
    order = np.concatenate([rng.permutation(5), [6, 5]])
    np.testing.assert_allclose(sets(points[order], seen[order]), out, atol=1e-5)
    ghosts = np.where(seen[:, None], points, 100.0)
    np.testing.assert_allclose(sets(ghosts, seen), out, atol=1e-5)
    assert not np.allclose(sets(points, np.ones(7, bool)), out, atol=1e-3)
    assert not np.allclose(out[0], out[1], atol=1e-3)


def random_votes(rng):
    shape = (CAPSULES, VOTES)
    return Votes(
        rng.normal(size=(*shape, 2)),
        rng.uniform(0.4, 1.0, shape),
        rng.normal(size=CAPSULES),
        rng.normal(size=shape),
        rng.normal(size=(*shape, 2)),
    )


def slow_mixture(votes, x):
    """Eq. for p(x_1:M), one component after the other, and the dummy of 1e-2 times 1e-2."""
    share = {}
    for k in range(CAPSULES):
        for n in range(VOTES):
            a = 1 / (1 + np.exp(-votes.capsule[k])) / (1 + np.exp(-votes.part[k, n]))
            share[k, n] = a * norm.pdf(x, votes.position[k, n], votes.scale[k, n]).prod()
    total = sum(
        1 / (1 + np.exp(-votes.capsule[k])) / (1 + np.exp(-votes.part[k, n])) for k, n in share
    )
    whole = (sum(share.values()) + 1e-2 * 1e-2) / (total + 1e-2)
    return np.log(whole), max(share, key=share.get), max(share.values()) > 1e-4


def test_the_mixture_against_one_component_after_the_other():
    rng = np.random.default_rng(1)
    votes = random_votes(rng)
    points = np.concatenate([2 * rng.normal(size=(20, 2)), [[30.0, 0.0]]])
    explained = explain(Votes(*map(jnp.asarray, votes)), points)
    for m, x in enumerate(points):
        likelihood, (k, _), beaten = slow_mixture(votes, x)
        assert float(explained.log_likelihood[m]) == pytest.approx(likelihood, abs=1e-4)
        assert bool(explained.beaten[m]) == beaten
        if beaten:
            assert int(explained.owner[m]) == k
    assert not explained.beaten[-1]
    shares = jnp.exp(explained.votes).sum((1, 2)) + jnp.exp(explained.dummy)
    np.testing.assert_allclose(shares, 1.0, atol=1e-5)


def test_the_loss_term_by_term(net, drawn, monkeypatch):
    monkeypatch.setattr(ccae_training, "NOISE", 0.0)
    points, seen = jnp.asarray(drawn.points, jnp.float32), jnp.asarray(drawn.present)
    loss = eqx.filter_jit(lambda *args: ccae_training.loss(*args))  # compiled without noise
    total, terms = loss(net, points, seen, jax.random.key(0))
    said_of = eqx.filter_jit(net)
    nll, entropies, dynamic, presence = [], [], [], []
    for x, here in zip(drawn.points, drawn.present, strict=True):
        votes = Votes(*map(np.asarray, said_of(jnp.asarray(x, jnp.float32), here)))
        said = [slow_mixture(votes, p) for p in x[here]]
        nll.append(-sum(s[0] for s in said))
        wins = np.bincount([s[1][0] for s in said], minlength=CAPSULES)
        a = 1 / (1 + np.exp(-votes.capsule.astype(float)))
        entropies += [
            -np.log(a[k] if wins[k] > 1 else 1 - a[k]) for k in range(CAPSULES) if wins[k]
        ]
        dynamic.append(0.5 * (votes.offset**2).sum())
        presence.append(a * (1 / (1 + np.exp(-votes.part))).max(1))
    presence = np.array(presence)
    wanted = {
        "nll": np.mean(nll),
        "entropy": np.mean(entropies),
        "dynamic": np.mean(dynamic),
        "within": ((presence.sum(1) - 1) ** 2).mean(),
        "between": ((presence.sum(0) - 4 / 7 * len(presence)) ** 2).mean() / len(presence),
    }
    assert {k: float(v) for k, v in terms.items()} == pytest.approx(wanted, rel=1e-3)
    weighed = wanted["nll"] + 10 * wanted["entropy"] + 10 * wanted["dynamic"]
    assert float(total) == pytest.approx(weighed + wanted["within"] + wanted["between"], rel=1e-3)


def test_training_draws_its_noise_from_the_key(net, drawn):
    points, seen = jnp.asarray(drawn.points, jnp.float32), jnp.asarray(drawn.present)
    loss = eqx.filter_jit(ccae_training.loss)
    one, same, other = (float(loss(net, points, seen, jax.random.key(k))[0]) for k in (0, 0, 1))
    assert one == same != other


def test_naming_capsules_permutes_them_and_nothing_else(net, drawn, tmp_path):
    path = tmp_path / "weights.safetensors"
    ccae_training.export(net, {"noise": 0.1}, path)
    points, seen = drawn.points[0].astype(np.float32), drawn.present[0]
    before, after = net(points, seen), load(path)(points, seen)
    # Half precision moves votes by little; each capsule is one of those before.
    match = [
        min(range(CAPSULES), key=lambda j: float(jnp.abs(before.position[j] - p).sum()))
        for p in after.position
    ]
    assert sorted(match) == list(range(CAPSULES))
    np.testing.assert_allclose(after.position, before.position[jnp.array(match)], atol=2e-2)
    # The order is the best: no other segments better.
    many = pw.simulate_constellations(ccae_training.NAMING_SCENES, 0.1, ccae_training.NAMING_SEED)
    shipped = ccae_training.accuracy(load(path), many)
    for order in ((0, 2, 1), (1, 0, 2), (2, 1, 0)):
        other = ccae_training._reordered(load(path), order)
        assert ccae_training.accuracy(other, many) <= shipped + 0.02


def test_training_goes_on_where_it_stopped(tmp_path):
    task = ccae_training.task(0.1)
    whole = train(task, 2, 3, tmp_path / "whole", leg=1)

    def stopping(done, note=None, **_):
        if note:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(task, 2, 3, tmp_path / "parts", stopping, leg=1)
    parts = train(task, 2, 3, tmp_path / "parts", leg=1)
    assert eqx.tree_equal(whole.model, parts.model)


# The solver -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def found(drawn):
    return pw.infer(MODEL, drawn.scenes, pw.Ccae(noise=0.1))


def test_answers_are_what_the_network_says(drawn, found):
    net = load(ccae_weights()[0.1])
    for s in range(8):
        points = drawn.scenes[s].parts
        said = read(net, normalise(points[None])[0].astype(np.float32), np.ones(len(points), bool))
        owner = np.asarray(said.owner)  # capsule k is object k of the model
        rows = slice(*drawn.scenes.offsets[s : s + 2])
        np.testing.assert_array_equal(found.claims.owner[rows], owner)
        there = [np.any((owner == k) & np.asarray(said.beaten)) for k in range(3)]
        np.testing.assert_array_equal(found.claims.there[s], there)
        assert found.score[s] == pytest.approx(float(said.score), abs=1e-3)
        for o in found[s].objects:
            assert set(o.points) <= set(np.flatnonzero(owner == o.instance))
            assert o.probability == pytest.approx(float(said.presence[o.instance]), abs=1e-3)


def test_parts_are_matched_by_least_squares(drawn, found):
    """A detection of all parts has the pose and the match that no other permutation beats."""
    from itertools import permutations

    whole = [o for f in found for o in f.objects if (o.parts >= 0).all()]
    assert len(whole) > 10
    for f in found:
        for o in f.objects:
            if (o.parts < 0).any():
                continue
            x = f.scene.parts[o.parts] @ [1, 1j]
            p = o.template.parts @ [1, 1j]
            errors = []
            for way in permutations(range(len(p))):
                design = np.stack([p, np.ones(len(p))], 1)
                moved = x[list(way)]
                w = np.linalg.lstsq(design, moved, rcond=None)[0]
                errors.append((np.abs(moved - design @ w) ** 2).sum())
            ours = (np.abs(x - o.predicted @ [1, 1j]) ** 2).sum()
            assert ours == pytest.approx(min(errors), rel=1e-3, abs=1e-6)


def test_order_place_and_size_change_nothing_else(drawn, found):
    rng = np.random.default_rng(0)
    for s in range(6):
        points = drawn.scenes[s].parts
        order = rng.permutation(len(points))
        there = pw.infer(MODEL, 1e3 * points[order] - 700.0, pw.Ccae(noise=0.1))
        assert sorted(o.name for o in there.objects) == sorted(o.name for o in found[s].objects)
        back = [sorted(order[o.points].tolist()) for o in there.objects]
        assert sorted(back) == sorted(sorted(o.points.tolist()) for o in found[s].objects)


@pytest.mark.parametrize(("sigma", "share"), [(0.0, 1.0), (0.25, 0.7)])
def test_the_weights_that_fit_the_noise_are_taken(sigma, share):
    """Scene by scene; of two to eight numbers of freedom, a noise cannot be told for certain."""
    drawn = pw.simulate_constellations(100, sigma, 5)
    free = pw.infer(MODEL, drawn.scenes, "ccae").score
    told = pw.infer(MODEL, drawn.scenes, pw.Ccae(noise=sigma)).score
    assert np.isclose(free, told, atol=1e-5).mean() >= share


@pytest.mark.parametrize("sigma", list(TABLE1["ccae"]))
def test_at_least_the_papers_figures_on_its_own_draws(sigma):
    path = recorded_folder() / recorded_name(sigma)
    if not path.is_file():
        pytest.skip("the paper's draws are not here")
    result = pw.evaluate(read_labelled(path), pw.Ccae(noise=sigma))["published"]
    for metric, paper in zip(METRICS, TABLE1["ccae"][sigma], strict=True):
        sign = -1 if metric == "variation_of_information" else 1
        assert sign * result[metric] >= sign * paper


@pytest.mark.parametrize("sigma", list(TABLE1["ccae"]))
def test_simulated_scenes_score_alike(sigma):
    result = pw.evaluate(pw.simulate_constellations(300, sigma, 77), pw.Ccae(noise=sigma))
    assert result["published"]["segmentation_accuracy"] > TABLE1["ccae"][sigma][0] - 0.05


def test_bad_input(tmp_path):
    square = pw.Model([pw.shapes.square()])
    with pytest.raises(pw.InputError, match="two squares and one triangle"):
        pw.infer(square, pw.shapes.square().parts, "ccae")
    with pytest.raises(pw.InputError, match="two squares and one triangle"):
        pw.infer(MODEL.replace(clutter=1.0), pw.shapes.square().parts, "ccae")
    with pytest.raises(pw.InputError, match="two squares and one triangle"):
        pw.infer(MODEL.replace(pose=pw.poses.Affine2D()), pw.shapes.square().parts, "ccae")
    with pytest.raises(pw.InputError, match="at most 11 points"):
        pw.infer(MODEL, np.random.default_rng(0).normal(size=(12, 2)), "ccae")
    with pytest.raises(pw.InputError, match=r"no weights for noise 0\.7"):
        pw.infer(MODEL, pw.shapes.square().parts, pw.Ccae(noise=0.7))
    with pytest.raises(pw.InputError, match="no such file"):
        pw.infer(MODEL, pw.shapes.square().parts, pw.Ccae(weights=tmp_path / "no.safetensors"))

    with pytest.raises(pw.InputError, match="must be a number"):
        pw.Ccae(noise="0.1")
    with pytest.raises(pw.InputError, match="leave one out"):
        pw.Ccae(noise=0.1, weights=tmp_path / "no.safetensors")
    for noise in (-1.0, float("nan"), float("inf")):
        with pytest.raises(pw.InputError, match="noise must be"):
            ccae_training.task(noise)


def test_the_command_trains_as_long_as_the_shipped_weights_were():
    """The card of the weights says that they are made by the command's defaults."""
    from inspect import signature

    from safetensors import safe_open

    from partwise.cli.train import ccae as command

    given = {name: p.default for name, p in signature(command).parameters.items()}
    for noise, path in ccae_weights().items():
        with safe_open(path, "numpy") as file:
            about = file.metadata()
        options = ccae_training.task(noise).options
        made = {**options, "steps": given["steps"], "seed": given["seed"]}
        assert {k: about[k] for k in made} == {k: str(v) for k, v in made.items()}


def test_few_and_coinciding_points():
    for points in ([[1.0, 2.0]], [[1.0, 2.0]] * 4, [[0.0, 0.0], [1.0, 0.0]]):
        found = pw.infer(MODEL, points, "ccae")
        assert np.isfinite(found.score)
        assert all(np.isfinite(o.pose).all() for o in found.objects)


def test_other_orders_of_the_templates():
    flipped = pw.Model([pw.shapes.triangle(), pw.shapes.square()], instances=[1, 2])
    scene = pw.simulate_constellations(5, 0.0, 3).scenes[0]
    one, other = pw.infer(MODEL, scene, "ccae"), pw.infer(flipped, scene, "ccae")
    assert sorted((o.name, *o.points) for o in one.objects) == sorted(
        (o.name, *o.points) for o in other.objects
    )


def test_the_command(tmp_path):
    runner = CliRunner()
    out = tmp_path / "run"
    args = ["train", "ccae", "--noise", "0.1", "--steps", "2", "--out", str(out)]
    trained = runner.invoke(cli.app, args)
    assert trained.exit_code == 0, trained.output
    scenes = tmp_path / "scenes.npz"
    assert runner.invoke(cli.app, ["simulate", "--scenes", "9", "-o", str(scenes)]).exit_code == 0
    weights = str(out / "weights.safetensors")
    scored = runner.invoke(
        cli.app,
        ["evaluate", str(scenes), "--solver", "ccae", "--json", "--weights", weights],
    )
    assert json.loads(scored.stdout)["solver"] == "ccae"
    refused = runner.invoke(cli.app, [*args[:5], "3", "--out", str(out)])
    assert refused.exit_code == 2
    assert "another folder" in refused.output


def test_another_scale_is_kept_with_the_weights(tmp_path):
    path, net = tmp_path / "w.safetensors", Ccae(jax.random.key(0), smallest_scale=0.01)
    ccae_training.export(net, ccae_training.task(0.0, smallest_scale=0.01).options, path)
    assert load(path).smallest_scale == 0.01
    points = np.ones((2, 2), np.float32)
    scale = net(points, np.ones(2, bool)).scale
    assert float(scale.min()) > 0.01
    other = Ccae(jax.random.key(0))(points, np.ones(2, bool)).scale
    np.testing.assert_allclose(other - scale, 0.39, atol=1e-4)

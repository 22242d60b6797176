"""The part capsule autoencoder: network, mixture against loops, turned pictures, training."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.ndimage import affine_transform
from scipy.stats import norm
from typer.testing import CliRunner

import partwise as pw
from partwise import cli
from partwise.digits import mnist
from partwise.digits.mnist import TRAINING, load_digits
from partwise.digits.turning import on_canvas
from partwise.neural import pcae_training
from partwise.neural.object_capsule import ObjectCapsule
from partwise.neural.pcae import (
    CANVAS,
    DEVIATION,
    FEATURES,
    GAIN,
    TEMPLATE,
    Pcae,
    Seen,
    mixture,
    pixels,
)
from partwise.neural.pcae_training import load, loss, task
from partwise.neural.training import train

try:
    mnist.digits_file()
except pw.InputError:
    DIGITS = False
else:
    DIGITS = True
needs_digits = pytest.mark.skipif(not DIGITS, reason="needs partwise[digits]")

PARTS = 3


@pytest.fixture(scope="module")
def net():
    return Pcae(jax.random.key(0), PARTS)


@pytest.fixture(scope="module")
def picture():
    return np.random.default_rng(0).uniform(size=(CANVAS, CANVAS)).astype(np.float32)


def some_parts(rng):
    """Parts in the middle of the canvas, turned, stretched and sheared."""
    return Seen(
        rng.normal(0, 0.3, (PARTS, 2, 2)) + 0.4 * np.eye(2),
        rng.uniform(-0.3, 0.3, (PARTS, 2)),
        rng.normal(size=PARTS),
        rng.normal(size=(PARTS, FEATURES)),
    )


def sampled(template, u, v):
    """One template at one point, by hand: bilinear, 0 around it."""
    padded = np.pad(template, 2)
    i, j = (v + 1) * TEMPLATE / 2 + 1.5, (u + 1) * TEMPLATE / 2 + 1.5
    if not (1 <= i <= TEMPLATE + 2 and 1 <= j <= TEMPLATE + 2):
        return 0.0
    top, left = int(np.floor(i)), int(np.floor(j))
    di, dj = i - top, j - left
    above = padded[top, left] * (1 - dj) + padded[top, left + 1] * dj
    below = padded[top + 1, left] * (1 - dj) + padded[top + 1, left + 1] * dj
    return above * (1 - di) + below * di


def test_shapes(net, picture):
    seen, rendered = eqx.filter_jit(net)(picture)
    assert [a.shape for a in seen] == [(PARTS, 2, 2), (PARTS, 2), (PARTS,), (PARTS, FEATURES)]
    assert rendered.weight.shape == rendered.grey.shape == (PARTS, CANVAS, CANVAS)
    assert rendered.mean.shape == (CANVAS, CANVAS)
    assert rendered.likelihood(picture).shape == (PARTS + 1, CANVAS, CANVAS)


def test_the_mixture_is_that_of_a_loop_over_parts_and_pixels(net, picture):
    rng = np.random.default_rng(1)
    seen = some_parts(rng)
    at = pixels()
    decoder = net.decoder
    rendered = decoder(jax.tree.map(jnp.asarray, seen), at, at)
    ours = np.asarray(mixture(rendered, picture))
    ink = 1 / (1 + np.exp(-GAIN * np.asarray(decoder.template, float)))
    alpha = np.exp(GAIN * np.asarray(decoder.alpha, float))
    colour = np.array([float(decoder.intensity(jnp.asarray(f))[0]) for f in seen.features])
    background = np.log1p(np.exp(float(decoder.background)))
    touched = 0
    for i, j in zip(rng.integers(0, CANVAS, 300), rng.integers(0, CANVAS, 300), strict=True):
        weights, densities = [background], [norm.pdf(picture[i, j], 0, DEVIATION)]
        for k in range(PARTS):
            u, v = np.linalg.solve(seen.turn[k], np.array([at[j], at[i]]) - seen.shift[k])
            there = 1 / (1 + np.exp(-seen.presence[k]))
            grey = sampled(ink[k], u, v) / (1 + np.exp(-(colour[k] + 2)))
            weights.append(sampled(alpha[k], u, v) * there)
            densities.append(norm.pdf(picture[i, j], grey, DEVIATION))
        touched += len(weights) - weights.count(0.0) > 1
        expected = np.log(np.dot(weights, densities) / np.sum(weights))
        assert ours[i, j] == pytest.approx(expected, abs=2e-3)
    assert touched > 50


def test_a_mixture_is_a_density(net):
    seen = jax.tree.map(jnp.asarray, some_parts(np.random.default_rng(2)))
    rendered = net.decoder(seen, pixels()[18:20], pixels()[18:20])
    levels = np.linspace(-3, 4, 701)
    density = [np.exp(mixture(rendered, jnp.full((2, 2), level))) for level in levels]
    np.testing.assert_allclose(np.trapezoid(density, levels, axis=0), 1.0, atol=1e-4)


def test_the_encoder_sees_where_things_are(net):
    dot = np.zeros((CANVAS, CANVAS), np.float32)
    one, two = dot.copy(), dot.copy()
    one[8:12, 8:12], two[28:32, 28:32] = 1.0, 1.0
    a, b = net.encoder(one), net.encoder(two)
    assert float(jnp.abs(a.shift - b.shift).max()) > 1e-3


def test_votes_of_the_object_capsule_are_a_mixture():
    capsule = ObjectCapsule(PARTS, 5, jax.random.key(0))
    rng = np.random.default_rng(0)
    votes = capsule(jnp.asarray(rng.normal(size=(PARTS, 5))))
    pose, presence = rng.normal(size=(PARTS, 6)), rng.uniform(size=PARTS)
    weight = 1 / (1 + np.exp(-np.asarray(votes.part, float)))
    weight /= weight.sum()
    expected = 0.0
    for m in range(PARTS):
        p = [norm.pdf(pose[m], votes.pose[n], votes.scale[n]).prod() for n in range(PARTS)]
        expected += presence[m] * np.log(np.dot(weight, p))
    assert float(votes.log_likelihood(pose, presence)) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("degrees", [0, 90, 180, 270])
def test_quarter_turns_move_pixels(degrees):
    digit = np.random.default_rng(0).uniform(size=(28, 28)).astype(np.float32)
    turned = on_canvas(digit, np.deg2rad(degrees), jnp.zeros(2), CANVAS)
    expected = np.rot90(np.pad(digit, 6), -degrees // 90)  # clockwise
    np.testing.assert_allclose(turned, expected, atol=1e-4)


def test_turned_and_moved_is_what_scipy_says():
    digit = np.zeros((28, 28), np.float32)
    digit[6:20, 10:16] = np.random.default_rng(0).uniform(size=(14, 6))
    angle, shift = 0.7, np.array([3.0, -4.5])
    c, s = np.cos(angle), np.sin(angle)
    back = np.array([[c, -s], [s, c]])  # rows and columns of the digit, from the canvas
    middle, centre = np.full(2, 13.5), np.full(2, 19.5) + shift[::-1]
    expected = affine_transform(digit, back, middle - back @ centre, (40, 40), order=1)
    ours = on_canvas(digit, angle, jnp.asarray(shift), CANVAS)
    np.testing.assert_allclose(ours, expected, atol=1e-4)


@needs_digits
def test_digits():
    fours, ones = load_digits(4), load_digits(1)
    assert fours.train.shape == (TRAINING, 28, 28)
    assert fours.test.shape == (500 - TRAINING, 28, 28)
    assert (fours.train.min(), fours.train.max()) == (0, 1)
    assert ones.train.mean() < fours.train.mean()  # less ink
    both = np.concatenate([fours.train, fours.test]).reshape(500, -1)
    assert len(np.unique(both, axis=0)) == 500
    with pytest.raises(pw.InputError, match="digit must be"):
        load_digits(10)


def test_no_digits_installed(monkeypatch):
    monkeypatch.setattr(mnist, "find_spec", lambda name: None)
    with pytest.raises(pw.InputError, match=r"partwise\[digits\]"):
        mnist.digits_file()


@pytest.fixture
def small(monkeypatch):
    """Small batches of a small network."""
    monkeypatch.setattr(pcae_training, "BATCH", 4)
    monkeypatch.setattr(pcae_training, "Pcae", lambda key: Pcae(key, PARTS))
    return task


def arrays(net):
    return jax.tree.leaves(eqx.filter(net, eqx.is_array))


@needs_digits
def test_a_killed_run_ends_the_same(small, tmp_path):
    whole = train(small(), 12, 0, tmp_path / "whole", leg=4)

    class Stop(Exception):
        pass

    told = 0

    def progress(done, **more):
        nonlocal told
        told += done
        if told == 7:
            raise Stop

    with pytest.raises(Stop):
        train(small(), 12, 0, tmp_path / "parts", progress, leg=4)
    again = train(small(), 12, 0, tmp_path / "parts", leg=4)
    for one, other in zip(arrays(whole.model), arrays(again.model), strict=True):
        assert (one == other).all()


@needs_digits
def test_only_pixels_teach_the_parts(small):
    """Poses, presences and templates learn nothing from the object capsule above them."""
    made = small()
    net = made.initial(jax.random.key(0))
    batch = made.batch(np.random.default_rng(0))

    def above(model):
        return loss(model, *batch, jax.random.key(1))[1]["object"]

    gradient = eqx.filter_grad(above)(net)
    assert float(jnp.abs(gradient.decoder.template).max()) == 0
    assert float(jnp.abs(gradient.object.mlp.layers[0].weight).max()) > 0
    head = np.asarray(gradient.encoder.head.weight).reshape(PARTS, -1, net.encoder.place.shape[-1])
    assert np.abs(head[:, :7]).max() == 0  # pose and presence


@needs_digits
def test_train_by_command(monkeypatch, tmp_path):
    monkeypatch.setattr(pcae_training, "BATCH", 2)
    run = tmp_path / "run"
    result = CliRunner().invoke(cli.app, ["train", "pcae", "--steps", "2", "--out", str(run)])
    assert result.exit_code == 0, result.output
    net = load(run / "weights.safetensors")
    assert isinstance(net, Pcae)
    other = tmp_path / "other"
    other.mkdir()
    (other / "log.csv").write_text("mine")
    result = CliRunner().invoke(cli.app, ["train", "pcae", "--steps", "2", "--out", str(other)])
    assert result.exit_code == 2
    assert "another folder" in result.output

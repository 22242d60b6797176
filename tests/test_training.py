"""Training in legs: a run that was stopped ends as one that was not; files that do not fit."""

import csv
import json

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

import partwise as pw
from partwise.neural.sparsity import prior_sparsity
from partwise.neural.storing import load_leaves, save_leaves
from partwise.neural.training import Task, train


class Line(eqx.Module):
    slope: jax.Array
    name: str = eqx.field(static=True, default="line")

    def __call__(self, x):
        return self.slope * x


def line(rate=0.1, stop_after=None, broken=False):
    """Fit y = 3 x, noisily; or be interrupted, or break."""
    drawn = []

    def batch(rng):
        drawn.append(1)
        if stop_after is not None and len(drawn) > stop_after:
            raise KeyboardInterrupt
        x = rng.normal(size=8).astype(np.float32)
        return x, 3 * x

    def loss(model, x, y, key):
        error = ((model(x) - y + 0.1 * jax.random.normal(key, x.shape)) ** 2).mean()
        return error * (jnp.nan if broken else 1.0), {"error": error}

    def initial(key):
        return Line(jax.random.normal(key))

    return Task({"rate": rate}, initial, batch, loss, lambda steps: optax.adam(rate))


def log(folder):
    with (folder / "log.csv").open() as file:
        return [{k: v for k, v in row.items() if k != "seconds"} for row in csv.DictReader(file)]


def test_it_learns_and_tells(tmp_path):
    told = []

    def progress(done, **more):
        told.append((done, more))

    model, seconds = train(line(), 100, 0, tmp_path, progress, leg=25)
    assert seconds > 0
    assert float(model.slope) == pytest.approx(3.0, abs=0.1)
    assert sum(done for done, _ in told) == 100
    assert any("loss" in more.get("note", "") for _, more in told)
    assert [row["step"] for row in log(tmp_path)] == ["25", "50", "75", "100"]
    assert float(log(tmp_path)[-1]["error"]) < float(log(tmp_path)[0]["error"])


@pytest.mark.parametrize("stop", [1, 10, 13, 29])
def test_a_stopped_run_goes_on_to_the_same_end(tmp_path, stop):
    whole = train(line(), 30, 4, tmp_path / "whole", leg=10)
    with pytest.raises(KeyboardInterrupt):
        train(line(stop_after=stop), 30, 4, tmp_path / "parts", leg=10)
    again = train(line(), 30, 4, tmp_path / "parts", leg=10)
    assert float(again.model.slope) == float(whole.model.slope)
    assert log(tmp_path / "parts") == log(tmp_path / "whole")
    # Finished: nothing is drawn any more.
    done = train(line(stop_after=0), 30, 4, tmp_path / "parts", leg=10)
    assert float(done.model.slope) == float(whole.model.slope)


def test_a_log_that_is_ahead_of_its_checkpoint_is_cut(tmp_path):
    """Killed between log and checkpoint: the leg is done once more, its row is not twice there."""
    train(line(), 10, 0, tmp_path, leg=5)
    before = log(tmp_path)
    (tmp_path / "checkpoint.safetensors").unlink()
    train(line(), 10, 0, tmp_path, leg=5)
    assert log(tmp_path) == before


def test_seeds_differ(tmp_path):
    slopes = [float(train(line(), 5, s, tmp_path / str(s)).model.slope) for s in (0, 1)]
    assert slopes[0] != slopes[1]


def test_other_options_are_another_folder(tmp_path):
    train(line(), 5, 0, tmp_path)
    for changed in (
        lambda: train(line(), 6, 0, tmp_path),
        lambda: train(line(0.2), 5, 0, tmp_path),
    ):
        with pytest.raises(pw.InputError, match="another folder"):
            changed()
    (tmp_path / "training.json").write_text("{")
    with pytest.raises(pw.InputError, match="another folder"):
        train(line(), 5, 0, tmp_path)


@pytest.mark.parametrize("name", ["log.csv", "checkpoint.safetensors", "weights.safetensors"])
def test_what_another_put_into_the_folder_is_not_written_over(tmp_path, name):
    (tmp_path / name).write_text("mine")
    with pytest.raises(pw.InputError, match=f"{name}.*another folder"):
        train(line(), 5, 0, tmp_path)
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [(name, "mine")]


def test_options_and_checkpoints_that_are_none(tmp_path):
    (tmp_path / "training.json").write_text("[1, 2]")
    with pytest.raises(pw.InputError, match="another folder"):
        train(line(), 5, 0, tmp_path)
    (tmp_path / "training.json").unlink()
    train(line(), 5, 0, tmp_path)
    kept = tmp_path / "checkpoint.safetensors"
    with safe_open(kept, "numpy") as file:
        arrays = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    save_file(arrays, kept)  # without the step
    with pytest.raises(pw.InputError, match="no checkpoint of a run"):
        train(line(), 5, 0, tmp_path)


def test_a_seed_beyond_all_bounds_leaves_no_folder(tmp_path):
    with pytest.raises(pw.InputError, match="seed must be"):
        train(line(), 5, 10**30, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_loss_that_is_no_number(tmp_path):
    with pytest.raises(pw.InputError, match="loss is nan"):
        train(line(broken=True), 5, 0, tmp_path)
    assert not (tmp_path / "checkpoint.safetensors").exists()


def test_files_of_weights(tmp_path):
    path, net = tmp_path / "net.safetensors", Line(jnp.float32(1 / 3))
    save_leaves(path, net, {"network": "line"})
    back, about = load_leaves(path, Line(jnp.float32(0)))
    assert about == {"network": "line"}
    assert float(back.slope) == float(net.slope)
    save_leaves(path, net, {}, half=True)
    assert float(load_leaves(path, Line(jnp.float32(0)))[0].slope) == np.float16(1 / 3)
    assert load_leaves(path, Line(jnp.float32(0)))[0].slope.dtype == jnp.float32
    with pytest.raises(pw.InputError, match="another network"):
        load_leaves(path, {"other": jnp.zeros(3)})
    with pytest.raises(pw.InputError, match="another size"):
        load_leaves(path, Line(jnp.zeros(3)))
    save_leaves(path, Line(jnp.float32(jnp.nan)), {})
    with pytest.raises(pw.InputError, match="NaN"):
        load_leaves(path, net)
    path.write_bytes(b"not weights at all")
    with pytest.raises(pw.InputError, match="not a safetensors file"):
        load_leaves(path, net)
    with pytest.raises(pw.InputError, match="no such file"):
        load_leaves(tmp_path / "nowhere.safetensors", net)
    path.write_bytes(json.dumps({}).encode() * 40)
    with pytest.raises(pw.InputError):
        load_leaves(path, net)


def test_sparsity_by_hand():
    presence = jnp.array([[1.0, 0.0], [1.0, 1.0], [0.5, 0.0]])
    within, between = prior_sparsity(presence, 1.0, 0.5)
    assert float(within) == pytest.approx((0 + 1 + 0.25) / 3)
    assert float(between) == pytest.approx(((2.5 - 1.5) ** 2 + (1 - 1.5) ** 2) / 2 / 3)

"""The rotation experiment, small, with the shipped weights."""

import json

import numpy as np
import pytest

pytest.importorskip("skimage")
pytest.importorskip("mlxtend")

from partwise.neural.shipped import pcae_weights
from partwise.paper.rotation import Rotation


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rotation")
    experiment = Rotation(folder, scenes=6, step=90, examples=120, of_others=15, others=1)
    experiment.run()
    return folder


def test_what_it_says(out):
    assert len(pcae_weights()) >= 2
    rows = json.loads((out / "rotation.json").read_text())["rows"]
    mean = {(r["parts"], r["what"], r["degrees"]): r["mean"] for r in rows}
    for parts in ("PCAE, seed 0", "PCAE, seed 1", "parts of strokes"):
        assert mean[parts, "agreement", 0] == pytest.approx(1.0)
        assert mean[parts, "ceiling", 90] > 0.95
        turned = [mean[parts, "agreement", angle] for angle in (90, 180, 270)]
        assert max(turned) < 0.3 if parts.startswith("PCAE") else min(turned) > 0.6
    text = json.dumps(json.loads((out / "rotation.json").read_text())["page"]["summary"])
    assert "% within 15" in text
    for picture in ("rotation-parts.png", "rotation-curves.png"):
        assert (out / picture).stat().st_size > 10_000


def test_pcae_reconstructs_test_digits(out):
    cell = json.loads((out / "rotation.cells" / "pcae-seed0.json").read_text())["result"]
    assert np.mean(cell["mse"]) < 0.005  # of empty paper it is .05
    assert np.array(cell["labels"]).shape == (8, 40, 40)


def test_turns_are_found_and_what_is_done_is_kept(out):
    path = out / "rotation.cells" / "strokes.json"
    off = np.array(json.loads(path.read_text())["result"]["off"], float)
    assert np.nanmedian(off[:, 1:]) < 5
    before = path.stat().st_mtime_ns
    Rotation(out, scenes=6, step=90, examples=120, of_others=15, others=1).run()
    assert path.stat().st_mtime_ns == before

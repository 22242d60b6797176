"""``partwise sky``: files in, table, JSON, CSV and pictures out."""

import csv
import json

import matplotlib.image as mpimg
import numpy as np
import pytest
from typer.testing import CliRunner

from partwise import cli, sky


@pytest.fixture
def run():
    def run(*args):
        return CliRunner().invoke(cli.app, ["sky", *map(str, args)])

    return run


def refused(result, *words):
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1
    for word in words:
        assert str(word) in result.stderr


def test_simulate_write_and_read_again(run, tmp_path):
    points, stars, picture = (tmp_path / n for n in ("points.csv", "stars.csv", "chart.png"))
    simulated = ("--simulate", "--seed", 1490, "--field", 70)
    first = run(*simulated, "--json", "--points", points, "-o", picture, "--beside")
    assert first.exit_code == 0, first.output
    told = json.loads(first.stdout)
    assert "Ori" in told["truth"]["whole"]
    # Other columns of the file are not looked at.
    rows = list(csv.reader(points.open()))
    points.write_text("\n".join(f"{y},star {k},{x}" for k, (x, y) in enumerate(rows[1:])))
    points.write_text("y,name,x\n" + points.read_text())
    again = run(points, "--seed", 1490, "--json", "--stars", stars)
    answer = json.loads(again.stdout)
    del told["truth"]
    assert answer == told
    assert {"name", "probability", "whole", "stars"} <= set(answer["constellations"][0])
    written = list(csv.DictReader(stars.open()))
    assert len(written) == len(rows) - 1
    named = {s["row"]: s["name"] for s in answer["stars"]}
    assert [r["star"] for r in written] == [named.get(k, "") for k in range(len(written))]
    assert next(r for r in written if r["star"] == "Betelgeuse")["constellations"] == "Ori"
    image = mpimg.imread(picture)
    assert image.shape[1] > 1.7 * image.shape[0]  # two panels
    assert np.ptp(image[..., :3].mean(-1)) > 0.7


def test_the_table(run):
    result = run("--simulate", "--seed", 1490, "--field", 70)
    assert "Orion" in result.stdout
    assert "whole" in result.stdout
    assert "truth: 4 constellations" in " ".join(result.stdout.split())


def test_no_sky(run, tmp_path):
    path = tmp_path / "points.csv"
    points = np.random.default_rng(0).uniform(size=(9, 2))
    path.write_text("x,y\n" + "\n".join(f"{x},{y}" for x, y in points))
    result = run(path, "-o", tmp_path / "none.svg")
    assert result.exit_code == 0
    assert result.stdout.startswith("No constellations")
    assert len(result.stdout.strip().splitlines()) <= 2
    assert "<svg" in (tmp_path / "none.svg").read_text()[:400]
    assert json.loads(run(path, "--json").stdout)["found"] is False


def test_mistakes(run, tmp_path):
    path = tmp_path / "chart.csv"
    refused(run(), "--simulate")
    refused(run(path), path)
    path.write_text("x,y\n1,2\n")
    refused(run(path, "--simulate"), "either")
    refused(run(path, "--field", 50), "--field")
    refused(run(path, "--beside"), "-o")
    refused(run(path, "-o", tmp_path / "chart.gif"), "chart.gif")
    refused(run(path, "-o", tmp_path / "no" / "chart.png"), "chart.png")
    refused(run("--simulate", "--field", 500), "field")
    path.write_text("a,b\n1,2\n")
    refused(run(path), path, "x")
    path.write_text("x\ty\n1\t2\n")
    refused(run(path), path, "commas")
    path.write_text("x,y\n1,2\n1\n")
    refused(run(path), "row 2")
    path.write_text("x,y\n1,2\n1,two\n")
    refused(run(path), "row 2")
    path.write_text("x,y\n1,2\n1,nan\n")
    refused(run(path), "row 2")
    path.write_bytes(b"\xff\xfe\x00x")
    refused(run(path), path)
    path.write_text("x,y\n")
    assert run(path).exit_code == 0
    assert isinstance(sky.find(np.zeros((0, 2))).to_dict(), dict)

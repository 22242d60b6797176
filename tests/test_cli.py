"""The command line: the contract of DESIGN, sec. 4, and one line for every mistake."""

import json
import subprocess
import sys
import time

import numpy as np
import pyarrow.parquet as pq
import pytest
from fakes import InOrder, Interrupting
from typer.testing import CliRunner

import partwise as pw
from partwise import cli, solvers
from partwise.cli import recognise
from partwise.files import read_labelled, read_scenes
from partwise.metrics import METRICS

SIMULATED = 60


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Run a command in process, with solvers that cost nothing and a cache of its own."""
    made = []

    def named(name, **options):
        if name not in solvers.NAMES:
            return original(name, **options)
        made.append((name, options))
        return InOrder()

    original = solvers.named
    monkeypatch.setattr(solvers, "named", named)
    monkeypatch.setattr("partwise.evaluation.named", named)
    monkeypatch.setattr("partwise.cli.options.cache_compilations", lambda: None)
    runner = CliRunner()

    def run(*args):
        return runner.invoke(cli.app, [str(a) for a in args])

    run.made = made
    return run


@pytest.fixture
def scenes(run, tmp_path):
    path = tmp_path / "scenes.npz"
    assert run("simulate", "--scenes", SIMULATED, "-o", path).exit_code == 0
    return path


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "model.json"
    pw.constellations().save(path)
    return path


def refused(result, *words):
    """Exit code 2, one line on stderr, nothing on stdout, no traceback."""
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    lines = result.stderr.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("partwise: ")
    for word in words:
        assert str(word) in lines[0]


def test_simulate_is_the_seeded_generator(run, scenes, tmp_path):
    labelled = read_labelled(scenes)
    wanted = pw.simulate_constellations(SIMULATED, 0.0, 0)
    np.testing.assert_allclose(labelled.points, wanted.points, atol=1e-6)
    again = tmp_path / "again.npz"
    run("simulate", "--scenes", SIMULATED, "--noise", 0.1, "--seed", 3, "-o", again)
    np.testing.assert_allclose(
        read_labelled(again).points,
        pw.simulate_constellations(SIMULATED, 0.1, 3).points,
        atol=1e-6,
    )


def test_simulate_with_a_model(run, tmp_path):
    path = tmp_path / "triangles.json"
    pw.Model([pw.shapes.triangle()], instances=[4]).save(path)
    out = tmp_path / "a.npz"
    assert run("simulate", "--model", path, "--scenes", 10, "-o", out).exit_code == 0
    assert read_labelled(out).present.shape[1] == 12


def test_evaluate_prints_one_json_object(run, scenes):
    result = run("evaluate", scenes, "--solver", "ransac", "--json")
    assert result.exit_code == 0
    assert result.stderr == ""
    found = json.loads(result.stdout)
    assert found["solver"] == "ransac"
    assert found["scenes"] == len(read_labelled(scenes))
    for protocol in ("published", "exchangeable"):
        assert tuple(found[protocol]) == METRICS
        assert tuple(found["standard_error"][protocol]) == METRICS
    assert found["scenes_per_second"] > 0
    assert found["compile_seconds"] >= 0
    published, exchangeable = (
        found[p]["segmentation_accuracy"] for p in ("published", "exchangeable")
    )
    assert published <= exchangeable <= 1


def test_evaluate_options(run, scenes):
    result = run(
        "evaluate", scenes, "--solver", "ds", "--restarts", 3, "--beta", 0.1, "--limit", 7, "--json"
    )
    assert json.loads(result.stdout)["scenes"] == 7
    assert run.made == [("ds", {"restarts": 3, "beta": 0.1})]
    table = run("evaluate", scenes)
    assert table.exit_code == 0
    assert "exchangeable" in table.stdout
    assert run.made[-1] == ("auto", {})


@pytest.mark.parametrize("solver", ["auto", "exact", "ransac"])
def test_options_of_other_solvers_are_ignored_with_a_note(run, scenes, solver):
    result = run("evaluate", scenes, "--solver", solver, "--restarts", 2, "--beta", 0.1)
    assert result.exit_code == 0
    assert "--restarts and --beta without effect" in result.stderr
    assert run.made[-1] == (solver, {})


def test_infer_prints_json_lines_into_a_pipe(run, scenes, model):
    result = run("infer", scenes, "--model", model)
    assert result.exit_code == 0
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    batch = read_scenes(scenes)
    assert [line["scene"] for line in lines] == list(range(len(batch)))
    assert [len(line["labels"]) for line in lines] == batch.counts.tolist()
    assert lines[0]["objects"][0]["template"] == "square" or batch.counts[0] == 3


def test_infer_shows_a_table_on_a_terminal(run, scenes, model, monkeypatch, capsys):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    recognise.print_answers(scenes, pw.Model.load(model), InOrder(), 0)
    shown = capsys.readouterr().out
    assert "square" in shown
    assert f"{len(read_scenes(scenes)) - recognise.SHOWN} more scenes" in shown


def test_infer_writes_parquet(run, scenes, model, tmp_path):
    out = tmp_path / "out.parquet"
    result = run("infer", scenes, "--model", model, "--solver", "exact", "-o", out)
    assert result.exit_code == 0
    assert result.stdout == ""
    assert pq.read_table(out).num_rows == len(read_scenes(scenes))


def test_bad_input_is_one_line(run, scenes, model, tmp_path):
    missing, folder = tmp_path / "missing.npz", tmp_path
    for path in (missing, folder):
        refused(run("evaluate", path, "--json"), path)
        refused(run("infer", path, "--model", model), path)
        refused(run("infer", path, "--model", model, "-o", tmp_path / "o.parquet"), path)
        refused(run("infer", scenes, "--model", path), path)
    refused(run("evaluate", scenes, "--solver", "magic"), "magic", "ransac")
    refused(run("infer", scenes, "--model", scenes), scenes)
    refused(run("infer", scenes, "--model", model, "-o", folder / "no" / "o.parquet"), "no folder")
    refused(run("simulate", "-o", folder / "no" / "a.npz"), "no folder")
    refused(run("simulate", "--noise", "nan", "-o", tmp_path / "a.npz"), "noise")
    refused(run("reproduce", "--only", "table9"), "table9", "table1")
    one = tmp_path / "one.json"
    pw.Model([pw.shapes.square()]).save(one)
    refused(run("evaluate", scenes, "--model", one), "model")
    (tmp_path / "bad.npz").write_bytes(scenes.read_bytes()[:100])
    refused(run("evaluate", tmp_path / "bad.npz"), "bad.npz")


def test_scenes_of_another_width_are_one_line(run, model, tmp_path):
    (tmp_path / "a.csv").write_text("scene,x,y,z\n0,1,2,3\n0,2,3,4\n")
    refused(run("infer", tmp_path / "a.csv", "--model", model), "3 numbers")


def test_interruption(run, scenes, model, monkeypatch, tmp_path):
    monkeypatch.setattr(solvers, "named", lambda name, **_: Interrupting(0))
    result = run("infer", scenes, "--model", model, "-o", tmp_path / "o.parquet")
    assert result.exit_code == 130
    assert result.stderr.splitlines() == ["partwise: interrupted."]


def test_reproduce_runs_the_chosen_experiments(run, monkeypatch, tmp_path):
    asked = []

    class Fake:
        title, seconds = "A title", 3

        def __init__(self, lacking=None):
            self.lacking = lacking

        def run(self, out, scenes, progress):
            asked.append((out, scenes))
            progress(0, total=2)
            progress(2)
            return ["a table"]

    experiments = {"table1": Fake(), "other": Fake(), "third": Fake("Not run: because.")}
    monkeypatch.setattr("partwise.paper.EXPERIMENTS", experiments)
    monkeypatch.setattr("partwise.report.page.EXPERIMENTS", experiments)
    monkeypatch.chdir(tmp_path)
    result = run("reproduce", "--only", "table1", "--out", tmp_path, "--scenes", 9)
    assert (result.exit_code, result.stdout) == (0, "a table\n")
    assert asked == [(tmp_path, 9)]
    result = run("reproduce")
    assert result.stdout == "a table\n" * 2
    said = ["third: Not run: because.", "The page: report/index.html"]
    assert result.stderr.splitlines() == said
    assert "Not run: because." in (tmp_path / "report" / "index.html").read_text()
    refused(run("reproduce", "--only", "third"), "third: Not run: because.")


def test_the_list_of_commands_is_not_cut_at_an_abbreviation(run):
    for group in ("", "train", "faces"):
        listed = run(*group.split(), "--help").stdout
        assert not [line for line in listed.splitlines() if line.endswith(("(sec.", "(App."))]


# In a process of its own


def partwise(*args, **environment):
    import os

    return subprocess.run(
        [sys.executable, "-m", "partwise.cli", *map(str, args)],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        timeout=120,
    )


def test_a_process_of_its_own(tmp_path):
    out = tmp_path / "a.npz"
    made = partwise("simulate", "--scenes", 10, "-o", out)
    assert made.returncode == 0
    assert out.is_file()
    bad = partwise(
        "evaluate", tmp_path / "none.npz", "--solver=ransac", XDG_CACHE_HOME=str(tmp_path / "cache")
    )
    assert (bad.returncode, bad.stdout) == (2, "")
    assert len(bad.stderr.splitlines()) == 1
    # The compilation cache is the process's, in the user's folder.
    assert (tmp_path / "cache" / "partwise" / "jax").is_dir()


def test_a_home_that_cannot_be_written_is_no_obstacle(tmp_path):
    (tmp_path / "file").write_text("not a folder")
    bad = partwise(
        "evaluate", tmp_path / "none.npz", "--solver=ransac", XDG_CACHE_HOME=str(tmp_path / "file")
    )
    assert bad.returncode == 2
    assert "no such file" in bad.stderr


def test_help_is_quick():
    start = time.perf_counter()
    shown = partwise("--help")
    assert time.perf_counter() - start < 10
    for command in ("infer", "evaluate", "simulate", "reproduce"):
        assert command in shown.stdout

"""Long files: flat chunks on disk, interrupted work resumes, other work starts afresh."""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest
from fakes import Counting, InOrder, Interrupting

import partwise as pw
from partwise.files import read_scenes, write_explanations, write_scenes
from partwise.inference import solve
from partwise.streaming import infer_file, parts_folder

MODEL = pw.constellations()


@pytest.fixture
def scenes(tmp_path):
    path = tmp_path / "scenes.parquet"
    rng = np.random.default_rng(0)
    drawn = [rng.normal(size=(n, 2)) for n in rng.choice([0, 3, 4, 7, 11], 50)]
    write_scenes(path, pw.SceneBatch.collect(drawn))
    return path


def interrupt(scenes, out, calls=8, **options):
    with pytest.raises(KeyboardInterrupt):
        infer_file(scenes, MODEL, Interrupting(calls), 0, out=out, rows=8, **options)
    return sorted(p.name for p in parts_folder(out).glob("part-*.parquet"))


def test_the_answer_is_that_of_one_go(scenes, tmp_path):
    out, whole = tmp_path / "out.parquet", tmp_path / "whole.parquet"
    done = []
    assert infer_file(scenes, MODEL, InOrder(), 3, out=out, rows=8, progress=done.append) == 50
    write_explanations(whole, solve(MODEL, read_scenes(scenes), InOrder(), 3))
    assert pq.read_table(out).equals(pq.read_table(whole))
    assert sum(done) == 50
    assert not parts_folder(out).exists()


def test_interrupted_work_resumes(scenes, tmp_path):
    out, whole = tmp_path / "out.parquet", tmp_path / "whole.parquet"
    finished = interrupt(scenes, out)
    assert 0 < len(finished) < 7
    assert not out.exists()
    Counting.seen, done = 0, []
    infer_file(scenes, MODEL, Counting(), 0, out=out, rows=8, progress=done.append)
    rest = read_scenes(scenes).counts[8 * len(finished) :]
    assert Counting.seen == (rest > 0).sum()  # Nothing finished is done again.
    assert sum(done) == 50
    write_explanations(whole, solve(MODEL, read_scenes(scenes), InOrder(), 0))
    assert pq.read_table(out).equals(pq.read_table(whole))


@pytest.mark.parametrize("change", ["seed", "model", "solver", "rows", "scenes"])
def test_other_work_starts_afresh(scenes, tmp_path, change):
    out = tmp_path / "out.parquet"
    interrupt(scenes, out)
    model, seed, solver, rows = MODEL, 0, Counting(), 8
    if change == "seed":
        seed = 1
    elif change == "model":
        model = MODEL.replace(presence=0.3)
    elif change == "solver":
        solver = InOrder(beta=0.1)
    elif change == "rows":
        rows = 9
    else:
        write_scenes(scenes, pw.SceneBatch.collect(list(read_scenes(scenes))[::-1]))
    Counting.seen = 0
    infer_file(scenes, model, solver, seed, out=out, rows=rows)
    if change != "solver":
        assert Counting.seen == (read_scenes(scenes).counts > 0).sum()
    whole = tmp_path / "whole.parquet"
    write_explanations(whole, solve(model, read_scenes(scenes), solver, seed))
    assert pq.read_table(out).equals(pq.read_table(whole))


def test_a_folder_of_somebody_else_is_left_alone(scenes, tmp_path):
    out = tmp_path / "out.parquet"
    parts_folder(out).mkdir()
    theirs = parts_folder(out) / "notes.txt"
    theirs.write_text("keep me")
    (parts_folder(out) / "manifest.json").write_text("not JSON")
    infer_file(scenes, MODEL, InOrder(), out=out)
    assert [p.name for p in parts_folder(out).iterdir()] == ["notes.txt"]


def test_the_manifest_names_no_place(scenes, tmp_path):
    out = tmp_path / "out.parquet"
    interrupt(scenes, out)
    text = (parts_folder(out) / "manifest.json").read_text()
    assert str(tmp_path) not in text
    assert json.loads(text)["rows"] == 8


def test_damage_and_bad_places_are_one_sentence(scenes, tmp_path):
    out = tmp_path / "out.parquet"
    finished = interrupt(scenes, out)
    (parts_folder(out) / finished[0]).write_bytes(b"PAR1 no more")
    with pytest.raises(pw.InputError, match="damaged"):
        infer_file(scenes, MODEL, InOrder(), out=out, rows=8)
    with pytest.raises(pw.InputError, match="no folder"):
        infer_file(scenes, MODEL, InOrder(), out=tmp_path / "no" / "out.parquet")
    with pytest.raises(pw.InputError, match="folder"):
        infer_file(scenes, MODEL, InOrder(), out=tmp_path)


@pytest.mark.parametrize("name", ["a.csv", "a.npz"])
def test_other_kinds_of_files(tmp_path, name):
    path = tmp_path / name
    if name == "a.csv":
        rows = [f"{i},{j},{i * j}" for i in range(5) for j in range(4)]
        path.write_text("\n".join(["scene,x,y", *rows]) + "\n")
    else:
        np.savez(path, points=np.random.default_rng(0).normal(size=(5, 4, 2)))
    assert infer_file(path, MODEL, InOrder(), out=tmp_path / "o.parquet", rows=2) == 5
    assert pq.read_table(tmp_path / "o.parquet").num_rows == 5


def test_no_scenes_at_all(tmp_path):
    path = tmp_path / "a.parquet"
    write_scenes(path, pw.SceneBatch(np.zeros((0, 2)), np.zeros(1, np.int64)))
    assert infer_file(path, MODEL, InOrder(), out=tmp_path / "o.parquet") == 0
    assert pq.read_table(tmp_path / "o.parquet").num_rows == 0

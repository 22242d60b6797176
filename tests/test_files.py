"""Files: what is written is read back, and every bad file is one sentence that names it."""

import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fakes import InOrder

import partwise as pw
from partwise.files import (
    EXPLANATION_SCHEMA,
    count_scenes,
    explanations_table,
    iterate_scenes,
    read_labelled,
    read_scenes,
    write_explanations,
    write_labelled,
    write_scenes,
)
from partwise.inference import solve


def ragged(seed=0, scenes=50):
    rng = np.random.default_rng(seed)
    return pw.SceneBatch.collect([rng.normal(size=(n, 2)) for n in rng.integers(0, 12, scenes)])


def same(a, b):
    np.testing.assert_array_equal(a.offsets, b.offsets)
    np.testing.assert_allclose(a.parts, b.parts)


def parquet(tmp_path, **columns):
    path = tmp_path / "scenes.parquet"
    pq.write_table(pa.table(columns), path)
    return path


def refuse(read, path, *words):
    """One sentence that names the file."""
    with pytest.raises(pw.InputError) as caught:
        read(path)
    message = str(caught.value)
    assert str(path) in message
    assert "\n" not in message
    for word in words:
        assert word in message
    assert caught.value.__cause__ is None


# What is written is read back


def test_labelled_scenes(tmp_path):
    labelled = pw.simulate_constellations(30, noise=0.1)
    path = tmp_path / "scenes.npz"
    write_labelled(path, labelled)
    back = read_labelled(path)
    np.testing.assert_allclose(back.points, labelled.points, atol=1e-6)
    np.testing.assert_array_equal(back.present, labelled.present)
    np.testing.assert_array_equal(back.object_id, labelled.object_id)
    # The same file without its labels: what a solver may see.
    same(read_scenes(path), back.scenes)
    assert os.listdir(tmp_path) == ["scenes.npz"]


def test_npz_without_present_has_all_slots(tmp_path):
    np.savez(tmp_path / "a.npz", points=np.arange(12.0).reshape(2, 3, 2))
    assert read_scenes(tmp_path / "a.npz").counts.tolist() == [3, 3]


def test_absent_slots_carry_no_information(tmp_path):
    points = np.full((1, 2, 2), np.nan)
    points[0, 0] = 1.0
    np.savez(tmp_path / "a.npz", points=points, present=[[True, False]], object_id=[[0, 1]])
    assert len(read_scenes(tmp_path / "a.npz").parts) == 1
    assert read_labelled(tmp_path / "a.npz").present.sum() == 1


@pytest.mark.parametrize("rows", [1, 7, 50, 1000])
def test_parquet_streams_in_equal_batches(tmp_path, rows):
    batch = ragged()
    path = tmp_path / "scenes.parquet"
    write_scenes(path, batch)
    table = pq.read_table(path)
    pq.write_table(table, path, row_group_size=9)  # Batches must not depend on row groups.
    same(read_scenes(path), batch)
    pieces = list(iterate_scenes(path, rows))
    assert [len(p) for p in pieces[:-1]] == [rows] * (len(pieces) - 1)
    np.testing.assert_allclose(np.concatenate([p.parts for p in pieces]), batch.parts)
    assert sum(len(p) for p in pieces) == count_scenes(path) == len(batch)
    skipped = list(iterate_scenes(path, rows, skip=1))
    assert len(skipped) == len(pieces) - 1
    if skipped:
        same(skipped[0], pieces[1])


def test_types_and_appearance(tmp_path):
    looks = [np.ones(2), np.zeros(1), np.arange(3.0)]
    batch = pw.SceneBatch(
        np.arange(6.0).reshape(3, 2), np.array([0, 2, 2, 3]), ["eye", "nose", "eye"], looks
    )
    write_scenes(tmp_path / "a.parquet", batch)
    back = read_scenes(tmp_path / "a.parquet")
    same(back, batch)
    assert back.types == batch.types
    assert [a.tolist() for a in back.appearance] == [a.tolist() for a in looks]
    assert [s.types for s in back] == [("eye", "nose"), (), ("eye",)]


@pytest.mark.parametrize(
    ("points", "width"),
    [
        (pa.array([[[1, 2], [3, 4]], []], pa.list_(pa.list_(pa.float32(), 2))), 2),
        (pa.array([[[1, 2], [3, 4]], []], pa.large_list(pa.list_(pa.int64()))), 2),
        (pa.array([[[1, 2], [3, 4]], [[0, 0], [0, 0]]], pa.list_(pa.list_(pa.float64(), 2), 2)), 2),
        (pa.array([[1, 2, 3, 4], []], pa.list_(pa.float64())), 2),
        (pa.array([[[1, 2, 3], [3, 4, 5]], []]), 3),
        (pa.array([[[1, 2, 3, 4], [3, 4, 5, 6]], []]), 4),
    ],
)
def test_kinds_of_parquet_lists(tmp_path, points, width):
    batch = read_scenes(parquet(tmp_path, points=points))
    assert batch.counts[0] == 2
    assert batch.parts.shape[1] == width
    assert batch.parts[1, :2].tolist() == [3, 4]


def test_csv(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("scene,x,y,type\nb,1,2,p\na,3,4,q\nb,5,6.5,r\n")
    batch = read_scenes(path)
    assert batch.parts.tolist() == [[1, 2], [5, 6.5], [3, 4]]
    assert batch.counts.tolist() == [2, 1]
    assert list(batch.types) == ["p", "r", "q"]
    path.write_text("y,x,z,scene\n1,2,3,7\n")
    assert read_scenes(path).parts.tolist() == [[2, 1, 3]]
    path.write_text("scene,x,y,c,s\n1,2,3,0,1\n")
    assert read_scenes(path).parts.tolist() == [[2, 3, 0, 1]]
    path.write_text("scene,x,y\n")
    assert len(read_scenes(path)) == 0


# Bad files


@pytest.mark.parametrize("name", ["scenes.npz", "scenes.parquet"])
def test_truncated_files(tmp_path, name):
    path = tmp_path / name
    if name.endswith("npz"):
        write_labelled(path, pw.simulate_constellations(20))
    else:
        write_scenes(path, ragged())
    whole = path.read_bytes()
    for keep in (0, 1, 5, 50, len(whole) // 2, len(whole) - 3):
        path.write_bytes(whole[:keep])
        refuse(read_scenes, path)
        if name.endswith("npz"):
            refuse(read_labelled, path)
    path.write_bytes(whole[:60] + bytes(len(whole) - 120) + whole[-60:])
    refuse(read_scenes, path)


@pytest.mark.parametrize("name", ["a.npz", "a.parquet", "a.csv"])
def test_foreign_files(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(bytes(range(256)) * 4)
    refuse(read_scenes, path)
    path.write_bytes(b"")
    refuse(read_scenes, path, "empty")
    path.unlink()
    refuse(read_scenes, path, "no such file")
    refuse(count_scenes, path, "no such file")
    path.mkdir()
    refuse(read_scenes, path, "folder")
    refuse(read_labelled, path, "folder")


def test_unknown_extension(tmp_path):
    (tmp_path / "a.txt").write_text("1 2 3")
    refuse(read_scenes, tmp_path / "a.txt", ".npz", ".parquet", ".csv")
    (tmp_path / "a.csv").write_text("scene,x,y\n0,1,2\n")
    refuse(read_labelled, tmp_path / "a.csv", ".npz")


POINTS = np.zeros((3, 4, 2))
ALL = np.ones((3, 4), bool)


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"other": POINTS}, ["'points'", "other"]),
        ({"points": POINTS, "present": ALL}, ["'object_id'"]),
        ({"points": np.array([[1], [2, 3]], object)}, ["present"]),
        ({"points": np.array([[1], [2, 3]], object), "present": ALL, "object_id": ALL}, ["pickle"]),
        ({"points": POINTS[0], "present": ALL, "object_id": ALL * 1}, ["shape", "(4, 2)"]),
        ({"points": POINTS.astype(str), "present": ALL, "object_id": ALL * 1}, ["numbers"]),
        ({"points": POINTS, "present": ALL[:, :2], "object_id": ALL * 1}, ["'present'"]),
        ({"points": POINTS, "present": ALL * 2, "object_id": ALL * 1}, ["'present'"]),
        ({"points": POINTS, "present": ALL, "object_id": ALL * 0.5}, ["'object_id'"]),
        ({"points": POINTS, "present": ALL, "object_id": ALL[:2] * 1}, ["'object_id'"]),
        ({"points": POINTS * np.nan, "present": ALL, "object_id": ALL * 1}, ["NaN", "scene 0"]),
        ({"points": POINTS + np.inf, "present": ALL, "object_id": ALL * 1}, ["infinite"]),
    ],
)
def test_bad_labelled_arrays(tmp_path, arrays, words):
    path = tmp_path / "a.npz"
    np.savez(path, **arrays)
    refuse(read_labelled, path, *words)


def test_a_single_array_is_not_an_npz(tmp_path):
    with (tmp_path / "a.npz").open("wb") as file:
        np.save(file, POINTS)
    refuse(read_scenes, tmp_path / "a.npz", "numpy.savez")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("scene,x,y\n0,1,abc\n", ["abc"]),
        ("scene,x\n0,1\n", ["no column y"]),
        ("scene,x,y,flux\n0,1,2,3\n", ["flux"]),
        ("scene,x,y,x\n0,1,2,3\n", ["repeated"]),
        ("scene,x,y\n0,1\n", ["Expected 3 columns"]),
        ("scene,x,y\n0,1,2\n0,1,nan\n", ["row 2"]),
        ("scene,x,y\n0,inf,1\n", ["infinity"]),
        ("scene,x,y\n0,1,1\n0,,1\n", ["'x'", "row 2"]),
        ("scene,x,y,c\n0,1,1,1\n", ["c and s"]),
        ("scene,x,y,type\n0,1,1,\n", ["'type'"]),
        ("\n\n", ["scene,x,y"]),
    ],
)
def test_bad_csv(tmp_path, text, words):
    path = tmp_path / "a.csv"
    path.write_text(text)
    refuse(read_scenes, path, *words)


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"other": [1]}, ["'points'", "other"]),
        ({"points": [1, 2]}, ["list"]),
        ({"points": [["a"]]}, ["list<list<double>>"]),
        ({"points": [[[1, 2], [3]]]}, ["1, 2 numbers"]),
        ({"points": [[[1]]]}, ["2, 3 or 4"]),
        ({"points": [[1, 2, 3]]}, ["odd"]),
        ({"points": [[[1, 2]], None]}, ["scene 1", "null"]),
        ({"points": [[[1, 2], None]]}, ["null"]),
        ({"points": [[[1, None]]]}, ["null"]),
        ({"points": [[[1.0, 2.0]], [[1.0, np.nan]]]}, ["scene 1", "NaN"]),
        ({"points": [[[1, 2]]], "types": [["a", "b"]]}, ["2 types for 1 points"]),
        ({"points": [[[1, 2]]], "types": [[None]]}, ["null"]),
        ({"points": [[[1, 2]]], "types": [[3]]}, ["names"]),
        ({"points": [[[1, 2]]], "types": ["a"]}, ["'types'"]),
        ({"points": [[[1, 2]]], "appearance": [[1]]}, ["'appearance'"]),
        ({"points": [[[1, 2]]], "appearance": [[[np.inf]]]}, ["infinity"]),
    ],
)
def test_bad_parquet(tmp_path, columns, words):
    refuse(read_scenes, parquet(tmp_path, **columns), *words)


def test_places_that_cannot_be_written(tmp_path):
    labelled = pw.simulate_constellations(5)
    refuse(lambda p: write_labelled(p, labelled), tmp_path / "no" / "a.npz", "no folder")
    refuse(lambda p: write_labelled(p, labelled), tmp_path / "a.txt", ".npz")
    (tmp_path / "b.npz").mkdir()
    refuse(lambda p: write_labelled(p, labelled), tmp_path / "b.npz", "folder")


# Results


def test_explanations_say_what_each_explanation_says(tmp_path):
    model = pw.constellations()
    batch = ragged(scenes=80)
    batch = pw.SceneBatch.collect([s for s in batch if len(s) <= 11])
    found = solve(model, batch, InOrder())
    path = tmp_path / "out.parquet"
    write_explanations(path, found)
    table = pq.read_table(path)
    assert table.schema.equals(EXPLANATION_SCHEMA)
    for row, explanation in zip(table.to_pylist(), found, strict=True):
        assert row["labels"] == explanation.labels.tolist()
        assert row["score"] == pytest.approx(explanation.score)
        assert row["converged"] is explanation.converged
        assert [o["template"] for o in row["objects"]] == [o.name for o in explanation.objects]
        for ours, theirs in zip(row["objects"], explanation.objects, strict=True):
            assert ours["parts"] == theirs.parts.tolist()
            assert ours["pose"] == pytest.approx(theirs.pose.tolist())
            assert ours["probability"] == pytest.approx(theirs.probability)
    assert any(len(row["objects"]) > 1 for row in table.to_pylist())
    middle = explanations_table(found, 10, 25)
    assert middle.equals(table.slice(10, 15))


def test_explanations_of_nothing(tmp_path):
    batch = pw.SceneBatch(np.zeros((0, 2)), np.zeros(3, np.int64))
    write_explanations(tmp_path / "a.parquet", solve(pw.constellations(), batch, InOrder()))
    assert pq.read_table(tmp_path / "a.parquet")["labels"].to_pylist() == [[], []]

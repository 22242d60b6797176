"""Templates and models: JSON, errors, normalisation, canonical order."""

import json

import numpy as np
import pytest

from partwise import Appearance, InputError, Model, Noise, PosePrior, Template, poses, shapes


def _looks(parts=2):
    rng = np.random.default_rng(0)
    return Appearance(
        tuple(rng.normal(size=(3, 2)) for _ in range(parts)),
        tuple(rng.normal(size=3) for _ in range(parts)),
        tuple(rng.uniform(0.1, 1, 3) for _ in range(parts)),
    )


def _same(a: Template, b: Template) -> bool:
    return json.dumps(a.to_json()) == json.dumps(b.to_json())


@pytest.mark.parametrize(
    "template",
    [
        shapes.square(),
        Template([[0, 0], [1, 0]], "typed", types=("nose", "mouth"), appearance=_looks()),
        Template.directed([[0, 0], [1, 2]], [1, 2], [0.1, 0.2], "directed"),
        Template([[0, 0, 0], [1, 0, 2], [1, 1, 1], [0, 0, 1]], "space"),
    ],
    ids=lambda t: t.name,
)
def test_template_json_round_trip(template):
    assert _same(Template.from_json(json.loads(json.dumps(template.to_json()))), template)


def test_model_file_round_trip(tmp_path):
    model = Model(
        [shapes.square(), shapes.triangle()],
        instances=[2, 1],
        noise=Noise(0.1, follows_scale=False),
        presence=0.3,
        missing=0.1,
        clutter=2.5,
        prior=PosePrior(np.zeros(4), np.ones(4)),
        scales=(0.5, 2.0),
    )
    model.save(tmp_path / "model.json")
    assert Model.load(tmp_path / "model.json").to_json() == model.to_json()
    for name, family in poses.FAMILIES.items():
        parts = np.random.default_rng(0).normal(size=(5, family.template_dim))
        again = Model.from_json(Model([Template(parts)], pose=family).to_json())
        assert again.pose == family, name


def test_normalised():
    shape = Template(np.random.default_rng(1).normal(3, 2, (6, 2))).normalised()
    np.testing.assert_allclose(shape.parts.mean(0), 0, atol=1e-12)
    assert (shape.parts**2).sum() == pytest.approx(6)
    directed = Template.directed([[5, 0], [9, 0]], [2, 4], [0, 1])
    ratio = directed.normalised().parts[:, 2:] / directed.parts[:, 2:].clip(1e-9)
    assert ratio[0, 0] == pytest.approx(1 / directed.radius)


def test_canonical_order_does_not_depend_on_the_list():
    templates = [shapes.square(), shapes.triangle(), Template([[0, 0], [3, 1], [1, 1]], "c")]
    one, two = Model(templates), Model(templates[::-1])
    first = [one.templates[t].name for t in one.canonical_order]
    second = [two.templates[t].name for t in two.canonical_order]
    assert first == second


BAD_TEMPLATES = {
    "has no parts": lambda: Template(np.zeros((0, 2))),
    "shape": lambda: Template(np.zeros((3, 5))),
    "nan": lambda: Template([[0, 0], [np.nan, 1]]),
    "types": lambda: Template([[0, 0], [1, 1]], types=("a",)),
    "appearance": lambda: Template([[0, 0]], appearance=_looks(2)),
    "variances": lambda: Appearance((np.ones((1, 1)),), (np.ones(1),), (np.zeros(1),)),
    "coincide": lambda: Template([[1, 1], [1, 1]]).normalised(),
    "unknown fields": lambda: Template.from_json({"parts": [[0, 0]], "color": "red"}),
    "'parts'": lambda: Template.from_json([1, 2]),
}
SQUARE = shapes.square()
BAD_MODELS = {
    "templates": lambda: Model([]),
    "instances": lambda: Model([SQUARE], instances=[0]),
    "presence": lambda: Model([SQUARE], presence=1.5),
    "missing": lambda: Model([SQUARE], missing=1.0),
    "clutter": lambda: Model([SQUARE], clutter=-1),
    "scales": lambda: Model([SQUARE], scales=(2.0, 1.0)),
    "prior": lambda: Model([SQUARE], prior=PosePrior(np.zeros(3), np.ones(3))),
    "variance": lambda: PosePrior(np.zeros(4), np.zeros(4)),
    "sigma": lambda: Noise(-1.0),
    "pose": lambda: Model([SQUARE], pose=poses.Affine3D()),
    "numbers a part": lambda: Model([SQUARE, Template.directed([[0, 0]], [1], [0])]),
    "no shape": lambda: Model([Template([[1, 1], [1, 1]])]),
    "'templates'": lambda: Model.from_json({}),
    "unknown fields": lambda: Model.from_json({"templates": [], "x": 1}),
    "format": lambda: Model.from_json({"templates": [], "format": "other"}),
    "wrong kind": lambda: Model.from_json({"templates": [], "noise": {"sigma": "a", "b": 1}}),
}


@pytest.mark.parametrize(("word", "make"), [*BAD_TEMPLATES.items(), *BAD_MODELS.items()])
def test_errors_are_one_sentence_that_names_the_argument(word, make):
    with pytest.raises(InputError) as caught:
        make()
    assert word in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["", "{", "[1]", "\x00\xff", '{"templates": [{"parts": "x"}]}'])
def test_bad_model_files_are_named(tmp_path, text):
    path = tmp_path / "bad.json"
    path.write_bytes(text.encode("latin1"))
    with pytest.raises(InputError, match=r"bad\.json"):
        Model.load(path)
    with pytest.raises(InputError, match="no such file"):
        Model.load(tmp_path / "absent.json")

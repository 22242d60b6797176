"""Every pose family through the same solver: what was drawn from a model is found again."""

import numpy as np
import pytest

import partwise as pw
from partwise.poses import Affine2D, Affine3D, AffineCamera, Similarity2D, Translation

FAMILIES = [Translation(), Translation(3), Similarity2D(), Affine2D(), Affine3D(), AffineCamera()]


def same_partition(labels, owner):
    """Whether detections and objects are one to one, and no point is left over."""
    pairs = set(zip(labels.tolist(), owner.tolist(), strict=True))
    return len(pairs) == len(set(owner.tolist())) == len(set(labels.tolist())) and -1 not in labels


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f"{f.name}{f.template_dim}")
def test_objects_are_found_again(family):
    rng = np.random.default_rng(0)
    templates = [pw.Template(rng.normal(size=(7, family.template_dim)), name) for name in "ab"]
    model = pw.Model(templates, pose=family, noise=pw.Noise(0.02), presence=0.999)
    drawn = model.sample(1, 2)
    found = pw.infer(model, drawn.scenes)
    for i, explanation in enumerate(found):
        assert same_partition(explanation.labels, drawn.object_id[i])
        for detection in explanation.objects:
            truth = drawn.poses[i][detection.instance]
            parts = detection.template.parts
            away = family.apply(detection.pose, parts) - family.apply(truth, parts)
            assert np.abs(away).max() < 0.1 * family.scale(truth)


@pytest.mark.parametrize("solver", ["exact", "ds"])
def test_parts_with_size_and_orientation(solver):
    arrow = pw.Template.directed([[0, 0], [1, 0], [0, 2]], [1, 0.5, 0.7], [0.1, 2, 4], "arrow")
    model = pw.Model([arrow], instances=[2], noise=pw.Noise(0.02), presence=0.999)
    drawn = model.sample(3, 4)
    for i, explanation in enumerate(pw.infer(model, drawn.scenes, solver=solver)):
        assert same_partition(explanation.labels, drawn.object_id[i])


def test_an_absolute_prior_says_where_objects_are():
    """Two places fit equally well; the prior knows which of them is likely."""
    square = pw.shapes.square()
    points = np.concatenate([square.parts, square.parts + 20.0])
    prior = pw.PosePrior([20.0, 20.0, 1.0, 0.0], [1.0, 1.0, 0.1, 0.1])
    noise = pw.Noise(0.05, follows_scale=False)
    model = pw.Model([square], prior=prior, noise=noise, clutter=4.0)
    found = pw.infer(model, points)
    assert [sorted(o.points.tolist()) for o in found.objects] == [[4, 5, 6, 7]]

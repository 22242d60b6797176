"""Pictures: methods take an ax and return it; an object has one colour; the rest is hollow."""

import matplotlib
import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

import partwise as pw
from partwise.plotting import (
    CLUTTER,
    PALETTE,
    plot_answer,
    plot_answers,
    plot_explanation,
    plot_template,
)
from partwise.posterior import Detection, Explanation, Posterior
from partwise.scenes import Scene

MODEL = pw.Model([pw.shapes.square(), pw.shapes.triangle()], instances=[2, 1], clutter=1.0)
SQUARE = np.array([[0, 0], [2, 0], [2, 2], [0, 2.0]])
POINTS = np.concatenate([SQUARE, SQUARE + 4, [[9.0, 9.0], [9.0, 8.0]]])


def detection(instance, first):
    pose = np.array([*POINTS[first : first + 4].mean(0), 1.0, 0.0])
    return Detection(MODEL, 0, instance, np.arange(first, first + 4), pose, 0.9)


@pytest.fixture
def found():
    """Two squares and two points that belong to nothing, without solving anything."""
    poses = np.tile(np.array([1.0, 1.0, 1.0, 0.0]), (3, 1))
    owner = np.repeat([0, 1, 2], [4, 4, 3])
    r = np.zeros((10, 11))
    r[np.arange(8), np.arange(8)] = 1.0
    left = 1 - r.sum(1)
    posterior = Posterior(r, left, poses, np.tile(100 * np.eye(4), (3, 1, 1)), 1.0, owner)
    objects = (detection(0, 0), detection(1, 4))
    return Explanation(Scene(POINTS), objects, 0.0, True, MODEL, posterior)


@pytest.fixture(autouse=True)
def no_screen():
    matplotlib.use("Agg")
    yield
    matplotlib.pyplot.close("all")


def points_of(ax):
    """The colour of every point that is drawn, with whether it is hollow."""
    out = {}
    for line in ax.lines:
        if line.get_linestyle() == "None":
            hollow = line.get_fillstyle() == "none"
            for x, y in line.get_xydata():
                out[float(x), float(y)] = (to_hex(line.get_color()).upper(), hollow)
    return out


def test_methods_take_an_ax_and_return_it(found):
    for plot in (found.plot, found.plot_posterior, found.posterior.plot, MODEL.templates[0].plot):
        mine = Figure().subplots()
        assert plot(mine) is mine
        assert plot(ax=None).figure is not mine.figure
    learned = pw.Learned(SQUARE, "square", elbo=(-3.0, -2.0, -1.5), betas=(0.5, 0.5, 1.0))
    mine = Figure().subplots()
    assert learned.plot_learning(mine) is mine
    course = next(line for line in mine.lines if len(line.get_ydata()) == 3)
    assert list(course.get_ydata()) == [-3.0, -2.0, -1.5]


def test_points_have_their_objects_colour_and_the_rest_are_hollow(found):
    drawn = points_of(found.plot())
    for m, point in enumerate(POINTS):
        colour, hollow = drawn[tuple(point)]
        if m < 8:
            assert (colour, hollow) == (PALETTE[m // 4], False)
        else:
            assert (colour, hollow) == (CLUTTER.upper(), True)


def test_an_object_has_one_colour_in_every_picture(found):
    second = Explanation(found.scene, found.objects[1:], 0.0, True, MODEL)
    drawn = points_of(plot_explanation(second))
    assert drawn[tuple(POINTS[5])] == (PALETTE[1], False)
    bars = [to_hex(line.get_color()).upper() for line in found.posterior.plot().lines]
    assert [c for c in PALETTE if c in bars] == list(PALETTE[:3])
    assert (
        to_hex(plot_template(MODEL.templates[0], index=1).lines[0].get_color()).upper()
        == PALETTE[1]
    )


def test_points_of_which_nothing_is_known():
    drawn = points_of(plot_answer(SQUARE, None, {}))
    assert len(drawn) == 4
    assert not any(hollow or colour in PALETTE for colour, hollow in drawn.values())


def test_a_sheet_shows_all_answers_to_a_scene_in_one_window():
    away = {0: SQUARE + 100}  # an answer far from the scene does not shrink it
    column = {"truth": (SQUARE, np.zeros(4, int), {0: SQUARE}), "b": (SQUARE, np.full(4, -1), away)}
    figure = plot_answers([column], ["one"], [{"b": "wrong"}])
    assert len(figure.axes) == 2
    above, below = figure.axes
    assert above.get_xlim() == below.get_xlim()
    assert above.get_xlim()[1] < 10
    assert below.get_xlabel() == "wrong"


def test_what_cannot_be_drawn_is_one_sentence():
    with pytest.raises(pw.InputError, match="three dimensions"):
        pw.Template(np.eye(3)).plot()
    with pytest.raises(pw.InputError, match="posterior"):
        Explanation(Scene(POINTS), (), 0.0, True, MODEL).plot_posterior()

"""Where variational inference starts: the votes of parts that fix a pose each."""

import numpy as np
import pytest

import partwise as pw
from partwise.problem import problems
from partwise.solvers.variational import Setting, first_r

ARROWS = [
    pw.Template.directed([[0, 0], [1, 0], [0, 2]], [1, 0.5, 0.7], [0.1, 2, 4], "a"),
    pw.Template.directed([[0, 0], [1, 1], [-1, 2]], [1, 0.8, 0.6], [1.0, 3, 5], "b"),
]
MODEL = pw.Model(ARROWS, instances=[2, 1], noise=pw.Noise(0.01), presence=0.999)
VOTES = pw.Variational(init="votes", beta=0.1)


def starts(solver, model=MODEL, seed=0):
    drawn = model.sample(seed, 1)
    problem = problems(model, drawn.scenes)[0]
    import jax

    seen = jax.tree.map(lambda a: a[0], solver.observed(problem))
    r = np.asarray(
        first_r(solver, Setting.of(problem), problem.slots, seen, solver.starts(problem, 0))
    )
    return drawn, problem, r


def share_right(drawn, problem, r):
    """How many starts put the parts of each object together, and apart from all others."""
    owner = drawn.object_id[0][problem.order[0]]
    right = 0
    for start in np.moveaxis(r, -1, 0):
        held = problem.slots.object[start.argmax(1)]
        pairs = set(zip(held.tolist(), owner.tolist(), strict=True))
        right += len(pairs) == len(set(owner.tolist())) == len(set(held.tolist()))
    return right / r.shape[-1]


@pytest.mark.parametrize("seed", range(3))
def test_votes_put_the_parts_of_an_object_together(seed):
    assert share_right(*starts(VOTES, seed=seed)) > 0.5
    assert share_right(*starts(pw.Variational(), seed=seed)) < 0.1


def test_of_typed_parts_every_vote_is_right():
    typed = [pw.Template(t.parts, t.name, types=[f"{t.name}{n}" for n in range(3)]) for t in ARROWS]
    assert share_right(*starts(VOTES, MODEL.replace(templates=typed))) == 1.0


def test_starts_are_distributions_and_differ():
    _, _, r = starts(VOTES)
    assert np.allclose(r.sum(1), 1, atol=1e-5)
    assert (r >= 0).all()
    assert len({start.argmax(1).tobytes() for start in np.moveaxis(r, -1, 0)}) > 1


def test_an_object_that_nothing_votes_for_stays_empty():
    alone = pw.Model(ARROWS[:1], instances=[2], noise=pw.Noise(0.01), missing=0.1)
    points = alone.pose.apply(np.array([3.0, 1.0, 0.5, 0.5]), ARROWS[0].parts)
    found = pw.infer(alone, pw.Scene(points), solver=VOTES)
    assert [sorted(o.points.tolist()) for o in found.objects] == [[0, 1, 2]]


def test_votes_find_what_was_drawn():
    drawn = MODEL.sample(11, 5)
    for i, found in enumerate(pw.infer(MODEL, drawn.scenes, solver=VOTES)):
        pairs = set(zip(found.labels.tolist(), drawn.object_id[i].tolist(), strict=True))
        assert len(pairs) == 3
        assert -1 not in found.labels


def test_a_trace_starts_from_the_votes_too():
    drawn = MODEL.sample(2, 1)
    watched = pw.trace(MODEL, drawn.scenes[0], VOTES)
    first, last = watched.assignment[0], watched.assignment[-1]
    assert (first.argmax(1) == last.argmax(1)).all()


def test_points_do_not_vote():
    with pytest.raises(pw.InputError, match="size and orientation"):
        pw.infer(pw.constellations(), np.eye(4, 2), solver=pw.Variational(init="votes"))


@pytest.mark.parametrize(
    ("options", "word"), [({"init": "luck"}, "init"), ({"growth": 1.0}, "growth")]
)
def test_bad_options(options, word):
    with pytest.raises(pw.InputError, match=word):
        pw.Variational(**options)

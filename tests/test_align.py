"""``align``: known maps come back, unrelated lists do not, and nothing else changes the answer."""

from itertools import combinations, permutations

import matplotlib
import numpy as np
import pytest

import partwise as pw
from partwise.alignment.maps import Frame, Map, outside
from partwise.alignment.matching import Pairs, matchings

SIGMA = 0.003


def lists(seed, common=30, source_only=15, target_only=20, noise=SIGMA, matrix=None):
    """Two lists that share some points, shuffled; and which source point is which target point."""
    rng = np.random.default_rng(seed)
    source = rng.uniform(size=(common + source_only, 2))
    target = np.concatenate([source[:common], rng.uniform(size=(target_only, 2)) + 0.1])
    matrix = turn(2.0, 1.5) if matrix is None else matrix
    target = (target + noise * rng.normal(size=target.shape)) @ matrix.T + [3.0, -7.0]
    own, other = rng.permutation(len(source)), rng.permutation(len(target))
    where = np.argsort(other)
    truth = {(s, where[k]) for s, k in enumerate(own) if k < common}
    return source[own], target[other], truth


def turn(angle, scale=1.0):
    c, s = np.cos(angle), np.sin(angle)
    return scale * np.array([[c, -s], [s, c]])


def as_set(found):
    return {tuple(p) for p in found.pairs.tolist()}


@pytest.mark.parametrize("seed", range(3))
def test_known_map(seed):
    source, target, truth = lists(seed)
    found = pw.align(source, target)
    assert found.probability > 0.99
    assert found.scale == pytest.approx(1.5, rel=0.01)
    assert found.angle == pytest.approx(2.0, abs=0.01)
    assert len(as_set(found) & truth) >= 28
    assert len(as_set(found) - truth) <= 2
    assert found.noise == pytest.approx(1.5 * SIGMA, rel=0.35)
    pairs = np.array(sorted(truth))
    error = found.apply(source[pairs[:, 0]]) - target[pairs[:, 1]]
    assert np.sqrt((error**2).sum(1).mean()) < 2 * 1.5 * SIGMA


def test_pairs_are_one_to_one_and_sorted():
    found = pw.align(*lists(3)[:2])
    assert (
        len(np.unique(found.pairs[:, 0])) == len(np.unique(found.pairs[:, 1])) == len(found.pairs)
    )
    assert (np.diff(found.pairs[:, 0]) > 0).all()
    assert ((found.pair_probability > 0.5) & (found.pair_probability <= 1)).all()


def test_noise_free_is_exact():
    source, target, truth = lists(4, noise=0.0)
    found = pw.align(source, target)
    assert as_set(found) == truth
    np.testing.assert_allclose(found.transform[:2, :2], turn(2.0, 1.5), atol=1e-9)
    np.testing.assert_allclose(found.transform[:, 2], [3.0, -7.0, 1.0], atol=1e-9)


def test_mostly_unmatched():
    source, target, truth = lists(5, common=60, source_only=120, target_only=140)
    found = pw.align(source, target)
    assert found.probability > 0.99
    assert len(as_set(found) & truth) >= 54


@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize("scale", [1e-5, 0.4, 1e6])
def test_motion_and_scale(scale, offset):
    source, target, _ = lists(6)
    if offset and scale < 1:
        pytest.skip("this list would not survive rounding")
    here = pw.align(source, target)
    matrix = turn(-0.7, scale)
    there = pw.align(source, target @ matrix.T + offset)
    assert as_set(here) == as_set(there)
    assert there.probability == pytest.approx(here.probability, abs=1e-3)
    expected = here.apply(source) @ matrix.T + offset
    np.testing.assert_allclose(there.apply(source), expected, rtol=1e-6, atol=1e-2 * scale * SIGMA)


def test_order_of_points():
    source, target, _ = lists(7)
    rng = np.random.default_rng(0)
    a, b = rng.permutation(len(source)), rng.permutation(len(target))
    here, there = pw.align(source, target), pw.align(source[a], target[b])
    assert as_set(here) == {(a[i], b[j]) for i, j in there.pairs}
    np.testing.assert_allclose(there.transform, here.transform, rtol=1e-9)


def test_same_seed_same_answer():
    source, target, _ = lists(8)
    one, two, other = (pw.align(source, target, seed=s) for s in (1, 1, 2))
    np.testing.assert_array_equal(one.transform, two.transform)
    assert one.probability == two.probability
    np.testing.assert_allclose(one.transform, other.transform, atol=1e-2)


def test_inverse_problem():
    source, target, _ = lists(9)
    there, back = pw.align(source, target), pw.align(target, source)
    assert as_set(there) == {(i, j) for j, i in back.pairs}
    np.testing.assert_allclose(back.apply(there.apply(source)), source, atol=2 * SIGMA)


@pytest.mark.parametrize("seed", range(6))
def test_unrelated_lists(seed):
    rng = np.random.default_rng(100 + seed)
    found = pw.align(rng.uniform(size=(40, 2)), rng.uniform(size=(45, 2)), effort=0.05)
    assert not found.found
    assert found.pairs.shape == (0, 2)
    assert np.isnan(found.transform).all()
    assert found.probability < 0.2


def test_a_dense_spot_is_no_match():
    """Many source points would fall onto a few target points, if they could share them."""
    rng = np.random.default_rng(11)
    target = np.concatenate([rng.normal(size=(60, 2)) * 0.01, rng.uniform(-1, 1, size=(20, 2))])
    found = pw.align(rng.uniform(size=(60, 2)), target, effort=0.05)
    assert found.probability < 0.5


def test_a_mirror_image_is_no_match():
    source, target, _ = lists(12, common=40, source_only=0, target_only=0)
    assert pw.align(source, target).found
    assert not pw.align(source, target * [1, -1], effort=0.05).found


def test_a_lattice_has_many_maps():
    """A square lattice turned by a right angle is itself: the map is one of four, at best."""
    grid = np.stack(np.meshgrid(*[np.arange(6.0)] * 2), -1).reshape(-1, 2)
    found = pw.align(grid, grid @ turn(0.3).T)
    assert found.found
    assert len(found.pairs) == 36
    assert found.probability < 0.3


def test_affine():
    matrix = np.array([[1.3, 0.5], [-0.2, 0.9]])
    source, target, truth = lists(13, common=40, source_only=10, target_only=10, matrix=matrix)
    found = pw.align(source, target, transform="affine")
    assert found.probability > 0.99
    assert len(as_set(found) & truth) >= 36
    np.testing.assert_allclose(found.transform[:2, :2], matrix, atol=0.03)


def test_probabilities_are_calibrated_where_it_is_hard():
    """Few common points among many: what is found more likely than not mostly is right."""
    claimed, right = [], []
    for seed in range(8):
        source, target, truth = lists(seed, 11, 25, 25, noise=0.003)
        found = pw.align(source, target, effort=0.1)
        claimed.append(found.probability)
        right.append(found.found and len(as_set(found) & truth) >= 6)
    claimed, right = np.array(claimed), np.array(right)
    assert 1 <= right.sum() <= 7  # hard, and not hopeless
    assert right[claimed > 0.9].mean() > 0.9


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ([], []),
        ([], [[0, 0], [1, 0], [0, 2]]),
        ([[0, 0]], [[1, 1]]),
        ([[0, 0], [1, 0]], [[5, 5], [6, 5]]),
        (np.zeros((20, 2)), np.ones((20, 2))),
        (np.zeros((20, 2)), np.random.default_rng(0).uniform(size=(20, 2))),
        (np.random.default_rng(0).uniform(size=(20, 2)), np.zeros((20, 2))),
        (np.full((5, 2), 1e6), np.full((5, 2), 1e6) + 1e-9),
    ],
    ids=["empty", "one empty", "points", "two points", "equal", "source", "target", "rounding"],
)
def test_nothing_to_align(source, target):
    found = pw.align(source, target)
    assert not found.found
    assert found.probability < 0.01
    assert "nothing in common" in repr(found)


def test_degenerate_lists_have_an_answer():
    rng = np.random.default_rng(14)
    line = np.column_stack([rng.uniform(size=30), np.zeros(30)])
    cloud = rng.uniform(size=(30, 2))
    assert not pw.align(line, cloud, effort=0.05).found
    assert not pw.align(cloud, line, effort=0.05).found
    along = pw.align(line, line @ turn(1.0, 2.0).T + 4.0)
    assert along.found
    np.testing.assert_array_equal(along.pairs[:, 0], along.pairs[:, 1])


def test_repeated_points():
    source, target, _ = lists(15)
    found = pw.align(np.concatenate([source, source[:10]]), np.concatenate([target, target[:5]]))
    assert found.probability > 0.9
    assert len(np.unique(found.pairs[:, 0])) == len(np.unique(found.pairs[:, 1]))
    error = found.apply(source) - pw.align(source, target).apply(source)
    assert np.abs(error).max() < 3 * SIGMA


def test_one_stray_point():
    source, target, truth = lists(16)
    found = pw.align(np.vstack([source, [[1e4, 0.0]]]), np.vstack([target, [[0.0, -1e5]]]))
    assert len(as_set(found) & truth) >= 27


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([[0, np.nan]], [[0, 0]]), "source holds nan"),
        (([[0, 0]], [[0, np.inf]]), "target holds inf"),
        (([[0, 0, 0]], [[0, 0]]), "source must have shape"),
        ((3, [[0, 0]]), "source must have shape"),
        (("ab", [[0, 0]]), "source must be an array"),
    ],
)
def test_bad_lists(arguments, words):
    with pytest.raises(pw.InputError, match=words):
        pw.align(*arguments)


@pytest.mark.parametrize(
    "option", [{"transform": "rigid"}, {"effort": 0}, {"effort": "high"}, {"seed": -1}]
)
def test_bad_options(option):
    with pytest.raises(pw.InputError, match=next(iter(option))):
        pw.align([[0, 0]], [[0, 0]], **option)


def test_apply_needs_a_map():
    with pytest.raises(pw.InputError, match="no common map"):
        pw.align([], []).apply([[0, 0]])


def test_plots():
    matplotlib.use("Agg")
    labels = pw.align(*lists(17)[:2]).plot().get_legend_handles_labels()[1]
    assert any(label.startswith("the same (") for label in labels)
    assert len(pw.align([], [[0, 0]]).plot().get_legend_handles_labels()[1]) == 1


def all_matchings(w):
    """The partition function written out, and the probability of every pair."""
    total, match = 0.0, np.zeros_like(w)
    rows, columns = w.shape
    for size in range(min(w.shape) + 1):
        for own in combinations(range(rows), size):
            for other in permutations(range(columns), size):
                weight = np.prod([w[i, j] for i, j in zip(own, other, strict=True)])
                total += weight
                match[list(own), list(other)] += weight
    return np.log(total), match / total


@pytest.mark.parametrize("seed", range(4))
def test_sum_over_matchings(seed):
    """Exact on a tree of pairs, a lower bound on any graph."""
    rng = np.random.default_rng(seed)
    chain = np.array([[1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1]], bool)
    for edges, exact in ((chain, True), (np.ones((3, 4), bool), False)):
        w = np.where(edges, rng.gamma(1.0, 2.0, edges.shape), 0.0)
        i, j = np.nonzero(edges)
        pairs = Pairs(i, j, np.zeros(len(i)), 3)
        log_z, match = matchings(pairs, np.log(w[i, j])[None])
        expected, expected_match = all_matchings(w)
        if exact:
            assert log_z[0] == pytest.approx(expected, abs=1e-4)
            np.testing.assert_allclose(match[0], expected_match[i, j], atol=1e-4)
        else:
            assert expected - 0.7 < log_z[0] < expected + 1e-4


def test_maps():
    rng = np.random.default_rng(0)
    z, w = rng.normal(size=8) + 1j * rng.normal(size=8), rng.uniform(size=8)
    map_ = Map(1.2 - 0.5j, 3 + 1j, 0.2 + 0.1j)
    fitted = Map.fit(z, map_(z), w, affine=True)
    np.testing.assert_allclose([fitted.a, fitted.b, fitted.c], [map_.a, map_.b, map_.c])
    matrix = map_.matrix()
    moved = np.column_stack([z.real, z.imag, np.ones(8)]) @ matrix.T
    np.testing.assert_allclose(moved[:, 0] + 1j * moved[:, 1], map_(z))
    assert map_.scale == pytest.approx(np.sqrt(np.linalg.det(matrix[:2, :2])))
    one, two = Frame(2 + 1j, 3.0), Frame(-5j, 0.5)
    carried = outside(map_, one, two)(z)
    np.testing.assert_allclose(two.normalise(carried), map_(one.normalise(z)))

"""PPCA and factor analysis of part images, against plain references."""

from itertools import combinations

import numpy as np
import pytest
from sklearn.decomposition import FactorAnalysis

from partwise.faces.canvas import SIZE
from partwise.faces.fitting import code_parts, factor_analysis, fit_faces, knee
from partwise.faces.parts import PartImages
from tests.small_faces import small_model, weights


@pytest.fixture(scope="module")
def parts():
    rng = np.random.default_rng(0)
    tone = np.array([0.4, 0.6])[None, :, None, None, None]
    images = tone + 0.1 * rng.normal(size=(5, 2, 4, 1, 1))
    slope = np.linspace(-1, 1, SIZE)[None, None, None, :, None]
    images = images + 0.1 * rng.normal(size=(5, 2, 4, 1, 1)) * slope
    return PartImages((images + np.zeros((SIZE, SIZE))).astype(np.float32), weights())


def test_codes_have_unit_variance_and_give_the_pictures_back(parts):
    coded, means, bases = code_parts(parts)
    for n, codes in enumerate(coded.codes):
        flat = codes.reshape(-1, codes.shape[-1])
        assert np.allclose(flat.mean(0), 0, atol=1e-4)
        assert np.allclose(flat.var(0, ddof=1), 1, atol=1e-3)
        drawn = means[n] + np.einsum("gic,chw->gihw", codes, bases[n])
        left = ((drawn - parts.weighted[n]) ** 2).sum()
        away = parts.weighted[n] - parts.weighted[n].mean((0, 1))
        assert left <= 0.05 * (away**2).sum()  # 95 % of the variance


def test_factor_analysis_by_moments_is_that_of_the_data():
    rng = np.random.default_rng(0)
    codes = rng.normal(size=(400, 2)) @ rng.normal(size=(2, 8)) + rng.normal(size=(400, 8)) + 3
    loadings, offset, variance = factor_analysis(codes, 2)
    plain = FactorAnalysis(2, svd_method="lapack", tol=1e-8, max_iter=5000).fit(codes)
    assert np.allclose(offset, codes.mean(0))
    assert np.allclose(loadings @ loadings.T, plain.components_.T @ plain.components_, atol=2e-2)
    assert np.allclose(variance, plain.noise_variance_, atol=2e-2)


def test_the_knee():
    x = np.arange(2, 33)
    assert x[knee(x, np.maximum(12 - x, 0) * 1.0)] == 12
    assert x[knee(x, np.exp(-x / 3.0))] in range(6, 14)
    assert knee([2, 4], np.array([1.0, 0.5])) == 0


def test_sets_of_faces_are_disjoint_and_balanced(parts):
    coded, _, _ = code_parts(parts)
    split = coded.split
    for one, two in combinations(split, 2):
        assert not set(one.tolist()) & set(two.tolist())
    for faces in split:
        assert len(set(faces.tolist())) == len(faces)
        group = coded.chosen(faces)[:, 0]
        assert (np.bincount(group) == len(faces) / 2).all()
    # The paper's shares: 18,000 and 7,614 of 100,842.
    assert len(split.train) / parts.combinations == pytest.approx(0.1785, abs=0.002)
    assert len(split.test) / parts.combinations == pytest.approx(0.0755, abs=0.002)


def test_a_face_is_its_parts(parts):
    coded, _, _ = code_parts(parts)
    face = 1 * 4**5 + 2 * 4**4 + 0 * 4**3 + 3 * 4**2 + 1 * 4 + 2
    assert coded.chosen(np.array([face])).tolist() == [[1, 2, 0, 3, 1, 2]]
    stacked = coded.stacked(np.array([face]))[0]
    own = [c[1, i] for c, i in zip(coded.codes, (2, 0, 3, 1, 2), strict=True)]
    assert np.allclose(stacked, np.concatenate(own))
    assert np.allclose(coded.picture(face), parts.face(1, (2, 0, 3, 1, 2)))


def test_fitting_is_deterministic_and_finds_what_parts_have_in_common(parts):
    one, two = fit_faces(parts, (1, 2, 3)), fit_faces(parts, (1, 2, 3))
    assert np.array_equal(one.model.loadings, two.model.loadings)
    assert np.array_equal(one.losses, two.losses)
    assert (np.diff(one.losses) <= 1e-9).all()
    model, codes = one.model, one.parts.stacked(one.parts.split.train)
    tone = one.parts.chosen(one.parts.split.train)[:, 0]
    factors = model.expected_factors(codes).T
    # The groups differ in tone, in every part: some factor follows it.
    assert max(abs(np.corrcoef(f, tone)[0, 1]) for f in factors) > 0.7


def test_pictures_are_linear_in_codes_within_black_and_white():
    model = small_model()
    rng = np.random.default_rng(1)
    code = 0.2 * rng.normal(size=model.width)
    byhand = model.means.sum(0) + sum(
        c * b for c, b in zip(code, np.concatenate(model.bases), strict=True)
    )
    assert np.allclose(model.picture(code), byhand, atol=1e-5)
    wild = model.picture(1000 * code)
    assert wild.min() >= 0
    assert (wild <= model.opacity).all()


def test_samples_follow_the_analyser():
    model = small_model()
    codes = model.sample(np.random.default_rng(0), 40_000)
    wanted = model.loadings @ model.loadings.T + np.diag(model.variance)
    assert np.allclose(np.cov(codes.T), wanted, atol=0.15)
    assert np.allclose(codes.mean(0), model.offset, atol=0.05)

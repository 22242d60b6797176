"""Fitting the appearance model: PPCA, factor analysis, and how many factors (sec. 7.2.1)."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.linalg import helmert
from sklearn.decomposition import PCA, FactorAnalysis
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from partwise._checks import InputError
from partwise.faces.appearance import FaceModel, expected_factors
from partwise.faces.canvas import PARTS
from partwise.faces.combinations import CodedParts
from partwise.faces.parts import PartImages, areas_of, centres_of
from partwise.templates import Appearance

__all__ = ["FACTORS", "Fit", "code_parts", "factor_analysis", "fit_faces", "knee"]

Array = np.ndarray

EXPLAINED = 0.95
"""The share of a part's variance that PPCA keeps."""

FACTORS = tuple(range(2, 33, 2))
"""The numbers of factors that are tried."""

ITERATIONS = 200
"""Of EM. With more factors than parts have in common, one follows a single code whose variance goes
to 0 (a Heywood case). That takes for ever, and changes the loss by no more than 0.0001 (measured on
the ORL faces with 1,000)."""


@dataclass(frozen=True, eq=False)
class Fit:
    """A fitted model, the parts it was fitted to, and the sweep that chose its factors."""

    model: FaceModel
    parts: CodedParts
    factors: tuple[int, ...]
    losses: Float[Array, " n"]


def fit_faces(parts: PartImages, factors: Sequence[int] = FACTORS) -> Fit:
    """PPCA of every part; factor analysis of the training faces, its size by the validation faces.

    The loss is that of the pictures (sec. 7.2.1: "on the face data"), in which a code counts by
    what it does to the face. Deterministic. The test faces play no part in it (but, as in the
    paper, they are put together from the same parts).
    """
    with threadpool_limits(1):  # matrices are small: more threads only wait for each other
        return _fit(parts, factors)


def _fit(parts: PartImages, factors: Sequence[int]) -> Fit:
    coded, means, bases = code_parts(parts)
    train, validation = coded.stacked(coded.split.train), coded.stacked(coded.split.validation)
    tried = tuple(k for k in factors if k < train.shape[1])
    analysers = [factor_analysis(train, k) for k in tried]
    flat = np.concatenate(bases).reshape(train.shape[1], -1)
    gram, pixels = flat @ flat.T, float(parts.weights.sum())
    losses = np.array([_loss(a, validation, gram, pixels) for a in analysers])
    loadings, offset, variance = analysers[knee(tried, losses)]
    stops = np.cumsum([len(b) for b in bases])[:-1]
    looks = Appearance(
        tuple(np.split(loadings, stops)),
        tuple(np.split(offset, stops)),
        tuple(np.split(variance, stops)),
    )
    areas = areas_of(parts.weights)
    model = FaceModel(means, bases, parts.weights.sum(0), areas, centres_of(areas), looks)
    return Fit(model, coded, tried, losses)


def code_parts(parts: PartImages) -> tuple[CodedParts, Array, tuple[Array, ...]]:
    """Codes of all part images, and the mean and basis images that turn codes into pixels."""
    codes, means, bases = [], [], []
    for part, pictures, weight in zip(PARTS, parts.weighted, parts.weights, strict=True):
        inside = weight > 0
        pixels = pictures[..., inside].reshape(-1, inside.sum())
        if not np.ptp(pixels, axis=0).any():
            raise InputError(f"part images: all of {part!r} are the same; give different ones.")
        # Whitened: x^a has unit variance (the maximum-likelihood PPCA, up to its shrinkage).
        pca = PCA(EXPLAINED, whiten=True, svd_solver="full").fit(pixels)
        code = _sign_free(pca, pixels)
        codes.append(code[0].reshape(parts.groups, parts.people, -1))
        mean, basis = np.zeros_like(weight), np.zeros((len(code[1]), *weight.shape), np.float32)
        mean[inside], basis[:, inside] = pca.mean_, code[1]
        means.append(mean)
        bases.append(basis)
    return CodedParts(parts, tuple(codes)), np.stack(means), tuple(bases)


def _sign_free(pca: PCA, pixels: Array) -> tuple[Array, Array]:
    """Codes and basis images, each component with the sign that makes its largest pixel positive.

    (A singular vector has none of its own, and another build of LAPACK may choose otherwise.)
    """
    basis = pca.components_ * np.sqrt(pca.explained_variance_)[:, None]
    sign = np.sign(basis[np.arange(len(basis)), np.abs(basis).argmax(1)])
    return pca.transform(pixels) * sign, basis * sign[:, None]


def factor_analysis(
    codes: Float[Array, "n c"], factors: int
) -> tuple[Float[Array, "c l"], Float[Array, " c"], Float[Array, " c"]]:
    """Loadings, mean and noise variance of a factor analyser.

    Its likelihood depends on the data by their mean and covariance only. So it is fitted to c + 1
    points that have the same covariance, which takes a hundredth of the time.
    """
    width = codes.shape[1]
    values, vectors = np.linalg.eigh(np.cov(codes.T, bias=True))
    root = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
    points = np.sqrt(width + 1) * helmert(width + 1).T @ root
    analyser = FactorAnalysis(factors, svd_method="lapack", tol=1e-6, max_iter=ITERATIONS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        analyser.fit(points)
    return analyser.components_.T, codes.mean(0), analyser.noise_variance_


def _loss(
    analyser: tuple[Array, Array, Array],
    codes: Float[Array, "n c"],
    gram: Float[Array, "c c"],
    pixels: float,
) -> float:
    """RMSE, in grey levels, of faces rebuilt from their expected factors.

    ``gram`` holds the products of the basis images, so that no picture has to be made.
    """
    loadings, offset, variance = analyser
    factors = expected_factors(loadings, offset, variance, codes)
    away = codes - offset - factors @ loadings.T
    return float(np.sqrt(((away @ gram) * away).sum(1).mean() / pixels))


def knee(factors: Sequence[int], losses: Float[Array, " n"]) -> int:
    """The index of the knee of a falling curve: the point farthest below the chord of its ends."""
    x, y = np.asarray(factors, float), np.asarray(losses, float)
    if len(x) < 3 or y[0] <= y[-1]:
        return 0
    along = (x - x[0]) / (x[-1] - x[0])
    return int(np.argmax((y[0] - y) / (y[0] - y[-1]) - along))

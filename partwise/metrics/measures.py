"""The metrics of Appendix C, from tables of overlaps, for all scenes at once."""

from __future__ import annotations

from itertools import permutations

import numpy as np
from jaxtyping import Float, Int

__all__ = [
    "adjusted_rand_index",
    "measures",
    "overlap_tables",
    "segmentation_accuracy",
    "variation_of_information",
]

Array = np.ndarray

MOST_LABELS = 5
"""Up to here the best matching of labels is found by trying all of them (5! = 120)."""


def overlap_tables(truth: Int[Array, "S N"], predicted: Int[Array, "S N"]) -> Int[Array, "S A B"]:
    """``table[s, i, j] = |V_i n V^_j|``, the number of slots of label i that are called j.

    Labels are any whole numbers; what they are called makes no difference to the metrics.
    """
    rows, truth = _dense(truth)
    columns, predicted = _dense(predicted)
    count = len(truth)
    cell = (np.arange(count)[:, None] * rows + truth) * columns + predicted
    flat = np.bincount(cell.ravel(), minlength=count * rows * columns)
    return flat.reshape(count, rows, columns)


def _dense(labels: Array) -> tuple[int, Array]:
    """Labels as 0 .. n - 1, and n."""
    values, dense = np.unique(labels, return_inverse=True)
    return len(values), dense.reshape(labels.shape)


def variation_of_information(tables: Int[Array, "S A B"]) -> Float[Array, " S"]:
    """``VI = - sum_ij r_ij [log r_ij / p_i + log r_ij / q_j]``, natural logarithm (Appendix C)."""
    total = np.maximum(tables.sum((1, 2)), 1)[:, None, None]
    r = tables / total
    p, q = r.sum(2, keepdims=True), r.sum(1, keepdims=True)
    safe = np.where(tables > 0, r, 1.0)
    p, q = np.where(p > 0, p, 1.0), np.where(q > 0, q, 1.0)
    terms = r * (np.log(safe / p) + np.log(safe / q))
    return np.maximum(-terms.sum((1, 2)), 0.0)


def adjusted_rand_index(tables: Int[Array, "S A B"]) -> Float[Array, " S"]:
    """The Rand index corrected for chance (Hubert and Arabie), from pairs of slots.

    With TP, TN, FP, FN counted over ordered pairs as scikit-learn does,
    ``ARI = 2 (TP TN - FN FP) / [(TP + FN)(FN + TN) + (TP + FP)(FP + TN)]``; partitions that agree
    on every pair (two trivial ones, for example) have index 1.
    """
    n = tables.sum((1, 2))
    rows, columns = tables.sum(2), tables.sum(1)
    same = (tables**2).sum((1, 2))
    tp = same - n
    fp = (columns**2).sum(1) - same
    fn = (rows**2).sum(1) - same
    tn = n**2 - fp - fn - same
    bottom = (tp + fn) * (fn + tn) + (tp + fp) * (fp + tn)
    perfect = (fp == 0) & (fn == 0)
    return np.where(perfect, 1.0, 2.0 * (tp * tn - fn * fp) / np.where(bottom == 0, 1, bottom))


def segmentation_accuracy(tables: Int[Array, "S A B"]) -> Float[Array, " S"]:
    """``SA = W(V, V^) / N`` with W the maximum one-to-one matching of labels (Appendix C)."""
    total = np.maximum(tables.sum((1, 2)), 1)
    return _matching(tables) / total


def _matching(tables: Array) -> Array:
    """The weight of the best one-to-one matching of rows and columns, for every table."""
    if tables.shape[1] > tables.shape[2]:
        tables = tables.swapaxes(1, 2)
    rows, columns = tables.shape[1:]
    if columns <= MOST_LABELS:
        best = np.zeros(len(tables), tables.dtype)
        for choice in permutations(range(columns), rows):
            np.maximum(best, sum(tables[:, i, j] for i, j in enumerate(choice)), out=best)
        return best
    from scipy.optimize import linear_sum_assignment

    unique, inverse = np.unique(tables.reshape(len(tables), -1), axis=0, return_inverse=True)
    unique = unique.reshape(-1, rows, columns)
    weight = [t[linear_sum_assignment(t, maximize=True)].sum() for t in unique]
    return np.array(weight, tables.dtype)[inverse.ravel()]


def measures(truth: Array, predicted: Array) -> Float[Array, "3 S"]:
    """Segmentation accuracy, adjusted Rand index and variation of information."""
    if not len(truth):
        return np.zeros((3, 0))
    tables = overlap_tables(truth, predicted)
    return np.stack(
        [
            segmentation_accuracy(tables),
            adjusted_rand_index(tables),
            variation_of_information(tables),
        ]
    )

"""Comparing templates: Procrustes alignment without reflection, and which part is which.

Both templates are centred and scaled to sum |p_n|^2 = N (App. B); the turn that aligns them best is
then in closed form, and the standardised mean squared error of sec. 7.1.3 is 2 - 2 |<p, q>| / N.
"""

from __future__ import annotations

from itertools import permutations
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Complex, Float, Int
from scipy.optimize import linear_sum_assignment

from partwise._checks import InputError
from partwise.plane import from_complex, normal, radius, to_complex
from partwise.templates import Template

__all__ = ["Alignment", "match_parts", "procrustes", "smse"]

Array = np.ndarray

WRITTEN_OUT = 7
"""Up to so many parts, every permutation is tried."""

TURNS = 360
"""With more parts: turns from which the best assignment is sought."""


class Alignment(NamedTuple):
    """``parts`` is the learned template in the frame of the other: part n there is ``order[n]``."""

    smse: float
    parts: Float[Array, "N 2"]
    order: Int[Array, " N"]


def smse(p: Complex[Array, " N"], q: Complex[Array, " N"]) -> float:
    """The SMSE of two normalised templates in a common order, after the best turn."""
    return float(
        max(
            (np.abs(p) ** 2).mean() + (np.abs(q) ** 2).mean() - 2 * np.abs(np.vdot(p, q)) / len(p),
            0.0,
        )
    )


def procrustes(learned: Any, truth: Any, match: bool = True) -> Alignment:
    """Align ``learned`` with ``truth``: translation, scale, turn, no reflection.

    Templates, or (N, 2) arrays of positions. With ``match``, parts are also matched one to one,
    each type with its own; without, they are compared in the order they have.
    """
    p, q = _positions("learned", learned), _positions("truth", truth)
    if len(p) != len(q):
        raise InputError(f"templates of {len(p)} and {len(q)} parts cannot be compared.")
    kinds = [
        np.array(t.types if isinstance(t, Template) and t.types else [""] * len(p))
        for t in (learned, truth)
    ]
    zp, zq = normal(p), normal(q)
    order = _match(zp, zq, *kinds) if match else np.arange(len(p))
    zp = zp[order]
    turn = np.vdot(zp, zq)
    error = smse(zp, zq)
    moved = zp * np.exp(1j * np.angle(turn)) * radius(q) + q.mean()
    return Alignment(error, from_complex(moved), order)


def _positions(name: str, value: Any) -> Array:
    parts = value.positions if isinstance(value, Template) else np.asarray(value, float)
    if parts.ndim != 2 or parts.shape[1] != 2:
        raise InputError(
            f"{name} must be a template in the plane, or an (N, 2) array of its parts."
        )
    if not np.ptp(parts, 0).any():
        raise InputError(f"{name}: all parts coincide; it has no shape to compare.")
    return to_complex(parts)


def match_parts(p: Array, q: Array, kind: Array) -> Int[Array, " N"]:
    """The order of p's parts in which it comes closest to q; both have parts of these types."""
    return _match(p, q, kind, kind)


def _match(p: Array, q: Array, kind_p: Array, kind_q: Array) -> Int[Array, " N"]:
    """The order of p's parts in which it comes closest to q."""
    if sorted(kind_p) != sorted(kind_q):
        raise InputError("templates whose parts have different types cannot be compared.")
    if len(p) <= WRITTEN_OUT:
        orders = np.array(list(permutations(range(len(p)))))
        orders = orders[(kind_p[orders] == kind_q).all(1)]
        return orders[np.abs(np.conj(p)[orders] @ q).argmax()]
    apart = 1e6 * (kind_q[:, None] != kind_p[None])
    best, found = -1.0, np.arange(len(p))
    for turn in np.exp(2j * np.pi * np.arange(TURNS) / TURNS):
        order = linear_sum_assignment(np.abs(q[:, None] - turn * p[None]) ** 2 + apart)[1]
        fit = float(np.abs(np.vdot(p[order], q)))
        if fit > best:
            best, found = fit, order
    return found

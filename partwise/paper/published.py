"""The figures of the paper, and those recorded beside it: the only typed-in numbers.

Each row is segmentation accuracy, adjusted Rand index, variation of information, scene accuracy, in
the order of :data:`partwise.metrics.METRICS`.
"""

from __future__ import annotations

import os
from pathlib import Path

__all__ = [
    "BETAS",
    "DEGRADES",
    "EXAMPLES",
    "FACES_ASSIGNMENT",
    "FACES_MODEL",
    "FACES_RMSE",
    "FACES_SCENES",
    "FIGURES",
    "LEARNING",
    "LIMIT",
    "PHOTOFIT_BASIS",
    "RERUN",
    "SCENES",
    "SIGMAS",
    "TABLE1",
    "TABLE1_BETA",
    "T_TESTS",
    "recorded_folder",
    "recorded_name",
]

SIGMAS = (0.0, 0.1, 0.25)
"""The noise levels of Table 1."""

SCENES = 458
"""How many of the paper's 512 draws are not empty, at sigma 0 (sec. 7.1.1: 450 to 460)."""

BETAS = (0.005, 0.01, 0.05, 0.1, 0.2, 0.5)
"""The initial values of beta of sec. 7.1.2."""

TABLE1_BETA = 0.05
"""The one of Table 1."""

Figures = tuple[float, float, float, float]

TABLE1: dict[str, dict[float, Figures]] = {
    "ccae": {
        0.0: (0.828, 0.599, 0.481, 0.365),
        0.1: (0.754, 0.484, 0.689, 0.138),
        0.25: (0.623, 0.248, 0.988, 0.033),
    },
    "gmm": {
        0.0: (0.753, 0.586, 0.478, 0.179),
        0.1: (0.757, 0.572, 0.502, 0.173),
        0.25: (0.744, 0.447, 0.677, 0.132),
    },
    "ds": {
        0.0: (0.899, 0.740, 0.299, 0.664),
        0.1: (0.882, 0.699, 0.359, 0.603),
        0.25: (0.785, 0.498, 0.659, 0.377),
    },
    "ransac": {
        0.0: (1.0, 1.0, 0.0, 1.0),
        0.1: (0.992, 0.979, 0.034, 0.961),
        0.25: (0.965, 0.914, 0.135, 0.843),
    },
}
"""Table 1 of the paper."""

RERUN: dict[str, dict[float, Figures]] = {
    "gmm": {
        0.0: (0.818, 0.570, 0.497, 0.352),
        0.1: (0.822, 0.573, 0.504, 0.353),
        0.25: (0.782, 0.479, 0.643, 0.232),
    },
    "ds": {
        0.0: (0.895, 0.736, 0.300, 0.631),
        0.1: (0.868, 0.673, 0.403, 0.561),
        0.25: (0.765, 0.473, 0.708, 0.318),
    },
    "ransac": {
        0.0: (1.0, 1.0, 0.0, 1.0),
        0.1: (0.992, 0.979, 0.034, 0.961),
        0.25: (0.967, 0.920, 0.124, 0.859),
    },
}
"""The authors' code, run again on the paper's own draws, without its look at the truth."""

LIMIT: dict[float, Figures] = {
    0.0: (1.0, 1.0, 0.0, 1.0),
    0.1: (0.995, 0.987, 0.020, 0.978),
    0.25: (0.971, 0.930, 0.110, 0.874),
}
"""The grouping of highest exact posterior probability on the paper's draws, exchangeable."""

T_TESTS: dict[tuple[str, str], float | None] = {
    ("ccae", "gmm"): None,
    ("ccae", "ds"): 1e-7,
    ("ccae", "ransac"): 1e-28,
}
"""Sec. 7.1.2, paired t-tests at sigma 0 and TABLE1_BETA: p is less than this; None is no
significant difference."""

DEGRADES = 0.1
"""Sec. 7.1.2: with a larger initial beta than this, GCM-DS and GCM-GMM degrade."""

FIGURES: dict[tuple[str, float], str] = {
    ("scenes", 0.0): "1a",
    ("answers", 0.0): "3",
    ("answers", 0.25): "6",
}
"""Which figure shows what of the constellations: scenes or answers, and the noise level."""

FACES_ASSIGNMENT: dict[str, dict[str, float]] = {
    "vi": {"2": 1.0, "3": 1.0, "4": 0.992, "5": 0.937, "occluded": 1.0},
    "ransac": {"2": 1.0, "3": 1.0, "4": 1.0, "5": 1.0, "occluded": 1.0},
}
"""Sec. 7.2.2: scenes of so many faces in which every part is assigned right, of 250 each."""

FACES_RMSE: dict[str, tuple[float, float]] = {"vi": (0.036, 0.004), "ransac": (0.052, 0.006)}
"""RMSE of rebuilt scenes, mean and spread, over 250 scenes of 2 to 5 faces (sec. 7.2.2)."""

FACES_SCENES = 250
"""Scenes in each of the experiments with faces."""

FACES_MODEL: dict[str, int] = {
    "eyes": 24,
    "nose": 11,
    "mouth": 12,
    "jaw": 16,
    "hair": 28,
    "factors": 12,
}
"""Sec. 7.2.1: the codes of the parts and the factors, on PhotoFit's parts."""

PHOTOFIT_BASIS = "photofit_basis.npz"
"""The file, beside the paper's draws, of a model fitted to PhotoFit's parts."""

LEARNING: dict[str, dict[float, float]] = {
    "triangle": {0.1: 4.1e-5, 0.25: 9.6e-3},
    "square": {0.1: 1.8e-4, 0.25: 2.1e-2},
}
"""The SMSE of templates learned from 64 examples (sec. 7.1.3), one run each."""

EXAMPLES = 64
"""How many examples a template is learned from (sec. 7.1.3)."""


def recorded_folder() -> Path:
    """Where the paper's draws would be: ``PARTWISE_DATA``, or ``shared/data`` beside the code."""
    beside = Path(__file__).resolve().parents[2].parent / "shared" / "data"
    return Path(os.environ.get("PARTWISE_DATA") or beside)


def recorded_name(sigma: float) -> str:
    """The file name of the paper's draws at one noise level."""
    return f"constellations_sigma{sigma:.2f}.npz"

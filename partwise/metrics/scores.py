"""The scores of many scenes: means, standard errors, paired t-tests."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from partwise._checks import InputError

__all__ = ["METRICS", "Scores", "paired_t_tests"]

Array = np.ndarray

METRICS = (
    "segmentation_accuracy",
    "adjusted_rand_index",
    "variation_of_information",
    "scene_accuracy",
)
"""The metrics' names, in the order of Table 1."""


@dataclass(frozen=True, eq=False)
class Scores:
    """The metrics of every scored (non-empty) scene; ``scene`` says which scenes these are."""

    segmentation_accuracy: Float[Array, " s"]
    adjusted_rand_index: Float[Array, " s"]
    variation_of_information: Float[Array, " s"]
    scene_accuracy: Float[Array, " s"]
    scene: Int[Array, " s"]

    def __len__(self) -> int:
        return len(self.scene)

    def mean(self) -> dict[str, float]:
        """The average over scenes, as in Table 1.

        For segmentation accuracy the two averages of Appendix C agree: ``W(V, V) = N`` throughout.
        """
        return {name: float(getattr(self, name).mean()) for name in METRICS}

    def standard_error(self) -> dict[str, float]:
        """The standard error of :meth:`mean`, s / sqrt(n); 0 for a single scene."""
        count = len(self)
        if count < 2:
            return dict.fromkeys(METRICS, 0.0)
        return {n: float(getattr(self, n).std(ddof=1) / np.sqrt(count)) for n in METRICS}


def paired_t_tests(a: Scores, b: Scores) -> dict[str, dict[str, float]]:
    """Paired t-tests of a against b on the three clustering metrics, as in sec. 7.1.2.

    Per metric: the mean difference a - b, the statistic and the two-sided p-value.
    """
    if not np.array_equal(a.scene, b.scene):
        raise InputError("paired t-tests need two methods that were scored on the same scenes.")
    from scipy.stats import ttest_rel

    out = {}
    for name in METRICS[:3]:
        difference = getattr(a, name) - getattr(b, name)
        mean = float(difference.mean())
        if len(difference) < 2 or np.ptp(difference) == 0:
            # The statistic is 0 / 0 without any difference, infinite where all are alike.
            statistic, p = (0.0, 1.0) if mean == 0 else (float(np.copysign(np.inf, mean)), 0.0)
        else:
            statistic, p = map(float, ttest_rel(getattr(a, name), getattr(b, name)))
        out[name] = {"difference": mean, "statistic": statistic, "p_value": p}
    return out

"""How good an answer is: the evaluation metrics of Appendix C, in two protocols.

A scene is a partition of the N *slots* (the parts of all the objects that it could hold) into those
of object 1, of object 2, ..., and the missing ones, 0. The truth gives ``label(d) = object + 1``
where slot d is present and 0 where it is not. A method gives two things: ``owner``, c(d), the
object it assigned to the observed point of slot d, and ``instantiated``, q(d), whether it claims
that template part d is there at all. Its label is ``(c(d) + 1) q(d)``.

- *published*: those labels as they are. It punishes a method that explains the only square in the
  scene by the *other* square's slots, although the two templates are identical.
- *exchangeable*: first, in each scene, the predicted instances of identical templates are renamed,
  in c and in the slots of q, in the way that agrees best with the truth.

Everything here works on all scenes at once: a scene is its table of overlaps
``table[i, j] = |V_i n V^_j|``, from which each metric is a closed form.
"""

from partwise.metrics.measures import (
    adjusted_rand_index,
    overlap_tables,
    segmentation_accuracy,
    variation_of_information,
)
from partwise.metrics.predictions import INSTANTIATED, predictions
from partwise.metrics.protocols import exchangeable_scores, published_scores
from partwise.metrics.scores import METRICS, Scores, paired_t_tests

__all__ = [
    "INSTANTIATED",
    "METRICS",
    "Scores",
    "adjusted_rand_index",
    "exchangeable_scores",
    "overlap_tables",
    "paired_t_tests",
    "predictions",
    "published_scores",
    "segmentation_accuracy",
    "variation_of_information",
]

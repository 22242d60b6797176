"""Prior sparsity of capsules, the L2 kind (Kosiorek et al. 2019, sec. 2.4)."""

from __future__ import annotations

from jaxtyping import Array, Float

from partwise import _types

__all__ = ["prior_sparsity"]


def prior_sparsity(
    presence: Float[_types.Array, "B K"], together: float, rate: float
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """How far capsules are from being as rare as they should be: in a scene, and over a batch.

    Within: the squared distance of the number of capsules in a scene from ``together``, mean over
    the batch. Between: that of the number of scenes with a capsule from ``rate`` of them all, mean
    over the capsules, per scene of the batch; so both keep their size whatever the batch's.
    """
    scenes = len(presence)
    within = ((presence.sum(1) - together) ** 2).mean()
    between = ((presence.sum(0) - rate * scenes) ** 2).mean() / scenes
    return within, between

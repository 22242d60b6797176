"""Which slot of a labelled file is which part of which object of the model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Int

from partwise._checks import InputError
from partwise.model import Model
from partwise.scenes import LabelledScenes

__all__ = ["Layout", "groups_of", "layouts_of"]

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Layout:
    """Which slot of the file is which part of which possible object (``model.copies``).

    ``slots[k, n]`` is the slot of part n of object k (-1: no such part), ``object[k]`` its number
    in the file. A file's slot order may differ from the model's.
    """

    scenes: Int[Array, " s"]
    slots: Int[Array, "K P"]
    object: Int[Array, " K"]

    @cached_property
    def parts(self) -> Bool[Array, "K P"]:
        """Which of the columns of ``slots`` are parts at all."""
        return self.slots >= 0


def layouts_of(labelled: LabelledScenes, model: Model) -> Iterator[Layout]:
    """The layouts of a file: one, unless its slots mean different things in different scenes."""
    rows, inverse = np.unique(labelled.object_id, axis=0, return_inverse=True)
    for i, row in enumerate(rows):
        slots, objects = _match(row, model)
        yield Layout(np.flatnonzero(inverse.ravel() == i), slots, objects)


def _match(object_id: Int[Array, " N"], model: Model) -> tuple[Array, Array]:
    """Objects of the file for objects of the model, by part count; in order among equal counts."""
    sizes = [len(model.templates[t]) for t in model.copies]
    values, counts = np.unique(object_id, return_counts=True)
    if (object_id < 0).any():
        raise InputError(
            "labelled scenes: object_id must be 0 or more in every slot; score scenes with clutter "
            "by partwise.crowds.score_crowd."
        )
    if sorted(sizes) != sorted(counts.tolist()):
        raise InputError(
            f"labelled scenes: objects have {sorted(counts.tolist())} slots, but the model's "
            f"objects have {sorted(sizes)} parts; evaluate with the model of these scenes."
        )
    free = {n: iter(values[counts == n]) for n in set(sizes)}
    objects = np.array([next(free[n]) for n in sizes], int)
    slots = np.full((len(sizes), max(sizes)), -1)
    for k, (value, n) in enumerate(zip(objects, sizes, strict=True)):
        slots[k, :n] = np.flatnonzero(object_id == value)
    return slots, objects


def groups_of(model: Model) -> list[list[int]]:
    """The possible objects of the model, those with identical templates together."""
    groups: list[list[int]] = []
    for k, t in enumerate(model.copies):
        template = model.templates[t]
        for group in groups:
            other = model.templates[model.copies[group[0]]]
            if (
                np.array_equal(template.parts, other.parts)
                and template.types == other.types
                and (template.appearance is other.appearance)
            ):
                group.append(k)
                break
        else:
            groups.append([k])
    return groups

"""Scenes: unordered sets of detected parts, one or many, with or without labels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, overload

import numpy as np
from jaxtyping import Bool, Float, Int

from partwise._checks import InputError, finite, points_array

__all__ = ["LabelledScenes", "Scene", "SceneBatch"]

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Scene:
    """One scene: M detected parts in no particular order.

    ``parts`` is (M, g), ``types`` one name a part, ``appearance`` one feature vector a part (their
    lengths may differ from type to type).
    """

    parts: Float[Array, "M g"]
    types: Sequence[str] | None = None
    appearance: Sequence[Float[Array, " f"]] | None = None

    def __post_init__(self):
        parts = points_array("scene: parts", self.parts, (2, 3, 4))
        object.__setattr__(self, "parts", parts)
        for name in ("types", "appearance"):
            value = getattr(self, name)
            if value is not None and len(value) != len(parts):
                raise InputError(
                    f"scene: {len(value)} {name} for {len(parts)} parts; give one for each part."
                )
        if self.types is not None:
            object.__setattr__(self, "types", tuple(str(t) for t in self.types))
        if self.appearance is not None:
            looks = tuple(np.asarray(a, float).ravel() for a in self.appearance)
            for m, look in enumerate(looks):
                finite(f"scene: appearance of part {m}", look)
            object.__setattr__(self, "appearance", looks)

    def __len__(self) -> int:
        return len(self.parts)


def _depth(value: object) -> int:
    """The number of axes of an array or nested list; 0 for what is neither."""
    if isinstance(value, (list, tuple)):
        return 1 + max(map(_depth, value), default=0)
    return getattr(value, "ndim", 0)


@dataclass(frozen=True, eq=False)
class SceneBatch(Sequence[Scene]):
    """Many scenes, stored flat: scene i holds rows ``offsets[i]:offsets[i + 1]`` of ``parts``."""

    parts: Float[Array, "total g"]
    offsets: Int[Array, " S1"]
    types: Sequence[str] | None = None
    appearance: Sequence[Float[Array, " f"]] | None = None

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @overload
    def __getitem__(self, index: int) -> Scene: ...
    @overload
    def __getitem__(self, index: slice) -> SceneBatch: ...
    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            if step != 1:
                return SceneBatch.collect([self[i] for i in range(start, stop, step)])
            lo, hi = int(self.offsets[start]), int(self.offsets[max(stop, start)])
            return SceneBatch(
                self.parts[lo:hi],
                self.offsets[start : max(stop, start) + 1] - lo,
                None if self.types is None else self.types[lo:hi],
                None if self.appearance is None else self.appearance[lo:hi],
            )
        index = range(len(self))[index]
        lo, hi = int(self.offsets[index]), int(self.offsets[index + 1])
        return Scene(
            self.parts[lo:hi],
            None if self.types is None else self.types[lo:hi],
            None if self.appearance is None else self.appearance[lo:hi],
        )

    def __iter__(self) -> Iterator[Scene]:
        return (self[i] for i in range(len(self)))

    @cached_property
    def counts(self) -> Int[Array, " S"]:
        """The number of parts of each scene."""
        return np.diff(self.offsets)

    @classmethod
    def collect(cls, scenes: Iterable[Scene | Array]) -> SceneBatch:
        """A batch from scenes, or from arrays of positions."""
        scenes = [s if isinstance(s, Scene) else Scene(s) for s in scenes]
        widths = {s.parts.shape[1] for s in scenes if len(s)} or {2}
        if len(widths) > 1:
            raise InputError(
                f"scenes: parts have {sorted(widths)} numbers each; all scenes must agree."
            )
        width = widths.pop()
        parts = [s.parts if len(s) else np.zeros((0, width)) for s in scenes]
        typed = {s.types is not None for s in scenes if len(s)}
        seen = {s.appearance is not None for s in scenes if len(s)}
        if len(typed) > 1 or len(seen) > 1:
            raise InputError("scenes: either all scenes have types (and appearance) or none has.")
        return cls(
            np.concatenate(parts) if parts else np.zeros((0, width)),
            np.concatenate([[0], np.cumsum([len(s) for s in scenes])]).astype(np.int64),
            [t for s in scenes for t in s.types or ()] if True in typed else None,
            [a for s in scenes for a in s.appearance or ()] if True in seen else None,
        )

    @classmethod
    def of(cls, value: object) -> tuple[SceneBatch, bool]:
        """Whatever the caller has as a batch, and whether it was a single scene."""
        if isinstance(value, SceneBatch):
            return value, False
        if isinstance(value, LabelledScenes):
            return value.scenes, False
        if isinstance(value, Scene):
            return cls.collect([value]), True
        if isinstance(value, (list, tuple)) and value:
            deepest = max(2 if isinstance(v, Scene) else _depth(v) for v in value)
            if deepest >= 2 or all(isinstance(v, np.ndarray) and v.size == 0 for v in value):
                return cls.collect(value), False
        elif isinstance(value, np.ndarray) and value.ndim == 3:
            return cls.collect(list(value)), False
        return cls.collect([Scene(value)]), True  # pyright: ignore[reportArgumentType]


@dataclass(frozen=True, eq=False)
class LabelledScenes:
    """Scenes whose truth is known, as slots (DESIGN: ``points``, ``present``, ``object_id``).

    Slot d of scene i is part of object ``object_id[i, d]``. It was seen where ``present[i, d]``;
    absent slots hold zeros and carry no information.
    """

    points: Float[Array, "S N D"]
    present: Bool[Array, "S N"]
    object_id: Int[Array, "S N"]

    def __post_init__(self):
        points = np.asarray(self.points, float)
        present = np.asarray(self.present, bool)
        object_id = np.asarray(self.object_id, int)
        if (
            points.ndim != 3
            or present.shape != points.shape[:2]
            or object_id.shape != (present.shape)
        ):
            raise InputError(
                "labelled scenes: points must be (S, N, D), present and object_id (S, N); got "
                f"{points.shape}, {present.shape} and {object_id.shape}."
            )
        finite("labelled scenes: points", np.where(present[..., None], points, 0.0))
        for name, value in (("points", points), ("present", present), ("object_id", object_id)):
            object.__setattr__(self, name, value)

    def __len__(self) -> int:
        return len(self.points)

    @cached_property
    def scenes(self) -> SceneBatch:
        """What a solver may see: the present points, in slot order, without their labels."""
        offsets = np.concatenate([[0], np.cumsum(self.present.sum(1))]).astype(np.int64)
        return SceneBatch(self.points[self.present], offsets)

    def select(self, index) -> LabelledScenes:
        """Some of the scenes."""
        return LabelledScenes(self.points[index], self.present[index], self.object_id[index])

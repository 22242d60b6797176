"""Templates: objects made of parts (sec. 3), the built-in shapes, and their JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from partwise._checks import InputError, finite, points_array

__all__ = ["Appearance", "Template", "shapes"]

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Appearance:
    """How the parts of a template look: a factor analyser (eq. 4).

    Part n has appearance ``x = F_n y + m_n + noise`` with its own number of features, noise of
    variance ``D_n`` (diagonal), and factors ``y ~ N(0, I)`` shared by all parts of the object.
    """

    loadings: tuple[Float[Array, "f l"], ...]
    means: tuple[Float[Array, " f"], ...]
    variances: tuple[Float[Array, " f"], ...]

    def __post_init__(self):
        for name in ("loadings", "means", "variances"):
            value = tuple(np.asarray(a, float) for a in getattr(self, name))
            object.__setattr__(self, name, value)
        if not len(self.loadings) == len(self.means) == len(self.variances):
            raise InputError("appearance: loadings, means and variances must have one entry a part")
        factors = {a.shape[1] for a in self.loadings if a.ndim == 2}
        if len(factors) != 1:
            raise InputError("appearance: every part's loadings must be (features, factors)")
        for n, (load, mean, var) in enumerate(
            zip(self.loadings, self.means, self.variances, strict=True)
        ):
            if mean.shape != (len(load),) or var.shape != (len(load),):
                raise InputError(
                    f"appearance: part {n} has {len(load)} rows of loadings but means of shape "
                    f"{mean.shape} and variances of shape {var.shape}; all must agree."
                )
            finite(f"appearance of part {n}", np.concatenate([load.ravel(), mean, var]))
            if not (var > 0).all():
                raise InputError(f"appearance: the variances of part {n} must be positive.")

    @property
    def factors(self) -> int:
        """The number of latent factors."""
        return self.loadings[0].shape[1]

    @property
    def features(self) -> tuple[int, ...]:
        """The number of features of each part."""
        return tuple(len(m) for m in self.means)


@dataclass(frozen=True, eq=False)
class Template:
    """One object made of parts, in a frame of its own.

    ``parts`` is (N, D): a position in D dimensions, or in the plane (N, 4), a position followed by
    ``(size cos phi, size sin phi)``. ``types`` names each part's type, where detections are typed:
    a nose can only be a nose. ``appearance`` says what the parts look like.

    All templates of a model share one unit of length: the noise is measured in it.
    """

    parts: Float[Array, "N g"]
    name: str = "object"
    types: tuple[str, ...] | None = None
    appearance: Appearance | None = None

    def __post_init__(self):
        parts = points_array(f"template {self.name!r}: parts", self.parts, (2, 3, 4))
        if len(parts) == 0:
            raise InputError(f"template {self.name!r} has no parts; give it at least one.")
        parts.flags.writeable = False  # what is computed from a model is kept
        object.__setattr__(self, "parts", parts)
        if isinstance(self.types, str):
            raise InputError(f"template {self.name!r}: types must be a list, one name a part.")
        if self.types is not None:
            object.__setattr__(self, "types", tuple(str(t) for t in self.types))
            if len(self.types) != len(parts):
                raise InputError(
                    f"template {self.name!r}: {len(self.types)} types for {len(parts)} parts; "
                    "give one type a part."
                )
        if self.appearance is not None and len(self.appearance.means) != len(parts):
            raise InputError(
                f"template {self.name!r}: appearance has {len(self.appearance.means)} entries for "
                f"{len(parts)} parts; give one a part."
            )

    def __len__(self) -> int:
        return len(self.parts)

    @classmethod
    def directed(
        cls, positions, sizes, orientations, name: str = "object", **kwargs: Any
    ) -> Template:
        """A template whose parts carry a size and an orientation (radians, clockwise)."""
        sizes, angles = np.asarray(sizes, float), np.asarray(orientations, float)
        turned = np.stack([sizes * np.cos(angles), sizes * np.sin(angles)], 1)
        return cls(np.concatenate([np.asarray(positions, float), turned], 1), name, **kwargs)

    @property
    def is_directed(self) -> bool:
        """Whether parts carry size and orientation."""
        return self.parts.shape[1] == 4

    @property
    def positions(self) -> Float[Array, "N D"]:
        """The positions of the parts, without size and orientation."""
        return self.parts[:, :2] if self.is_directed else self.parts

    @property
    def centre(self) -> Float[Array, " D"]:
        """The mean position."""
        return self.positions.mean(0)

    @property
    def radius(self) -> float:
        """Root mean square distance of the parts from their centre."""
        return float(np.sqrt(((self.positions - self.centre) ** 2).sum(1).mean()))

    def normalised(self) -> Template:
        """The same shape centred and scaled so that ``sum |p_n|^2 = N`` (Appendix B)."""
        if self.radius == 0:
            raise InputError(f"template {self.name!r}: all parts coincide; it has no shape.")
        parts = self.parts.copy()
        parts[:, : self.centre.size] -= self.centre
        return Template(parts / self.radius, self.name, self.types, self.appearance)

    def plot(self, ax: Any = None) -> Any:
        """Draw the parts. See :func:`partwise.plotting.plot_template`."""
        from partwise.plotting import plot_template

        return plot_template(self, ax)

    def to_json(self) -> dict[str, Any]:
        """A JSON-ready dict."""
        out: dict[str, Any] = {"name": self.name, "parts": self.parts.tolist()}
        if self.types is not None:
            out["types"] = list(self.types)
        if self.appearance is not None:
            out["appearance"] = {
                key: [a.tolist() for a in getattr(self.appearance, key)]
                for key in ("loadings", "means", "variances")
            }
        return out

    @classmethod
    def from_json(cls, data: object) -> Template:
        """The inverse of :meth:`to_json`; errors name the template and the field."""
        if not isinstance(data, dict) or "parts" not in data:
            raise InputError("a template must be a JSON object with a list 'parts' of positions.")
        unknown = set(data) - {"name", "parts", "types", "appearance"}
        if unknown:
            raise InputError(f"a template has unknown fields {sorted(unknown)}; remove them.")
        appearance = data.get("appearance")
        if appearance is not None:
            wanted = {"loadings", "means", "variances"}
            if not isinstance(appearance, dict) or set(appearance) != wanted:
                raise InputError(f"a template's appearance must have exactly {sorted(wanted)}.")
            try:
                appearance = Appearance(**{k: tuple(appearance[k]) for k in wanted})
            except (TypeError, ValueError) as error:
                if isinstance(error, InputError):
                    raise
                raise InputError(f"a template's appearance is not numeric: {error}.") from None
        types = data.get("types")
        if types is not None and (isinstance(types, str) or not isinstance(types, Sequence)):
            raise InputError("a template's types must be a list of names, one a part.")
        return cls(
            parts=data["parts"],
            name=str(data.get("name", "object")),
            types=None if types is None else tuple(types),
            appearance=appearance,
        )


class shapes:
    """The built-in shapes, in the frames of sec. 7.1.1."""

    @staticmethod
    def square() -> Template:
        """A square of side 2, centred at the origin."""
        return Template(np.array([[-1.0, -1.0], [-1.0, 1.0], [1.0, 1.0], [1.0, -1.0]]), "square")

    @staticmethod
    def triangle() -> Template:
        """An isosceles triangle of base 2 and height 2, centred at the origin."""
        return Template(np.array([[-1.0, -2 / 3], [0.0, 4 / 3], [1.0, -2 / 3]]), "triangle")

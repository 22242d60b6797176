"""The generative model (sec. 3): templates, how often, how they move, how noisy, what else."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from partwise._checks import InputError, finite, one_of, readable
from partwise.poses import FAMILIES, PoseFamily, Similarity2D
from partwise.templates import Template, shapes

__all__ = ["Model", "Noise", "PosePrior", "constellations"]

Array = np.ndarray


@dataclass(frozen=True)
class Noise:
    """Gaussian noise on the geometry of every part.

    ``sigma`` is its standard deviation, None where it is not known. With ``follows_scale`` it lives
    in the template's frame (sec. 7.1.1: templates are corrupted, then transformed), so that a
    larger object is noisier in the scene; without, it lives in the scene (eq. 3).
    """

    sigma: float | None = None
    follows_scale: bool = True

    def __post_init__(self):
        if self.sigma is not None and not (np.isfinite(self.sigma) and self.sigma >= 0):
            raise InputError(f"noise: sigma must be a number >= 0, or None; got {self.sigma}.")


@dataclass(frozen=True, eq=False)
class PosePrior:
    """An absolute Gaussian prior over poses, N(mean, diag(variance)), in the scene's own units.

    A model without one is indifferent to where its scenes lie, how they are turned and how large
    they are; a model with one is not.
    """

    mean: Float[Array, " d"]
    variance: Float[Array, " d"]

    def __post_init__(self):
        mean, variance = np.asarray(self.mean, float), np.asarray(self.variance, float)
        if mean.ndim != 1 or mean.shape != variance.shape:
            raise InputError("prior: mean and variance must be vectors of the pose's length.")
        finite("prior: mean", mean)
        if not (np.isfinite(variance) & (variance > 0)).all():
            raise InputError("prior: every variance must be a positive number.")
        object.__setattr__(self, "mean", mean)
        object.__setattr__(self, "variance", variance)


@dataclass(frozen=True, eq=False)
class Model:
    """Which objects a scene may hold, and how it comes about.

    Each of the ``instances[t]`` possible copies of template t is there with probability
    ``presence``. It is moved by a pose of the family ``pose``; each of its parts is hidden with
    probability ``missing``. On top come, on average, ``clutter`` points that belong to nothing,
    spread evenly over the scene.
    """

    templates: Sequence[Template]
    instances: Sequence[int] | None = None
    pose: PoseFamily = field(default_factory=Similarity2D)
    noise: Noise = field(default_factory=Noise)
    presence: float = 0.5
    missing: float = 0.0
    clutter: float = 0.0
    prior: PosePrior | None = None
    scales: tuple[float, float] = (1.0, 4.0)

    def __post_init__(self):
        if isinstance(self.templates, Template):
            object.__setattr__(self, "templates", (self.templates,))
        self._check_kinds()
        templates = tuple(self.templates)
        counts = [1] * len(templates) if self.instances is None else list(self.instances)
        if len(counts) != len(templates) or any(
            not isinstance(c, (int, np.integer)) or c < 1 for c in counts
        ):
            raise InputError(
                f"model: instances must be {len(templates)} whole numbers >= 1, the most copies of "
                f"each template; got {counts}."
            )
        object.__setattr__(self, "templates", templates)
        object.__setattr__(self, "instances", tuple(int(c) for c in counts))
        if not 0 < self.presence < 1:
            raise InputError(f"model: presence must lie between 0 and 1; got {self.presence}.")
        if not 0 <= self.missing < 1:
            raise InputError(f"model: missing must be in [0, 1); got {self.missing}.")
        if not (np.isfinite(self.clutter) and self.clutter >= 0):
            raise InputError(f"model: clutter must be an expected number >= 0; got {self.clutter}.")
        low, high = self.scales
        if not 0 < low <= high < np.inf:
            raise InputError(f"model: scales must be 0 < low <= high; got {self.scales}.")
        self._check_templates(templates)
        if self.prior is not None and len(self.prior.mean) != self.pose.dim:
            raise InputError(
                f"model: the prior has {len(self.prior.mean)} numbers, a {self.pose.name} pose "
                f"has {self.pose.dim}."
            )

    def _check_kinds(self) -> None:
        """Every field is of its kind, so that what follows may rely on it."""
        templates = self.templates
        if (
            not isinstance(templates, (list, tuple))
            or not templates
            or not all(isinstance(t, Template) for t in templates)
        ):
            raise InputError("model: templates must be a non-empty list of partwise Templates.")
        if self.instances is not None and not isinstance(self.instances, (list, tuple, np.ndarray)):
            raise InputError(
                f"model: instances must be a list, one number a template; got {self.instances!r}."
            )
        for name, kind in (("pose", PoseFamily), ("noise", Noise), ("prior", PosePrior)):
            value = getattr(self, name)
            if not isinstance(value, kind) and not (name == "prior" and value is None):
                raise InputError(f"model: {name} must be a {kind.__name__}; got {value!r}.")
        for name in ("presence", "missing", "clutter"):
            if not isinstance(getattr(self, name), (int, float, np.number)):
                raise InputError(f"model: {name} must be a number; got {getattr(self, name)!r}.")
        if not isinstance(self.scales, (list, tuple)) or len(self.scales) != 2:
            raise InputError(f"model: scales must be (low, high); got {self.scales!r}.")

    def _check_templates(self, templates: tuple[Template, ...]) -> None:
        for what, values in (
            ("numbers a part", {t.parts.shape[1] for t in templates}),
            ("types", {t.types is not None for t in templates}),
            ("appearance", {t.appearance is not None for t in templates}),
        ):
            if len(values) > 1:
                raise InputError(f"model: templates must agree in {what}; got {sorted(values)}.")
        for t in templates:
            if t.positions.shape[1] != self.pose.template_dim:
                raise InputError(
                    f"model: a {self.pose.name} pose moves {self.pose.template_dim}-dimensional "
                    f"templates; {t.name!r} has {t.positions.shape[1]}."
                )
        if all(t.radius == 0 for t in templates) and max(map(len, templates)) > 1:
            raise InputError("model: the parts of every template coincide; there is no shape.")

    @property
    def copies(self) -> tuple[int, ...]:
        """The template of every possible object: template t stands here ``instances[t]`` times."""
        assert self.instances is not None
        return tuple(t for t, n in enumerate(self.instances) for _ in range(n))

    @property
    def part_size(self) -> int:
        """How many numbers a detected part has (without appearance)."""
        return self.pose.scene_dim + (2 if self.templates[0].is_directed else 0)

    @cached_property
    def unit(self) -> float:
        """The templates' common unit of length: their mean radius."""
        radii = [t.radius for t in self.templates if t.radius > 0]
        return float(np.mean(radii)) if radii else 1.0

    @cached_property
    def type_names(self) -> tuple[str, ...]:
        """All part types, sorted; empty for an untyped model."""
        return tuple(sorted({name for t in self.templates for name in t.types or ()}))

    @cached_property
    def canonical_order(self) -> Int[Array, " T"]:
        """Templates sorted by what they are, so that their order in the list changes nothing."""
        keys = [json.dumps({**t.to_json(), "name": ""}) + t.name for t in self.templates]
        counts = self.instances or ()
        return np.array(sorted(range(len(keys)), key=lambda t: (keys[t], counts[t])), int)

    def replace(self, **changes: Any) -> Model:
        """A copy with some fields changed."""
        return replace(self, **changes)

    def sample(self, key: object, scenes: int = 1):
        """Draw ``scenes`` scenes, with their truth. See :func:`partwise.sampling.sample`."""
        from partwise.sampling import sample

        return sample(self, key, scenes)

    def to_json(self) -> dict[str, Any]:
        """A JSON-ready dict: the model file."""
        out: dict[str, Any] = {
            "format": "partwise model 1",
            "pose": next(name for name, family in FAMILIES.items() if family == self.pose),
            "templates": [t.to_json() for t in self.templates],
            "instances": list(self.instances or ()),
            "noise": {"sigma": self.noise.sigma, "follows_scale": self.noise.follows_scale},
            "presence": self.presence,
            "missing": self.missing,
            "clutter": self.clutter,
            "scales": list(self.scales),
        }
        if self.prior is not None:
            out["prior"] = {
                "mean": self.prior.mean.tolist(),
                "variance": self.prior.variance.tolist(),
            }
        return out

    @classmethod
    def from_json(cls, data: object) -> Model:
        """The inverse of :meth:`to_json`."""
        if not isinstance(data, dict) or not isinstance(data.get("templates"), list):
            raise InputError("a model file must be a JSON object with a list 'templates'.")
        known = {"format", "pose", "templates", "instances", "noise", "presence", "missing"}
        known |= {"clutter", "scales", "prior"}
        if unknown := set(data) - known:
            raise InputError(f"a model file has unknown fields {sorted(unknown)}; remove them.")
        form = data.get("format", "partwise model 1")
        one_of("the model file's format", form, {"partwise model 1"})
        pose = data.get("pose", "similarity")
        one_of("the model file's pose", pose, FAMILIES)
        fields: dict[str, Any] = {"pose": FAMILIES[pose]}
        try:
            if data.get("instances") is not None:
                fields["instances"] = list(data["instances"])
            if "noise" in data:
                fields["noise"] = Noise(**data["noise"])
            if data.get("prior") is not None:
                fields["prior"] = PosePrior(**data["prior"])
            for name in ("presence", "missing", "clutter"):
                if name in data:
                    fields[name] = float(data[name])
            if "scales" in data:
                low, high = data["scales"]
                fields["scales"] = (float(low), float(high))
        except (TypeError, ValueError, OverflowError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"a model file has a field of the wrong kind: {error}.") from None
        return cls([Template.from_json(t) for t in data["templates"]], **fields)

    def save(self, path: str | Path) -> None:
        """Write the model as JSON."""
        Path(path).write_text(json.dumps(self.to_json(), indent=1) + "\n")

    @classmethod
    def load(cls, path: str | Path) -> Model:
        """Read a model that :meth:`save` wrote."""
        try:
            data = json.loads(readable(path).read_text())
        except RecursionError:
            raise InputError(f"{path}: not a model file; its JSON is nested too deeply.") from None
        except ValueError as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"{path}: not a JSON model file ({error}).") from None
        try:
            return cls.from_json(data)
        except InputError as error:
            raise InputError(f"{path}: {error}") from None


def constellations() -> Model:
    """The model of the paper's scenes (sec. 7.1.1): up to two squares and one triangle."""
    return Model([shapes.square(), shapes.triangle()], instances=[2, 1])

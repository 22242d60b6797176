"""Drawing scenes: the whole generative process, and the constellations of sec. 7.1.1."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from partwise._checks import InputError
from partwise.model import Model, constellations
from partwise.poses import PoseFamily, Similarity2D
from partwise.scenes import LabelledScenes, Scene, SceneBatch

__all__ = ["Sample", "generator", "sample", "simulate_constellations"]

Array = np.ndarray


class Sample(NamedTuple):
    """Scenes with their truth: per observed part, the object and the part it is (-1: clutter)."""

    scenes: SceneBatch
    object_id: list[Int[Array, " M"]]
    part_id: list[Int[Array, " M"]]
    poses: list[dict[int, Float[Array, " d"]]]

    def only(self, i: int) -> Sample:
        """Scene i alone."""
        here = slice(i, i + 1)
        return Sample(self.scenes[here], self.object_id[here], self.part_id[here], self.poses[here])


def generator(key: object) -> np.random.Generator:
    """A NumPy generator from a JAX key or a whole number."""
    if isinstance(key, (int, np.integer)) and key >= 0:
        return np.random.default_rng(int(key))
    try:
        if isinstance(key, jax.Array) and jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
            key = jax.random.key_data(key)
        return np.random.default_rng(np.asarray(key, np.uint32).ravel().tolist())
    except (TypeError, ValueError, OverflowError):
        raise InputError(
            f"key must be a jax.random.key or a whole number >= 0; got {key!r}."
        ) from None


def _draw_pose(model: Model, rng: np.random.Generator) -> Array:
    """A pose from the prior; without one: any turn, uniform scale, room to stand side by side."""
    family: PoseFamily = model.pose
    if model.prior is not None:
        return model.prior.mean + np.sqrt(model.prior.variance) * rng.standard_normal(family.dim)
    low, high = model.scales
    scale = rng.uniform(low, high) if family.scales else 1.0
    reach = 2 * high * model.unit * np.sqrt(len(model.copies))
    translation = rng.uniform(-reach, reach, family.scene_dim)
    if isinstance(family, Similarity2D):
        return family.from_parameters(translation, scale, rng.uniform(0, 2 * np.pi))
    if not family.scales:
        return translation
    # A random orthogonal frame with mildly different stretch along each axis.
    size = max(family.template_dim, family.scene_dim)
    turn, _ = np.linalg.qr(rng.standard_normal((size, size)))
    turn *= np.sign(np.linalg.det(turn)) if size == 2 else 1.0
    linear = scale * turn[: family.scene_dim, : family.template_dim]
    linear = linear @ np.diag(rng.uniform(0.7, 1.3, family.template_dim))
    out = np.zeros((family.scene_dim + 1, family.template_dim + 1))
    out[:-1, :-1], out[:-1, -1], out[-1, -1] = linear, translation, 1.0
    return family.from_matrix(out)


def sample(model: Model, key: object, scenes: int = 1) -> Sample:
    """Draw scenes from ``model``; where its noise is unknown, they are noise-free.

    ``key`` is a ``jax.random.key`` or a whole number. Scenes may be empty.
    """
    rng = generator(key)
    sigma = model.noise.sigma or 0.0
    drawn, objects, parts, poses = [], [], [], []
    for _ in range(scenes):
        rows, looks, types, owner, part, here = [], [], [], [], [], {}
        for k, t in enumerate(model.copies):
            if rng.random() >= model.presence:
                continue
            template, pose = model.templates[t], _draw_pose(model, rng)
            clean = model.pose.apply(pose, template.parts)
            scale = model.pose.scale(pose) if model.noise.follows_scale else 1.0
            noisy = clean + sigma * scale * rng.standard_normal(clean.shape)
            factors = template.appearance and rng.standard_normal(template.appearance.factors)
            here[k] = pose
            for n in np.flatnonzero(rng.random(len(template)) >= model.missing):
                rows.append(noisy[n])
                owner.append(k)
                part.append(int(n))
                if template.types is not None:
                    types.append(template.types[n])
                if template.appearance is not None:
                    a = template.appearance
                    wobble = np.sqrt(a.variances[n]) * rng.standard_normal(a.features[n])
                    looks.append(a.loadings[n] @ factors + a.means[n] + wobble)
        low, high = _box(model, rows)
        for _ in range(rng.poisson(model.clutter)):
            direction = rng.standard_normal(model.part_size - model.pose.scene_dim)
            rows.append(np.concatenate([rng.uniform(low, high), direction]))
            owner.append(-1)
            part.append(-1)
            if model.type_names:
                types.append(str(rng.choice(model.type_names)))
            if model.templates[0].appearance is not None:
                # Clutter looks like a random part of the right type.
                t = model.templates[0]
                assert t.appearance is not None
                n = t.types.index(types[-1]) if t.types else int(rng.integers(len(t)))
                looks.append(t.appearance.means[n] + rng.standard_normal(t.appearance.features[n]))
        order = rng.permutation(len(rows))
        drawn.append(
            Scene(
                np.array([rows[i] for i in order]).reshape(len(rows), model.part_size),
                [types[i] for i in order] if model.type_names else None,
                [looks[i] for i in order] if model.templates[0].appearance else None,
            )
        )
        objects.append(np.array([owner[i] for i in order], int))
        parts.append(np.array([part[i] for i in order], int))
        poses.append(here)
    return Sample(SceneBatch.collect(drawn), objects, parts, poses)


def _box(model: Model, rows: list[Array]) -> tuple[Array, Array]:
    """The box of a scene's objects, where its clutter is spread (around the origin, alone)."""
    dim = model.pose.scene_dim
    seen = np.array([r[:dim] for r in rows]) if rows else np.zeros((1, dim))
    low, high = seen.min(0), seen.max(0)
    pad = np.where(high - low > 0, 0.0, model.unit)
    return low - pad, high + pad


def simulate_constellations(
    scenes: int = 512, noise: float = 0.0, key: object = 0, model: Model | None = None
) -> LabelledScenes:
    """The generator of sec. 7.1.1: ``scenes`` scenes, none of them empty.

    Presence 0.5 each; template noise before the transform; scale uniform in 1 to 4; any turn; the
    centre uniform in a square whose side is 20 / scale (measured on the paper's recorded draws:
    larger objects stay closer together); at last each scene is centred and scaled to fill [-1, 1].
    """
    model = model or constellations()
    if scenes < 1:
        raise InputError(f"scenes must be at least 1; got {scenes}.")
    if not (np.isfinite(noise) and noise >= 0):
        raise InputError(f"noise must be a standard deviation >= 0; got {noise}.")
    if not isinstance(model.pose, Similarity2D) or model.part_size != 2:
        raise InputError("simulate draws constellations of plain points moved by similarities.")
    if model.clutter or model.missing or model.type_names:
        raise InputError(
            "simulate draws whole, untyped objects and no clutter; for a model with more than that "
            "use model.sample(key, scenes)."
        )
    rng = generator(key)
    copies = [model.templates[t] for t in model.copies]
    object_id = np.repeat(np.arange(len(copies)), [len(t) for t in copies])
    there = np.zeros((scenes, len(copies)), bool)
    while (empty := ~there.any(1)).any():  # empty scenes are dropped, others drawn for them
        there[empty] = rng.random((int(empty.sum()), len(copies))) < model.presence
    present = there[:, object_id]
    low, high = model.scales
    points = np.zeros((scenes, len(object_id), 2))
    for k, template in enumerate(copies):
        scale = rng.uniform(low, high, scenes)
        angle = rng.uniform(0, 2 * np.pi, scenes)
        centre = rng.uniform(0, 1, (scenes, 2)) * (20.0 / scale)[:, None]
        pose = model.pose.matrix(
            np.stack([*centre.T, scale * np.cos(angle), scale * np.sin(angle)], 1)
        )
        noisy = template.parts + noise * rng.standard_normal((scenes, *template.parts.shape))
        moved = np.einsum("sij,snj->sni", pose[:, :2, :2], noisy) + centre[:, None]
        points[:, object_id == k] = moved
    seen = np.where(present[..., None], points, np.nan)
    top, bottom = np.nanmax(seen, 1), np.nanmin(seen, 1)
    half = np.maximum((top - bottom).max(1) / 2, 1e-12)
    points = (points - ((top + bottom) / 2)[:, None]) / half[:, None, None]
    points = np.where(present[..., None], points, 0.0)
    return LabelledScenes(points, present, np.tile(object_id, (len(points), 1)))

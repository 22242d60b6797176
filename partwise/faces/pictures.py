"""Picture files as grey levels from 0 to 1."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from jaxtyping import Float

from partwise._checks import InputError, readable

__all__ = ["read_picture"]

Array = np.ndarray


def read_picture(
    path: Path, size: tuple[int, int], resized: int | None = None
) -> tuple[Float[Array, "H W"], Float[Array, "H W"]]:
    """Grey levels and opacity of a picture of ``size`` (width, height).

    With ``resized``, both on a square of that side; transparent pixels do not bleed into others.
    """
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError:
        raise InputError(
            "faces: reading pictures needs an extra: pip install 'partwise[faces]'."
        ) from None

    readable(path)
    try:
        with Image.open(path) as picture:
            if picture.size != size:
                raise InputError(
                    f"{path}: the picture is {picture.size[0]} x {picture.size[1]}; it must be "
                    f"{size[0]} x {size[1]}."
                )
            both = picture.convert("RGBA")
            grey, opacity = both.convert("L"), both.getchannel("A")
    except InputError:
        raise
    except (
        UnidentifiedImageError,
        Image.DecompressionBombError,
        OSError,
        SyntaxError,
        ValueError,
    ):
        raise InputError(f"{path}: not a picture that can be read; replace or remove it.") from None
    level, alpha = (np.asarray(p, np.float32) / 255 for p in (grey, opacity))
    if resized is None:
        return level, alpha

    def smaller(values: Array) -> Array:
        scaled = Image.fromarray(values).resize((resized, resized), Image.Resampling.BOX)
        return np.asarray(scaled, np.float32)

    thin = smaller(alpha)
    return smaller(level * alpha) / np.maximum(thin, 1e-3), thin

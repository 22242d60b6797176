"""Frames into a file: GIF with what Matplotlib brings along, MP4 where ffmpeg is there."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import UInt8

from partwise._checks import InputError
from partwise.files import replacing

__all__ = ["check_movie_path", "write_movie"]

Array = np.ndarray

GREYS = 24
COLOURS = 96 + GREYS
"""Of a GIF: enough for a few objects, their mixtures and tints; the file is a third as large."""


def check_movie_path(path: str | Path) -> Path:
    """``path``, or one sentence if no film can be written there; ask before the work is done."""
    path = Path(path)
    if path.suffix.lower() not in (".gif", ".mp4"):
        raise InputError(f"{path}: a movie is a .gif or an .mp4; name it so.")
    if path.suffix.lower() == ".mp4" and shutil.which("ffmpeg") is None:
        raise InputError(
            f"{path}: MP4 needs ffmpeg, which is not here; install it or write a .gif."
        )
    if not path.parent.is_dir():
        raise InputError(f"{path}: there is no folder {path.parent}; create it first.")
    return path


def write_movie(
    path: str | Path,
    frames: Iterable[UInt8[Array, "h w 3"]],
    per_second: int = 8,
    hold: float = 2.5,
    progress: Callable[[int], None] | None = None,
) -> int:
    """Write ``frames`` as GIF or MP4, by the ending of ``path``; returns how many.

    The last frame stays for ``hold`` seconds. ``progress`` is told of each frame that is drawn.
    """
    path = check_movie_path(path)
    drawn = []
    for frame in frames:
        drawn.append(frame)
        if progress is not None:
            progress(1)
    if not drawn:
        raise InputError(f"{path}: there are no frames to write.")
    write = _write_gif if path.suffix.lower() == ".gif" else _write_mp4
    with replacing(path) as part:
        write(part, drawn, per_second, hold)
    return len(drawn)


def _write_gif(path: Path, frames: list[Array], per_second: int, hold: float) -> None:
    from PIL import Image

    # One palette for all frames, of the first, middle and last: no flicker. And a ramp of greys, or
    # those of R, which are few pixels, would turn brown and green.
    height, width, _ = frames[0].shape
    greys = np.linspace(0, 255, GREYS)[np.arange(width) * GREYS // width]
    ramp = np.tile(greys[None, :, None], (height // 6, 1, 3)).astype(np.uint8)
    sample = np.concatenate([ramp, *(frames[i] for i in (0, len(frames) // 2, -1))])
    palette = Image.fromarray(sample).quantize(COLOURS)
    none = Image.Dither.NONE
    images = [Image.fromarray(f).quantize(palette=palette, dither=none) for f in frames]
    durations = [round(1000 / per_second)] * len(images)
    durations[-1] = round(1000 * hold)
    images[0].save(
        path,
        "GIF",
        save_all=True,
        append_images=images[1:],
        duration=durations,
        loop=0,
        optimize=False,
    )


def _write_mp4(path: Path, frames: list[Array], per_second: int, hold: float) -> None:
    height, width = (side - side % 2 for side in frames[0].shape[:2])  # H.264 wants even sides
    frames = [*frames, *frames[-1:] * round(hold * per_second)]
    command: list[Any] = ["ffmpeg", "-y", "-loglevel", "error", "-f", "rawvideo"]
    command += ["-pix_fmt", "rgb24", "-s", f"{width}x{height}", "-r", str(per_second), "-i", "-"]
    command += ["-pix_fmt", "yuv420p", "-f", "mp4", str(path)]
    pixels = b"".join(np.ascontiguousarray(f[:height, :width]).tobytes() for f in frames)
    done = subprocess.run(command, input=pixels, capture_output=True, check=False)
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines() or ["no word of why"]
        raise InputError(f"{path}: ffmpeg could not write this file ({said[-1]}); write a .gif.")

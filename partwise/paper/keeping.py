"""What an experiment has finished is on disk, and is not done again while it would be the same."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from time import perf_counter
from typing import Any

import partwise
from partwise._checks import InputError
from partwise.files import replacing

__all__ = ["Kept", "code_digest", "keep", "make_folder"]

SHOWING = ("cli", "movies", "paper", "plotting", "report")
"""Parts of the package on which no result depends, but for an experiment's own file."""


@dataclass(frozen=True)
class Kept:
    """A result, and how many seconds it took to make it, now or once."""

    result: Any
    seconds: float


def keep(path: Path, options: dict[str, Any], compute: Callable[[], Any]) -> Kept:
    """``compute()``, or what the file ``path`` holds of it if it was made with these options.

    ``options`` is everything that the result depends on; it and the result are ready for JSON.
    """
    try:
        kept = json.loads(path.read_text())
        if kept["options"] == options:
            return Kept(kept["result"], float(kept["seconds"]))
    except (OSError, ValueError, KeyError, TypeError):
        pass  # not there yet, or damaged: it is made again
    start = perf_counter()
    result = json.loads(json.dumps(compute()))  # the same now as from the file later
    seconds = perf_counter() - start
    make_folder(path.parent)
    with replacing(path) as part:
        part.write_text(json.dumps({"options": options, "seconds": seconds, "result": result}))
    return Kept(result, seconds)


def make_folder(path: Path) -> None:
    """The folder ``path``, made where it is not there."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"{path}: this folder cannot be made ({error.strerror}); choose another with --out."
        ) from None


@lru_cache
def code_digest(experiment: Path) -> str:
    """A digest of the library's source, without what only shows results, and of ``experiment``.

    A figure from another version of a solver is not ours.
    """
    package = Path(partwise.__file__).parent
    sources = (p for p in package.rglob("*.py") if p.relative_to(package).parts[0] not in SHOWING)
    digest = hashlib.sha256()
    for path in [*sorted(sources), experiment]:
        digest.update(path.read_bytes())
    return digest.hexdigest()

"""What an experiment has finished is on disk, and is not done again while it would be the same."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from time import perf_counter
from typing import Any, TypeVar

import partwise
from partwise._checks import InputError
from partwise.files import replacing

__all__ = ["code_digest", "keep", "make_folder", "seconds_spent"]

T = TypeVar("T")

NOT_RESULTS = ("cli", "movies", "paper", "plotting", "report")
"""Parts of the package on which no result depends."""


def keep(
    path: Path,
    options: dict[str, Any],
    compute: Callable[[], T],
    write: Callable[[T], Any] = lambda value: value,
    read: Callable[[Any], T] = lambda kept: kept,
) -> T:
    """``compute()``, or what the file ``path`` holds of it if it was made with these options.

    ``options`` is everything that the result depends on, ready for JSON; ``write`` makes the result
    ready for JSON, ``read`` is its inverse.
    """
    try:
        kept = json.loads(path.read_text())
        if kept["options"] == options:
            return read(kept["result"])
    except (OSError, ValueError, KeyError, TypeError):
        pass  # not there yet, or damaged: it is made again
    start = perf_counter()
    result = compute()
    seconds = perf_counter() - start
    make_folder(path.parent)
    with replacing(path) as part:
        kept = {"options": options, "seconds": seconds, "result": write(result)}
        part.write_text(json.dumps(kept))
    return result


def seconds_spent(folder: Path) -> float:
    """How long it took to make what :func:`keep` keeps in ``folder``, over all runs."""
    total = 0.0
    for path in sorted(folder.glob("*.json")):
        try:
            total += float(json.loads(path.read_text())["seconds"])
        except (OSError, ValueError, KeyError, TypeError):
            continue  # another's file, or a damaged one: it will be made again
    return total


def make_folder(path: Path) -> None:
    """The folder ``path``, made where it is not there."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"{path}: this folder cannot be made ({error.strerror}); choose another with --out."
        ) from None


@lru_cache(maxsize=1)
def code_digest() -> str:
    """A digest of the library's source: a figure from another version of a solver is not ours."""
    package = Path(partwise.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        if path.relative_to(package).parts[0] not in NOT_RESULTS:
            digest.update(path.read_bytes())
    return digest.hexdigest()

"""The paper's experiments, one a file: what it runs, the paper's figure, ours.

``EXPERIMENTS`` maps a name to ``run(out, scenes=None, progress=None)``. It writes NAME.json,
NAME.csv and NAME.md into the folder ``out``, keeps there what it has finished, and returns the
tables to print. ``progress(done, total=...)`` is told how far it is.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from partwise._checks import InputError

__all__ = ["EXPERIMENTS", "select"]


def _table1(out: str | Path, **options: Any) -> list[Any]:
    from partwise.paper.table1 import run

    return run(out, **options)


def _faces(out: str | Path, **options: Any) -> list[Any]:
    from partwise.paper.faces import run

    return run(out, **options)


def _learning(out: str | Path, **options: Any) -> list[Any]:
    from partwise.paper.learning import run

    return run(out, **options)


EXPERIMENTS: dict[str, Callable[..., list[Any]]] = {
    "table1": _table1,
    "learning": _learning,
    "faces": _faces,
}
"""Every experiment by name; each is imported when it is run."""


def select(names: str | None) -> list[str]:
    """The experiments of a comma-separated list; all of them for None."""
    if names is None:
        return list(EXPERIMENTS)
    chosen = [name.strip() for name in names.split(",") if name.strip()]
    unknown = [name for name in chosen if name not in EXPERIMENTS]
    if unknown or not chosen:
        raise InputError(
            f"--only: there is no experiment {', '.join(unknown) or repr(names)}; choose from "
            f"{', '.join(EXPERIMENTS)}."
        )
    return chosen

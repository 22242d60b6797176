"""What all experiments are: cells that are run and kept, and a report on them.

An experiment is a frozen dataclass of its options, in a file of its own, that says three things:

- :meth:`Experiment.cells`: the pieces of work, small enough that losing one is no matter;
- :meth:`Experiment.compute`: the result of one, ready for JSON;
- :meth:`Experiment.report`: the tables and pictures of all results.

:meth:`Experiment.run` does the rest: a cell that is done is a file in ``out/NAME.cells`` and is not
done again while it would be the same, progress is told, and the report's files are written.
``partwise.paper.EXPERIMENTS`` has its name; ``tests/test_paper_experiment.py`` a small example.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from inspect import getfile
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from partwise.paper import EXPERIMENTS
from partwise.paper.keeping import Kept, code_digest, keep, make_folder
from partwise.paper.published import recorded_folder
from partwise.paper.reporting import Report, write_report

__all__ = ["Advance", "Cell", "Experiment", "Progress"]

Advance = Callable[[int], None]
"""Told how many units of a cell's work have just been done."""

Progress = Callable[..., None]
"""``progress(done)``; before that ``progress(0, total=...)``, as in :mod:`partwise.cli.output`."""


class Cell(Protocol):
    """A piece of work: a frozen dataclass of what it depends on, and the name of its file."""

    @property
    def name(self) -> str:
        """The name of its file."""
        ...


C = TypeVar("C", bound=Cell)


@dataclass(frozen=True)
class Experiment(ABC, Generic[C]):
    """What is run, and where its results are kept.

    ``scenes`` is how many a cell has, None as many as in the paper. ``data`` is the folder of the
    paper's own draws, None where they would be beside the code; a user has none, and every
    experiment does without.
    """

    name: ClassVar[str]
    """The name of its files, and its name in ``partwise.paper.EXPERIMENTS``."""

    out: Path
    scenes: int | None = None
    seed: int = 0
    data: Path | None = None

    @property
    def folder(self) -> Path:
        """Where the paper's own draws are, if they are at hand."""
        return recorded_folder() if self.data is None else self.data

    @abstractmethod
    def cells(self) -> Iterable[C]:
        """Everything there is to do."""

    @abstractmethod
    def compute(self, cell: C, advance: Advance) -> Any:
        """What a cell gives, ready for JSON; ``advance`` may be told of up to ``size(cell)``."""

    @abstractmethod
    def report(self, results: dict[C, Any]) -> Report:
        """The tables and pictures of all results; pictures are files in ``out`` by then."""

    def size(self, cell: C) -> int:
        """How much of the progress bar a cell is."""
        return 1

    def depends(self, cell: C) -> dict[str, Any]:
        """What a cell depends on besides the code, its own fields, ``scenes`` and ``seed``."""
        return {}

    def kept(self, cell: C, advance: Advance = lambda done: None) -> Kept:
        """What a cell gives and how long it took, from its file if that would be the same now."""
        options = {
            "code": code_digest(Path(getfile(type(self)))),
            "cell": asdict(cell),  # type: ignore[call-overload]
            "scenes": self.scenes,
            "seed": self.seed,
            **self.depends(cell),
        }
        path = self.out / f"{self.name}.cells" / f"{cell.name}.json"
        done = 0

        def tell(count: int) -> None:
            nonlocal done
            done += count
            advance(count)

        kept = keep(path, options, lambda: self.compute(cell, tell))
        advance(self.size(cell) - done)
        return kept

    def run(self, progress: Progress | None = None) -> list[Any]:
        """Do what is missing, write the report's files into ``out``; return tables for Rich."""
        make_folder(self.out)
        tell = progress or (lambda done, total=None: None)
        cells = list(self.cells())
        tell(0, total=sum(map(self.size, cells)))
        kept = {cell: self.kept(cell, tell) for cell in cells}
        report = self.report({cell: each.result for cell, each in kept.items()})
        seconds = sum(each.seconds for each in kept.values())
        return write_report(
            self.out, self.name, EXPERIMENTS[self.name].title, report, self.seed, seconds
        )

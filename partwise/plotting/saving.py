"""Figures as files, with what they show."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from partwise.files import replacing

__all__ = ["Picture", "save"]

DPI = 110


@dataclass(frozen=True)
class Picture:
    """A picture in the folder of the results, and what it shows."""

    file: str
    caption: str

    def to_json(self) -> dict[str, Any]:
        """The picture for a page."""
        return {"file": self.file, "caption": self.caption}


def save(figure: Any, folder: Path, name: str, caption: str) -> Picture:
    """Write ``figure`` as NAME.png into ``folder``."""
    file = f"{name}.png"
    with replacing(folder / file) as part:
        figure.savefig(part, format="png", dpi=DPI, bbox_inches="tight")
    return Picture(file, caption)

"""The trained weights that come with the library, in ``partwise/neural/weights``."""

from __future__ import annotations

from pathlib import Path

__all__ = ["FOLDER", "ccae_weights", "pcae_weights"]

FOLDER = Path(__file__).parent / "weights"


def ccae_weights() -> dict[float, Path]:
    """Every CCAE that is shipped, by the noise level of its training."""
    stem = "ccae-sigma"
    return {
        float(p.stem.removeprefix(stem)): p for p in sorted(FOLDER.glob(f"{stem}*.safetensors"))
    }


def pcae_weights() -> dict[int, Path]:
    """Every PCAE that is shipped, by the seed of its training."""
    stem = "pcae-seed"
    return {int(p.stem.removeprefix(stem)): p for p in sorted(FOLDER.glob(f"{stem}*.safetensors"))}

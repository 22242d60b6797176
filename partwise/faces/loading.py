"""The three sources of faces behind one function."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from partwise._checks import InputError
from partwise.faces.basis import read_basis
from partwise.faces.combinations import Faces, HeldOut, Imagined
from partwise.faces.fitting import Fit, fit_faces
from partwise.faces.orl import orl_parts
from partwise.faces.photofit import photofit_parts

__all__ = ["fit_of", "load_faces"]


def load_faces(data: str | Path | None = None) -> Faces:
    """Faces to make scenes of.

    None: the ORL photographs. A folder: part images in the layout of PhotoFit Me. A file: a model
    that is ready (``partwise.faces.basis``), whose faces are drawn from it.
    """
    if data is not None and not Path(data).is_dir():
        return Imagined(read_basis(data))
    fit = fit_of(data)
    return HeldOut(fit.model, fit.parts)


@lru_cache(maxsize=4)
def fit_of(data: str | Path | None = None) -> Fit:
    """The model fitted to the ORL photographs, or to a folder of part images."""
    if data is None:
        return fit_faces(orl_parts())
    if not Path(data).is_dir():
        raise InputError(f"{data}: fitting needs part images; give a folder of them.")
    return fit_faces(photofit_parts(data))

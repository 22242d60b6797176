"""Faces: parts with appearance (sec. 7.2).

``canvas``: pixels and the frame. Part images from ``orl`` (cut by ``masks``) or ``photofit``, as
``parts``; their ``combinations`` are faces. ``fitting`` gives the model of ``appearance``, which
``basis`` reads and writes. ``scenes`` of faces, ``rendering`` them, and the ``evaluation`` of
solvers on them. ``loading`` is where to begin:

>>> from partwise.faces import draw_scenes, load_faces
>>> faces = load_faces()
>>> scenes = draw_scenes(faces, count=3, scenes=2)
>>> model = faces.model.scene_model(3)
"""

from partwise.faces.appearance import FaceModel
from partwise.faces.basis import read_basis, write_basis
from partwise.faces.combinations import Faces
from partwise.faces.evaluation import SOLVERS, evaluate, face_solver
from partwise.faces.fitting import Fit, fit_faces
from partwise.faces.loading import fit_of, load_faces
from partwise.faces.rendering import lay, render_explanation, render_truth
from partwise.faces.scenes import FaceScenes, draw_scenes

__all__ = [
    "SOLVERS",
    "FaceModel",
    "FaceScenes",
    "Faces",
    "Fit",
    "draw_scenes",
    "evaluate",
    "face_solver",
    "fit_faces",
    "fit_of",
    "lay",
    "load_faces",
    "read_basis",
    "render_explanation",
    "render_truth",
    "write_basis",
]

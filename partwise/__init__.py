"""partwise: recognise objects from their parts.

>>> import partwise as pw
>>> model = pw.Model([pw.shapes.square(), pw.shapes.triangle()], instances=[2, 1])
>>> found = pw.infer(model, [[0, 0], [2, 0], [2, 2], [0, 2]])
>>> found.objects[0].name
'square'
"""

from partwise import poses
from partwise._checks import InputError
from partwise.inference import infer
from partwise.model import Model, Noise, PosePrior, constellations
from partwise.posterior import Detection, Explanation, Explanations, Posterior
from partwise.sampling import simulate_constellations
from partwise.scenes import LabelledScenes, Scene, SceneBatch
from partwise.templates import Appearance, Template, shapes

__version__ = "0.1.0"

__all__ = [
    "Appearance",
    "Detection",
    "Explanation",
    "Explanations",
    "InputError",
    "LabelledScenes",
    "Model",
    "Noise",
    "PosePrior",
    "Posterior",
    "Scene",
    "SceneBatch",
    "Template",
    "constellations",
    "infer",
    "poses",
    "shapes",
    "simulate_constellations",
]

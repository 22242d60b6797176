"""partwise: recognise objects from their parts.

>>> import partwise as pw
>>> model = pw.Model([pw.shapes.square(), pw.shapes.triangle()], instances=[2, 1])
>>> found = pw.infer(model, [[0, 0], [2, 0], [2, 2], [0, 2]])
>>> found.objects[0].name
'square'

Names are imported when they are first used, so that ``import partwise`` is quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from partwise import poses, sky
    from partwise._checks import InputError
    from partwise.alignment import Aligned, align
    from partwise.evaluation import evaluate
    from partwise.files import read_labelled, read_scenes, write_explanations, write_labelled
    from partwise.inference import infer
    from partwise.learning import (
        Learned,
        LearnedModel,
        compose,
        learn,
        learn_model,
        procrustes,
    )
    from partwise.model import Model, Noise, PosePrior, constellations
    from partwise.posterior import Detection, Explanation, Explanations, Posterior
    from partwise.sampling import simulate_constellations
    from partwise.scenes import LabelledScenes, Scene, SceneBatch
    from partwise.solvers.auto import Auto
    from partwise.solvers.ccae import Ccae
    from partwise.solvers.exact import Exact
    from partwise.solvers.hashing import Hashing
    from partwise.solvers.packing import Packing
    from partwise.solvers.ransac import Ransac
    from partwise.solvers.trace import Trace, trace
    from partwise.solvers.variational import Variational
    from partwise.templates import Appearance, Template, shapes

__version__ = "0.1.0"

_HOMES = {
    "partwise._checks": ("InputError",),
    "partwise.alignment": ("Aligned", "align"),
    "partwise.evaluation": ("evaluate",),
    "partwise.files": ("read_labelled", "read_scenes", "write_explanations", "write_labelled"),
    "partwise.inference": ("infer",),
    "partwise.learning": (
        "Learned",
        "LearnedModel",
        "compose",
        "learn",
        "learn_model",
        "procrustes",
    ),
    "partwise.model": ("Model", "Noise", "PosePrior", "constellations"),
    "partwise.posterior": ("Detection", "Explanation", "Explanations", "Posterior"),
    "partwise.sampling": ("simulate_constellations",),
    "partwise.scenes": ("LabelledScenes", "Scene", "SceneBatch"),
    "partwise.solvers.auto": ("Auto",),
    "partwise.solvers.ccae": ("Ccae",),
    "partwise.solvers.exact": ("Exact",),
    "partwise.solvers.hashing": ("Hashing",),
    "partwise.solvers.packing": ("Packing",),
    "partwise.solvers.ransac": ("Ransac",),
    "partwise.solvers.trace": ("Trace", "trace"),
    "partwise.solvers.variational": ("Variational",),
    "partwise.templates": ("Appearance", "Template", "shapes"),
}
_MODULES = ("poses", "sky")
_WHERE = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "Aligned",
    "Appearance",
    "Auto",
    "Ccae",
    "Detection",
    "Exact",
    "Explanation",
    "Explanations",
    "Hashing",
    "InputError",
    "LabelledScenes",
    "Learned",
    "LearnedModel",
    "Model",
    "Noise",
    "Packing",
    "PosePrior",
    "Posterior",
    "Ransac",
    "Scene",
    "SceneBatch",
    "Template",
    "Trace",
    "Variational",
    "align",
    "compose",
    "constellations",
    "evaluate",
    "infer",
    "learn",
    "learn_model",
    "poses",
    "procrustes",
    "read_labelled",
    "read_scenes",
    "shapes",
    "simulate_constellations",
    "sky",
    "trace",
    "write_explanations",
    "write_labelled",
]


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        value = getattr(import_module(_WHERE[name]), name)
    elif name in _MODULES:
        value = import_module(f"partwise.{name}")
    else:
        raise AttributeError(f"module 'partwise' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])

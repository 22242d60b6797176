"""Learning templates (sec. 6, App. B), and models from scenes of several unknown objects.

``examples``: scenes as arrays. ``geometry``, ``appearance``, ``meanfield``: E-steps and their
moments. ``em``: the loop. ``symmetry``: hypotheses about symmetric templates. ``single``: one
template, from scenes that show it alone. ``discovery``, ``mixed``: several, from scenes that show
any of them. ``composing``: a model from templates. ``procrustes``: templates compared. ``bound``:
how well any method could do.
"""

from partwise.learning.composing import compose
from partwise.learning.mixed import LearnedModel, learn_model
from partwise.learning.procrustes import Alignment, procrustes
from partwise.learning.single import Learned, learn

__all__ = ["Alignment", "Learned", "LearnedModel", "compose", "learn", "learn_model", "procrustes"]

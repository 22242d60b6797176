"""Networks of the paper's comparisons, in Equinox, and their training with Optax.

``set_transformer``: the layers; ``sparsity``: losses that networks share; ``ccae``: the
constellation capsule autoencoder; ``pcae``, ``object_capsule``: the part capsule autoencoder;
``training``: legs, checkpoints and logs for every network;
``storing``: safetensors; ``shipped``: trained weights that come with the library.
"""

from partwise._checks import InputError

try:
    import equinox
    import optax
    import safetensors
except ImportError as error:
    raise InputError(
        f"the networks need {error.name}, which is not installed; install 'partwise[neural]'."
    ) from None

del equinox, optax, safetensors

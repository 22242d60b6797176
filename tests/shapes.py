"""A type checker for the tests that looks at the shapes of arrays, and at nothing else.

beartype would also refuse a NumPy integer for an ``int`` and a wrong word for an option, and so
hide the sentences with which the library itself answers those.
"""

from beartype import beartype

CHECKER = f"{__name__}.arrays"
"""Where the import hook of jaxtyping finds it."""

KINDS = ("Bool[", "Complex[", "Float[", "Int[", "Real[", "Shaped[", "UInt8[")


def arrays(function):
    """``function``, its array arguments and its array result checked at every call."""
    if isinstance(function, type):
        return function
    function.__annotations__ = {
        name: hint
        for name, hint in function.__annotations__.items()
        if any(kind in str(hint) for kind in KINDS)
    }
    return beartype(function)

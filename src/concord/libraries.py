"""Libraries that take long to import, and that not every job needs at its start."""

from typing import Any


def special() -> Any:
    """Return SciPy's special functions."""
    import scipy.special  # as said above

    return scipy.special


def sparse() -> Any:
    """Return SciPy's sparse arrays."""
    import scipy.sparse  # as said above

    return scipy.sparse

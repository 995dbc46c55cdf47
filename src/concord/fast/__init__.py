"""Several steps in one call of compiled code, with numba (the extra ``fast``).

The numbers are those of the plain steps but for rounding, with the same counts. Whoever wants them
wraps the sampler; nobody else imports this folder, nor numba.
"""

import sys
from functools import cache
from importlib.util import find_spec
from typing import Any

from concord.sampler import ReadOut

# Numbers that a run moves from which on it pays to import numba, and what a step costs besides.
WORTH, CALLS = 100_000_000, 1000


def compile_steps(sampler: Any, steps: int, numbers: int) -> Any:
    """Return a sampler of the same chains that takes several steps at once where that is compiled.

    It is the sampler itself where its steps are too few, which each move so many numbers, or
    without a numba that works.
    """
    if steps * (numbers + CALLS) < WORTH or isinstance(sampler, ReadOut) or not _works():
        return sampler
    from concord.fast.steps import CompiledSampler

    return CompiledSampler(sampler)


@cache
def _works() -> bool:
    """Tell whether numba is installed; one that cannot be used is reported, once."""
    if find_spec("numba") is None:
        return False
    try:
        from concord.fast import kernels  # noqa: F401
    except Exception as error:  # of any kind: numpy's, llvmlite's
        print(
            f"concord: numba is installed, but cannot be used ({type(error).__name__}: {error}); "
            "runs take longer; install the version of envs/requirements.lock, or remove numba",
            file=sys.stderr,
        )
        return False
    return True

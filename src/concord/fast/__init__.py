"""Several steps in one call of compiled code, with numba (the extra ``fast``).

The numbers are those of the plain steps but for rounding, with the same counts. Whoever wants them
wraps the sampler; nobody else imports this folder, nor numba.
"""

import sys
from functools import cache
from importlib.util import find_spec
from math import prod
from typing import Any

from concord.sampler import ReadOut
from concord.sampling.streams import CHAINS_PER_BLOCK

# Numbers that a run moves from which on it pays to import numba, and those that a step counts for.
WORTH, CALLS = 100_000_000, 1000


def compile_steps(sampler: Any, iterations: int, shape: tuple[int, int, int]) -> Any:
    """Return a sampler of the same chains that takes several steps at once where that is compiled.

    It is the sampler itself where a run of this shape, (chains, agents, dim), is short, or without
    a numba that works.
    """
    blocks, numbers = -(-shape[0] // CHAINS_PER_BLOCK), prod(shape)
    short = iterations * (numbers + blocks * CALLS) < WORTH
    if short or isinstance(sampler, ReadOut) or not _works():
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

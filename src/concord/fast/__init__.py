"""Compiled samplers: several steps in one call of code compiled by numba (extra ``fast``).

The numbers are those of the plain steps but for rounding, with the same counts of messages and
gradients. A caller wraps its sampler by ``compile_steps``; no other module imports this folder, nor
numba.
"""

import sys
from functools import cache
from importlib.util import find_spec
from math import prod
from typing import Any

from concord.sampler import WithReadOut
from concord.streams import CHAINS_PER_BLOCK

# Numbers that a run moves from which on it pays to import numba, and those that a step counts for.
WORTH, CALLS = 100_000_000, 1000


def compile_steps(sampler: Any, iterations: int, shape: tuple[int, int, int]) -> Any:
    """Return a sampler of the same chains that takes several compiled steps in one call.

    iterations: length of the run. shape: (chains, agents, dim). The sampler itself is returned
    where the run is too short to pay, where its answers are not its state's x, or without a numba
    that works.
    """
    blocks, numbers = -(-shape[0] // CHAINS_PER_BLOCK), prod(shape)
    short = iterations * (numbers + blocks * CALLS) < WORTH
    if short or isinstance(sampler, WithReadOut) or not _numba_works():
        return sampler
    from concord.fast.steps import CompiledSampler

    return CompiledSampler(sampler)


@cache
def _numba_works() -> bool:
    """Return whether numba can be used; warn, once, if it is installed but cannot."""
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

"""Compiled samplers: several steps in one call of code compiled by numba (extra ``fast``).

The numbers are those of the plain steps but for rounding, with the same counts of messages and
gradients. A caller wraps its sampler by ``compile_steps``; no other module imports this folder, nor
numba.
"""

from importlib.util import find_spec
from math import prod
from typing import Any

from concord.minibatches import batches_of
from concord.sampler import WithReadOut
from concord.streams import CHAINS_PER_BLOCK

# Numbers that a run moves from which on it pays to import numba, and those that a step counts for.
WORTH, CALLS = 100_000_000, 1000


def compile_steps(sampler: Any, iterations: int, shape: tuple[int, int, int]) -> Any:
    """Return a sampler of the same chains that takes several compiled steps in one call.

    iterations: length of the run. shape: (chains, agents, dim). The sampler itself is returned
    where the run is too short to pay, where its answers are not its state's x, where it takes
    mini-batches, or without numba.
    """
    blocks, numbers = -(-shape[0] // CHAINS_PER_BLOCK), prod(shape)
    short = iterations * (numbers + blocks * CALLS) < WORTH
    plain = isinstance(sampler, WithReadOut) or batches_of(sampler) is not None
    if short or plain or find_spec("numba") is None:
        return sampler
    from concord.fast.steps import CompiledSampler

    return CompiledSampler(sampler)

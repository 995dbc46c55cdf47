r"""Steps compiled by reading them, several in one call of code compiled by numba (extra ``fast``).

A step that is affine in the state s and in the normal numbers w that it draws,

.. math:: s_{k+1} = A_k s_k + B_k w_k + c_k = (A_k, B_k, c_k) (s_k, w_k, 1),

is read as these matrices by the reader of exact laws (``laws.read_off``), whichever sampler takes
it: one of one's own, too. One loop multiplies the nonzero entries of (A, B, c), by rows, with
vectors (s, w, 1) whose innermost axis is of chains (``kernels.take_affine_steps``). It draws w by
numpy's own generator in the order in which the plain step does: call by call, chain by chain.

Where the step follows schedules, A, B and c are polynomials in the square roots of their values,
and read at several (``reading``). Where gradients are of a tied mixture, the step is read as affine
in their values g, too: s_{k+1} = (A_k, G_k, B_k, c_k) (s_k, g_k, w_k, 1), and a compiled loop
computes g (``kernels.differentiate_mixture``).

The first step is taken plainly, and once more by the loop: unless both agree in the state, the
generator's state and the order of draws, all steps are plain. What it counts every step counts. The
loop ends with the first step in which a chain leaves the finite range. Steps that choose, losses,
sleep, clocks and mini-batches stay plain. So do steps whose matrices have so many entries that the
loop is no faster, by a prediction from sizes alone, so that no clock decides what a run computes.

A caller hands ``CompiledSteps`` to the loop over iterations, with a generator whose plain draws of
many normal numbers are compiled, too. Positions are those of plain steps but for rounding, counts
are equal.
"""

from __future__ import annotations

from importlib.util import find_spec
from math import prod
from typing import TYPE_CHECKING

from concord.sampler import Algorithm
from concord.streams import CHAINS_PER_BLOCK

if TYPE_CHECKING:
    from concord.fast.steps import CompiledSteps

# Numbers that a run moves from which on it pays to import numba, and those that a step counts for.
WORTH, CALLS = 100_000_000, 1000


def compile_steps(
    sampler: Algorithm, iterations: int, shape: tuple[int, int, int]
) -> CompiledSteps | None:
    """Return what takes a run's steps (``steps.CompiledSteps``); None: it is too short to pay.

    iterations: length of the run. shape: (chains, agents, dim). None without numba, too.
    """
    blocks, numbers = -(-shape[0] // CHAINS_PER_BLOCK), prod(shape)
    short = iterations * (numbers + blocks * CALLS) < WORTH
    if short or find_spec("numba") is None:
        return None
    from concord.fast.steps import CompiledSteps  # loads numba

    return CompiledSteps(sampler, iterations)

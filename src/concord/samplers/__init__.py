"""Samplers, one module per algorithm, always in the same order.

equation and source, ``Params``, ``State``, ``check``, ``init``, ``affine`` or ``choices`` (see
``contracts.Sampler``, ``AffineSampler`` and ``SwitchingSampler``). Modules are found by their file
name; what several share is in ``_parts`` (of steps and laws) and ``_checks`` (refusals). One whose
answer is not the x of its state says with ``read`` what is recorded in its place
(``contracts.ReadOut``).

What cannot be known from outside is said by a name of the module, which few need: ``BIASED``, the
other law that it samples by design; ``TURNS``, how many groups of agents move one after another.

``init`` is given the positions x^(0), from which the rest of the state may start (tracked gradients
do, y^(0) = grad f(x^(0))); ``affine`` says so by the matrix of an ``exact.Start``.

``step(state, k, rng)`` is a closure over buffers that are allocated once; it returns the next state
and an ``Info``. A step consumes its state: it may overwrite the arrays it is given, at once or
later, so copy what you keep. Random numbers that are prepared for many steps at once (gossip's
pairs and noise, the order of an epoch) are the step's own; within such a block k is not looked at,
and a chain cannot be resumed from a state, a k and a generator alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from concord.sampling.schedules import Schedule


@runtime_checkable
class Stepping(Protocol):
    """Options of a sampler with a schedule of step sizes."""

    step_size: Schedule


@runtime_checkable
class Fusing(Stepping, Protocol):
    """Options of a sampler with a schedule of consensus steps besides."""

    fusion: Schedule


@runtime_checkable
class Batching(Protocol):
    """Options of a sampler that takes mini-batches of this size; None: full gradients."""

    batch_size: int | None


@runtime_checkable
class Biased(Batching, Protocol):
    """Options of a sampler whose mini-batches may be unscaled, or drawn from a part of the data."""

    batch_scale: str
    batch_pool: str


@runtime_checkable
class Mixing(Protocol):
    """Options of a sampler that averages by the network's weights."""

    weights: str

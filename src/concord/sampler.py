r"""Samplers: algorithms by which agents draw one posterior together.

A sampler is a class of its options with three methods. ``check`` refuses what it cannot do;
``init`` makes the state at x^(0); ``step`` is one iteration, a pure function that returns new
arrays and reads like the equation in the module's docstring. The step sends through the network and
asks the problem for gradients, which count what that costs; it draws random numbers from ``rng``
alone. Gradients are taken before noise is drawn, since mini-batches share the generator.

A state is a ``NamedTuple`` of arrays, of which the first is the positions x, (chains, agents, dim).
All memory from one step to the next is in the state, or in the network. Arrays whose first two axes
are (chains, agents) are of agents, and keep the entries of those that sleep; all others are of the
whole network.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from inspect import isfunction, signature
from math import sqrt
from typing import (
    Annotated,
    Any,
    ClassVar,
    Generic,
    NamedTuple,
    Protocol,
    TypeVar,
    runtime_checkable,
)

import numpy as np
from msgspec.structs import FieldInfo, fields
from numpy.random import Generator

from concord.errors import ConcordError
from concord.minibatches import Batches
from concord.needs import Needs, check_needs
from concord.networks.network import Network, Order
from concord.options import Options
from concord.problem import CountedProblem, Problem


class ChainState(Protocol):
    """A state of chains: a ``NamedTuple`` of arrays, positions x first."""

    @property
    def x(self) -> np.ndarray:
        """The positions, (chains, agents, dim)."""

    def __iter__(self) -> Iterator[np.ndarray]:
        """Yield the arrays, x first."""

    def _asdict(self) -> Mapping[str, np.ndarray]:
        """Return the arrays by name."""


State = TypeVar("State", bound=ChainState)
STEP = ("self", "state", "k", "problem", "network", "rng")  # what a step takes


class Positions(NamedTuple):
    """The state of a sampler that keeps positions x alone, (chains, agents, dim)."""

    x: np.ndarray

    def __getattr__(self, name: str) -> object:
        """Say where the state of a sampler that keeps more is made."""
        if hasattr(np.ndarray, name):
            raise AttributeError(f"the state has no {name!r}; its positions have, state.x.{name}")
        raise AttributeError(f"the state has no {name!r}; write an init that returns one with it")


class Algorithm(Options, Generic[State]):
    """An algorithm of decentralized sampling with its options, immutable.

    It is generic in its state: ``class DESGHMC(Sampler[State])`` has a step from State to State.

    name: what readers call it, such as "DE-SGLD".
    biased: the law that it samples by design, where that is not the posterior.
    needs: what networks and problems must have (``concord.needs.Needs``).
    units: by option, which power of the positions' unit it has, such as 2 for a step size.
    draws_ahead: fields of the state with random numbers of steps to come. The step draws them where
    they are empty, and their first axis is of steps (``random.draw_ticks``).
    """

    name: ClassVar[str] = ""
    biased: ClassVar[str] = ""
    needs: ClassVar[Needs] = Needs()
    units: ClassVar[Mapping[str, int]] = {"step_size": 2}
    draws_ahead: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, **options: Any) -> None:
        """Refuse a step that cannot be called as the loop calls it."""
        super().__init_subclass__(**options)
        step = vars(cls).get("step")
        if isfunction(step):
            try:
                signature(step).bind(*STEP)
            except TypeError:
                raise ConcordError(
                    f"{cls.__name__}.step: it takes {', '.join(signature(step).parameters)}; write "
                    f"step({', '.join(STEP)})"
                ) from None

    def check(self, problem: Problem | None, network: Network) -> None:
        """Refuse a problem or network that lacks what the sampler ``needs``, with a ConcordError.

        The problem is None where it is not built yet. A sampler that refuses more extends this.
        """
        check_needs(self, problem, network)

    def init(
        self, x0: np.ndarray, problem: CountedProblem, network: Network, rng: Generator
    ) -> Any:
        """Return the state of iteration 0, given positions x0, (chains, agents, dim).

        The gradients that it takes are not counted as cost.
        """
        return Positions(x0)

    def step(
        self, state: State, k: int, problem: CountedProblem, network: Network, rng: Generator
    ) -> State:
        """Return the state of iteration k + 1, given that of iteration k = 0, 1, ...

        All chains move together. ``problem.gradient`` and ``network.mix`` count what they cost. Of
        agents that sleep the caller keeps the entries of arrays (chains, agents, ...).
        """
        raise ConcordError(f"{type(self).__name__} has no step; write one")

    def amplifies(self, agents: int, iterations: int) -> bool:
        """Return whether rounding errors grow until chains differ between processors.

        agents, iterations: the size of the network, and the length of the run.
        """
        return False


class FullGradientSampler(Algorithm[State]):
    """An algorithm of decentralized sampling that takes full gradients alone.

    Examples
    --------
    >>> import concord
    >>> class Exact(concord.FullGradientSampler):
    ...     def step(self, state, k, problem, network, rng):
    ...         return state._replace(x=rng.standard_normal(state.x.shape))
    >>> problem = concord.Problem(gradient=lambda x: x, agents=1, dim=2)
    >>> concord.sample(Exact(), problem, iterations=10).chains
    100
    """


class Sampler(Algorithm[State], Batches):
    """An algorithm of decentralized sampling that may be given mini-batch gradients.

    batch_size, batch_order, batch_scale, batch_pool: as of ``concord.minibatches.Batches``.

    Examples
    --------
    >>> import concord
    >>> from typing import Annotated
    >>> class Decentralized(concord.Sampler):
    ...     "Langevin steps, each at an average of neighbors."
    ...     step_size: Annotated[float, "step size eta"]
    ...     def step(self, state, k, problem, network, rng):
    ...         noise = (2 * self.step_size) ** 0.5 * rng.standard_normal(state.x.shape)
    ...         move = noise - self.step_size * problem.gradient(state.x)
    ...         return state._replace(x=network.mix("metropolis", state.x, plus=move))
    >>> problem = concord.Problem(gradient=lambda x: x, agents=4, dim=2)
    >>> concord.sample(Decentralized(0.1), problem, "ring", iterations=10).chains
    100
    """


class OrderedSampler(Sampler[State], kw_only=True):
    """A sampler whose agents may move one after another (``Network.order``)."""

    update_order: Annotated[
        Order, "agents move all at once, or one after another seeing neighbors that have moved"
    ] = "simultaneous"


def own_options(kind: type[Algorithm]) -> tuple[FieldInfo, ...]:
    """Return the options of a sampler's class, without those of mini-batches and of the order."""
    shared = OrderedSampler.__struct_fields__ if issubclass(kind, Sampler) else ()
    return tuple(option for option in fields(kind) if option.name not in shared)


def check_state(state: Any, sampler: object, shape: tuple[int, ...], before: object = None) -> None:
    """Refuse a sampler's result that is no state whose positions have a given shape.

    before: the state that the step was given; None: the state is the init's.
    """
    x: Any = getattr(state, "x", None)
    fits = isinstance(x, np.ndarray) and x.shape == shape and x.dtype.kind == "f"
    if fits and type(state) is type(before):
        return
    method = f"{type(sampler).__name__}.{'init' if before is None else 'step'}"
    if before is None:
        expected = "a NamedTuple of arrays, x first"
        right = hasattr(state, "_fields") and all(isinstance(part, np.ndarray) for part in state)
    else:
        expected = f"{type(before).__name__}, as its init does"
        right = isinstance(state, type(before))
    if not right:
        remedy = "; write return state._replace(x=...)" if isinstance(state, np.ndarray) else ""
        raise ConcordError(
            f"{method} returned {type(state).__name__}, but must return {expected}"
            + remedy * (before is not None)
        )
    if not fits:
        raise ConcordError(
            f"{method} returned x of shape {np.shape(x)} and type {np.asarray(x).dtype}, but must "
            f"return real numbers of shape {shape}, that is (chains, agents, dim)"
        )


@runtime_checkable
class WithReadOut(Protocol):
    """A sampler whose draws are computed from its state, and are not the state's x."""

    def read_out(self, state: Any) -> np.ndarray:
        """Return the draw of every agent that the state stands for, (chains, agents, dim)."""


def track_average(
    network: Network, weights: str | float, vectors: np.ndarray, rest: np.ndarray, channel: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    r"""Return each agent's running estimate of the agents' average vector, and its rest.

    .. math:: y_i = \sum_j W_{ij} (r_j + g_j), \qquad r_i \leftarrow y_i - g_i

    weights: the name of W, or a step of I - step L. vectors: g, (chains, agents, dim).
    rest: r of the iteration before, zero at first; its sum over
    the agents stays zero if W is doubly stochastic. channel: that which carries r + g.
    """
    average = network.mix(weights, rest + vectors, channel=channel)
    return average, average - vectors


def langevin_noise(rng: Generator, step_size: float, like: np.ndarray) -> np.ndarray:
    r"""Return :math:`\sqrt{2 \eta}\, w` with w ~ N(0, I), of the shape and type of an array."""
    return sqrt(2 * step_size) * rng.standard_normal(like.shape, dtype=like.dtype.type)

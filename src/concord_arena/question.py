"""A caller's question to ``recommend``, and the laws by which it is answered.

On Gaussian problems of up to ``SMALL`` entries (agents times dimension) all laws are exact. On
larger ones settings are screened by ``surrogates``, and the leading ones are confirmed by their own
laws. Where agents hold local coordinates there are no surrogates: all laws are their own, up to
``LARGEST_LOCAL`` entries. On other problems laws are approximate (``concord.linearized``), and
predictions are never less than the b2 of the Gaussian fit itself, estimated by importance sampling.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any, Literal

import numpy as np
from msgspec import field, structs

from concord import linearized
from concord.errors import ConcordError
from concord.laws.exact import Moments
from concord.laws.law import laws_of_versions
from concord.laws.read_off import NoLaw
from concord.laws.wasserstein import bias2
from concord.networks.network import Network
from concord.options import Count, Options, Positive
from concord.problem import Problem, Quadratic, local_of
from concord.problems.gaussian_fit import Fit
from concord.problems.quadratic_problem import QuadraticProblem
from concord.sampler import Algorithm
from concord_arena import prices
from concord_arena.doubts import batch_errors, estimate_by_weights
from concord_arena.read_outs import bytes_of, read_out
from concord_arena.surrogates import Coordinates, CoordinatewiseLaws, split
from concord_studies.contracts import PRICES

READS: tuple[str | int, ...] = ("agents", 1, 4, 16, "average")
SMALL = 40  # entries of the positions up to which all laws are exact
LARGEST_LOCAL = 160  # entries up to which they are with local coordinates: a minute
MANY = 64  # agents beyond which settings are screened by the network's spectrum
# Iterations in which a target is to be reached, by powers and by steps: on networks with losses,
# and with mini-batches, whose laws are exact up to there.
LONGEST, LONGEST_STEPS = 2**23, 2**12


class Wish(Options):
    """A caller's wish: the least score for a budget, or the least price to a target of b2.

    budget: amounts by unit. price: the unit in which a target's price counts. level: whose score
    counts. by: the score at a budget: ``error`` of time averages, or ``b2``, the squared bias of
    the last draw.
    """

    budget: dict[Literal[tuple(PRICES)], Positive] = field(default_factory=dict)  # type: ignore[valid-type]
    target: Positive | None = None
    price: Literal[tuple(PRICES)] | None = None  # type: ignore[valid-type]
    level: Literal["worst", "average"] = "worst"
    by: Literal["error", "b2"] = "error"
    batch_size: Count | None = None

    @property
    def averages(self) -> bool:
        """Whether settings are scored by their time averages."""
        return self.by == "error" and self.target is None


class Question:
    """A problem and a network for which a sampler is sought, and the caller's wish.

    positions: mean and covariance of an agent's start. fit: the Gaussian fitted to the posterior.
    event_rng: returns a new generator of the events on the network. reads: matrix and bytes of each
    read-out that the network allows. floor: the b2 of the fit. batch_errors: covariances of
    mini-batch errors over the fit; None with full gradients. settings_tried: the number of settings
    that have been scored.
    """

    def __init__(
        self,
        problem: Problem,
        network: Network,
        positions: Moments,
        fit: Fit,
        wish: Wish,
        event_rng: Callable[[], np.random.Generator],
    ) -> None:
        self.problem, self.network, self.fit, self.wish = problem, network, fit, wish
        self.positions, self.event_rng = positions, event_rng
        self.is_exact = isinstance(problem, Quadratic)
        self.size, has_local = problem.agents * problem.dim, local_of(problem) is not None
        if has_local and self.size > LARGEST_LOCAL:
            raise ConcordError(
                f"problem: with coordinates that stay with their agent laws are computed up to "
                f"{LARGEST_LOCAL} numbers (agents times dimension), and here are {self.size}; try "
                "steps by concord.law or short runs"
            )
        self.is_small = self.size <= SMALL or has_local
        self.reads: dict[str | int, tuple[np.ndarray | None, float]] = {}
        # Rounds of averaging would mix what agents keep.
        own_alone = has_local or (wish.target is not None and not network.is_lossless)
        for read in READS[:1] if own_alone else READS:
            with suppress(ConcordError):
                mix, vectors = read_out(read, network)
                self.reads[read] = mix, bytes_of(vectors, problem)
        size = wish.batch_size
        self.batch_errors: Any = None
        self._knows_batch_errors = False
        if size is not None:
            self.batch_errors = batch_errors(problem, fit.mean, fit.cov, size)
            self._knows_batch_errors = self.is_exact and hasattr(problem, "batch_noise_covariance")
        # What is fitted is not known better than it fits.
        self.floor = 0.0
        if not self.is_exact:
            mean, variances = estimate_by_weights(problem, fit)
            self.floor = float(bias2(mean, np.diag(variances), fit.whole))
        self.settings_tried = 0

    @cached_property
    def quadratic(self) -> Any:
        """The problem if it is quadratic, else the fitted Gaussian as a problem."""
        fit = self.fit
        exact = self.is_exact
        return self.problem if exact else QuadraticProblem(fit.hessians, fit.shift, fit.local)

    @cached_property
    def coordinates(self) -> Coordinates:
        """The fit as problems of dimension one, along the posterior's principal axes."""
        return split(self.fit, self.positions)

    def price_with_read_out(self, price: Mapping[str, float], read: str | int) -> dict[str, float]:
        """Return the price of an iteration, by unit, with the bytes of a read-out added."""
        return {**price, "bytes": price["bytes"] + self.reads[read][1]}

    def count_iterations(self, price: Mapping[str, float], read: str | int) -> int:
        """Return the number of iterations that the budget pays for, or for a target the most tried.

        price: of an iteration without the read-out, by unit.
        """
        paid = self.price_with_read_out(price, read)
        if self.wish.target is not None:
            if not paid[str(self.wish.price)]:
                raise _refuse_free(str(self.wish.price))
            by_powers = self.network.is_lossless and not self._knows_batch_errors
            return LONGEST if by_powers else LONGEST_STEPS
        if not any(paid[name] for name in self.wish.budget):
            raise _refuse_free(" or ".join(self.wish.budget))
        return prices.count_iterations(self.wish.budget, paid, 10**9)

    def has_constant_errors(self, price: Mapping[str, float]) -> bool:
        """Return whether laws take the errors of mini-batches as equally large at all positions.

        Their covariances are then those over the fit. Short runs of the caller's own data are
        computed exactly. price: of an iteration, by unit.
        """
        exact = self._knows_batch_errors and self.count_iterations(price, "agents") <= LONGEST_STEPS
        return self.wish.batch_size is not None and not exact

    def laws(self, samplers: Sequence[Algorithm], own: bool, price: Mapping[str, float]) -> Any:
        """Return the laws of a sampler's settings; raise ``NoLaw`` where there are none.

        own: whether to compute the settings' own laws, exact or on a problem that is not Gaussian
        linearized, and not ``surrogates``. price: of an iteration, by unit.
        """
        network, positions, size = self.network, self.positions, self.wish.batch_size
        errors = self.batch_errors if self.has_constant_errors(price) else None
        if size is not None and self.size > SMALL:
            raise NoLaw(
                f"mini-batches are predicted for up to {SMALL} entries of the positions; sample it"
            )
        if not self.is_exact:
            linearized.refuse_local_steps(samplers)  # surrogates know even less
        if not own:
            return CoordinatewiseLaws(
                samplers, self.coordinates, network, mean=network.agents > MANY
            )
        if size is not None:
            samplers = [structs.replace(sampler, batch_size=size) for sampler in samplers]
        if not self.is_exact:
            law = linearized.LinearizedPath
            return law(samplers, self.problem, network, positions, self.fit, errors=errors)
        every = [self.problem] * len(samplers)
        return laws_of_versions(samplers, every, network, positions, most=np.inf, errors=errors)


def _refuse_free(units: str) -> ConcordError:
    """Return the error for steps that cost none of some units."""
    clock = "; give the network a clock, concord.network(..., compute={'seconds': 0.1})"
    return ConcordError(f"an iteration costs no {units}{clock * ('seconds' in units)}")

r"""FALD and VR-FALD* as printed: steps in parts of gamma-bar, and two forms of the noise.

In iteration k every client takes

.. math:: \tilde x_i = x_i - \gamma g_i + \sqrt{2 \gamma} \, w_i, \qquad
          \gamma = f \, p_c \, \bar\gamma, \quad \bar\gamma = \frac{2}{\lambda_{\min}(\Sigma^{-1})
              + \lambda_{\max}(\Sigma^{-1})}

of the posterior's covariance, and with probability p_c all take the mean. The noise is
:math:`w_i = \sqrt{\tau} \, \xi + \sqrt{1 - \tau} \, \xi_i` in equation (4) and
:math:`\sqrt{\tau / b} \, \xi + \sqrt{1 - \tau} \, \xi_i` in equation (18) and Algorithms 1 to 3.
With ``renews``,
:math:`g_i = \nabla f_i(x_i) - \nabla f_i(y) + \frac1b \sum_j \nabla f_j(y)`, where y becomes the
mean of the x_i with probability :math:`q_c = p_c`, to be used from the next step on.

Source: equations (2), (4), (5), (8) to (10) and (18), section 10.1 of fald2023.
Price: a gradient of every client per step, and for an average a vector to the server and back; for
a renewal two vectors more, and a full gradient of every client.
Needs: a server, or a single agent; a posterior whose covariance is known.
"""

from functools import cache
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.random import Generator

from concord.errors import ConcordError
from concord.needs import Needs
from concord.networks.network import Network
from concord.options import Positive, PositiveShare, Share
from concord.problem import Problem
from concord.random import draw_bool
from concord.sampler import FullGradientSampler

from ..theory import Rounds, largest_step


class State(NamedTuple):
    """Positions x, (chains, agents, dim), and of VR-FALD* what is added to gradients, like x.

    control: the mean of all clients' gradients at the reference, less the client's own; empty under
    FALD.
    """

    x: np.ndarray
    control: np.ndarray


class FALD(FullGradientSampler[State]):
    """FALD, or with ``renews`` VR-FALD*, with a part f of the step p_c gamma-bar."""

    name: ClassVar[str] = "FALD as printed"
    needs: ClassVar[Needs] = Needs(
        "server", local="takes a step that one posterior of all agents gives"
    )

    part: Annotated[Positive, "part f of the step p_c gamma-bar"]
    communication: Annotated[PositiveShare, "probability p_c that clients take the average"] = 1.0
    common_noise: Annotated[Share, "tau of the noise"] = 0.0
    renews: Annotated[bool, "VR-FALD*, whose q_c is p_c; else FALD"] = False
    noise: Annotated[
        Literal["body", "supplement"], "sqrt(tau) of equation (4), or sqrt(tau / b) of (18)"
    ] = "supplement"
    times_clients: Annotated[bool, "multiply the step by the clients, as the code does"] = False

    def check(self, problem: Problem | None, network: Network) -> None:
        """Refuse a problem whose posterior is not known, and networks that lose vectors, too."""
        super().check(problem, network)
        if problem is not None and problem.posterior is None:
            raise ConcordError(
                "part: the step is a part of gamma-bar, which needs a Gaussian posterior; use the "
                "sampler local_sgld"
            )
        if not network.is_lossless:
            raise ConcordError("network: averages at random need one that loses nothing; remove it")

    def rounds(self, problem: Any) -> Rounds:
        """Return the options on which the law depends."""
        tau, clients = self.common_noise, problem.agents
        step = self.part * self.communication * _largest_step(problem)
        step *= clients if self.times_clients else 1
        common = tau if self.noise == "body" else tau / clients
        renewal = self.communication if self.renews else None
        return Rounds(step, self.communication, renewal, 1 - tau, common)

    def init(self, x0: np.ndarray, problem: Any, network: Network, rng: Generator) -> State:
        """Return the state at x0, (chains, agents, dim), with the reference at its mean."""
        if not self.renews:
            return State(x0, np.empty(0))
        every = np.ones(len(x0), dtype=bool)
        return State(x0, self._renew(np.zeros_like(x0), x0, every, problem, network))

    def step(self, state: State, k: int, problem: Any, network: Network, rng: Generator) -> State:
        """Take a local step of every client, renew the reference perhaps, and average perhaps."""
        (x, control), rounds = state, self.rounds(problem)
        g = problem.gradient(x) + (control if self.renews else 0.0)
        w = np.sqrt(rounds.own) * rng.standard_normal(x.shape, dtype=x.dtype.type)
        if rounds.common:
            shared = rng.standard_normal(x[:, :1].shape, dtype=x.dtype.type)
            w = w + np.sqrt(rounds.common) * shared
        if self.renews:
            renewed = draw_bool(rng, self.communication, len(x))
            control = self._renew(control, x, renewed, problem, network)
        x = x - rounds.step * g + np.sqrt(2 * rounds.step) * w
        averaged = draw_bool(rng, self.communication, len(x))
        return State(network.mix("metropolis", x, chains=averaged), control)

    def _renew(
        self, control: np.ndarray, x: np.ndarray, renewed: np.ndarray, problem: Any, network: Any
    ) -> np.ndarray:
        """Return controls, those at the mean of x in the chains of a mask, (chains,)."""
        if not renewed.any():
            return control
        y = network.mix("metropolis", x, chains=renewed)
        gradient = problem.full_gradient(y, chains=renewed)
        mean = network.mix("metropolis", gradient, chains=renewed)
        return np.where(renewed[:, None, None], mean - gradient, control)


@cache
def _largest_step(problem: Any) -> float:
    """Return gamma-bar of a problem's posterior."""
    return largest_step(np.linalg.inv(problem.posterior.cov))

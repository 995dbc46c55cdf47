r"""Eight schools: effects of a hierarchy, one school an agent.

.. math::
    y_i \sim N(\theta_i, \sigma_i^2), \qquad \theta_i \sim N(\mu, \tau^2), \qquad
    \mu \sim N(0, 5^2), \quad \tau \sim \mathrm{Cauchy}^+(0, 5)

Agents sample :math:`x = (\mu, \lambda)`, :math:`\lambda = \log \tau`; the theta_i are integrated
out:

.. math::
    f_i(x) = \tfrac12 \log(\sigma_i^2 + \tau^2) + \frac{(y_i - \mu)^2}{2 (\sigma_i^2 + \tau^2)}
             + \frac1N \Bigl[ \frac{\mu^2}{50} + \log(1 + \tau^2 / 25) - \lambda \Bigr]

Source: D. B. Rubin, Journal of Educational Statistics 6 (1981) 377-401 (the data); the priors are
those of posteriordb's eight_schools. ``reference`` holds the posterior on a dense grid. It falls
off as e^lambda on the left, where all schools have one effect.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from concord.contracts import DataSets, Stream
from concord.errors import ConcordError
from concord.laws.quadrature import Grid, from_log_density
from concord.options import Options
from concord.problems.one_data_set import TwoParameters
from concord.sampling.partition import Partition
from concord_studies.problems._tabled import TableProblem

EFFECTS = (28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0)
ERRORS = (15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0)
SPREAD = 5.0  # of mu's prior and of tau's
CELLS = 800


class Params(Options):
    """The problem has no options."""


def check(params: Params, agents: int) -> None:
    """Raise a ConcordError unless there are eight agents, one for each school."""
    if agents != len(EFFECTS):
        raise ConcordError(f"eight schools are 8 agents, not {agents}; set agents to 8")


def build(
    params: Params, agents: int, partition: Partition, stream: Stream, data_sets: DataSets
) -> Schools:
    """Return the problem on the published data of eight schools."""
    return Schools()


class Schools(TwoParameters, TableProblem):
    """The hierarchical model of eight studies of one effect, one study for each agent."""

    agents, dim = 8, 2
    tables = np.array(EFFECTS), np.array(ERRORS) ** 2

    def potentials_at(self, x: np.ndarray, effects: np.ndarray, squares: np.ndarray) -> np.ndarray:
        """Return the potentials (...) at x (..., 2) of agents with these rows of ``tables``.

        effects, squares: the schools' estimates, and their squared standard errors.
        """
        mu, log_tau = x[..., 0], x[..., 1]
        variance = squares + np.exp(2 * log_tau)
        likelihood = 0.5 * (np.log(variance) + (effects - mu) ** 2 / variance)
        prior = mu**2 / (2 * SPREAD**2) + np.logaddexp(0, 2 * (log_tau - np.log(SPREAD))) - log_tau
        return likelihood + prior / self.agents

    def gradients_at(self, x: np.ndarray, effects: np.ndarray, squares: np.ndarray) -> np.ndarray:
        """Return the gradients (..., 2) of ``potentials_at``, from the same arguments."""
        mu, log_tau = x[..., 0], x[..., 1]
        between = np.exp(2 * log_tau)
        variance = squares + between
        error = (mu - effects) / variance
        share = np.tanh(log_tau - np.log(SPREAD))  # 2 tau^2 / (25 + tau^2) - 1
        along_mu = error + mu / (SPREAD**2 * self.agents)
        along_log_tau = between * (1 / variance - error**2) + share / self.agents
        return np.stack([along_mu, along_log_tau], axis=-1)

    @cached_property
    def reference(self) -> Grid:
        """Return the posterior on a dense grid of (mu, log tau)."""
        reach = 9 * SPREAD + max(EFFECTS)
        return from_log_density(self.log_posterior, ((-reach, reach), (-40.0, 20.0)), CELLS)

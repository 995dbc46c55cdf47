r"""Logistic regression on Breast Cancer (569 x 30 and an intercept), with a certified reference.

The potentials are those of ``logistic_regression`` with ``dataset: breast_cancer`` and the prior
N(0, I), shared. ``reference`` are 10 000 draws of a long run of MALA, which are made once
(``stages.certify``): each mean is uncertain by a hundredth of a standard deviation, the
worst of the 62 monomials by three, so that a squared bias below 1e-3 posterior variances says
nothing.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

import numpy as np

from concord.contracts import DataSets, Stream
from concord.errors import ConcordError
from concord.laws.reference_laws import Draws
from concord.options import Options
from concord.problems.kinds import logistic_regression
from concord.problems.kinds.logistic_regression import LogisticRegression
from concord.sampling.partition import AgentData, Partition
from concord_studies.contracts import ProblemDeclaration
from concord_studies.datasets.registry import verify
from concord_studies.problems import logistic_regression_data

MODEL = logistic_regression_data.Params(dataset="breast_cancer")
DRAWS = "breast_cancer_posterior/draws.npy"
DECLARES = ProblemDeclaration(name="Breast Cancer", needs=lambda params: (DRAWS.partition("/")[0],))


class Params(Options):
    """The problem has no options: its reference is that of one posterior."""


def check(params: Params, agents: int) -> None:
    """Raise a ConcordError if there are more agents than points."""
    logistic_regression_data.check(MODEL, agents)


def build(
    params: Params, agents: int, partition: Partition, stream: Stream, data_sets: DataSets
) -> BreastCancer:
    """Standardize the data set, and split its rows over the agents."""
    plain = logistic_regression_data.build(MODEL, agents, partition, stream, data_sets)
    return BreastCancer(plain.data, data_sets.folder / DRAWS)


class BreastCancer(LogisticRegression):
    """Logistic regression on Breast Cancer with reference draws in a file."""

    def __init__(self, data: AgentData, draws: Path) -> None:
        super().__init__(data, logistic_regression.Params())
        self._draws = draws

    @cached_property
    def reference(self) -> Draws:
        """Return the posterior's draws. A ConcordError if their file is missing or has changed."""
        if not self._draws.exists():
            raise ConcordError(
                f"{self._draws}: the reference's draws are not made yet; make them with `concord "
                f"fetch {DRAWS} -o {self._draws}`"
            )
        return Draws(np.load(verify(DRAWS, self._draws), allow_pickle=False))

"""Random parts with different sizes and class shares.

For each class the agents' shares of its rows are drawn from the symmetric Dirichlet law; the
smaller the concentration, the more the agents differ. Shares are drawn again until every agent has
at least the minimum of rows.
"""

from typing import Annotated

import numpy as np

from concord.errors import ConcordError
from concord.options import Count, Options, Positive
from concord.sampling.partition import Parts, check_rows

# Draws of the shares before a minimum is declared out of reach.
ATTEMPTS = 1000


class Params(Options):
    """The law of the shares, and the fewest rows of an agent."""

    concentration: Annotated[Positive, "parameter of the Dirichlet law of the agents' shares"]
    minimum: Annotated[Count, "fewest rows of an agent"] = 1


def split(
    params: Params, rows: int, labels: np.ndarray | None, agents: int, rng: np.random.Generator
) -> Parts:
    """Return each agent's row numbers, with shares of every label drawn from a Dirichlet law.

    A ConcordError if the rows have no classes or are too few, or no draw of ``ATTEMPTS`` meets the
    minimum.
    """
    if labels is None:
        raise ConcordError(
            "kind dirichlet needs rows with classes, which this problem does not have; use equal "
            "or sizes"
        )
    concentration, minimum = params.concentration, params.minimum
    check_rows(rows, agents, minimum)
    classes, members = np.unique(labels, return_counts=True)
    for _ in range(ATTEMPTS):
        shares = rng.dirichlet(np.full(agents, concentration), size=len(classes))
        inner = np.rint(np.cumsum(shares[:, :-1], axis=1) * members[:, None]).astype(int)
        ends = np.column_stack([np.zeros_like(members), inner, members])
        if np.diff(ends, axis=1).sum(axis=0).min() >= minimum:
            break
    else:
        raise ConcordError(
            f"no draw of {ATTEMPTS} gave each of {agents} agents the minimum of {minimum} rows "
            f"at concentration {concentration}; lower the minimum or raise the concentration"
        )
    of_class = [rng.permutation(np.flatnonzero(labels == label)) for label in classes]
    pieces = [np.split(row, end[1:-1]) for row, end in zip(of_class, ends, strict=True)]
    return [np.concatenate(part) for part in zip(*pieces, strict=True)]

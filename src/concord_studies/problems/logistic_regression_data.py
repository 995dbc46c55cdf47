"""Bayesian logistic regression on a data set with labels, or on a registered table of points.

The model is that of ``logistic_regression``. A table says which agent holds which row, of the data
set or of its own points.

Needs: nothing for breast_cancer; magic and tables are fetched.
"""

from typing import Annotated, Literal

import numpy as np
from msgspec import Meta

from concord.contracts import DataSets, Stream
from concord.errors import ConcordError
from concord.options import Options, Positive
from concord.problems._regression import PriorShare
from concord.problems.kinds import logistic_regression
from concord.problems.kinds.logistic_regression import LogisticRegression, Rows
from concord.sampling.partition import AgentData, Partition, Parts, check_rows
from concord_studies.contracts import ProblemDeclaration
from concord_studies.datasets.points import Table, read_points, required_tables, split_test_rows

# Rows of the data sets; those in DOWNLOADED are read from files.
ROWS = {"breast_cancer": 569, "magic": 19020}
DOWNLOADED = ("magic",)


class Params(Options):
    """Options of the points and their scale, and of the prior."""

    dataset: Annotated[
        Literal["breast_cancer", "magic"] | None, "data set; none: points of the table"
    ] = None
    table: Table = None
    test_fraction: Annotated[
        float,
        Meta(ge=0, le=0.9),
        "fraction of a data set's rows, chosen at random, kept from the agents for testing",
    ] = 0.0
    intercept: Annotated[
        Literal["ones", "zeros", "none"],
        "a data set's column for the intercept: ones, or the zeros that standardizing it with the "
        "features leaves, as gurbuzbalaban2021's authors do; none: no column",
    ] = "ones"
    features: Annotated[
        Literal["standardized", "unit", "raw"],
        "a data set's features: of mean 0 and variance 1 over the rows not for testing, scaled to "
        "[0, 1] there, or as they come",
    ] = "standardized"
    prior: Annotated[Literal["gaussian", "laplace"], "prior family"] = "gaussian"
    prior_scale: Annotated[
        Positive, "variance v of the Gaussian prior, or scale b of the Laplace prior"
    ] = 1.0
    prior_share: PriorShare = "split"


def check(params: Params, agents: int) -> None:
    """Raise a ConcordError for more agents than rows, or without rows."""
    if params.dataset is not None:
        rows = ROWS[params.dataset]
        check_rows(rows - _count_test_rows(params, rows), agents)
    elif params.table is None:
        raise ConcordError(f"dataset: there is none; name one of {', '.join(ROWS)}, or a table")


def needs(params: Params) -> tuple[str, ...]:
    """Return the names of the data sets that must be fetched."""
    dataset = (params.dataset,) if params.dataset in DOWNLOADED else ()
    return dataset + required_tables(params)


DECLARES = ProblemDeclaration(needs=needs)


def build(
    params: Params, agents: int, partition: Partition, stream: Stream, data_sets: DataSets
) -> LogisticRegression:
    """Read the points, and split them over the agents.

    A data set's features are standardized over all rows that are not for testing, and get an
    intercept column of ones, unless the options say otherwise. Rows that nobody holds, by a table,
    are for testing.
    """
    test = parts = None
    if params.table is not None:
        features, labels, parts = read_points(params.table, data_sets, agents, partition)
    if params.dataset is not None:
        features, labels, test = _load(params, params.dataset, stream, data_sets, parts)
    if parts is None:
        parts = partition.split(labels, agents, stream("partition"))
    model = logistic_regression.Params(
        prior=params.prior, prior_scale=params.prior_scale, prior_share=params.prior_share
    )
    data = AgentData.from_parts(features, labels.astype(float), parts)
    return LogisticRegression(data, model, test=test)


def _load(
    params: Params, dataset: str, stream: Stream, data_sets: DataSets, parts: Parts | None
) -> tuple[np.ndarray, np.ndarray, Rows | None]:
    """Load a data set's training features and labels, and its test rows if there are any.

    parts: each agent's rows by a table; then the rows of no agent are for testing, and all rows are
    returned. None: the agents' rows are not known yet.
    """
    features, labels = data_sets.points(dataset)
    if parts is None:
        training, testing = split_test_rows(
            len(labels), _count_test_rows(params, len(labels)), stream
        )
    else:
        training = np.sort(np.concatenate(parts))
        testing = np.setdiff1d(np.arange(len(labels)), training)
    training_features = features[training]
    if params.features == "unit":
        features = (features - training_features.min(axis=0)) / np.ptp(training_features, axis=0)
    elif params.features == "standardized":
        features = (features - training_features.mean(axis=0)) / training_features.std(axis=0)
    if params.intercept != "none":
        column = np.full(len(features), float(params.intercept == "ones"))
        features = np.column_stack([features, column])
    test = (features[testing], labels[testing]) if len(testing) else None
    if parts is not None:
        return features, labels, test
    return features[training], labels[training], test


def _count_test_rows(params: Params, rows: int) -> int:
    """Return the number of test rows of a data set with this many rows."""
    return round(params.test_fraction * rows)

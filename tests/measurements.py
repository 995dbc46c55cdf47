"""What metrics read, made of what a test is about."""

from pathlib import Path
from typing import Any

from concord.minibatches import Batches
from concord.problems.kinds import linear_regression
from concord.sampling import partition, streams
from concord_studies.metrics import Measurement

NOTHING = dict.fromkeys(("problem", "network", "sampler", "initial"))


def measurement(trace: Any, **given: Any) -> Measurement:
    """Return the measurement of a trace, of whose run only this is known."""
    if "iterations" not in given:
        given["iterations"] = int(trace.draw[-1])
    usual = {"batches": Batches(), "stream": lambda what: streams.generator(1, what)}
    return Measurement(trace=trace, **NOTHING | usual | given)


def regression(agents: int, dim: int, share: Any = "split", points: int = 3) -> Any:
    """Return a regression with about ``points`` per agent, not equally many."""
    params = linear_regression.Params(points=points * agents + 1, dim=dim, prior_share=share)
    split = partition.Partition.parse({"kind": "equal"}, "tests")
    stream = lambda what: streams.generator(3, what, agents)  # noqa: E731
    return linear_regression.build(params, agents, split, stream, Path("unused"))

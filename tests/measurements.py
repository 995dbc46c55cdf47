"""What metrics read, made of what a test is about."""

from typing import Any

from concord import streams
from concord.minibatches import Batches
from concord_studies.metrics import Measurement

NOTHING = dict.fromkeys(("problem", "network", "sampler", "initial"))


def measurement(trace: Any, **given: Any) -> Measurement:
    """Return the measurement of a trace, of whose run only this is known."""
    if "iterations" not in given:
        given["iterations"] = int(trace.draw[-1])
    usual = {"batches": Batches(), "stream": lambda what: streams.generator(1, what)}
    return Measurement(trace=trace, **NOTHING | usual | given)

"""Many inputs, each within limits of time and memory, and none left over on the disk."""

import resource
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from harness import limit_memory, limited
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reliability import Reliability

sys.path.append(str(Path(__file__).parents[1] / "workflow"))  # for its project at smoke scale

MEMORY = 2 << 30  # bytes beyond what the tests themselves have taken


@pytest.fixture(autouse=True)
def little_memory() -> Iterator[None]:
    """Let an allocation of gigabytes fail at once instead of filling the machine."""
    before = limit_memory(MEMORY)
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


Tries = Callable[..., int]


@pytest.fixture
def tries(effort: int, reliability: Reliability) -> Tries:
    """Try inputs: ``tries(what, rule, count, check, *strategies)`` returns how many were tried.

    ``count`` is for effort 1. The first that ``check`` fails on is reduced and reported; it is the
    one failure of those that are noted, since none is tried after it.
    """

    def run(what: str, rule: str, count: int, check: Callable[..., None], *strategies: Any) -> int:
        done = failed = 0

        @settings(max_examples=count * effort, suppress_health_check=list(HealthCheck))
        @given(st.tuples(*strategies))
        def each(inputs: tuple[Any, ...]) -> None:
            nonlocal done, failed
            done += not failed  # from then on inputs are reduced ones
            try:
                with limited():
                    check(*inputs)
            except BaseException:
                failed = 1
                raise

        try:
            each()
        finally:
            reliability("inputs", what, done, failed, rule)
        return done

    return run

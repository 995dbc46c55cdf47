"""Files whose times tell nothing: clocks that go wrong, copies, archives that are unpacked."""

import os
import random
import time

import pytest
from tiny_project import ALL

pytestmark = [pytest.mark.workflow, pytest.mark.thorough]

TEN_YEARS = 10 * 365 * 24 * 3600


def test_times_alone_have_nothing_made_again(copy, effort, reliability):
    """Times of inputs and results that are the same, or any."""
    rng, wrong = random.Random(4), []
    paths = [p for p in sorted(copy.folder.rglob("*")) if ".snakemake" not in p.parts]
    for _ in range(effort):
        now = time.time()
        for path in paths:
            skew = rng.choice([0, rng.uniform(-TEN_YEARS, TEN_YEARS)])
            os.utime(path, (now + skew,) * 2)
        jobs = copy.jobs(*ALL)
        if jobs:
            wrong.append(jobs)
    rule = "nothing is made again, for nothing has changed"
    reliability("faults", "wrong times of all files", effort, len(wrong), rule)
    assert not wrong

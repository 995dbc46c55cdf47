"""Files whose times tell nothing: clocks that go wrong, copies, archives that are unpacked."""

from __future__ import annotations

import os
import random
import time

import pytest
from tiny_project import ALL

pytestmark = pytest.mark.workflow

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


def test_what_has_changed_is_made_again_whatever_its_time(copy, reliability):
    """Code, a template and a setting that look ten years older than the results."""
    changes = {
        "src/concord/samplers/de_sgld.py": "\n# changed\n",
        "workflow/report/page.html": "\n",
        "config/expected_verdicts.yaml": "\n# changed\n",
    }
    for name, text in changes.items():
        path = copy.folder / name
        path.write_text(path.read_text() + text)
        os.utime(path, (time.time() - TEN_YEARS,) * 2)
    jobs = copy.jobs(*ALL)
    expected = {"sample": 2, "measure": 2, "table": 1, "judge": 1, "join": 1, "compare": 1}
    missing = [rule for rule, count in expected.items() if jobs.get(rule) != count]
    rule = "what depends on them is made again"
    reliability("faults", "changes with an old time", len(changes), int(bool(missing)), rule)
    assert not missing

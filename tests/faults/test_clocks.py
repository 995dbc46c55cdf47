"""Files whose times tell nothing: clocks that go wrong, copies, archives that are unpacked."""

import os
import random
import time

import pytest
from tiny_project import ALL, EXPERIMENT, FIGURE, RESULTS, differing

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


def test_an_input_from_the_future_is_named(project, finished, reliability):
    """Snakemake makes nothing from it; once its time is set right, the same command goes on.

    Code may be from the future: it is known by its content.
    """
    target, batch = FIGURE, f"{RESULTS}/{EXPERIMENT}/batch_0.made.json"
    for code in (project.folder / "src").rglob("*.py"):
        os.utime(code, (time.time() + TEN_YEARS,) * 2)
    project.make(batch)
    os.utime(project.folder / batch, (time.time() + TEN_YEARS,) * 2)
    future = project.snakemake(target)
    os.utime(project.folder / batch)
    again = project.snakemake(target)
    made, expected = project.made(), finished.made()
    differs = differing(made, {name: expected.get(name, b"") for name in made})
    ok = future.returncode != 0 and f"than input {batch}" in future.stdout
    ok = ok and again.returncode == 0 and not differs
    rule = "the error names it; with its time set right the same command makes the same bytes"
    reliability("faults", "input from the future", 1, int(not ok), rule)
    assert ok, (future.stdout, again.stdout, differs)


def test_what_has_changed_is_made_again_whatever_its_time(copy, reliability):
    """Code, of a sampler and of pages, and a setting that look ten years older than the results."""
    changes = {
        "src/concord/samplers/de_sgld.py": "\n# changed\n",
        "src/concord_studies/markup.py": "\n# changed\n",
        "config/expected_verdicts.yaml": "\n# changed\n",
    }
    for name, text in changes.items():
        path = copy.folder / name
        path.write_text(path.read_text() + text)
        os.utime(path, (time.time() - TEN_YEARS,) * 2)
    jobs = copy.jobs(*ALL)
    expected = {"measure": 1, "table": 1, "judge": 1, "join": 1, "compare": 1}
    missing = [rule for rule, count in expected.items() if jobs.get(rule) != count]
    rule = "what depends on them is made again"
    reliability("faults", "changes with an old time", len(changes), int(bool(missing)), rule)
    assert not missing

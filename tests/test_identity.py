"""The identity of a run: run.yaml states every option, so a default that changes is seen."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from concord import runs
from concord.errors import ConcordError
from concord.io import dump_yaml
from concord.provenance import digest
from concord.runs import load_run
from concord.studies.config import load_papers

PARTS = ("problem", "sampler", "topology", "partition", "initial", "record")


def options_of(run):
    """Return the typed options of a run's parts, by part."""
    options = runs.parse(run, "run")
    parts = {part: getattr(options, part) for part in PARTS}
    return parts | {"partition": options.partition.options}


@pytest.fixture(scope="module")
def stated():
    """Every run of all papers as its paper's file states it, before defaults are written out."""
    found, complete = [], runs.complete

    def noting(run, where):
        found.append(run)
        return complete(run, where)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs, "complete", noting)
        _, papers = load_papers(Path("config"), checked=True)
        for paper in papers.values():
            assert paper.runs
    return found


def digests(stated):
    return [digest(runs.complete(run, "run")) for run in stated]


def test_each_default_is_part_of_the_runs_that_rest_on_it_and_of_no_others(stated, monkeypatch):
    users = {}
    for number, run in enumerate(stated):
        for part, options in options_of(run).items():
            users.setdefault((part, type(options)), []).append(number)
    before, seen = digests(stated), 0
    for (part, kind), numbers in users.items():
        for field in dataclasses.fields(kind):
            if field.default is dataclasses.MISSING:
                continue
            number = isinstance(field.default, float)
            with monkeypatch.context() as patch:
                patch.setattr(field, "default", 0.0625 if number else "another default")
                after = digests([stated[number] for number in numbers])
            changed = {n for n, new in zip(numbers, after, strict=True) if new != before[n]}
            rests = {n for n in numbers if field.name not in stated[n][part]}
            assert changed == rests, (part, kind, field.name)
            seen += bool(rests)
    assert seen > 40


def test_what_a_run_states_is_what_it_is_made_with(stated):
    """Written out and read again it is the same, and nothing is left to a default."""
    for run in stated:
        whole = runs.complete(run, "run")
        assert runs.complete(whole, "run") == whole
        assert options_of(whole) == options_of(run)
        for part, options in options_of(run).items():
            assert {field.name for field in dataclasses.fields(options)} <= set(whole[part])


def test_a_run_that_leaves_an_option_out_is_refused(stated, tmp_path):
    run = next(run for run in stated if run["sampler"]["kind"] == "de_sgld")
    run = runs.complete(run, "run")
    path = tmp_path / "run.yaml"
    path.write_text(dump_yaml(run))
    assert load_run(path)[0] == run
    for part, key in (
        ("problem", "prior_variance"),
        ("sampler", "update_order"),
        ("record", "every"),
    ):
        less = {name: value for name, value in run[part].items() if name != key}
        path.write_text(dump_yaml({**run, part: less}))
        with pytest.raises(ConcordError, match=f"{part}.{key} is not stated; delete the file"):
            load_run(path)

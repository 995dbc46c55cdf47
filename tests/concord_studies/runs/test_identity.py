"""The identity of a run: its document states every option, so a default that changes is seen."""

from importlib import import_module
from pathlib import Path
from unittest.mock import Mock

import msgspec
import pytest

import everything
from concord import kinds
from concord.errors import ConcordError
from concord.hints import choices
from concord.kinds import options_of
from concord_studies import experiment
from concord_studies.configuration.project import load_studies
from concord_studies.digests import digest
from concord_studies.runs.run import Run

PARTS = "problem", "sampler", "topology", "partition", "initial", "record", "network", "arena"


def document(run):
    """Return the document of a stated run."""
    return Run.from_document(run, "run").document


@pytest.fixture(scope="module")
def stated():
    """Every run of all papers as its paper's file states it, before defaults are written out."""
    found, made = [], Run.from_document.__func__

    def noting(cls, run, where):
        found.append(run)
        return made(cls, run, where)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Run, "from_document", classmethod(noting))
        _, papers = load_studies(Path("config"), checked=True)
        for paper in papers.values():
            assert paper.runs
    return [{key: value for key, value in run.items() if value is not None} for run in found]


def change_default(patch, module, field, other):
    """Give an option of a problem's or sampler's kind another default."""
    owner = options_of(module)
    own = {"__annotations__": {field.name: field.type}, field.name: other}
    changed = type(owner)(owner.__name__, (owner,), {**own, "__module__": owner.__module__})
    if isinstance(module, type):
        found = kinds.kind_in_module

        def kind_in_module(room, of):
            return changed if (kind := found(room, of)) is module else kind

        patch.setattr(kinds, "kind_in_module", kind_in_module)
        patch.setattr(  # which remembers
            kinds, "_import_built_in", lambda room, of: kind_in_module(room, import_module(of))
        )
    else:
        patch.setattr(module, "Params", changed)


def test_each_default_is_part_of_the_runs_that_rest_on_it_and_of_no_others(stated, monkeypatch):
    """A sampler's or problem's default that changes changes the digests of just those runs."""
    users, seen = {}, 0
    for run in stated:
        for part in ("sampler", "problem"):
            module = kinds.find(f"{part}s", run[part]["kind"], "test")
            users.setdefault((part, module), []).append(run)
    for (part, module), using in users.items():
        before = [digest(document(run)) for run in using]
        for field in msgspec.structs.fields(options_of(module)):
            if field.required or field.default is None:
                continue
            listed = [c for c in choices(field.type) if c != field.default]
            number = isinstance(field.default, (int, float)) and not listed
            other = next(iter(listed), 7 if number else None)
            if other is None:
                continue
            with monkeypatch.context() as patch:
                change_default(patch, module, field, other)
                try:
                    after = [digest(document(run)) for run in using]
                except (ConcordError, msgspec.ValidationError):  # one that needs others
                    continue
            rests = [field.name not in run[part] for run in using]
            assert [a != b for a, b in zip(before, after, strict=True)] == rests
            seen += any(rests)
    assert seen > 15


def test_what_a_run_states_is_what_it_is_made_with(stated):
    """Written out and read again it is the same, and nothing is left to a default."""
    for run in stated:
        whole = document(run)
        assert document(whole) == whole
        made = Run.from_document(run, "run")
        for part in PARTS:
            options = getattr(made, part)
            options = getattr(options, "options", getattr(options, "params", options))
            if options is not None:
                fields = {field.name for field in msgspec.structs.fields(options)}
                assert fields <= set(whole[part]), part


def test_runs_share_a_problem_where_they_have_the_same_data_and_nowhere_else(monkeypatch):
    study = everything.studies()["bajwa2025"]
    first, second, *_ = study.runs_of("logistic")
    others = [
        second.vary(agents=second.agents + 1),
        second.vary(seed=second.seed + 1),
        second.vary(problem=study.runs_of("steps")[0].problem),
    ]
    digests = [run.problem_digest for run in (first, second, *others)]
    assert digests[0] == digests[1]
    assert len(set(digests)) == 1 + len(others)
    monkeypatch.setattr(Run, "build_problem", lambda run, resources: object())
    monkeypatch.setattr(experiment, "sample_run", lambda run, problem: Mock())
    monkeypatch.setattr(experiment, "measurement", lambda run, problem, *_: problem)
    monkeypatch.setattr(experiment.metrics, "measure", lambda metrics, problem: problem)
    runs = {"one": first, "same": second, "other": others[0]}
    problems, _ = experiment.build_experiment(study.path, runs).measure(Path("resources"))
    assert problems["one"] is problems["same"] is not problems["other"]

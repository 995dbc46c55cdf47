"""Kinds are found by their files' names: there is no second list."""

import re
from collections import defaultdict
from importlib import import_module
from pathlib import Path

import pytest

import everything
from concord import kinds
from concord.errors import ConcordError
from concord_studies.configuration.config import load_config
from concord_studies.configuration.study import Study
from concord_studies.digests import digest_file
from concord_studies.stages import draw
from processes import python


def test_a_file_is_a_kind_as_soon_as_it_is_there(tmp_path, monkeypatch):
    """But for files of helpers, whose names start with an underscore."""
    for name in ("of_mine.py", "_of_mine.py", "notes.txt"):
        (tmp_path / name).touch()
    folders = [*import_module("concord.samplers").__path__, str(tmp_path)]
    monkeypatch.setattr(kinds, "_folders", lambda package: folders)
    sources = kinds._built_in_sources.__wrapped__("samplers")  # not what it remembers
    assert set(sources) == {*kinds.built_in("samplers"), "of_mine"}


def test_a_misspelled_kind_suggests_the_nearest():
    with pytest.raises(ConcordError) as caught:
        kinds.find("samplers", "de_sgldx", "x.yaml: sampler")
    sentence = "x.yaml: sampler.kind: there is no sampler 'de_sgldx'; did you mean 'de_sgld'?"
    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    "kind", ["", "_axes", "panels", "style", None, 3, ["curves"], "../samplers/c_ula"]
)
def test_what_is_not_a_kind_cannot_be_chosen(kind):
    with pytest.raises(ConcordError, match=r"there is no figure"):
        kinds.find("figures", kind, "x")


@pytest.mark.parametrize(
    ("declares", "name", "sentence"),
    [
        ("ProblemDeclaration(name='My problem')", "My problem", None),
        ("ProblemDeclaration(nam='My problem')", "", "line 3: .*unexpected keyword argument 'nam'"),
    ],
)
def test_a_problem_declares_what_is_to_be_said_of_it(tmp_path, declares, name, sentence):
    path = tmp_path / "plugins" / "problems" / "mine.py"
    path.parent.mkdir(parents=True)
    path.write_text(
        "from concord_studies.contracts import ProblemDeclaration\n"
        "from concord.options import Options as Params\n"
        f"DECLARES = {declares}\n"
        "check = build = print\n"
    )
    kinds.use(tmp_path)
    if sentence is None:
        assert kinds.display_name(kinds.find("problems", "mine")) == name
    else:
        with pytest.raises(ConcordError, match=sentence) as caught:
            kinds.find("problems", "mine")
        assert str(path) in str(caught.value)


def test_samplers_and_problems_start_quickly():
    """None of them imports at its top what costs start-up time and is needed by few."""
    rooms = ("samplers", "problems")
    modules = [source.module for room in rooms for source in kinds._built_in_sources(room).values()]
    code = f"import importlib, sys; [importlib.import_module(m) for m in {modules}]"
    loaded = {name.partition(".")[0] for name in python(f"{code}; print(*sys.modules)").split()}
    heavy = {"matplotlib", "pandas", "sklearn", "ot", "torch", "scipy", "networkx", "h5netcdf"}
    assert "numpy" in loaded and not loaded & heavy


OF_LIBRARY = {"samplers", "topologies", "partitions", "schedules", "initial", "compressions"}


def files_of(study: Study) -> set[Path]:
    """Return the files of the kinds that a study names, or that its plug-ins import."""
    files = {path for run in study.runs.values() for path in run.modules}
    files |= {kinds.location("metrics", m) for run in study.runs.values() for m in run.metrics}
    for section in ("figures", "tables"):
        for name, output in study.outputs(section).items():
            files.add(kinds.location(section, output.kind))
            files |= {*draw._locate_chosen(study.kind_of(section, name)[1])}
    plug_ins = [str(path) for path in (study.path / "plugins").rglob("*.py")]
    return files | {Path(file) for path in plug_ins for file in digest_file(path).files}


def test_what_one_study_alone_needs_is_in_its_folder():
    """A kind of studies in src serves two of them or src itself, or a document offers it to users.

    Kinds of the library's rooms are for every caller of Concord. Pages on the arena and those of
    the ledger are of studies.
    """
    users: dict[Path, set[str]] = defaultdict(set)
    for folder in everything.STUDIES:
        for path in files_of(Study(folder, load_config())):
            users[path].add(folder.name)
    for path in (everything.ROOT / "src").rglob("*.py"):
        for file in map(Path, digest_file(str(path)).files):
            if file.parent != path.parent:
                users[file] |= {"src", "all studies"}
    pages = [everything.ROOT / "config" / "README.md", *(everything.ROOT / "docs").glob("*.md")]
    of_studies = ("arena", "ledger", "papers", "three-papers")
    text = "".join(page.read_text() for page in pages if not page.stem.startswith(of_studies))
    alone = {
        f"{room}/{kind}": users[kinds.location(room, kind)]
        for room in kinds.ROOMS.keys() - OF_LIBRARY
        for kind in kinds.built_in(room)
        if len(users[kinds.location(room, kind)]) < 2
        and not re.search(rf"[`\"]{kind}[`\"]|kind: {kind}\b", text)
    }
    assert alone == {}, (
        "a kind in src serves two studies, or a document names it for users in backticks; "
        "move it to the plugins of its study, or name it there"
    )

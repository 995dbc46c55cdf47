"""What counts as a plug-in's code: its distribution, others by version, and what is refused."""

import json
import os
from importlib import metadata
from pathlib import Path

import pytest

from concord.errors import ConcordError
from concord_studies import distributions
from concord_studies.provenance import SOURCE, code, module_files, watch
from processes import python

LADDER = '''"""Two lines of agents, side by side, with rungs between them."""

{imports}
from concord.options import Options


class Params(Options):
    """It has no options."""


def graph(params, agents):
    import networkx as nx

    return nx.convert_node_labels_to_integers(nx.ladder_graph(agents // 2))
'''
SCRIPT = """
from concord_studies import plugins
from concord_studies import provenance
plugins.plugin("topologies", "rungs", "x")
path = plugins.location("topologies", "rungs")
print(provenance.code("concord.networks.topology", path))
"""


def install(site: Path, name: str, files: dict[str, str], entry: str = "", **more: str) -> None:
    """Write a distribution as an installer does; ``more`` are files of its metadata."""
    info = f"{name.replace('-', '_')}-1.0.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n{more.pop('requires', '')}"
    entries = f"[concord.topologies]\nrungs = {entry}\n" if entry else ""
    about = {"METADATA": metadata, "entry_points.txt": entries, **more}
    files = files | {f"{info}/{file}": text for file, text in about.items()}
    for file, text in files.items():
        (site / file).parent.mkdir(parents=True, exist_ok=True)
        (site / file).write_text(text)
    record = "".join(f"{file},,\n" for file in [*files, f"{info}/RECORD"])
    (site / info / "RECORD").write_text(record)


def digest(*folders: Path, script: str = SCRIPT) -> str:
    """Return the digest of a plug-in's code in a process of its own."""
    return python(script, PYTHONPATH=os.pathsep.join(map(str, [SOURCE, *folders])))


def namespace(site: Path) -> Path:
    ladder = LADDER.format(imports="from rungs_of.words import ODD")
    files = {"rungs_of/ladder.py": ladder, "rungs_of/words.py": "ODD = 1\n"}
    install(site, "of-rungs", files, "rungs_of.ladder")
    install(site, "another-part", {"rungs_of/other.py": ""})
    return site / "rungs_of" / "words.py"


def two_modules(site: Path) -> Path:
    files = {"ladder.py": LADDER.format(imports="from ladder_words import ODD")}
    install(site, "of-rungs", files | {"ladder_words.py": "ODD = 1\n"}, "ladder")
    return site / "ladder_words.py"


def by_import_module(site: Path) -> Path:
    name = "import importlib\n\nODD = importlib.import_module('rungs.' + 'words').ODD"
    files = {"rungs/ladder.py": LADDER.format(imports=name), "rungs/__init__.py": ""}
    install(site, "of-rungs", files | {"rungs/words.py": "ODD = 1\n"}, "rungs.ladder")
    return site / "rungs" / "words.py"


def a_data_file(site: Path) -> Path:
    name = "from pathlib import Path\n\nODD = Path(__file__).with_name('odd.txt').read_text()"
    files = {"rungs/ladder.py": LADDER.format(imports=name), "rungs/__init__.py": ""}
    install(site, "of-rungs", files | {"rungs/odd.txt": "1"}, "rungs.ladder")
    return site / "rungs" / "odd.txt"


def another_distribution(site: Path) -> Path:
    install(site, "words-of-rungs", {"words_of/__init__.py": "ODD = 1\n"})
    files = {"rungs/ladder.py": LADDER.format(imports="from words_of import ODD")}
    install(site, "of-rungs", files | {"rungs/__init__.py": ""}, "rungs.ladder")
    return site / "words_of_rungs-1.0.dist-info" / "METADATA"


def what_it_requires(site: Path) -> Path:
    """A distribution that no import names: it is required by one that is required."""
    install(site, "words-of-rungs", {"words_of/__init__.py": "ODD = 1\n"})
    install(site, "between", {"between.py": ""}, requires="Requires-Dist: words-of-rungs>=1\n")
    files = {"ladder.py": LADDER.format(imports="import os")}
    install(site, "of-rungs", files, "ladder", requires="Requires-Dist: Between (>1)\n")
    return site / "words_of_rungs-1.0.dist-info" / "METADATA"


LAYOUTS = [
    *(namespace, two_modules, by_import_module, a_data_file, another_distribution),
    what_it_requires,
]


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.__name__)
def test_a_change_anywhere_in_a_plug_ins_code_is_seen(layout, tmp_path):
    changed = layout(tmp_path)
    before = digest(tmp_path)
    assert digest(tmp_path) == before
    changed.write_text(changed.read_text().replace("1", "2", 2))
    assert digest(tmp_path) != before


def test_what_lies_beside_it_and_concords_own_libraries_change_nothing(tmp_path):
    two_modules(tmp_path)
    before = digest(tmp_path)
    install(tmp_path, "unrelated", {"unrelated.py": ""})
    (tmp_path / "of_rungs-1.0.dist-info" / "INSTALLER").write_text("another")
    assert digest(tmp_path) == before


def editable(tmp_path: Path, pth: str, **files: str) -> Path:
    """Return the project of an editable distribution: installed are metadata and a .pth."""
    site, project = tmp_path / "site", tmp_path / "project"
    about = json.dumps({"url": project.as_uri(), "dir_info": {"editable": True}})
    metadata = {"direct_url.json": about, "top_level.txt": "rungs\nbeside\n"}
    install(site, "of-rungs", {"_of_rungs.pth": pth, **files}, "rungs.ladder", **metadata)
    for file, text in {
        "src/rungs/__init__.py": "",
        "src/rungs/ladder.py": LADDER.format(imports="from rungs import words"),
        "src/rungs/words.py": "ODD = 1\n",
        "src/rungs/odd.txt": "1",
        "src/beside.py": "ODD = 1\n",
        "README.md": "1",
    }.items():
        (project / file).parent.mkdir(parents=True, exist_ok=True)
        (project / file).write_text(text)
    return project


FINDER = """
import sys
from importlib.util import spec_from_file_location


class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "rungs":
            return spec_from_file_location(name, {place!r} + "/rungs/__init__.py")
        if name == "beside":
            return spec_from_file_location(name, {place!r} + "/beside.py")


sys.meta_path.append(Finder)
"""


@pytest.mark.parametrize("way", ["a path", "a finder"])
@pytest.mark.parametrize("name", ["rungs/words.py", "rungs/odd.txt", "beside.py"])
def test_an_editable_distribution_counts_by_the_files_of_its_project(way, name, tmp_path):
    place = str(tmp_path / "project" / "src")
    if way == "a path":
        project = editable(tmp_path, f"{place}\n")
    else:
        finder = {"__editable___rungs_finder.py": FINDER.format(place=place)}
        project = editable(tmp_path, "import __editable___rungs_finder\n", **finder)
    site = f"import site; site.addsitedir({str(tmp_path / 'site')!r})\n{SCRIPT}"
    before = digest(script=site)
    (project / "README.md").write_text("2")
    (project / "src" / "rungs" / "__pycache__").mkdir(exist_ok=True)
    (project / "src" / "rungs" / "__pycache__" / "x.pyc").write_text("2")
    assert digest(script=site) == before
    changed = project / "src" / name
    changed.write_text(changed.read_text().replace("1", "2"))
    assert digest(script=site) != before


def test_a_distribution_that_is_just_being_installed_counts_for_nothing(tmp_path):
    place = tmp_path / "project" / "src"
    editable(tmp_path, f"{place}\n")
    info = next((tmp_path / "site").glob("*.dist-info"))
    half = tmp_path / "site" / "half-1.0.dist-info"
    half.mkdir()
    (half / "direct_url.json").write_text((info / "direct_url.json").read_text())
    site = f"import site; site.addsitedir({str(tmp_path / 'site')!r})\n{SCRIPT}"
    # One may lose its name after it has been found, too.
    assert distributions._tops(metadata.Distribution.at(half)) == []
    with_half = digest(script=site)
    (half / "direct_url.json").unlink()
    assert with_half == digest(script=site)


def test_a_file_of_a_study_counts_its_distributions_and_no_stray_module(tmp_path, monkeypatch):
    install(tmp_path / "site", "words-of-rungs", {"words_of.py": "ODD = 1\n"})
    for folder in ("site", "lib"):
        (tmp_path / folder).mkdir(exist_ok=True)
        monkeypatch.syspath_prepend(tmp_path / folder)
    path = tmp_path / "plugins" / "ladder.py"
    path.parent.mkdir()
    path.write_text(LADDER.format(imports="import json\nimport words_of\nimport not_there"))
    watch(path)
    before = code(path)
    assert before != code("concord.options")
    assert {file.name for file in map(Path, module_files(path)) if file.parent == path.parent} == {
        "ladder.py"
    }
    (tmp_path / "lib" / "helper.py").write_text("")
    path.write_text(LADDER.format(imports='"""\nimport helper\n"""'))  # words alone
    watch(path)
    path.write_text(LADDER.format(imports="import os, helper as h"))
    with pytest.raises(ConcordError) as caught:
        watch(path)
    assert str(caught.value) == (
        f"{path}, line 3: it imports {tmp_path}/lib/helper.py, which no installed distribution "
        "has, so that nobody would notice a change of it; write it into the plug-in's file, or "
        "install it (pip install -e)"
    )


@pytest.mark.parametrize(
    "imports",
    [
        "x = 1; import os, helper as h",
        "if True: import helper.parts",
        "from helper import (\n    parts,\n)",
        "import \\\n    helper",
        "import importlib\nimportlib.import_module(\n    'helper'\n)",
    ],
)
def test_a_stray_module_is_refused_however_it_is_imported(imports, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path / "lib")
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "helper.py").write_text("")
    path = tmp_path / "plugins" / "ladder.py"
    path.parent.mkdir()
    path.write_text(LADDER.format(imports=imports))
    with pytest.raises(ConcordError, match=r"it imports .*/lib/helper.py"):
        watch(path)


def test_what_is_installed_is_read_once(monkeypatch):
    distributions.forget()
    read, found = [], metadata.entry_points()
    monkeypatch.setattr(metadata, "entry_points", lambda **which: read.append(which) or found)
    for group in ("console_scripts", "pytest11"):
        assert list(distributions.entries(group)) == list(found.select(group=group)) != []
    assert read == [{}]
    distributions.forget()

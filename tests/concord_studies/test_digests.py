"""What counts as the code of a kind, and what does not."""

import json
import os
import sys
from pathlib import Path

import pytest

from concord import kinds
from concord_studies import digests, syntax

BEFORE = '''"""A kind."""
from .shared import ODD


def graph(agents):
    """Return it."""
    return ODD
'''


@pytest.fixture
def kind(tmp_path: Path) -> Path:
    """A plug-in that shares a file with others of its study."""
    (tmp_path / "shared.py").write_text("ODD = 1\n")
    path = tmp_path / "kind.py"
    path.write_text(BEFORE)
    return path


def stated(path: Path) -> dict:
    """Return what is made from a kind's code, as another process would."""
    digests.forget_files()
    return digests.digest_code(path)


@pytest.mark.parametrize(
    ("file", "old", "new", "counts"),
    [
        ("kind.py", "return ODD", "return ODD + 1", True),
        ("kind.py", "return ODD", "return ODD  # as it is", False),
        ("kind.py", "Return it.", "Return the graph.", False),
        ("kind.py", "\n\n\n", "\n\n", False),
        ("kind.py", '"""Return it."""', "print('it')", True),
        ("shared.py", "1", "3", True),
        ("shared.py", "1", "1  # odd", False),
    ],
)
def test_what_is_executed_counts(kind, file, old, new, counts):
    before, path = stated(kind), kind.with_name(file)
    path.write_text(path.read_text().replace(old, new, 1))
    assert (stated(kind) != before) == counts


def test_a_new_import_counts_with_what_it_imports(kind, monkeypatch):
    elsewhere = kind.parent / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "of_nobody.py").write_text("import scipy\n\nWORD = 1\n")
    monkeypatch.syspath_prepend(elsewhere)
    before = stated(kind)
    kind.write_text(BEFORE + "\n\ndef other():\n    import of_nobody\n")
    after = stated(kind)
    assert after["code"] != before["code"] and "scipy" in after["libraries"]
    (elsewhere / "of_nobody.py").write_text("import scipy\n\nWORD = 2\n")
    assert stated(kind)["code"] != after["code"]


def test_libraries_count_by_their_versions(kind, monkeypatch):
    kind.write_text(BEFORE + "import numpy, ot, pandas\nimport json\n")
    found = stated(kind)["libraries"]
    assert set(found) == {"python", "numpy", "ot", "pandas"}
    assert found["numpy"] == sys.modules["numpy"].__version__ and "unknown" not in found.values()
    assert found["pandas"].count(".") == 1  # a patch of it is none
    monkeypatch.setattr(digests, "find_version", lambda name: "another")
    assert stated(kind)["libraries"]["numpy"] == "another"


def test_a_sampler_is_not_the_code_of_another():
    files = digests.import_closure(
        "concord_studies.experiment", digests.SOURCE / "concord/samplers/admm.py"
    )
    names = {Path(file).name for file in files}
    assert {"admm.py", "loop.py", "network.py"} <= names
    assert not names & {"gossip_ula.py", "curves.py", "ledger.py", "plan.py"}


def test_libraries_that_check_and_carry_do_not_count(kind):
    before = stated(kind)["libraries"]
    kind.write_text(BEFORE + "import h5netcdf, msgspec, tqdm, yaml\n")
    assert stated(kind)["libraries"] == before


@pytest.fixture
def remembered(tmp_path, monkeypatch):
    """Return a function that states a kind's code in a process with the memory of the last one."""
    cache = tmp_path / "memory.json"
    monkeypatch.setattr(syntax, "CACHE", cache)

    def state(path: Path) -> dict:
        syntax._load_cache.cache_clear()
        found = stated(path)
        cache.write_text(json.dumps(syntax._load_cache()[1]))
        return found

    yield state
    syntax._load_cache.cache_clear()


def test_what_is_remembered_of_a_file_is_not_taken_for_another(kind, remembered):
    before, times = remembered(kind), kind.stat()
    assert remembered(kind) == before
    kind.write_text(BEFORE.replace("return ODD", "return 7.0"))
    os.utime(kind, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert remembered(kind) != before


def test_nothing_is_parsed_twice(kind, remembered, monkeypatch):
    before = remembered(kind)
    monkeypatch.setattr(syntax, "_parse", None)
    assert remembered(kind) == before


def test_a_new_file_that_shadows_another_counts_though_all_others_are_remembered(kind, remembered):
    before = remembered(kind)
    (kind.parent / "shared").mkdir()
    (kind.parent / "shared" / "__init__.py").write_text("ODD = 2\n")
    assert remembered(kind) != before


def test_another_reader_remembers_nothing(kind, remembered, monkeypatch):
    before = remembered(kind)
    monkeypatch.setattr(syntax, "READER", b"another")
    kept = syntax.CACHE.read_text()
    assert remembered(kind) == before and syntax.CACHE.read_text() != kept


def test_a_memory_that_is_damaged_is_not_used(kind, remembered):
    before = remembered(kind)
    for damage in ("[1]", "{", "7"):
        syntax.CACHE.write_text(damage)
        assert remembered(kind) == before


@pytest.mark.parametrize(
    ("use", "files"),
    [
        ("import concord\n\nx = concord.law\n", {"law_call.py"}),
        ("import concord as c\n\nx = c.w2\n", {"distances.py"}),
        ("from concord import w2 as far\n", {"distances.py"}),
        ("from concord import *\n", {"distances.py", "law_call.py", "pymc.py"}),
        ("import concord\n\nx = getattr(concord, 'w2')\n", {"distances.py", "law_call.py"}),
        ("def f():\n    import concord.laws\n    return concord.w2\n", {"distances.py"}),
        ("import concord\n\nx = concord.recommend\n", {"recommendation.py"}),
        ("import concord\n\nx = concord.network('star', 4)\n", {"construction.py", "star.py"}),
        ("import concord\n\nx = concord.law('de_sgld')\n", {"law_call.py", "de_sgld.py"}),
        ("import concord\n\nx = concord.problems.funnel()\n", {"funnel.py", "from_options.py"}),
        ("from concord import problems\n\nx = problems.funnel()\n", {"funnel.py"}),
        ("from concord.problems import quadratic\n", {"quadratic_problem.py"}),
        ("import importlib\n\nx = importlib.import_module('concord.calls')\n", {"calls.py"}),
        ("from concord import load_run\n", {"repeat.py"}),
    ],
)
def test_the_public_names_are_followed_to_where_they_are_defined(kind, use, files):
    kind.write_text(use)
    digests.forget_files()
    names = {Path(file).name for file in digests.import_closure(kind)}
    assert files <= names
    if "pymc.py" not in files and "getattr" not in use:
        assert not names & {"pymc.py", "numpyro.py"}, "names that are not used"


def test_a_use_of_the_version_is_none_of_other_names(kind):
    kind.write_text("import concord\n\nx = concord.__version__\n")
    digests.forget_files()
    assert len(digests.import_closure(kind)) == 1


@pytest.mark.parametrize(
    ("text", "old", "new", "counts"),
    [
        ("if TYPE_CHECKING:\n    X = 1\nelse:\n    X = 2\n", "X = 2", "X = 3", True),
        ("if TYPE_CHECKING:\n    X = 1\nelse:\n    X = 2\n", "X = 1", "X = 3", False),
        ("if not TYPE_CHECKING:\n    X = 1\nelse:\n    X = 2\n", "X = 1", "X = 3", True),
        ("if not TYPE_CHECKING:\n    X = 1\nelse:\n    X = 2\n", "X = 2", "X = 3", False),
        ("if typing.TYPE_CHECKING:\n    X = 1\n", "X = 1", "import scipy", False),
        ("if TYPE_CHECKING:\n    X = 1\nelif y:\n    X = 2\n", "X = 2", "import scipy", True),
        ("def f():\n    'two'\n\n\nX = len(f.__doc__)\n", "two", "three", True),
        ("'two'\nX = __doc__\n", "two", "three", True),
        ("def f():\n    'two'\n\n\nX = inspect.getdoc(f)\n", "two", "three", True),
        ("def f():\n    raise ConcordError(f'{x}: wrong; mend it')\n", "mend", "change", False),
        ("def f():\n    raise errors.ConcordError('wrong') from e\n", "wrong", "bad", False),
        ("def f():\n    raise Missing('wrong')\n", "wrong", "bad", True),
        ("if x < 2:\n    raise ConcordError('wrong')\n", "2", "3", True),
        ("X = a.b.c\n", "a.b.c", "a.c.b", True),
        ("X = 1\n", "1", "1.0", True),
        ("X = '1'\n", "'1'", "b'1'", True),
        ("X = f(a, b)\n", "a, b", "b, a", True),
        ("def f(*, a, b=1):\n    global c\n", "global c", "global d", True),
        ("def f(*, a, b=1):\n    return a\n", "a, b=1", "a=1, b", True),
    ],
)
def test_what_counts_of_a_file(kind, text, old, new, counts):
    kind.write_text(text)
    before = stated(kind)
    kind.write_text(text.replace(old, new))
    assert (stated(kind) != before) == counts


def test_helpers_whose_contents_are_swapped_count(kind):
    one, other = kind.with_name("shared.py"), kind.with_name("other.py")
    kind.write_text("from .shared import ODD\nfrom .other import ODD as MORE\n")
    one.write_text("ODD = 2.0\n")
    other.write_text("ODD = 1.0\n")
    before = stated(kind)
    one.write_text("ODD = 1.0\n")
    other.write_text("ODD = 2.0\n")
    assert stated(kind) != before


def test_kinds_whose_contents_are_swapped_count(kind):
    other = kind.with_name("another.py")
    other.write_text("X = 1\n")
    digests.forget_files()
    before = digests.digest_code(kind, other)
    other.write_text(kind.read_text())
    kind.write_text("X = 1\n")
    digests.forget_files()
    assert digests.digest_code(kind, other) != before


def test_where_files_lie_and_in_which_order_they_are_asked_for_does_not_count(kind, tmp_path):
    other = kind.with_name("another.py")
    other.write_text("from concord.loop import run\n")
    digests.forget_files()
    before = digests.digest_code(kind, "concord.chains", other)
    copies = tmp_path / "a" / tmp_path.name
    copies.mkdir(parents=True)
    for path in tmp_path.glob("*.py"):
        (copies / path.name).write_bytes(path.read_bytes())
    roots = ("concord.chains", copies / "another.py", copies / "kind.py")
    assert digests.digest_code(*roots) == before


@pytest.fixture
def plugin(tmp_path, monkeypatch) -> Path:
    """A plug-in in a study's folder, with a helper beside it."""
    path = tmp_path / "my-study" / "plugins" / "metrics" / "rate.py"
    path.parent.mkdir(parents=True)
    path.write_text("X = open('table.csv')\n")
    (path.parents[1] / "helper.py").write_text("V = 2.0\n")
    monkeypatch.setattr(kinds, "studies", [tmp_path / "my-study"])
    return path


def test_files_beside_a_plug_in_count_by_name_and_content(plugin, kind):
    table, other = plugin.with_name("table.csv"), plugin.parents[1] / "data" / "more.bin"
    other.parent.mkdir()
    stages, apart = [stated(plugin)], stated(kind)
    for path, content in ((table, b"1"), (table, b"2"), (other, b"\xff"), (other, b"2")):
        path.write_bytes(content)
        stages.append(stated(plugin))
    other.rename(other.with_name("less.bin"))
    stages.append(stated(plugin))
    assert len({stage["code"] for stage in stages}) == len(stages)
    for name in (".hidden", "unused.py", "rate.py~", "rate.pyc"):
        plugin.with_name(name).write_text("X = 1\n")
        assert stated(plugin) == stages[-1]
    assert stated(kind) == apart, "what is no plug-in of this study"


def test_an_absolute_import_of_a_plug_in_is_followed(plugin):
    plugin.write_text("from concord_plugins.my_study.helper import V\n")
    before, helper = stated(plugin), plugin.parents[1] / "helper.py"
    helper.write_text("V = 1.0\n")
    assert stated(plugin) != before


def test_a_kind_of_the_study_that_a_plug_in_names_counts(plugin):
    plugin.write_text("import concord\n\nX = concord.network('rails', 4)\n")
    rails = plugin.parents[1] / "topologies" / "rails.py"
    rails.parent.mkdir()
    rails.write_text("X = 1\n")
    before = stated(plugin)
    rails.write_text("X = 2\n")
    assert stated(plugin) != before


def test_the_package_around_a_module_counts(kind, monkeypatch):
    package = kind.parent / "elsewhere" / "of_somebody"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("import numpy\n")
    (package / "words.py").write_text("X = 1\n")
    monkeypatch.syspath_prepend(package.parent)
    kind.write_text("from of_somebody.words import X\n")
    assert "numpy" in stated(kind)["libraries"]


@pytest.mark.parametrize("name", sorted(digests.SILENT))
def test_modules_in_which_nothing_is_computed_do_not_count(name):
    assert Path(name).is_file()
    assert name not in digests.import_closure("concord_studies.experiment", "concord.law_call")

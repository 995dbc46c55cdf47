"""A study with plug-ins of its own, and installed ones: found, described, tested, run and drawn."""

import json
import re
import sys
from pathlib import Path

import pytest

import by_hand
from concord import kinds
from concord.errors import ConcordError
from concord.networks.topology import build_graph
from concord_cli.__main__ import main
from concord_studies import digests
from concord_studies.configuration.config import load_config
from concord_studies.configuration.project import load_studies
from concord_studies.configuration.study import Study
from concord_studies.digests import digest_code as stated
from concord_studies.digests import import_closure
from installed_plugins import LADDER, install

DOC = Path(__file__).parents[3] / "docs" / "your-sampler.md"
SAMPLER = re.search(r"```python\n(.*?)```", DOC.read_text(), re.S)[1]
RAILS = LADDER.format(imports="")
BOWL = '''"""Agents with Gaussian potentials of different widths: f_i(x) = (i + 1) |x - 1|^2 / 2."""

from typing import Annotated

import numpy as np

from concord.laws.gaussian import Gaussian
from concord.options import Count, Options


class Params(Options):
    """Its size."""

    dim: Annotated[Count, "dimension d"] = 2


class Bowl:
    def __init__(self, agents, dim):
        self.agents, self.dim = agents, dim
        self.curvature = (1.0 + np.arange(agents))[:, None]
        self.gram = self.curvature[..., None] * np.eye(dim)
        self.shift = self.curvature * np.ones(dim)
        self.posterior = Gaussian(np.ones(dim), np.eye(dim) / self.curvature.sum())

    def from_chain(self, first):
        return self

    def gradient(self, x):
        return self.curvature * (x - 1.0)

    def potential(self, x):
        return self.curvature[:, 0] / 2 * ((x - 1) ** 2).sum(axis=-1)


def check(params, agents):
    """Any number of agents."""


def build(params, agents, partition, stream, data_sets):
    return Bowl(agents, params.dim)
'''
COSINE = '''"""A value that swings."""

from math import cos
from typing import Annotated

from concord.options import Options, Positive


class Params(Options):
    """Its mean."""

    mean: Annotated[Positive, "the mean value"]


def schedule(params):
    return lambda k: params.mean * (1 + cos(k) / 2)
'''
TALL = '''
"""The last distance of each run, by somebody who knows matplotlib alone."""
from matplotlib.figure import Figure
from concord.options import Options

class Params(Options):
    """None."""

def reads(params):
    return ["w2"]

def draw(params, runs):
    figure = Figure(figsize=(3, 2))
    axes = figure.subplots()
    axes.plot([run.values("w2")[-1] for run in runs])
    axes.set_ylabel("distance of the draws of the last agent to the posterior at the end")
    return figure
'''
STUDY = Path(__file__).with_name("mine.yaml").read_text()
FILES = {
    "samplers/my_de_sgld.py": SAMPLER,
    "topologies/rails.py": RAILS,
    "problems/bowl.py": BOWL,
    "schedules/cosine.py": COSINE,
    "figures/tall.py": TALL,
}


@pytest.fixture
def study(tmp_path, monkeypatch):
    """Return the folder of a study; it is in the project where commands now work."""
    monkeypatch.chdir(tmp_path)
    folder = Path("config/papers/mine")
    for name, text in FILES.items():
        (folder / "plugins" / name).parent.mkdir(parents=True)
        (folder / "plugins" / name).write_text(text)
    (folder / "study.yaml").write_text(STUDY)
    Path("config/config.yaml").write_text("{}")
    yield folder
    forget()


def forget():
    """Let a file that has changed be executed again, as another process does."""
    kinds.use()
    for module in [module for module in sys.modules if module.startswith("concord_plugins.mine")]:
        del sys.modules[module]


def refused(capsys, *command):
    assert main([str(part) for part in command]) == 2
    return capsys.readouterr().err.strip()


def test_it_is_sampled_measured_and_drawn_with_its_exact_law(study, capsys):
    assert main(["check", str(study)]) == 0
    loaded = Study(study, load_config())
    runs = by_hand.write(by_hand.experiments(loaded)["compare"], Path("results/mine/compare"))
    entry, tall = (
        by_hand.plan_entry(loaded, Path("results"), "figures", name) for name in ("fig1", "fig2")
    )
    table = runs.with_name("metrics.csv")
    for command in (
        ["measure", runs, "-o", table],
        ["draw", entry, "-o", "fig1.svg"],
        ["draw", tall, "-o", "fig2.svg"],
    ):
        kinds.use()  # every command finds them for itself
        assert main([str(word) for word in command]) == 0
    assert ",w2_exact," in table.read_text()
    texts = re.findall(r">([^<>]+)</text>", Path("fig2.svg").read_text())  # a line each
    assert "posterior at the end" in texts  # wrapped, where it was cut off
    assert "7px" in Path("fig2.svg").read_text()  # the numbers, in the style of all figures


def test_it_is_listed_and_described_and_none_is_executed_for_a_list(study, capsys):
    (study / "plugins" / "topologies" / "rails.py").write_text(
        RAILS + "\nraise SystemExit('executed')\n"
    )
    assert main(["list", "topologies", "--json"]) == 0
    kinds_listed = {each["kind"]: each for each in json.loads(capsys.readouterr().out)}
    assert kinds_listed["rails"]["is"].startswith("Two lines") and not kinds_listed["ring"]["from"]
    kinds.use()
    assert main(["describe", "my_de_sgld", "--json"]) == 0
    (about,) = json.loads(capsys.readouterr().out)
    assert about["equation"].startswith(r"x_i' = \sum_j") and about["source"].startswith("none")
    assert "full gradient" in about["price"] and about["needs"] == "gradients."
    option, *others = about["options"]
    assert [each["name"] for each in others][:2] == ["batch_size", "batch_order"]
    assert option == {"name": "step_size", "type": "schedule", "means": "step size eta_k"}
    kinds.use()
    assert "did you mean 'my_de_sgld'?" in refused(capsys, "describe", "my_de_sgdl")
    kinds.use()
    assert "did you mean 'samplers'?" in refused(capsys, "list", "sampler")


@pytest.mark.parametrize("name", [name for name in FILES if name[0] != "s" or "cosine" in name])
def test_it_is_tested(study, name, capsys):
    assert main(["test", str(study / "plugins" / name)]) == 0
    assert "  failed " not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("samplers/mine.py", "def init(:\n", ", line 1: SyntaxError: "),
        ("topologies/mine.py", RAILS + "\n1 / 0\n", ", line 19: ZeroDivisionError: "),
        (
            "problems/mine.py",
            BOWL.replace("def build", "def make"),
            ": it lacks build, which a problem defines; add it",
        ),
    ],
)
def test_what_is_no_kind_is_refused_with_file_and_line_when_it_is_used(
    study, name, text, sentence, capsys
):
    (study / "plugins" / name).write_text(text)
    assert main(["check", str(study)]) == 0
    capsys.readouterr()
    refusal = refused(capsys, "describe", "mine")
    assert (
        refusal.startswith(f"concord: {study / 'plugins' / name}{sentence}") and "\n" not in refusal
    )


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("samplers/de_sgld.py", ": Concord has samplers/de_sgld already; rename the file"),
        ("samplers/my-own.py", ": a name has small letters, digits and _; rename the file"),
        ("sampler/mine.py", ": no room is called so; did you mean 'samplers'?"),
    ],
)
def test_a_name_that_cannot_be_is_refused_with_the_file(study, name, sentence, capsys):
    path = study / "plugins" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(SAMPLER)
    assert refused(capsys, "check", study) == f"concord: {path}{sentence}"


def test_files_of_a_study_share_code_which_counts_as_theirs(study):
    shared = study / "plugins" / "words.py"
    shared.write_text("ODD = 'make no rails; use an even number'\n")
    path = study / "plugins" / "topologies" / "rails.py"
    text = RAILS.replace('make no rails; use an even number"', '{ODD}"')
    path.write_text(
        text.replace("from concord.errors", "from ..words import ODD\nfrom concord.errors")
    )
    kinds.use(study)
    with pytest.raises(ConcordError, match="3 agents make no rails; use an even number"):
        build_graph("rails", 3)
    rails = kinds.location("topologies", "rails")
    assert str(shared.absolute()) in import_closure(rails)
    before = stated(rails)
    shared.write_text("ODD = 'make no rails; take one more'\n")
    digests.forget_files()
    assert stated(rails) != before


def test_studies_of_one_name_have_kinds_of_their_own(study, tmp_path):
    kinds.use(study)
    assert len(build_graph("rails", 6).edges) == 7
    other = tmp_path / "elsewhere" / "mine" / "plugins" / "topologies"
    other.mkdir(parents=True)
    (other / "rails.py").write_text(
        RAILS.replace("ladder_graph(agents // 2)", "path_graph(agents)")
    )
    kinds.use(tmp_path / "elsewhere" / "mine")
    assert len(build_graph("rails", 6).edges) == 5
    kinds.use(study)
    assert len(build_graph("rails", 6).edges) == 7
    with pytest.raises(ConcordError, match="topologies/rails already; rename the file"):
        kinds.use(study, tmp_path / "elsewhere" / "mine")


def test_a_kind_that_clashes_is_neither_described_nor_tested(study, capsys):
    (study / "plugins" / "topologies" / "ring.py").write_text(RAILS)
    for command in ("describe", "test"):
        assert "ring" in refused(capsys, command, "ring")
    assert main(["describe", "star"]) == 0  # which the broken study leaves alone
    assert "ring.py" in capsys.readouterr().err


def test_a_file_elsewhere_is_not_executed(study, tmp_path, capsys):
    (tmp_path / "elsewhere.py").write_text(RAILS)
    for place in (study / "plugins" / "linked.py", study / "plugins" / "topologies" / "linked.py"):
        place.symlink_to(tmp_path / "elsewhere.py")
        sentence = "it links to what is outside of its study; copy it"
        assert refused(capsys, "check", study) == f"concord: {place}: {sentence}"
        place.unlink()


def test_plug_ins_are_those_of_the_study_alone(study, capsys):
    other = study.parent / "other"
    other.mkdir()
    (other / "study.yaml").write_text(STUDY)
    assert "there is no problem 'bowl'" in refused(capsys, "check", other)
    with pytest.raises(ConcordError, match="there is no problem 'bowl'"):
        load_studies(Path("config"))


@pytest.fixture
def distribution(tmp_path, monkeypatch):
    """An installed package of a plug-in."""
    ladder = LADDER.format(imports="from . import words")
    files = {"ladders/__init__.py": "", "ladders/words.py": "", "ladders/rails.py": ladder}
    install(tmp_path / "site", "of-ladders", files, "ladders.rails")
    monkeypatch.syspath_prepend(tmp_path / "site")
    kinds._entry_points.cache_clear()
    yield
    kinds._entry_points.cache_clear()
    for name in [name for name in sys.modules if name.startswith("ladders")]:
        del sys.modules[name]


@pytest.mark.usefixtures("distribution")
def test_an_entry_point_is_a_kind_and_its_package_is_its_code():
    assert "rungs" in kinds.names("topologies")
    assert len(build_graph("rungs", 6).edges) == 7
    assert kinds.origin("topologies", "rungs") == "of-ladders 1.0"
    files = {Path(f).name for f in import_closure(kinds.location("topologies", "rungs"))}
    assert {"rails.py", "words.py"} <= files

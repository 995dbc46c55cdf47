"""Every block of README and documents runs, or is known to what it is typed for."""

import glob
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml

import concord
from concord import kinds
from concord.options import build
from concord_cli.__main__ import _parser, main
from concord_studies.claims.claim import build_case
from concord_studies.claims.texts import Number, list_placeholders
from concord_studies.configuration.config import load_config
from concord_studies.configuration.sections import Output
from concord_studies.configuration.study import Study
from page_blocks import ROOT, list_blocks, run_blocks

PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "config/README.md")),
    *sorted((ROOT / "docs").glob("*.md")),
]
# Which test runs the blocks of Python of a page.
RUN = {
    "README.md": "test_pages_of_python.py",
    "python.md": "test_pages_of_python.py",
    "problems.md": "test_pages_of_python.py",
    "recommend.md": "concord_arena/test_recommend.py",
    "bias.md": "concord_arena/test_bias_map.py",
    "consensus.md": "concord_arena/test_consensus_page.py",
    "ledger.md": "concord_studies/claims/test_judge_alone.py",
    "your-model.md": "concord_arena/test_model_answers.py",
    "your-network.md": "concord/problems/test_weights.py",
    "your-data.md": "test_document_blocks.py",
    "your-sampler.md": "test_document_blocks.py",
    "own-study.md": "test_document_blocks.py",
    "plugins.md": "test_document_blocks.py",
    "quantization-noise.md": "test_document_blocks.py",
}
# Rules that are no file's: what somebody types after `snakemake`.
RULES = re.compile(r"^ *(?:rule|use rule \w+ as) (\w+)", re.M)
# Options of Snakemake that take a word.
TAKING = ("--workflow-profile", "--profile", "--list-changes", "--report", "--forcerun")
STARTS = ("make", "concord", "snakemake")


def commands(path: Path) -> list[str]:
    """Lines of indented blocks that are typed into a shell, without their comments."""
    text = re.sub(r"^```.*?^```$", "", path.read_text(), flags=re.M | re.S)
    lines = re.findall(r"^ {4}(\S.*)$", text, re.M)
    lines = [re.sub(r"\s+#.*", "", line) for line in lines]
    return [line for line in lines if Path(line.split()[0]).name in STARTS and "/ " not in line]


def page(name: str) -> Path:
    return ROOT / name if (ROOT / name).exists() else ROOT / "docs" / name


def test_each_page_with_blocks_of_python_is_run():
    assert {path.name for path in PAGES if list_blocks(path)} == set(RUN)
    for name, test in RUN.items():
        text = (ROOT / "tests" / test).read_text()
        assert name in text, f"{test} runs no block of {name}"


def test_languages_of_blocks_are_those_that_are_tried():
    for path in PAGES:
        languages = re.findall(r"^```(\S*)\n.*?^```$", path.read_text(), re.M | re.S)
        assert set(languages) <= {"python", "yaml"}, path


def test_the_tutorial_on_ones_own_data(capsys):
    names = run_blocks(page("your-data.md"))
    assert names["table"].r_hat.max() < 1.05
    assert set(names["table"].index) >= {"x[3, 0]", "x_average[0]"}
    share = names["exact"].value / names["width"]
    assert share[:5].min().round(2) == 0.12 and share[:5].max().round(2) == 0.20
    assert share[5].round(2) == 0.01
    inside = (names["estimated"].lo <= names["exact"].value) & (
        names["exact"].value <= names["estimated"].hi
    )
    assert inside.all()
    assert "0.2 " in capsys.readouterr().out


def test_the_page_on_quantization_errors():
    names = run_blocks(page("quantization-noise.md"))
    assert names["law"].mean.shape == (1001, 8, 2)
    assert names["trace"].chains == 4


@pytest.fixture
def tutorial(tmp_path, monkeypatch):
    """The study of the tutorial on one's own sampler, as its reader has it."""
    monkeypatch.chdir(tmp_path)
    path = page("your-sampler.md")
    assert main(["init", "my-study"]) == 0
    folder = tmp_path / "my-study" / "config" / "papers" / "mystudy"
    (code,), (study,) = list_blocks(path), list_blocks(path, "yaml")
    (folder / "plugins" / "samplers" / "two_rounds.py").write_text(code)
    (folder / "study.yaml").write_text(study)
    monkeypatch.chdir(tmp_path / "my-study")
    return folder


def test_the_tutorial_on_ones_own_sampler(tutorial, capsys):
    capsys.readouterr()
    assert main(["check", "config/papers/mystudy"]) == 0
    assert len(capsys.readouterr().out.split()) == 2
    study = Study(tutorial, load_config(Path("config/config.yaml")))
    documents = [run.document for run in study.runs.values()]
    assert {one["sampler"]["kind"] for one in documents} == {"de_sgld", "two_rounds"}
    assert all(one["network"]["loss"]["rate"] == 0.2 for one in documents)
    assert "loses a\nfifth of its messages" in page("your-sampler.md").read_text()


def test_two_rounds_are_nearer_at_the_large_step(tutorial):
    """As the tutorial says of its figure, by ten times as many chains."""
    (study,) = list_blocks(page("your-sampler.md"), "yaml")
    rate = yaml.safe_load(study)["experiments"]["lossy_ring"]["network"]
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 2))
    problem = concord.problems.linear_regression(
        X, X @ [1, -2] + rng.standard_normal(200), agents=6
    )
    network = concord.network("ring", 6, **rate)
    kinds.use()
    _, plug = kinds.add(tutorial / "plugins" / "samplers" / "two_rounds.py")
    far = {}
    for step in (0.02, 0.002):
        for kind in ("de_sgld", plug):
            steps = {"step_size": step, "iterations": 150, "record": {"at": [150]}}
            trace = concord.sample(kind, problem, network, chains=2000, **steps)
            far[step, kind] = float(concord.w2(trace, problem.posterior).value[-1, 0])
    point = np.sqrt(np.trace(problem.posterior.cov))
    assert far[0.02, "de_sgld"] > far[0.02, plug] > point
    assert point > max(far[0.002, "de_sgld"], far[0.002, plug])


def test_the_tests_of_ones_own_metric_figure_table_and_topology(tmp_path):
    study, text = tmp_path / "config" / "papers" / "mystudy", page("plugins.md").read_text()
    names = re.findall(r"`(plugins/(?:metrics|figures|tables|topologies)/\w+\.py)`", text)
    paths = [study / name for name in names]
    for path, code in zip(
        [*paths, tmp_path / "test_mine.py"], list_blocks(page("plugins.md")), strict=True
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(code)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_mine.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert "3 passed" in done.stdout, done.stdout


def test_a_claim_about_ones_own_metric_is_read():
    (block,) = list_blocks(page("plugins.md"), "yaml")
    (claim,) = yaml.safe_load(block)["claims"].values()
    case = build_case({key: claim[key] for key in ("check", "reason")}, claim["rule"], "plugins.md")
    assert case.reason.endswith(claim["reason"])


def test_the_workflow_inside_another_one_is_that_of_a_template():
    (block,) = list_blocks(page("own-study.md"))
    template = ROOT / "src/concord_studies/configuration/template/Snakefile"
    words = template.read_text().split()
    for line in (
        "from concord_studies.home import SNAKEFILE",
        "module concord:",
        "use rule * from concord",
    ):
        assert line in block and all(word in words for word in line.split())


@pytest.mark.parametrize("name", ["networks.md", "problems.md", "config/README.md"])
def test_blocks_of_yaml_are_what_concord_reads(name):
    for block in list_blocks(page(name), "yaml"):
        found = yaml.safe_load(block.replace(", ... }", " }"))
        if "network" in found:
            network = concord.network(found.get("topology", "ring"), 6, **found["network"])
            assert network.agents == 6
        elif "problem" in found:
            assert found["problem"]["kind"] == "table"
        elif "sweep" in found:
            assert {"topology", "batch_size", "reading"} == set(found["sweep"])
        elif "numbers" in found:
            assert set(list_placeholders(found["caption"])) == {*found["numbers"], "chains"}
            build(dict[str, Number], found["numbers"], name)
        else:
            assert found.keys() & {"assumptions", "alternatives", "claims", "fig{fig}_ring_sooner"}


def test_a_study_of_ones_own_may_have_a_caption_with_numbers():
    (block,) = list_blocks(page("own-study.md"), "yaml")
    figures = build(dict[str, Output], yaml.safe_load(block)["figures"], "own-study.md")
    for figure in figures.values():
        assert set(list_placeholders(figure.caption)) == {*figure.numbers, "agents"}


def targets() -> set[str]:
    files = [ROOT / "Snakefile", *(ROOT / "workflow").rglob("*.smk"), ROOT / "workflow/Snakefile"]
    rules = {name for path in files for name in RULES.findall(path.read_text())}
    studies = {path.parent.name for path in (ROOT / "config").glob("*/*/study.yaml")}
    beside = {"everything", "ledger", "multiverse"}
    return rules | studies | beside | {f"multiverse_{key}" for key in studies}


@pytest.mark.parametrize(
    ("name", "line"),
    [(path.name, line) for path in PAGES for line in commands(path)],
    ids=lambda text: str(text)[:60],
)
def test_commands_are_known(name, line):
    """Targets, subcommands, options and files of this repository; extras that can be installed."""
    words = shlex.split(line)
    program, rest = Path(words[0]).name, words[1:]
    if program == "make":
        known = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M)
        assert {word for word in rest if "=" not in word} <= set(known)
    elif program == "concord":
        _parser().parse_args([word.replace("<key>", "mystudy") for word in rest])
        for word in rest:
            if word.startswith("config/") and "<" not in word:
                assert glob.glob(str(ROOT / word)) or (ROOT / word.split("=")[0]).exists()
    elif program == "snakemake":
        asked = rest[: rest.index("--config")] if "--config" in rest else rest
        skip = {n + 1: word for n, word in enumerate(asked) if word in TAKING}
        for n, word in enumerate(asked):
            if n in skip:
                assert not skip[n].endswith("profile") or (ROOT / word).is_dir()
            elif word.endswith("/claims.csv"):
                assert list((ROOT / "config").glob(f"*/{word.split('/')[1]}/claims.yaml"))
            elif word.startswith("results/"):
                entry = word.split("/")[-3:]
                entry = entry if entry[1] in ("figures", "tables") else word.split("/")[1:4]
                key, part, output = entry
                (folder,) = (ROOT / "config").glob(f"*/{key}")
                stated = "\n".join(path.read_text() for path in folder.glob("*.yaml"))
                shown = part in ("figures", "tables")
                name = Path(output).stem if shown else output.split(".")[0]
                name = part if not shown and part != "multiverse" else name
                assert f"\n  {name}:" in stated
            elif not word.startswith("-"):
                assert word in targets()
    elif rest[:3] == ["-m", "pip", "install"]:
        extras = re.findall(r"\[(\w+)\]", line)
        stated = (ROOT / "pyproject.toml").read_text()
        assert all(re.search(rf"^{extra} = \[", stated, re.M) for extra in extras)
        assert extras or "concord" in line
    else:
        assert rest[:1] == ["-c"] or rest == ["-m", "venv", ".venv"]

"""`concord test`: what it prints and counts, and how plug-ins end it."""

import re
import sys
from pathlib import Path

import pytest
from test_plugin_study import BOWL, COSINE
from test_plugin_study import SAMPLER as MINE

from concord import kinds
from concord_cli.__main__ import main


def forget() -> None:
    """Forget the modules of plug-ins, which a process executes once."""
    kinds.use()
    for name in [name for name in sys.modules if name.endswith(".mine")]:
        del sys.modules[name]


LINE = re.compile(r"(\d+) checks: (\d+) ok, (\d+) failed, (\d+) not applicable")


@pytest.fixture
def tested(tmp_path, monkeypatch, capsys):
    """A function that tests a plug-in, and returns the exit code, the counts, and what was said."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "schedules").mkdir()

    def test(text: str, *options: str):
        path = Path("schedules", "mine.py")
        path.write_text(text)
        forget()
        code = main(["test", str(path), *options])
        output = capsys.readouterr()
        last = (output.err if options else output.out).splitlines()
        (counts,) = (match for line in last if (match := LINE.fullmatch(line)))
        return code, [int(number) for number in counts.groups()], output.err

    yield test
    kinds.use()


def test_the_last_line_counts_the_checks(tested):
    code, (ran, *ended), _ = tested(COSINE)
    assert code == 0 and ran == sum(ended) >= 4 and ended[1] == 0
    code, (again, *ended), error = tested(COSINE.replace('"the mean value"', '""'))
    assert code == 2 and again == ran and ended[1] == 1
    assert error == f"concord: 1 of {ran} checks failed; mend what they name\n"
    assert tested(COSINE, "--json")[1][0] == ran


STEP = "return lambda k: "


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("import sys\nsys.exit(0)\n" + COSINE, "mine.py, line 2: SystemExit: 0"),
        ("raise KeyboardInterrupt\n" + COSINE, "mine.py, line 1: interrupted"),
        ("raise MemoryError\n" + COSINE, "mine.py, line 1: MemoryError"),
    ],
)
def test_a_plug_in_that_ends_its_import_is_refused(tmp_path, monkeypatch, capsys, text, sentence):
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(text)
    kinds.use()
    assert main(["test", "mine.py"]) != 0
    output = capsys.readouterr().err
    assert sentence in output and output.count("\n") == 1
    kinds.use()


def test_a_check_that_ends_python_fails(tested, capsys):
    code, (ran, ok, failed, _), error = tested(COSINE.replace(STEP, f"{STEP}exit(0) or "))
    assert code == 2 and failed == 1 and ran == ok + failed
    assert error == f"concord: 1 of {ran} checks failed; mend what they name\n"


def test_what_a_plug_in_prints_is_no_outcome(tested):
    assert tested(COSINE + "\nprint('noise')\n", "--json")[0] == 0


def test_a_file_can_be_named_from_its_own_folder(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("lazy_of_mine.py").write_text(MINE)
    assert main(["describe", "lazy_of_mine.py"]) == 0
    kinds.use()


SAMPLER = """from concord import Sampler
class First(Sampler):
    def step(self, state, k, problem, network, rng):
        return state.x
"""


@pytest.fixture
def said_of(tmp_path, monkeypatch, capsys):
    """A function that tests a plug-in with a mistake, and returns all that is said."""
    monkeypatch.chdir(tmp_path)

    def test(text: str, room: str = "samplers") -> str:
        path = Path("plugins", room, "mine.py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        forget()
        assert main(["test", str(path)]) != 0
        return "".join(capsys.readouterr())

    yield test
    kinds.use()


def test_a_file_is_one_sampler(said_of):
    two = SAMPLER + SAMPLER.replace("First", "Second")
    none = SAMPLER.replace("(Sampler)", "")
    for text, what in ((two, "First and Second"), (none, "no class of concord.Sampler")):
        sentence = f"plugins/samplers/mine.py: it defines {what}; make it one sampler a file\n"
        assert said_of(text).endswith(sentence)


def test_a_step_that_returns_no_state_is_named(said_of):
    sentence = "a step is local: First.step returned ndarray, but must return Positions"
    assert sentence in said_of(SAMPLER)


def test_a_metric_that_leaves_out_diverged_chains_is_told_so(said_of):
    text = '''"""The spread of draws."""
import numpy as np
from concord_studies.metrics import series, yields

@yields("spread")
def rows(m):
    """Yield the spread."""
    spread = np.nan_to_num(m.trace["x"].std(axis=(0, 3)))
    yield from series(m.trace.draw, m.agents, {"spread": spread})
'''
    output = said_of(text, "metrics")
    assert "spread of agent 0 is 0.0 after all chains diverged; let" in output
    assert "1 of 5 checks failed" in output


def test_a_problem_without_from_chain_is_told_what_it_lacks(said_of):
    output = said_of(BOWL.replace("from_chain", "other"), "problems")
    assert "it has no from_chain(first); return itself" in output

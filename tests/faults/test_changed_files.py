"""Files between the stages that were cut, overwritten, flipped in a bit or edited by hand."""

import random
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from commands import COMMANDS, METRICS, RUN, SEAL, TRACE, TRACE_SEAL, Command, run
from tiny_project import RUNS, TinyProject, differing

pytestmark = [pytest.mark.workflow, pytest.mark.thorough]

AGAIN = "delete (the file|it|the trace) to have it made again"
Damage = Callable[[bytes, random.Random], bytes]


def cut(content: bytes, rng: random.Random) -> bytes:
    """As a crash leaves a file: some of it, often nothing."""
    return content[: rng.choice([0, 1, len(content) - 1, rng.randrange(len(content))])]


def flipped(content: bytes, rng: random.Random) -> bytes:
    """As a bad disk gives it back."""
    place = rng.randrange(len(content))
    return content[:place] + bytes([content[place] ^ 1 << rng.randrange(8)]) + content[place + 1 :]


def zeros(content: bytes, rng: random.Random) -> bytes:
    """As a power cut leaves it: some blocks were never written."""
    start = rng.randrange(len(content))
    return content[:start] + bytes(min(512, len(content) - start)) + content[start + 512 :]


def garbage(content: bytes, rng: random.Random) -> bytes:
    return rng.randbytes(rng.choice([1, 100, len(content)]))


def edited(content: bytes, rng: random.Random) -> bytes:
    """As an editor saves it: one digit of a number is another."""
    digits = list(re.finditer(rb"\d", content))
    place = rng.choice(digits).start()
    digit = rng.choice([d for d in b"0123456789" if d != content[place]])
    return content[:place] + bytes([digit]) + content[place + 1 :]


BY_ACCIDENT = (cut, flipped, zeros, garbage)
READERS = {
    TRACE: ("measure",),
    TRACE_SEAL: ("measure",),
    METRICS: ("draw", "tabulate", "judge"),
    SEAL: ("draw", "tabulate", "judge"),
}
DAMAGES = dict.fromkeys((TRACE_SEAL, METRICS, SEAL), (*BY_ACCIDENT, edited))
DAMAGES[TRACE] = 5 * BY_ACCIDENT


@pytest.mark.parametrize("path", READERS, ids=lambda path: Path(path).name)
def test_a_damaged_file_is_refused_by_what_reads_it(path, copy, effort, reliability):
    rng = random.Random(path)
    before = copy.made()
    name, intact = path.partition("smoke/")[2], (copy.folder / path).read_bytes()
    sentence = re.compile(rf"concord: {re.escape(RUNS[0])}/.*; .*{AGAIN}\n")
    tried, wrong = 0, []
    for damage in DAMAGES[path] * effort:
        content = damage(intact, rng)
        if content == intact or (path != METRICS and means(content) == means(intact)):
            continue
        (copy.folder / path).write_bytes(content)
        for reader in READERS[path]:
            code, said = run(copy, COMMANDS[reader])
            tried += 1
            if (
                code != 2
                or not sentence.fullmatch(said)
                or copy.made() != {**before, name: content}
            ):
                wrong.append((damage.__name__, reader, content[:1000], code, said))
    rule = "nothing is made of it, and one sentence says which file to delete"
    reliability("faults", f"damaged {Path(path).name}", tried, len(wrong), rule)
    assert not wrong
    assert tried


def means(content: bytes) -> object:
    """Return what a file of YAML or JSON says."""
    try:
        return yaml.safe_load(content)
    except (yaml.YAMLError, UnicodeDecodeError):
        return content


def test_nothing_that_is_shown_comes_of_a_damaged_run(copy, effort, reliability):
    """It is refused, or what is made of it is: the configuration says what a run is."""
    rng = random.Random(RUN)
    intact, shown = (copy.folder / RUN).read_bytes(), ("draw", "tabulate", "judge")
    for name in shown:  # Snakemake's jobs note another commit
        assert run(copy, COMMANDS[name])[0] == 0
    made = {n: t for n, t in copy.made().items() if not f"results/smoke/{n}".startswith(RUNS[0])}
    tried, wrong = 0, []
    for damage in (*BY_ACCIDENT, edited, edited, edited) * effort:
        content = damage(intact, rng)
        if means(content) == means(intact):
            continue
        (copy.folder / RUN).write_bytes(content)
        codes = [run(copy, COMMANDS[name])[0] for name in ("sample", "measure", *shown)]
        tried += 1
        refused = codes[:2] == [2, 2] or (codes[0] == 0 and codes[2:] == [2, 2, 2])
        now = copy.made()
        if not refused or differing({n: now[n] for n in made}, made):
            wrong.append((damage.__name__, content[:1000], codes))
    rule = "it is refused, or nothing is drawn or judged of what is made of it"
    reliability("faults", "damaged run.yaml", tried, len(wrong), rule)
    assert not wrong
    (copy.folder / RUN).write_bytes(intact)


def test_whole_results_of_something_else_are_refused(copy):
    """Another run's, then those of another configuration.

    A job of an older configuration may put them there after its Snakemake was killed.
    """
    for name in ("draw", "tabulate"):
        command = COMMANDS[name]
        code, said = run(copy, Command((*command.arguments, "--seed", "7"), command.outputs))
        assert code == 2 and f"{METRICS}: it was made from another run.yaml; delete" in said
    for file in ("metrics.csv", "metrics.json"):
        shutil.copy2(copy.folder / RUNS[1] / file, copy.folder / RUNS[0] / file)
    for name in ("draw", "tabulate", "judge"):
        code, said = run(copy, COMMANDS[name])
        assert code == 2 and f"{METRICS}: it was made from another run.yaml and trace" in said


def test_after_deleting_what_is_named_the_same_command_makes_the_same_bytes(
    finished, tmp_path, effort, reliability
):
    """An edited metrics.csv beside another run's damaged file."""
    rng, wrong = random.Random(5), []
    for number in range(effort):
        project = TinyProject(tmp_path / str(number), finished.folder)
        damaged = {METRICS: edited, f"{RUNS[1]}/{rng.choice(['run.yaml', 'trace.nc'])}": flipped}
        for path, damage in damaged.items():
            file = project.folder / path
            file.write_bytes(damage(file.read_bytes(), rng))
        told, named = [], []
        while len(told) < 5:
            done = project.snakemake("reproduce", "--keep-going")
            told.append(done.stdout)
            found = set(re.findall(rf"concord: (\S+?):? .*{AGAIN}\n", done.stdout))
            if done.returncode == 0 or not found:
                break
            for path, _ in found:
                (project.folder / path).unlink()
                named.append(path)
        differs = differing(project.made(), finished.made())
        if (
            done.returncode != 0
            or differs
            or not {*named} <= {*damaged}
            or "Traceback" in "".join(told)
        ):
            wrong.append((damaged, named, differs, told))
    rule = "the same command makes the same bytes, if need be after deleting what an error names"
    reliability("faults", "files damaged in a finished project", 2 * effort, len(wrong), rule)
    assert not wrong

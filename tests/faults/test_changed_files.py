"""Files between the stages that were cut, overwritten, flipped in a bit or edited by hand."""

import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from commands import COMMANDS, DRAWS, run
from tiny_project import METRICS, PROVENANCE, RESULTS, TinyProject, differing

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
SHOWN = ("draw", "tabulate", "judge")
READERS = {DRAWS: ("measure",), METRICS: SHOWN, PROVENANCE: SHOWN}
DAMAGES = {DRAWS: 5 * BY_ACCIDENT, METRICS: (*BY_ACCIDENT, edited), PROVENANCE: (cut, garbage)}


@pytest.mark.parametrize("path", READERS, ids=lambda path: Path(path).name)
def test_a_damaged_file_is_refused_by_what_reads_it(path, copy, effort, reliability):
    rng = random.Random(path)
    assert run(copy, COMMANDS["sample"]) == (0, "")
    before = copy.made()
    name, intact = path.partition("smoke/")[2], (copy.folder / path).read_bytes()
    sentence = re.compile(rf"concord: {re.escape(RESULTS)}/.*; .*{AGAIN}.*\n")
    tried, wrong = 0, []
    for damage in DAMAGES[path] * effort:
        content = damage(intact, rng)
        if content == intact:
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


def test_after_deleting_what_is_named_the_same_command_makes_the_same_bytes(
    finished, tmp_path, effort, reliability
):
    """An edited metrics.csv, whose figure has yet to be drawn."""
    rng, wrong = random.Random(5), []
    for number in range(effort):
        project = TinyProject(tmp_path / str(number), finished.folder)
        damaged = {METRICS: edited}
        for path, damage in damaged.items():
            file = project.folder / path
            file.write_bytes(damage(file.read_bytes(), rng))
        told, named = [], []
        while len(told) < 5:
            done = project.snakemake("reproduce", "--forcerun", "figure", "--keep-going")
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
    reliability("faults", "files damaged in a finished project", effort, len(wrong), rule)
    assert not wrong

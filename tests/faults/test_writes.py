"""A command that is killed, or finds the disk full, while it writes any of its files."""

import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from commands import COMMANDS, disk_full_after, killed_after, killed_at_file, run
from tiny_project import TinyProject, differing

from concord_studies import io

pytestmark = [pytest.mark.workflow, pytest.mark.thorough]

RULE = "each file is whole or absent, and the same command again makes the same bytes"


def faults_of(sizes, rng, tries):
    """Return faults for a command that writes files of these sizes: what, exit code, injections."""

    def bytes_before_the_end():
        return [rng.randrange(rng.choice(sizes)) for _ in range(tries)]

    moments = [(number, placed) for number in range(len(sizes)) for placed in (False, True)]
    moments = rng.sample(moments, min(tries, len(moments)))
    return {
        "job killed at a random byte": (
            -signal.SIGXFSZ,
            [lambda n=n: killed_after(n) for n in bytes_before_the_end()],
        ),
        "job killed before or after a rename": (
            -signal.SIGKILL,
            [lambda m=m: killed_at_file(*m) for m in moments],
        ),
        "write that the system refuses": (
            1,
            [lambda n=n: disk_full_after(n) for n in bytes_before_the_end()],
        ),
    }


def test_a_file_is_whole_or_absent(finished, tmp_path, effort, reliability):
    project = TinyProject(tmp_path / "project", finished.folder)
    for command in COMMANDS.values():
        assert run(project, command) == (0, "")
    rng = random.Random(2)
    tried, failed, wrong = Counter(), Counter(), []
    for name, command in COMMANDS.items():
        paths = {path: project.folder / path for path in command.writes}
        whole = {path: file.read_bytes() for path, file in paths.items()}
        sizes = [len(content) for content in whole.values()]
        for what, (end, injections) in faults_of(sizes, rng, effort).items():
            for inject in injections:
                for file in paths.values():
                    file.unlink(missing_ok=True)
                code, said = run(project, command, inject)
                there = {p: f.read_bytes() for p, f in paths.items() if f.exists()}
                torn = differing(there, {p: whole[p] for p in there})
                told = end < 0 or is_a_sentence_on(paths, said)
                tried[what] += 1
                if torn or code != end or not told:
                    failed[what] += 1
                    wrong.append((name, what, torn, code, said))
        again = run(project, command)
        after = {path: file.read_bytes() for path, file in paths.items() if file.exists()}
        differs = differing(after, whole)
        if again != (0, "") or differs:
            wrong.append((name, "again", again, differs))
    for what in tried:
        reliability("faults", what, tried[what], failed[what], RULE)
    assert not wrong
    assert not [path for path in project.files() if Path(path).name.startswith(".")]


def is_a_sentence_on(paths, said):
    """Whether an error is one line and names one of the files."""
    start = "concord: File too large ("
    return said.startswith(start) and said.count("\n") == 1 and any(path in said for path in paths)


WRITING = """
import sys, time
from pathlib import Path
from concord_studies.io import whole
with whole(Path(sys.argv[1])) as temporary, open(temporary, "w") as file:
    for part in range(20):
        print(sys.argv[2], file=file, flush=True)
        time.sleep(0.02)
"""


def test_several_at_the_same_file(tmp_path):
    """As a job that outlives its Snakemake and the same job again do; one of them is killed."""
    path = tmp_path / "metrics.csv"
    command = [sys.executable, "-c", WRITING, str(path)]
    running = [subprocess.Popen([*command, str(number)]) for number in range(4)]
    seen = set()
    while None in (codes := [process.poll() for process in running]):
        seen |= {path.read_text()} if path.exists() else set()
        if seen and -signal.SIGKILL not in codes:
            running[codes.index(None)].kill()
        time.sleep(0.01)
    assert {*codes} <= {0, -signal.SIGKILL} and codes.count(0) >= 3
    assert seen <= {f"{number}\n" * 20 for number in range(4)} and seen
    with io.whole(path) as temporary:  # what the killed one left goes with the next
        temporary.write_text("whole")
    assert [*tmp_path.iterdir()] == [path]


def test_hidden_files_of_the_user_stay(tmp_path):
    names = (
        ".fig4-backup.pdf",
        ".fig4-a-b-c.pdf",
        ".fig4.concord-old.pdf",
        ".fig4.concord-part.png",
        ".fig4.0123456789abcdef.concord-part.png",
        ".fig4.mine.concord-part.pdf",
        ".fig4.pdf",
        ".fig4-1-2-3-4.pdf",
    )
    for name in names:
        (tmp_path / name).write_text("mine")
    with io.whole(tmp_path / "fig4.pdf") as temporary:
        temporary.write_text("whole")
    assert {path.name for path in tmp_path.iterdir()} == {"fig4.pdf", *names}

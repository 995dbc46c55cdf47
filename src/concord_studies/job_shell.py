"""The shell commands that each job begins with."""

import os
import shlex
import sys

from concord_studies.digests import SOURCE
from concord_studies.guard import STARTED


def write_prefix(mirror: str | None, installs: bool) -> str:
    """Return the commands by which a job finds Python, the package and the data mirror.

    installs: whether the job has an environment of its own, whose Python it takes, and in which it
    finds nothing else. Elsewhere it takes the Python that runs Snakemake, whatever that is called.
    """
    searched = [] if installs else os.environ.get("PYTHONPATH", "").split(os.pathsep)
    folders = [str(SOURCE), *(os.path.abspath(folder) for folder in searched if folder)]
    path, python = os.pathsep.join(dict.fromkeys(folders)), shlex.quote(sys.executable)
    text = f"export {STARTED}=${{EPOCHREALTIME-}} PYTHONSAFEPATH=1 PYTHONPATH={shlex.quote(path)}; "
    if mirror:
        text += f"export CONCORD_DATA_MIRROR={shlex.quote(mirror)}; "
    if not installs:  # in a container there is another Python
        text += f'if [ -x {python} ]; then python() {{ {python} "$@"; }}; fi; '
    return text.replace("{", "{{").replace("}", "}}")

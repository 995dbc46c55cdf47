"""A study of one's own: a folder with what ``snakemake`` needs beside the installed package."""

import os
import re
import shutil
from pathlib import Path

from concord.errors import ConcordError, short
from concord_studies.configuration.study_files import RESERVED
from concord_studies.home import HOME
from concord_studies.io import write_whole
from concord_studies.runs.keys import STUDY

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
TEMPLATE = Path(__file__).parent / "template"


def init(folder: Path) -> list[Path]:
    """Make the folder of a new study from the template, and return its files.

    The study is called like the folder, its key is made of the letters and digits of the name.

    A ConcordError if the folder is there and not empty, or its name makes no key.
    """
    name = folder.resolve().name
    key = re.sub("[^a-z0-9]", "", name.lower())
    if not NAME.fullmatch(name) or not STUDY.fullmatch(key) or key in RESERVED:
        raise ConcordError(
            f"{folder}: no study can be called {short(name)}; choose another name, of letters, "
            "digits and . _ - (at most 60), such as my-study"
        )
    if os.path.lexists(folder) and not (folder.is_dir() and not any(folder.iterdir())):
        raise ConcordError(f"{folder}: it is there already; name a new folder")
    written = []
    for source in sorted(path for path in TEMPLATE.rglob("*") if path.is_file()):
        if "__pycache__" in source.parts:
            continue
        place = folder / str(source.relative_to(TEMPLATE)).replace("KEY", key)
        text = source.read_text(encoding="utf-8").replace("KEY", key).replace("NAME", name)
        write_whole(place, text)
        written.append(place)
    shutil.copytree(HOME / "profiles", folder / "profiles")
    return written

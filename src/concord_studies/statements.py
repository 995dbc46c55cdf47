"""Statements: records of the inputs of results, which the plan writes for the jobs that make them.

A statement's file has its digest in its name, so that no other plan, of a dry run or a changed
study, changes the file that a job reads.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from glob import escape
from pathlib import Path
from typing import Any

from concord.errors import ConcordError
from concord_studies import digests
from concord_studies.configuration.study import Study
from concord_studies.io import read_text, signature, write_whole
from concord_studies.provenance import read_planned

FOLDER = Path(".snakemake", "concord")
NOTES = "CONCORD_PLANNED"  # the variable that names the file of one planning's notes
LONGEST = 150  # characters of a result's name that are in the file's
LIFETIME = 30 * 86400  # seconds for which a file is there that nobody plans again


class Statement:
    """A record, in JSON, of the inputs of one result: parameters, code, libraries, data.

    result: the main file of the result. text: the JSON. study: the study whose files the job needs
    as they are now; None: it needs none.
    """

    def __init__(self, result: Path, text: str, study: Study | None = None) -> None:
        """Name the file of the statement by its result and digest."""
        self.result, self.text, self.study = result, text, study
        self.digest = digests.digest(text)
        name = "-".join(result.with_suffix("").parts[-3:])
        self.path = FOLDER / f"{name[:LONGEST]}-{self.digest}.yaml"

    @classmethod
    def of_inputs(
        cls, result: Path, inputs: Mapping[str, Any], study: Study | None = None
    ) -> Statement:
        """Return the statement of a result from its inputs by name, each on a line of its own.

        result: path of the result's first file. study: that whose settings the inputs are; None:
        of no study.
        """
        lines = (f"{json.dumps(name)}: {json.dumps(value)}" for name, value in inputs.items())
        return cls(result, "{" + ",\n".join(lines) + "}\n", study)

    @property
    def has_result(self) -> bool:
        """Return whether the result is there and its provenance names this statement."""
        return self.result.is_file() and read_planned(self.result) == self.digest

    def write(self) -> None:
        """Write the file if it is missing or differs; set its time so that stale results are rerun.

        Snakemake compares modification times: the file is made no newer than a result that was made
        from it, and newer than a result that was made from another statement.
        """
        _remove_old()
        if not (self.path.is_file() and self.path.read_bytes() == self.text.encode()):
            if self.study:  # what differs in another study of this statement is in no result
                write_whole(self.path.with_suffix(".study"), json.dumps(self._snapshot(self.study)))
            write_whole(self.path, self.text)
        folder, name = self.result.parent, escape(self.result.stem)
        files = {*folder.glob(f"{name}.*"), *folder.glob("runs.yaml")}
        times = [status[2] for status in map(signature, files) if status]
        now = self.path.stat().st_mtime_ns
        if self.has_result:
            os.utime(self.path, ns=(now, min(now, *times)))
        elif times and now <= max(times):
            os.utime(self.path)

    def add_to_notes(self, name: str) -> None:
        """Save the statement's paths under a name, for jobs that plan again on another machine."""
        with open(os.environ[NOTES], "a", encoding="utf-8") as file:
            print(json.dumps([name, str(self.result), str(self.path)]), file=file)

    @staticmethod
    def _snapshot(study: Study) -> dict[str, Any]:
        """Return the contents of a study's files and its configuration, as plain data."""
        return {"path": str(study.path), "config": study.config, "contents": study.contents}


@cache
def _remove_old() -> None:
    """Remove statements that no plan has written for a month; once in a process."""
    for path in FOLDER.glob("*"):
        with suppress(OSError):  # somebody else may have removed it
            if path.stat().st_ctime < time.time() - LIFETIME:
                path.unlink()


def read_notes() -> dict[str, Statement]:
    """Return the statements saved by ``add_to_notes``, by name; none if there are no notes."""
    try:
        lines = read_text(os.environ[NOTES]).splitlines()
    except (ConcordError, KeyError):
        return {}
    notes = {name: (Path(result), path) for name, result, path in map(json.loads, lines)}
    return {name: Statement(result, read_text(path)) for name, (result, path) in notes.items()}

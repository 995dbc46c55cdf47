"""The guard of a job: it checks that code and data are those in the job's statement."""

import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NoReturn

from concord.errors import ConcordError
from concord_studies import digests
from concord_studies.io import read_text, signature
from concord_studies.syntax import PYTHON

AGAIN = "type the same command again"
STARTED = "CONCORD_STARTED"  # the variable with the time at which a job's shell began


def has_planned_name(path: Path) -> bool:
    """Return whether a file's name ends in a digest, as those of statements by the plan do."""
    return re.fullmatch(r".*-[0-9a-f]{16}\.yaml", path.name) is not None


class Guard:
    """A guard that compares the inputs of a job with its statement, at its begin and end.

    Inputs are code, data and parameters. A statement that the plan has not named is a user's own
    and is not checked.

    text: the statement. digest: its digest; None without one. compares: whether inputs are compared
    with it. statement: its content; {} where they are not.
    """

    def __init__(
        self,
        path: Path | None,
        output: Path,
        roots: Iterable[str | Path],
        find: Callable[[], Mapping[str, Any]] = dict,
        files: Iterable[Path] = (),
    ) -> None:
        """Compare a job's inputs with its statement; raise a ConcordError if any differs.

        path: the statement's file; None: nothing is checked. output: the file that the job makes.
        roots: the modules and files of its code, as of ``digest_code``. find: returns further
        inputs to compare, by key of the statement. files: data that the job reads.
        """
        self.text, self.output, self.find = read_text(path) if path else "{}", output, find
        self.roots, self.data = list(roots), set(map(os.path.abspath, files))
        self.digest = digests.digest(self.text) if path else None
        self.compares = path is not None and has_planned_name(path)
        self.statement: dict[str, Any] = json.loads(self.text) if self.compares else {}
        if self.compares:
            if path and not path.stem.endswith(f"-{self.digest}"):
                raise ConcordError(f"{path}: it is not as it was planned; {AGAIN}")
            code = [*map(os.path.abspath, digests.import_closure(*self.roots))]
            # What was imported by now may have been put back since.
            began = float(os.environ.get(STARTED, "").replace(",", ".") or "inf")
            for file in code:
                if os.stat(file).st_ctime > began:
                    self._refuse_changed(file)
            self.files = {file: signature(file) for file in (*code, *self.data)}
            self.modules = set(sys.modules)
            self._check()

    def check_again(self) -> None:
        """Compare the job's inputs with its statement again, at the end of the job.

        This is before the result's provenance names the statement.
        """
        if not self.compares:
            return
        digests.forget_files()
        self._check()
        # What was changed and put back may have been read in between.
        new = (module for name, module in sys.modules.items() if name not in self.modules)
        late = {os.path.abspath(getattr(module, "__file__", None) or "") for module in new}
        for file in sorted((late | self.data) & self.files.keys()):
            if signature(file) != self.files[file]:
                self._refuse_changed(file)

    def _refuse_changed(self, file: str) -> NoReturn:
        """Raise a ConcordError that a file was changed while the job ran."""
        raise ConcordError(f"{file}: it was changed while {self.output} was made; {AGAIN}")

    def _check(self) -> None:
        """Raise a ConcordError if code, data or parameters differ from the statement."""
        findings = dict(self.find())
        # Syntax trees of another Python are others.
        if self.statement["libraries"]["python"] == PYTHON:
            findings["code"] = digests.digest_files(*self.roots)
        for key, value in findings.items():
            if self.statement[key] != value:
                raise ConcordError(
                    f"{self.output}: its {key} changed after it was planned; {AGAIN}"
                )

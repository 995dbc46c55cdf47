"""The guard of a job: the code and data that it finds are those that it was planned with."""

import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from concord.errors import ConcordError
from concord_studies import digests
from concord_studies.io import read_text, signature
from concord_studies.syntax import PYTHON

AGAIN = "type the same command again"


def is_planned(path: Path) -> bool:
    """Return whether a file has a name as planning gives a statement: it ends in its digest."""
    return re.fullmatch(r".*-[0-9a-f]{16}\.yaml", path.name) is not None


class Guard:
    """Compares what a job finds with its statement, at once and when it ends.

    A statement that has another name than planning gives it is not compared: it is somebody's own.

    text: the statement. planned: its digest. compares: whether it is compared.
    statement: what it says, where it is compared.
    """

    def __init__(
        self,
        path: Path | None,
        output: Path,
        roots: Iterable[str | Path],
        find: Callable[[], Mapping[str, Any]] = dict,
        files: Iterable[Path] = (),
    ) -> None:
        """Compare for the first time; a ConcordError if anything differs.

        path: the statement; None: there is none, and nothing is compared.
        output: what the job makes.
        roots: of its code, as of ``digest_code``.
        find: returns what else is compared, by key of the statement.
        files: data that it reads.
        """
        self.text, self.output, self.find = read_text(path) if path else "{}", output, find
        self.roots, self.data = list(roots), set(map(os.path.abspath, files))
        self.planned = digests.digest(self.text) if path else None
        self.compares = path is not None and is_planned(path)
        self.statement: dict[str, Any] = json.loads(self.text) if self.compares else {}
        if self.compares:
            if path and not path.stem.endswith(f"-{self.planned}"):
                raise ConcordError(f"{path}: it is not as it was planned; {AGAIN}")
            code = map(os.path.abspath, digests.import_closure(*self.roots))
            self.files = {file: signature(file) for file in (*code, *self.data)}
            self.modules = set(sys.modules)
            self._compare()

    def end(self) -> None:
        """Compare again, before the provenance is written that says what was planned."""
        if not self.compares:
            return
        digests.forget_files()
        self._compare()
        # What was changed and put back may have been read in between.
        new = (module for name, module in sys.modules.items() if name not in self.modules)
        late = {os.path.abspath(getattr(module, "__file__", None) or "") for module in new}
        for file in sorted((late | self.data) & self.files.keys()):
            if signature(file) != self.files[file]:
                raise ConcordError(f"{file}: it was changed while {self.output} was made; {AGAIN}")

    def _compare(self) -> None:
        """Refuse code or other findings that are not as stated."""
        findings = dict(self.find())
        # Syntax trees of another Python are others.
        if self.statement["libraries"]["python"] == PYTHON:
            findings["code"] = digests.digest_files(*self.roots)
        for key, value in findings.items():
            if self.statement[key] != value:
                raise ConcordError(
                    f"{self.output}: its {key} changed after it was planned; {AGAIN}"
                )

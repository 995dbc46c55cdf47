"""The files of a study: its sections, typed, each in one of the files."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from concord import kinds
from concord.errors import ConcordError, find_meant, nearest, short
from concord.networks.network import Network
from concord_studies.configuration.sections import About, Assumption, Sections
from concord_studies.io import build_file, load_yaml
from concord_studies.runs.keys import STUDY

# Words that a study's key cannot be: rules, which are targets as keys are, folders and files beside
# the studies' among the results, and the report's own targets.
RESERVED = {
    *("default", "reproduce", "everything", "ledger", "unknown", "made", "run", "runs"),
    *("fetch", "measure", "part", "draws", "figure", "table", "universes", "verdicts"),
    *("site", "smoke", "full", "logs", "benchmarks", "claims", "workflow", "statistics"),
    *("scores", "cards", "crate", "multiverse"),
}
# Folders beside those of a study's experiments.
FOLDERS = {"figures", "tables", "multiverse", "cards"}
READINGS = {  # what a paper need not declare
    "published": "the equations as printed",
    "released": "what the authors' released code computes",
    "corrected": "what the text says is meant, where print is inconsistent",
}


class StudyFiles:
    """The folder of a study, whose files are read and checked section by section.

    path: the folder; its name is the study's key. Its plug-ins are then those at work.
    config: the validated ``config/config.yaml``.
    checked: the files have been checked before: jobs take over what was checked where they were
    planned.
    sections: what is stated, typed, but for what kinds check: experiments, problems, claims'
    checks.
    raw: all of it as the files have it.
    contents: the same, by the path of the file.
    files: the file of each section.
    graphs: the networks of its runs, by what states one: many runs share it, and what is computed
    of it.
    """

    def __init__(
        self,
        path: Path,
        config: Mapping[str, Any],
        checked: bool = False,
        contents: Mapping[str, Any] | None = None,
    ) -> None:
        """Read the folder of a study, whose name is its key; refuse a name of another form.

        contents: of the files, by path, as they were read before; they are not read again.
        """
        self.path, self.config, self.checked = path, config, checked
        self.key = path.name
        if path.is_file():
            raise ConcordError(f"{path}: it is a file; a study is a folder of them, name that")
        if not STUDY.fullmatch(self.key):
            raise ConcordError(
                f"{path}: a study's key has letters and digits only (at most 60); rename the folder"
            )
        if self.key.lower() in RESERVED:
            raise ConcordError(
                f"{path}: {self.key!r} is a word of the workflow's own; rename the folder, "
                "to the first author and the year for example"
            )
        self.sections = Sections()
        self.raw: dict[str, Any] = {}
        self.files: dict[str, Path] = {}
        self.graphs: dict[str, Network] = {}
        kinds.use(path)
        paths = sorted(path.glob("[!.]*.yaml")) if contents is None else []
        self.contents = contents or {str(file): load_yaml(file) or {} for file in paths}
        self._read_files()

    def _read_files(self) -> None:
        """Read the study's files into ``raw``, ``files`` and ``sections``, each checked alone."""
        if not self.contents:
            files = [*self.path.parent.glob("*/*.yaml"), *Path("config").glob("*/*/study.yaml")]
            folders = {file.parent.name: file.parent for file in files}
            remedy = "name one, such as config/papers/bhar2023"
            if meant := find_meant(self.key, folders):
                remedy = f"did you mean '{folders[meant]}'?"
            raise ConcordError(f"{self.path}: there is no folder with YAML files; {remedy}")
        for file, stated in ((Path(name), stated) for name, stated in self.contents.items()):
            typed = build_file(Sections, stated, file)
            for section in stated:
                if section in self.files:
                    other = self.files[section].name
                    raise ConcordError(f"{file}: {section}: it is in {other}, too; join them")
                self.files[section] = file
            self.raw |= stated
            sections = {section: getattr(typed, section) for section in stated}
            self.sections = replace(self.sections, **sections)
        if self.checked:
            return
        for section in ("paper", "experiments"):
            if self.raw.get(section) is None:
                raise ConcordError(f"{self.path}: the key {section!r} is missing; add it to a file")

    def locate(self, place: str) -> str:
        """Return the file and key of a place for messages: "figures.yaml: figures.fig1.runs[0]"."""
        section = re.match(r"\w*", place)[0]  # type: ignore[index]  # it matches
        return f"{self.files.get(section, self.path)}: {place}"

    @property
    def printed(self) -> bool:
        """Whether the study is of a paper, not one of a user's own (``config/studies``)."""
        return self.path.parent.name != "studies"

    @property
    def about(self) -> About:
        """Return title, authors and other facts of the study's paper."""
        assert self.sections.paper is not None  # as has been checked
        return self.sections.paper

    @property
    def experiments(self) -> dict[str, Any]:
        """Return the experiments as stated in the file, before kinds check their options."""
        experiments: dict[str, Any] = self.raw["experiments"]
        return experiments

    @property
    def problems(self) -> dict[str, Any]:
        """Return the problems that experiments name, as stated in the file."""
        problems: dict[str, Any] = self.raw.get("problems", {})
        return problems

    @property
    def assumptions(self) -> dict[str, Assumption]:
        """Return the assumptions by name: values that the paper does not state."""
        return self.sections.assumptions

    @property
    def readings(self) -> dict[str, str]:
        """Return the readings that runs may follow, with their meaning for every problem."""
        return {reading: self._join_meanings(of) for reading, of in self._meanings.items()}

    @property
    def _meanings(self) -> dict[str, str | dict[str, str]]:
        """Return the meaning of every reading declared; by problem where it differs by problem."""
        return {**READINGS, **self.sections.readings}

    def _join_meanings(self, meaning: str | dict[str, str]) -> str:
        """Return a reading's meaning as one text; several meanings with the problems of each.

        A problem is called by the study's name for it, or by its kind.
        """
        if isinstance(meaning, str):
            return meaning
        problems: dict[str, dict[str, None]] = {}
        for problem, text in meaning.items():
            kind = self.problems.get(problem, {}).get("kind", problem).replace("_", " ")
            problems.setdefault(text, {})[self.sections.names.get(problem, kind)] = None
        return "; ".join(f"{text} ({', '.join(of)})" for text, of in problems.items())

    def meanings(self, runs: Iterable[Mapping[str, Any]]) -> dict[str, str]:
        """Return the meanings of the readings that runs follow, for the runs' problems.

        runs: their resolved mappings.
        """
        texts: dict[str, list[str]] = {}
        for run in runs:
            meaning = self._meanings[run["reading"]]
            text = meaning if isinstance(meaning, str) else meaning[run["problem"]["name"]]
            texts.setdefault(run["reading"], []).append(text)
        return {reading: "; ".join(dict.fromkeys(of)) for reading, of in texts.items()}

    def check_reading(self, reading: str, where: str, problem: str | None = None) -> None:
        """Refuse a reading that is not declared, or has no meaning for the problem of a run."""
        if reading not in self._meanings:
            raise ConcordError(
                f"{where}: {short(reading)} is not declared under readings; "
                f"{nearest(reading, self._meanings)}"
            )
        meaning = self._meanings[reading]
        if problem is not None and not isinstance(meaning, str) and problem not in meaning:
            raise ConcordError(
                f"{self.locate('readings')}.{reading}: it has no meaning for the problem "
                f"{short(problem)} of {where.split(': ')[-1].removesuffix('.reading')}; add one"
            )

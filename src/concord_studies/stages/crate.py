"""crate: what was made, in one file that others can check, as a Workflow Run RO-Crate.

It holds workflow, configuration and lock, every run's parameters and metrics, their provenance, the
figures, tables and verdicts, and names commit, versions and data sets; traces are left out. Each
file has its SHA-256 (https://w3id.org/ro/wfrun/workflow, version 0.5).
"""

import json
import mimetypes
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zipfile import ZIP_DEFLATED, ZIP_LZMA, ZipFile

from concord.errors import ConcordError
from concord_studies.configuration.config import results_folder
from concord_studies.configuration.project import load_studies
from concord_studies.configuration.study import Study
from concord_studies.datasets.registry import load_registry
from concord_studies.home import HOME
from concord_studies.io import load_yaml, whole
from concord_studies.provenance import describe, read_provenance, sha256

PROFILES = {
    "Process Run Crate": "https://w3id.org/ro/wfrun/process/0.5",
    "Workflow Run Crate": "https://w3id.org/ro/wfrun/workflow/0.5",
    "Workflow RO-Crate": "https://w3id.org/workflowhub/workflow-ro-crate/1.0",
}
TERMS = {"sha256": "https://w3id.org/ro/terms/workflow-run#sha256"}
COMPUTED = "https://bioschemas.org/profiles/ComputationalWorkflow/1.0-RELEASE"
MAIN = "workflow/Snakefile"
# Of the project, and of what was made. Of figures the smallest form, which is a third of PDF.
STATED = (
    *("README.md", "LICENSE", "CITATION.cff", "codecheck.yml", ".zenodo.json", "envs/*"),
    *("config/*.yaml", "config/papers/*/**/*", "config/studies/*/**/*"),
    *("workflow/rules/*", "workflow/report/*"),
)
MADE = ("figures/*", "tables/*", "cards/*", "*.csv", "*.md", "*.json")
LEFT_OUT = {".png", ".pdf", ".tex", ".nc", ".pyc"}


def crate(folder: Path, changes: Mapping[str, Any], results: Path | None, to: Path) -> str:
    """Write a crate of all experiments, figures, tables and verdicts up to date; return a summary.

    folder, changes: of the configuration, as of ``load_studies``.
    results: none: those of the configuration.
    A ConcordError if nothing has been made, or the extra ``crate`` is not installed.
    """
    try:
        from rocrate.rocrate import ROCrate  # of an extra
    except ModuleNotFoundError:
        raise ConcordError(
            "crate: it needs rocrate, of the extra `crate`; install it, as `make crate` does"
        ) from None
    config, studies = load_studies(folder, changes)
    results = results or results_folder(config)
    made = list(_list_results(studies, results))
    experiments = sum(path.name == "metrics.csv" for path in made)
    if not experiments:
        raise ConcordError(f"{results}: nothing has been made there; make some, as by `snakemake`")
    found, about = ROCrate(version="1.1"), describe()
    found.metadata.extra_terms.update(TERMS)
    found.description = f"{experiments} experiments made at commit {about['commit']}"
    agent = _describe(found, load_yaml(HOME / "CITATION.cff"))
    main = {**_about(HOME / MAIN, "workflow"), "version": about["concord"]}
    main["conformsTo"] = {"@id": COMPUTED}
    workflow = found.add_workflow(HOME / MAIN, MAIN, main=True, lang="snakemake", properties=main)
    inputs = [*_add_files(found), *_add_data(found, studies)]
    for key, kind in (("scale", "Text"), ("seed", "Integer")):  # set for all studies
        parameter = found.add_formal_parameter(key, kind, f"#{key}", f"{key} of all runs")
        own = {"@type": "PropertyValue", "name": key, "value": str(config[key])}
        value = found.add_jsonld({"@id": f"#{key}-value", **own, "exampleOfWork": parameter})
        parameter["workExample"] = value
        workflow.append_to("input", parameter)
        inputs.append(value)
    parameter = found.add_formal_parameter("results", "File", "#results", "all that is made")
    outputs = [
        found.add_file(
            path,
            f"results/{path.relative_to(results)}",
            properties={**_about(path), "exampleOfWork": parameter},
        )
        for path in made
    ]
    workflow["output"], parameter["workExample"] = parameter, outputs
    times = sorted(datetime.fromtimestamp(path.stat().st_mtime, UTC) for path in made)
    ran = {
        "name": "what Snakemake made",
        "description": json.dumps(about),
        "startTime": times[0].isoformat(timespec="milliseconds"),
        "endTime": times[-1].isoformat(timespec="milliseconds"),
        "actionStatus": "http://schema.org/CompletedActionStatus",
        "agent": agent,
    }
    action = found.add_action(workflow, "#made", object=inputs, result=outputs, properties=ran)
    found.root_dataset["mentions"] = action
    with TemporaryDirectory() as copies, whole(to) as path, ZipFile(path, "w") as archive:
        found.write(copies)
        for copy in sorted(file for file in Path(copies).rglob("*") if file.is_file()):
            # Nine tenths are numbers of 17 digits, which take three quarters of what zip makes.
            packed = ZIP_LZMA if copy.name == "metrics.csv" else ZIP_DEFLATED
            archive.write(copy, copy.relative_to(copies), packed)
    size = f"{to.stat().st_size / 1e6:.1f} MB"
    return f"{to}: {experiments} experiments, {len(made)} files made, {size}, SHA-256 {sha256(to)}"


def _describe(found: Any, citation: Mapping[str, Any]) -> Any:
    """State profiles, title, license and authors of the crate; return the first author's entity."""
    for name, identifier in PROFILES.items():
        version = identifier.rpartition("/")[2]
        own = {"@type": "CreativeWork", "name": name, "version": version}
        found.add_jsonld({"@id": identifier, **own})
    root = found.root_dataset
    root["conformsTo"] = [{"@id": identifier} for identifier in PROFILES.values()]
    found.name, identifier = citation["title"], f"https://spdx.org/licenses/{citation['license']}"
    named = {"@type": "CreativeWork", "name": citation["license"]}
    root["license"] = found.add_jsonld({"@id": identifier, **named})
    authors = []
    for number, author in enumerate(citation["authors"]):
        kind = "Person" if "family-names" in author else "Organization"
        own = {"@type": kind, "name": full_name(author)}
        authors.append(found.add_jsonld({"@id": f"#author-{number}", **own}))
    root["author"] = authors if len(authors) > 1 else authors[0]
    root["publisher"] = authors[0]
    return authors[0]


def full_name(author: Mapping[str, str]) -> str:
    """Return the full name of an author in CITATION.cff."""
    return author.get("name") or f"{author['given-names']} {author['family-names']}"


def _about(path: Path, name: str = "") -> dict[str, Any]:
    """Return the properties that the crate states of a file."""
    kind = mimetypes.guess_type(path.name)[0] or "text/plain"
    size = str(path.stat().st_size)
    stated = {"sha256": sha256(path), "contentSize": size, "encodingFormat": kind}
    return {"name": name or path.name, **stated}


def _list_results(studies: Mapping[str, Study], results: Path) -> Iterator[Path]:
    """Yield the files of all results that are up to date."""
    yield from sorted(results.glob("claims.*"))
    for key, study in studies.items():
        for experiment in study.experiments:
            folder = results / key / experiment
            if (folder / "metrics.csv").exists():
                read_provenance(folder / "metrics.csv")
                yield from (folder / name for name in ("runs.yaml", "metrics.csv", "metrics.json"))
        for pattern in MADE:
            for path in sorted((results / key).glob(pattern)):
                if path.suffix not in LEFT_OUT and path.is_file():
                    yield path


def _add_files(found: Any) -> Iterator[Any]:
    """Add the files that state the project to the crate, and yield what the workflow reads."""
    for path in (path for pattern in STATED for path in sorted(HOME.glob(pattern))):
        if path.is_file() and path.suffix not in LEFT_OUT:
            name = str(path.relative_to(HOME))
            own = {"about": {"@id": "./"}} if name == "README.md" else {}
            entity = found.add_file(path, name, properties={**_about(path, name), **own})
            if not name.startswith("workflow/rules"):
                yield entity


def _add_data(found: Any, studies: Mapping[str, Study]) -> Iterator[Any]:
    """Yield the data sets that runs read, which are not in the crate but named by their SHA-256."""
    used = {n for s in studies.values() for run in s.runs.values() for n in run.data_sets}
    for name in sorted(used):
        for file, entry in load_registry()[name].files.items():
            about = {"@type": "CreativeWork", "name": f"{name}/{file}", "sha256": entry.sha256}
            yield found.add_jsonld({"@id": f"#data-{name}-{file}", **about})

"""crate: pack all results into one file that others can check, a Workflow Run RO-Crate.

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
from concord_studies.io import load_yaml, whole_file
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
PROJECT_FILES = (
    *("README.md", "LICENSE", "CITATION.cff", "codecheck.yml", ".zenodo.json", "envs/*"),
    *("config/*.yaml", "config/papers/*/**/*", "config/studies/*/**/*"),
    *("workflow/rules/*", "workflow/report/*"),
)
RESULT_FILES = ("figures/*", "tables/*", "cards/*", "*.csv", "*.md", "*.json")
LEFT_OUT = {".png", ".pdf", ".tex", ".nc", ".pyc"}


def crate(folder: Path, changes: Mapping[str, Any], results: Path | None, to: Path) -> str:
    """Write a crate of all results that are up to date; return a summary.

    folder, changes: of the configuration, as of ``load_studies``. results: the folder of the
    results; None: that of the configuration. to: the file to write.
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
    files = list(_list_results(studies, results))
    experiments = sum(path.name == "metrics.csv" for path in files)
    if not experiments:
        raise ConcordError(f"{results}: nothing has been made there; make some, as by `snakemake`")
    ro_crate, about = ROCrate(version="1.1"), describe()
    ro_crate.metadata.extra_terms.update(TERMS)
    ro_crate.description = f"{experiments} experiments made at commit {about['commit']}"
    agent = _describe(ro_crate, load_yaml(HOME / "CITATION.cff"))
    main = {**_about(HOME / MAIN, "workflow"), "version": about["concord"]}
    main |= {"conformsTo": {"@id": COMPUTED}}
    place = HOME / MAIN
    workflow = ro_crate.add_workflow(place, MAIN, main=True, lang="snakemake", properties=main)
    inputs = [*_add_files(ro_crate), *_add_data(ro_crate, studies)]
    for key, kind in (("scale", "Text"), ("seed", "Integer")):  # set for all studies
        parameter = ro_crate.add_formal_parameter(key, kind, f"#{key}", f"{key} of all runs")
        fields = {"name": key, "value": str(config[key]), "exampleOfWork": parameter}
        value = _add(ro_crate, f"#{key}-value", "PropertyValue", **fields)
        parameter["workExample"] = value
        workflow.append_to("input", parameter)
        inputs.append(value)
    parameter = ro_crate.add_formal_parameter("results", "File", "#results", "all that is made")
    outputs = []
    for path in files:
        fields = {**_about(path), "exampleOfWork": parameter}
        name = f"results/{path.relative_to(results)}"
        outputs.append(ro_crate.add_file(path, name, properties=fields))
    workflow["output"], parameter["workExample"] = parameter, outputs
    times = sorted(datetime.fromtimestamp(path.stat().st_mtime, UTC) for path in files)
    ran = {
        "name": "what Snakemake made",
        "description": json.dumps(about),
        "startTime": times[0].isoformat(timespec="milliseconds"),
        "endTime": times[-1].isoformat(timespec="milliseconds"),
        "actionStatus": "http://schema.org/CompletedActionStatus",
        "agent": agent,
    }
    action = ro_crate.add_action(workflow, "#made", object=inputs, result=outputs, properties=ran)
    ro_crate.root_dataset["mentions"] = action
    with TemporaryDirectory() as copies, whole_file(to) as path, ZipFile(path, "w") as archive:
        ro_crate.write(copies)
        for copy in sorted(file for file in Path(copies).rglob("*") if file.is_file()):
            # Nine tenths are numbers of 17 digits, which take three quarters of what zip makes.
            packed = ZIP_LZMA if copy.name == "metrics.csv" else ZIP_DEFLATED
            archive.write(copy, copy.relative_to(copies), packed)
    size = f"{to.stat().st_size / 1e6:.1f} MB"
    return f"{to}: {experiments} experiments, {len(files)} files made, {size}, SHA-256 {sha256(to)}"


def _add(ro_crate: Any, identifier: str, kind: str, **fields: Any) -> Any:
    """Add an entity of a type to the crate, and return it."""
    return ro_crate.add_jsonld({"@id": identifier, "@type": kind, **fields})


def _describe(ro_crate: Any, citation: Mapping[str, Any]) -> Any:
    """Add profiles, title, license and authors to the crate; return the first author's entity."""
    for name, identifier in PROFILES.items():
        version = identifier.rpartition("/")[2]
        _add(ro_crate, identifier, "CreativeWork", name=name, version=version)
    root, license_name = ro_crate.root_dataset, citation["license"]
    root["conformsTo"] = [{"@id": identifier} for identifier in PROFILES.values()]
    ro_crate.name, identifier = citation["title"], f"https://spdx.org/licenses/{license_name}"
    root["license"] = _add(ro_crate, identifier, "CreativeWork", name=license_name)
    authors = []
    for number, author in enumerate(citation["authors"]):
        kind = "Person" if "family-names" in author else "Organization"
        name = author.get("name") or f"{author['given-names']} {author['family-names']}"
        authors.append(_add(ro_crate, f"#author-{number}", kind, name=name))
    root["author"] = authors if len(authors) > 1 else authors[0]
    root["publisher"] = authors[0]
    return authors[0]


def _about(path: Path, name: str = "") -> dict[str, Any]:
    """Return a file's properties in the crate: name, size, type and SHA-256."""
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
        for pattern in RESULT_FILES:
            for path in sorted((results / key).glob(pattern)):
                if path.suffix not in LEFT_OUT and path.is_file():
                    yield path


def _add_files(ro_crate: Any) -> Iterator[Any]:
    """Add the project's own files to the crate, and yield the entities that the workflow reads."""
    for path in (path for pattern in PROJECT_FILES for path in sorted(HOME.glob(pattern))):
        if path.is_file() and path.suffix not in LEFT_OUT:
            name = str(path.relative_to(HOME))
            more = {"about": {"@id": "./"}} if name == "README.md" else {}
            entity = ro_crate.add_file(path, name, properties={**_about(path, name), **more})
            if not name.startswith("workflow/rules"):
                yield entity


def _add_data(ro_crate: Any, studies: Mapping[str, Study]) -> Iterator[Any]:
    """Yield entities of the data sets that runs read, which the crate names by SHA-256 only."""
    used = {n for s in studies.values() for run in s.runs.values() for n in run.data_sets}
    for name in sorted(used):
        for file, entry in load_registry()[name].files.items():
            about = {"name": f"{name}/{file}", "sha256": entry.sha256}
            yield _add(ro_crate, f"#data-{name}-{file}", "CreativeWork", **about)

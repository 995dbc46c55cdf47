"""The configuration: ``config/config.yaml`` and the papers' folders."""

import gc
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta

from concord import plugins
from concord.errors import ConcordError, nearest, short
from concord.io import load_yaml
from concord.options import Count, Index, Options, build_file, plain
from concord.studies.checks import check_outputs
from concord.studies.stated import RESERVED
from concord.studies.study import Study


class Smoke(Options):
    """Upper limits at smoke scale."""

    chains: Annotated[Count, "most chains of a run at smoke scale"] = 8
    iterations: Annotated[Count, "most iterations of a run at smoke scale"] = 12


class Config(Options):
    """What ``config/config.yaml`` or ``--config`` sets."""

    scale: Annotated[
        Literal["paper", "smoke", "full"],
        "paper: what the papers ran; smoke: the same DAG with few chains and iterations; full: and "
        "what experiments add in their key full, for a cluster",
    ] = "paper"
    seed: Annotated[Index, "master seed of all random streams"] = 1
    results: Annotated[
        str,
        Meta(pattern=r"^(?!.*\.\.)[A-Za-z0-9_][A-Za-z0-9._/-]*$(?!\n)", max_length=200),
        "folder of the results, below the project's; those of scales smoke and full in its folders",
    ] = "results"
    data_mirror: Annotated[
        str | None, "folder searched before downloading, unless CONCORD_DATA_MIRROR names one"
    ] = None
    chains_per_job: Annotated[
        Annotated[int, Meta(ge=50, multiple_of=50)] | None,
        "most chains that one job samples, a multiple of 50; none: all chains of a run",
    ] = None
    smoke: Annotated[Smoke, "upper limits at smoke scale"] = Smoke()
    pairs: Annotated[
        bool, "the multiverse has every two alternatives of different assumptions together, too"
    ] = False
    multiverse: Annotated[
        bool, "verdicts wait for those over the universes, which are made first"
    ] = False
    conda: Annotated[
        bool, "jobs run in conda environments, which have what is not installed here"
    ] = False
    container: Annotated[
        str | None, "image that `--sdm apptainer` runs jobs in, built from envs/Dockerfile"
    ] = None
    not_varied: Annotated[
        tuple[str, ...], "experiments of which the multiverse makes no runs, <key>/<experiment>"
    ] = ()
    findings: Annotated[
        tuple[str, ...], "claims on the site's first page, <key>/<claim>; none: the first five"
    ] = ()
    strict: Annotated[
        bool, "the ledger fails if a verdict differs from config/expected_verdicts.yaml"
    ] = False


CONFIG = Path("config", "config.yaml")


def load_config(path: Path = CONFIG, changes: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Read ``config/config.yaml``, apply changes (Snakemake's ``--config``), and check it.

    What neither sets has its default, and all of it where there is no such file.
    """
    config = (load_yaml(path) if path != CONFIG or path.exists() else None) or {}
    if not isinstance(config, dict):
        raise ConcordError(f"{path}: it is not a mapping of keys to values")
    words = {"true": True, "false": False}  # on the command line Snakemake knows Python's alone
    set_now = {key: words.get(str(value), value) for key, value in (changes or {}).items()}
    checked: dict[str, Any] = plain(build_file(Config, {**config, **set_now}, path))
    return checked


def results_folder(config: Mapping[str, Any]) -> Path:
    """Return the folder of the results at the scale of a configuration."""
    return Path(config["results"], *[config["scale"]] * (config["scale"] != "paper"))


def orphans(results: Path, studies: Iterable[Study]) -> list[Path]:
    """Return the folders of runs below ``results`` that are of no run of these studies."""
    asked = {results / run.folder for study in studies for run in study.runs.values()}
    made = {path.parent for path in results.glob("*/*/*/run.yaml")}
    return sorted(f for f in made - asked if f.relative_to(results).parts[0] not in RESERVED)


# Where they are, below the folder of the configuration.
FOLDERS = ("papers", "studies")


def load_studies(
    folder: Path, changes: Mapping[str, Any] | None = None, checked: bool = False
) -> tuple[dict[str, Any], dict[str, Study]]:
    """Load and check the whole configuration: ``config.yaml``, the papers and the studies.

    folder, changes: the folder of both; what Snakemake's ``--config`` sets.
    checked: all of it has been checked before, so that reading it will do.
    Returned are the configuration, and by key the papers, then the studies that are no papers
    (``Study.printed``).
    """
    # All that is read is kept: to look for garbage in it takes a fifth of the time,
    # and time again while jobs are planned.
    gc.disable()
    try:
        return _load_studies(folder, changes, checked)
    finally:
        gc.enable()
        gc.freeze()


def _load_studies(
    folder: Path, changes: Mapping[str, Any] | None, checked: bool
) -> tuple[dict[str, Any], dict[str, Study]]:
    config = load_config(folder / "config.yaml", changes)
    studies: dict[str, Study] = {}
    for path in (p for f in FOLDERS for p in sorted((folder / f).glob("[!.]*"))):
        if not path.is_dir() and path.suffix != ".yaml":  # a note of somebody's
            continue
        if path.name in studies:
            raise ConcordError(f"{path}: {studies[path.name].path} has this key too; rename one")
        study = studies[path.name] = Study(path, config, checked)
        if not checked:
            study.runs  # noqa: B018 (expands and so checks every run)
            check_outputs(study)
    plugins.use(*(study.path for study in studies.values()))  # each was checked with its own
    if not studies:
        raise ConcordError(f"{folder / 'papers'} holds no paper's folder; add one")
    known = [f"{key}/{name}" for key, study in studies.items() for name in study.experiments]
    for name in [] if checked else config["not_varied"]:
        if name.partition("/")[0] in studies and name not in known:
            raise ConcordError(
                f"{folder / 'config.yaml'}: not_varied: there is no experiment {short(name)}; "
                f"{nearest(name, known)}"
            )
    return config, studies

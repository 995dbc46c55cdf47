"""The configuration: ``config/config.yaml``."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta

from concord.errors import ConcordError
from concord.options import Count, Index, Options, plain
from concord_studies.io import build_file, load_yaml


class SmokeLimits(Options):
    """Upper limits on chains and iterations at smoke scale."""

    chains: Annotated[Count, "most chains of a run at smoke scale"] = 8
    iterations: Annotated[Count, "most iterations of a run at smoke scale"] = 12


class Config(Options):
    """Scale, seed, folders and limits, set in ``config/config.yaml`` or with ``--config``."""

    scale: Annotated[
        Literal["paper", "smoke", "full"],
        "paper: what the papers ran; smoke: the same DAG with few chains and iterations; full: and "
        "what experiments add in their key full, for a cluster",
    ] = "paper"
    seed: Annotated[Index, "master seed of all random streams"] = 1
    results: Annotated[
        str,
        Meta(
            pattern=r"^(?!.*\.\.)[A-Za-z0-9_][A-Za-z0-9._/-]{0,199}$(?!\n)",
            title="a relative path of letters, digits and . _ / -, without ..",
        ),
        "folder of the results, below the project's; those of scales smoke and full in its folders",
    ] = "results"
    data_mirror: Annotated[
        str | None, "folder searched before downloading, unless CONCORD_DATA_MIRROR names one"
    ] = None
    smoke: Annotated[SmokeLimits, "upper limits at smoke scale"] = SmokeLimits()
    pairs: Annotated[
        bool, "the multiverse has every two alternatives of different assumptions together, too"
    ] = False
    multiverse: Annotated[
        bool, "verdicts wait for those over the universes, which are made first"
    ] = False
    container: Annotated[
        str | None, "image that `--sdm apptainer` runs jobs in, built from envs/Dockerfile"
    ] = None
    not_varied: Annotated[
        tuple[str, ...], "experiments of which the multiverse makes no runs, <key>/<experiment>"
    ] = ()
    findings: Annotated[
        tuple[str, ...],
        "claims on the site's first page, <key>/<claim>, of each paper one; none: its first",
    ] = ()
    strict: Annotated[
        bool, "the ledger fails if a verdict differs from config/expected_verdicts.yaml"
    ] = False


CONFIG = Path("config", "config.yaml")
# Folders of a project that hold something else than results.
FOLDERS = {"config", "docs", "envs", "profiles", "resources", "site", "src", "tests", "workflow"}


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
    if (folder := checked["results"].partition("/")[0]).lower() in FOLDERS:
        raise ConcordError(
            f"{path}: results: {checked['results']!r} is in the project's own folder {folder}; "
            "name another, such as results"
        )
    return checked


def results_folder(config: Mapping[str, Any]) -> Path:
    """Return the folder of the results at the scale of a configuration."""
    return Path(config["results"], *[config["scale"]] * (config["scale"] != "paper"))

"""Reader of posteriors of posteriordb."""

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from concord_studies.datasets.readers import existing, malformed, parameters


def posteriordb(data: str | Path, draws: str | Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read a posterior of posteriordb: its data by name, and its reference draws by parameter."""
    given, chains = (_zipped(existing(path, "posterior")) for path in (data, draws))
    columns = {name: np.concatenate([chain[name] for chain in chains]) for name in chains[0]}
    arrays = {n: np.asarray(v) if isinstance(v, list) else v for n, v in given.items()}
    return arrays, parameters(columns)


def _zipped(path: Path) -> Any:
    try:
        with zipfile.ZipFile(path) as archive:
            return json.loads(archive.read(archive.namelist()[0]))
    except (zipfile.BadZipFile, ValueError, IndexError, OSError) as error:
        raise malformed(path, "one JSON document in a ZIP archive", error) from error

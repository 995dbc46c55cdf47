"""Reader of posteriors of posteriordb."""

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from concord_studies.datasets.readers import stack_draws


def posteriordb(data: Path, draws: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read a posterior of posteriordb: its data by name, and its reference draws by parameter."""
    content, chains = map(_read_zipped_json, (data, draws))
    columns = {name: np.concatenate([chain[name] for chain in chains]) for name in chains[0]}
    arrays = {n: np.asarray(v) if isinstance(v, list) else v for n, v in content.items()}
    return arrays, stack_draws(columns)


def _read_zipped_json(path: Path) -> Any:
    """Return the JSON document in a ZIP archive."""
    with zipfile.ZipFile(path) as archive:
        return json.loads(archive.read(archive.namelist()[0]))

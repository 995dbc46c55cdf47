"""The commands that the documents show are ones that work."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCUMENTS = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "config/README.md", "Makefile")),
    *(ROOT / name for name in (".ci/run", "envs/Dockerfile", "profiles/slurm/config.yaml")),
]


def test_targets_stand_before_the_settings():
    """Snakemake takes a target that follows --config for a setting, and ends in an error."""
    found = []
    for path in DOCUMENTS:
        for line in path.read_text().splitlines():
            for after in re.findall(r"snakemake[^`#]*?--config ([^`#|>]*)", line):
                found.append(after)
                assert all("=" in word for word in after.split()), f"{path}: {line}"
    assert len(found) >= 4

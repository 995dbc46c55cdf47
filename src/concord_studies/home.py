"""Where the files beside the package's code are: the workflow, the data registry, environments.

In a checkout they are the checkout's; the wheel holds copies of them in ``concord_studies/share``.
"""

from pathlib import Path

_SHARE = Path(__file__).parent / "share"
HOME = _SHARE if _SHARE.is_dir() else Path(__file__).resolve().parents[2]
SNAKEFILE = HOME / "workflow" / "Snakefile"
REGISTRY = HOME / "config" / "datasets.yaml"

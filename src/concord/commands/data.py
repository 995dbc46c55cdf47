"""The command ``fetch``."""

from argparse import Namespace

from concord.datasets.fetch import fetch as download
from concord.datasets.registry import find
from concord.stages.certify import certify


def fetch(options: Namespace) -> None:
    """Download a data file, or make it, and check its SHA-256."""
    if find(options.file).made is None:
        download(options.file, options.output, mirror=options.mirror)
    else:
        certify(options.file, options.output)

"""The commands about kinds: list and describe, and how the words of options name kinds."""

import json
import os
from argparse import Namespace
from itertools import groupby
from pathlib import Path

from concord.errors import ConcordError, tell
from concord_cli.studies import at_work
from concord_studies import plugins
from concord_studies.catalog import as_text, described, find, listed


def find_plugins(options: Namespace) -> None:
    """Find the plug-ins of studies; report one that is broken, and keep the others."""
    if options.plugins:
        at_work(options)
        return
    for path in (p for study in sorted(Path("config").glob("*/*/")) for p in plugins.files(study)):
        try:
            plugins.add(path)
        except ConcordError as error:
            tell(str(error), 0)


def named(word: str) -> list[tuple[str, str]]:
    """Return package and kind of a word, which may be a plug-in's file."""
    if not word.endswith(".py"):
        return find(word)
    real = os.path.realpath(word)
    known = [key for key, file in plugins.own().items() if os.path.realpath(file) == real]
    return known or [plugins.add(Path(word))]


def list_kinds(options: Namespace) -> None:
    """List the kinds there are."""
    find_plugins(options)
    found = list(listed(options.packages))
    if options.json:
        print(json.dumps(found, indent=1))
        return
    width = max(len(about["kind"]) for about in found)
    for package, of_package in groupby(found, lambda about: about["package"]):
        print(f"{package}:")
        for about in of_package:
            whence = f" [{about['from']}]" if about["from"] else ""
            print(f"  {about['kind']:{width}}  {about['is']}{whence}")


def describe(options: Namespace) -> None:
    """Tell a kind's equation, source, price, needs and options."""
    find_plugins(options)
    found = [described(*kind) for kind in named(options.kind)]
    print(json.dumps(found, indent=1) if options.json else "\n\n".join(map(as_text, found)))

"""The commands about kinds: list and describe, and how the words of options name kinds."""

import json
import os
from argparse import Namespace
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from concord import kinds
from concord.errors import ConcordError
from concord.kinds import ROOMS
from concord_cli.studies import use_plugins
from concord_studies.catalog import as_text, describe_kind, find_kinds, summarize_kinds
from concord_studies.failures import print_error


def find_plugins(options: Namespace, words: Sequence[str] = ()) -> None:
    """Use the plug-ins of studies; report a study with one that is broken, and keep the others.

    words: names of kinds that the command is about. A ConcordError if the broken study has one of
    them, since another one would be taken for it.
    """
    if options.plugins:
        use_plugins(options)
        return
    sound: list[Path] = []
    for study in sorted(Path("config").glob("*/*/")):
        try:
            kinds.use(*sound, study)
            sound.append(study)
        except ConcordError as error:
            if any(path.stem in words for path in study.glob("plugins/*/*.py")):
                raise
            print_error(str(error), 0)
    kinds.use(*sound)


def find_named(word: str) -> list[tuple[str, str]]:
    """Return room and kind of a word, which may be a plug-in's file."""
    if not word.endswith(".py"):
        return find_kinds(word)
    path = Path(word)
    room = path.absolute().parent.name
    in_use = kinds.exists(room, path.stem) if room in ROOMS else False
    if in_use and os.path.realpath(kinds.location(room, path.stem)) == os.path.realpath(path):
        return [(room, path.stem)]
    return [kinds.add(path)]


def list_kinds(options: Namespace) -> None:
    """List the kinds there are."""
    find_plugins(options)
    summaries = list(summarize_kinds(options.rooms))
    if options.json:
        print(json.dumps(summaries, indent=1))
        return
    width = max(len(about["kind"]) for about in summaries)
    for room, of_room in groupby(summaries, lambda about: about["room"]):
        print(f"{room}:")
        for about in of_room:
            whence = f" [{about['from']}]" if about["from"] else ""
            print(f"  {about['kind']:{width}}  {about['is']}{whence}")


SQUARED_BIAS = """squared bias b2

The largest of (E f - E_pi f)^2 / Var_pi f over f in {x_j, x_j^2}: E over a draw of one iteration,
pi the posterior. It is no kind to state: `concord.bias2` computes it, `concord recommend` predicts
it, and cells of an arena have it as the metric b2 (docs/arena.md)."""


def describe(options: Namespace) -> None:
    """Tell a kind's equation, source, price, needs and options, or what b2 is."""
    if options.kind == "b2" and not options.json:
        print(SQUARED_BIAS)
        return
    find_plugins(options, [options.kind])
    descriptions = [describe_kind(*kind) for kind in find_named(options.kind)]
    print(
        json.dumps(descriptions, indent=1)
        if options.json
        else "\n\n".join(map(as_text, descriptions))
    )

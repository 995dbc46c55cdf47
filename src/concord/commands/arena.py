"""The command ``arena``: entries of strangers, and cells that others have made."""

from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

from concord import plugins
from concord.commands.runs import changes
from concord.commands.test import test
from concord.errors import ConcordError
from concord.home import HOME
from concord.stages import entries
from concord.studies.config import load_config, results_folder
from concord.studies.project import load_studies
from concord.studies.study import Study

OWN = Path("config", "studies", "arena")


def arena(options: Namespace) -> None:
    """Add an entry, check entries, or fetch cells."""
    names = options.names or sorted(p for p in entries.PLACE.glob("[!.]*") if p.is_dir())
    if options.what != "check" and len(options.names) != 1:
        raise ConcordError(f"arena {options.what}: name one file; these are {len(options.names)}")
    if not names:
        print(f"There are no entries in {entries.PLACE}.")
    for name in names:
        for line in _lines(options, name):
            print(line, flush=True)


def _lines(options: Namespace, name: Path) -> Iterator[str]:
    if options.what == "fetch":
        config, studies = load_studies(options.config.parent, changes(options))
        yield from entries.fetch(studies, results_folder(config), name)
        return
    file = name if options.what == "add" else name / f"{name.name}.py"
    # Nothing is scored that does not keep the contract of samplers.
    test(Namespace(plugins=None, kinds=[str(file)], seed=1, json=False))
    config = load_config(options.config, changes(options))
    study = Study(OWN if OWN.is_dir() else HOME / OWN, config)
    _, kind = plugins.add(file)
    if options.what == "add":
        yield from entries.add(study, kind, options.resources)
    else:
        yield from entries.check(study, name, options.resources)

"""The commands about results: site, compare, changes, crate."""

from argparse import Namespace
from pathlib import Path

from concord_arena.compete import compare_samplers
from concord_arena.entries import ARENA
from concord_cli import kinds
from concord_cli.runs import changes
from concord_studies.claims import ledger
from concord_studies.configuration.config import load_config
from concord_studies.configuration.study import Study
from concord_studies.pages.site import build
from concord_studies.stages.crate import crate as pack


def site(options: Namespace) -> None:
    """Make the site of the results at hand."""
    build.site(options.config.parent, options.results, options.folder, changes(options))


def compare(options: Namespace) -> None:
    """Compare samplers on the arena's tasks."""
    arena = Path("config", "studies", "arena")
    study = Study(options.arena or (arena if arena.is_dir() else ARENA), load_config())
    kinds.find_plugins(options)
    names = [
        kinds.find_named(word)[0][1] if word.endswith(".py") else word for word in options.entries
    ]
    about = {name: getattr(options, name) for name in ("tasks", "experiment", "resources")}
    print(compare_samplers(*names, study=study, **about))


def list_differences(options: Namespace) -> None:
    """List verdicts that differ from the committed ones."""
    differences = ledger.changes(options.ledger, options.expected, options.strict)
    print(differences.text, *differences.lines, sep="\n")


def crate(options: Namespace) -> None:
    """Write the crate of the results at hand."""
    print(pack(options.config.parent, changes(options), options.results, options.output))

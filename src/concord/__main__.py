"""The commands: every stage of the pipeline, to be run by hand or by Snakemake."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from concord import __version__
from concord.errors import ConcordError

if TYPE_CHECKING:
    from concord.studies.paper import Paper

CONFIG = Path("config/config.yaml")

Command = Callable[[argparse.Namespace], None]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return its exit code. A user's mistake ends in one sentence."""
    settle()
    # Figures are files; the backend that Jupyter sets may be missing here, which is an error.
    os.environ["MPLBACKEND"] = "agg"
    options = _parser().parse_args(arguments)
    try:
        options.command(options)
    except ConcordError as error:
        return _tell(str(error), 2)
    except MemoryError as error:
        detail = f" ({error})" if str(error) else ""
        return _tell(f"there is not enough memory{detail}; lower chains or record less often", 1)
    except OSError as error:
        what = f" ({error.filename})" if error.filename else ""
        return _tell(f"{error.strerror or error}{what}", 1)
    except KeyboardInterrupt:
        return _tell("interrupted", 130)
    return 0


# One thread: results must not depend on the number of cores, and jobs share them.
THREADS = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"), "1"
)
# Kernels add in another order on processors with AVX-512: those for AVX2 serve them as well, and
# for our small matrices are as fast.
KERNELS = {
    "OPENBLAS_CORETYPE": "Haswell",
    "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR",
}


def settle(cpu: Path = Path("/proc/cpuinfo")) -> None:
    """Have the libraries compute the same bytes on all machines whose processors have AVX2.

    To be called before numpy is imported; what the user has set stays. ``cpu`` is Linux's
    description of the processors: elsewhere, and without AVX2, the kernels are left alone, since
    OpenBLAS crashes if it is told to use those that the processor lacks.
    """
    settings = dict(THREADS)
    try:
        with open(cpu) as file:
            flags = next((line.split() for line in file if line.startswith("flags")), [])
    except OSError:
        flags = []
    if {"avx2", "fma"} <= set(flags):
        settings |= KERNELS
    for name, value in settings.items():
        os.environ.setdefault(name, value)


def _tell(sentence: str, code: int) -> int:
    """Print a sentence on one line, whatever the names in it hold, and return the exit code."""
    text = "".join(c if c.isprintable() else repr(c)[1:-1] for c in sentence)
    print(f"concord: {text}", file=sys.stderr)
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="concord", description="Reproduce and compare decentralized Bayesian samplers."
    )
    parser.add_argument("--version", action="version", version=f"concord {__version__}")
    commands = parser.add_subparsers(title="commands", required=True)

    def command(name: str, function: Command, text: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=text, description=text)
        sub.set_defaults(command=function)
        return sub

    def with_config(sub: argparse.ArgumentParser) -> None:
        sub.add_argument("--config", type=Path, default=CONFIG, help="default: %(default)s")
        sub.add_argument("--scale", choices=("paper", "smoke", "full"), help="overrides the config")
        sub.add_argument("--seed", type=int, help="overrides the config")

    def with_paper(sub: argparse.ArgumentParser) -> None:
        sub.add_argument("paper", type=Path, help="config/papers/<key>")
        with_config(sub)

    def with_study(sub: argparse.ArgumentParser, default: str) -> None:
        text = f"folder of the study whose plug-ins are used (default: {default})"
        sub.add_argument("--study", type=Path, help=text)

    def with_plugins(sub: argparse.ArgumentParser) -> None:
        with_study(sub, "all in config/papers")
        sub.add_argument("--json", action="store_true", help="for programs")

    def with_resources(sub: argparse.ArgumentParser) -> None:
        sub.add_argument("--resources", type=Path, default=Path("resources"), help="data files")

    sub = command("init", _init, "make a folder with a study of your own")
    sub.add_argument("folder", type=Path, help="a new one; the study is called like it")
    sub = command("check", _check, "check a paper's files and list its runs")
    with_paper(sub)
    sub = command("orphans", _orphans, "list folders of results that no study asks for")
    with_config(sub)
    sub = command("list", _list, "list the kinds there are of samplers, problems, topologies, ...")
    sub.add_argument("packages", nargs="*", help="samplers, problems, topologies, ...; none: all")
    with_plugins(sub)
    sub = command("describe", _describe, "tell a kind's equation, source, price, needs and options")
    sub.add_argument("kind", help="de_sgld, samplers/de_sgld, or the file of a plug-in")
    with_plugins(sub)
    sub = command("test", _test, "test that plug-ins keep the contract of their kind")
    sub.add_argument("kinds", nargs="+", help="files of plug-ins, or kinds by name")
    with_plugins(sub)
    sub = command("schema", _schema, "print the JSON Schema of a study's file, for editors")
    sub.add_argument("file", choices=("study",))
    with_study(sub, "none")
    sub = command("resolve", _resolve, "write the run.yaml of one run")
    with_paper(sub)
    sub.add_argument("experiment")
    sub.add_argument("run")
    sub.add_argument("-o", "--output", type=Path, required=True)
    sub = command("sample", _sample, "sample a run.yaml and write its trace.nc")
    sub.add_argument("run", type=Path)
    sub.add_argument("-o", "--output", type=Path, required=True)
    with_resources(sub)
    with_study(sub, "config/papers/<key>")
    sub.add_argument("--progress", action="store_true", help="show a progress bar")
    sub.add_argument(
        "--chains", type=_range, metavar="FIRST:END", help="only these chains, whole blocks of 50"
    )
    sub = command("join", _join, "join the chains of a run, sampled in pieces, into its trace.nc")
    sub.add_argument("run", type=Path)
    sub.add_argument("pieces", type=Path, nargs="+", help="traces of its chains, in order")
    sub.add_argument("-o", "--output", type=Path, required=True)
    with_resources(sub)
    with_study(sub, "config/papers/<key>")
    sub = command("measure", _measure, "compute the metrics.csv of a trace.nc")
    sub.add_argument("run", type=Path)
    sub.add_argument("trace", type=Path)
    with_resources(sub)
    with_study(sub, "config/papers/<key>")
    sub.add_argument("-o", "--output", type=Path, required=True)
    text = "make small runs of an experiment, up to their metrics, in one process"
    sub = command("small", _small, text)
    with_paper(sub)
    sub.add_argument("experiment")
    sub.add_argument("runs", nargs="+", help="their names; what stands of them is left alone")
    sub.add_argument("--results", type=Path, default=Path("results"))
    sub.add_argument("-o", "--output", type=Path, help="a table of how they stand then")
    with_resources(sub)
    sub = command("compete", _compete, "score an entry of the arena on an experiment's tasks")
    with_paper(sub)
    sub.add_argument("experiment")
    sub.add_argument("entry", help="label of the axis entry")
    sub.add_argument("--results", type=Path, default=Path("results"))
    with_resources(sub)
    sub = command("board", _board, "write scores.csv and the entries' cards of a study's arena")
    with_paper(sub)
    sub.add_argument("--results", type=Path, default=Path("results"))
    for name, function, what in (
        ("draw", _draw, "draw a figure from metrics (.pdf .svg .png)"),
        ("tabulate", _tabulate, "build a table from metrics (.csv .md .html .tex)"),
    ):
        sub = command(name, function, what)
        with_paper(sub)
        sub.add_argument("name", help="id of the figure or table of the paper")
        sub.add_argument("--results", type=Path, default=Path("results"))
        sub.add_argument("-o", "--output", type=Path, nargs="+", required=True)
    sub = command("judge", _judge, "judge a paper's claims (.csv .md .html)")
    with_paper(sub)
    sub.add_argument("--results", type=Path, default=Path("results"))
    sub.add_argument("-o", "--output", type=Path, nargs="+", required=True)
    sub = command("vary", _vary, "compute runs of an experiment as a universe has them (.csv)")
    with_paper(sub)
    sub.add_argument("universe", help="<assumption>.<label of an alternative>, or seed_<number>")
    sub.add_argument("experiment")
    sub.add_argument("runs", nargs="*", help="runs by name; none: all that the universe changes")
    with_resources(sub)
    sub.add_argument("-o", "--output", type=Path, required=True)
    sub = command("survey", _survey, "judge a paper's claims in all universes (.csv .md .html)")
    with_paper(sub)
    sub.add_argument("--results", type=Path, default=Path("results"))
    sub.add_argument("--figures", type=Path, help="folder of the pictures (none: no pictures)")
    text = "alternatives of different assumptions two by two, too"
    sub.add_argument("--pairs", action="store_true", default=None, help=text)
    sub.add_argument("-o", "--output", type=Path, nargs="+", required=True)
    sub = command("ledger", _ledger, "join papers' verdicts (.csv .md .html)")
    sub.add_argument("tables", type=Path, nargs="*", help="results/<key>/claims.csv")
    sub.add_argument("-o", "--output", type=Path, nargs="+", required=True)
    sub = command("front", _front, "write the report's front page around the ledger")
    sub.add_argument("ledger", type=Path, help="results/claims.csv")
    sub.add_argument("page", type=Path, help="results/ledger.html")
    sub.add_argument("--results", type=Path, default=Path("results"))
    sub.add_argument("--expected", type=Path, default=Path("config/expected_verdicts.yaml"))
    sub.add_argument("-o", "--output", type=Path, required=True)
    sub = command("site", _site, "make the site of the results at hand")
    with_config(sub)
    sub.add_argument("--results", type=Path, help="default: those of the config")
    sub.add_argument("-o", "--output", type=Path, default=Path("site"), help="default: %(default)s")
    sub = command("compare", _compare, "compare samplers on the arena's tasks, in a table")
    sub.add_argument("entries", nargs="+", help="entries of the arena, or samplers by kind or file")
    sub.add_argument("--tasks", nargs="+", default=[], help="words of tasks' names; none: all")
    sub.add_argument(
        "--arena", type=Path, help="study of the arena (default: config/studies/arena)"
    )
    sub.add_argument("--experiment", default="tasks", help="default: %(default)s")
    with_study(sub, "all in config/papers")
    with_resources(sub)
    sub = command("changes", _differing, "list verdicts that differ from the committed ones")
    sub.add_argument("ledger", type=Path, help="results/claims.csv")
    sub.add_argument("--expected", type=Path, default=Path("config/expected_verdicts.yaml"))
    sub.add_argument("--strict", action="store_true", help="exit with an error if any differs")
    sub = command("expect", _expect, "commit a ledger's verdicts, and update the README's scores")
    sub.add_argument("ledger", type=Path, help="results/claims.csv")
    sub.add_argument("--expected", type=Path, default=Path("config/expected_verdicts.yaml"))
    sub.add_argument("--readme", type=Path, default=Path("README.md"))
    sub = command("fetch", _fetch, "download a data file, or make it, and check its SHA-256")
    sub.add_argument("file", help="<data set>/<file> of config/datasets.yaml")
    sub.add_argument("--mirror", help="local folder searched before downloading")
    sub.add_argument("-o", "--output", type=Path, required=True)
    return parser


def _changes(options: argparse.Namespace) -> dict[str, Any]:
    changes = {key: getattr(options, key, None) for key in ("scale", "seed", "pairs")}
    return {key: value for key, value in changes.items() if value is not None}


def _paper(options: argparse.Namespace) -> Paper:
    from concord.studies.config import load_config
    from concord.studies.paper import Paper

    return Paper(options.paper, load_config(options.config, _changes(options)))


def _init(options: argparse.Namespace) -> None:
    from concord.studies.init import init

    for path in init(options.folder):
        print(path)
    print(f"Next: cd {shlex.quote(str(options.folder))}; snakemake -n; README.md says more")


def _orphans(options: argparse.Namespace) -> None:
    from concord.studies.config import load_papers, results_folder
    from concord.studies.orphans import orphans

    config, papers = load_papers(options.config.parent, _changes(options))
    for folder in orphans(results_folder(config), papers.values()):
        print(folder)


def _check(options: argparse.Namespace) -> None:
    paper = _paper(options)
    for run in paper.runs.values():
        print(run.folder)
    paper.check_outputs()


def _find_plugins(options: argparse.Namespace) -> None:
    """Find the plug-ins of studies; tell what is wrong with one, and go on with the others."""
    from concord import plugins

    if options.study:
        _at_work(options)
        return
    for path in (p for study in sorted(Path("config").glob("*/*/")) for p in plugins.files(study)):
        try:
            plugins.add(path)
        except ConcordError as error:
            _tell(str(error), 0)


def _at_work(options: argparse.Namespace) -> None:
    """Use the plug-ins of the study that ``--study`` names, if it does."""
    from concord import plugins

    if options.study:
        if not options.study.is_dir():
            raise ConcordError(f"{options.study}: there is no such folder; name that of a study")
        plugins.use(options.study)


def _list(options: argparse.Namespace) -> None:
    import json
    from itertools import groupby

    from concord.catalog import listed

    _find_plugins(options)
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


def _kinds(word: str) -> list[tuple[str, str]]:
    """Return package and kind of a word, which may be a plug-in's file."""
    from concord import plugins
    from concord.catalog import find

    if not word.endswith(".py"):
        return find(word)
    path = Path(word)
    known = [key for key, file in plugins.own().items() if file.resolve() == path.resolve()]
    return known or [plugins.add(path)]


def _describe(options: argparse.Namespace) -> None:
    import json

    from concord.catalog import as_text, described

    _find_plugins(options)
    found = [described(*kind) for kind in _kinds(options.kind)]
    print(json.dumps(found, indent=1) if options.json else "\n\n".join(map(as_text, found)))


def _test(options: argparse.Namespace) -> None:
    import json

    from concord import testing

    _find_plugins(options)
    failed, found = 0, []
    for package, kind in (pair for word in options.kinds for pair in _kinds(word)):
        if not options.json:
            print(f"{package}/{kind}")
        for outcome in testing.run(package, kind):
            failed += outcome.ended == "failed"
            found.append({"package": package, "kind": kind, **outcome._asdict()})
            why = f": {outcome.why}" if outcome.why else ""
            if not options.json:
                print(f"  {outcome.ended:14}  {outcome.check}{why}", flush=True)
    if options.json:
        print(json.dumps(found, indent=1))
    if failed:
        raise ConcordError(f"{failed} of {len(found)} checks failed; mend what they name")


def _schema(options: argparse.Namespace) -> None:
    import json

    from concord.studies.editor import study_schema

    _at_work(options)
    print(json.dumps(study_schema()))


def _resolve(options: argparse.Namespace) -> None:
    from concord.stages.resolve import resolve

    resolve(_paper(options), options.experiment, options.run, options.output)


def _sample(options: argparse.Namespace) -> None:
    from concord.stages.sample import sample

    _at_work(options)
    sample(options.run, options.output, options.resources, options.progress, options.chains)


def _range(text: str) -> tuple[int, int]:
    try:
        first, end = map(int, text.split(":"))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not FIRST:END, such as 0:50") from None
    return first, end


def _join(options: argparse.Namespace) -> None:
    from concord.stages.sample import join

    _at_work(options)
    join(options.run, options.pieces, options.output, options.resources)


def _measure(options: argparse.Namespace) -> None:
    from concord.stages.measure import measure

    _at_work(options)
    measure(options.run, options.trace, options.output, options.resources)


def _small(options: argparse.Namespace) -> None:
    from concord.stages.small import small

    where = options.results, options.output, options.resources
    small(_paper(options), options.experiment, options.runs, *where)


def _compete(options: argparse.Namespace) -> None:
    from concord.stages.compete import compete

    names = options.experiment, options.entry
    compete(_paper(options), *names, options.results, options.resources)


def _board(options: argparse.Namespace) -> None:
    from concord.stages.compete import board

    paper = _paper(options)
    board(paper, options.results, options.results / paper.key)


def _check_suffixes(outputs: Sequence[Path], *allowed: str) -> None:
    for path in outputs:
        if path.suffix not in allowed:
            raise ConcordError(f"{path}: the output must end in {' or '.join(allowed)}; rename it")


def _draw(options: argparse.Namespace) -> None:
    from concord.stages.draw import draw

    _check_suffixes(options.output, ".pdf", ".svg", ".png")
    draw(_paper(options), options.name, options.results, options.output)


def _tabulate(options: argparse.Namespace) -> None:
    from concord.stages.draw import tabulate

    _check_suffixes(options.output, ".csv", ".md", ".html", ".tex")
    tabulate(_paper(options), options.name, options.results, options.output)


def _judge(options: argparse.Namespace) -> None:
    from concord.stages.judge import judge

    _check_suffixes(options.output, ".csv", ".md", ".html")
    judge(_paper(options), options.results, options.output)


def _vary(options: argparse.Namespace) -> None:
    from concord.stages.vary import vary
    from concord.studies.universes import changed

    _check_suffixes([options.output], ".csv")
    runs = changed(_paper(options), options.universe, options.experiment, options.runs)
    vary([run.mapping for run in runs], options.output, options.resources)


def _survey(options: argparse.Namespace) -> None:
    from concord.stages.multiverse import survey

    _check_suffixes(options.output, ".csv", ".md", ".html")
    survey(_paper(options), options.results, options.output, options.figures)


def _ledger(options: argparse.Namespace) -> None:
    from concord.stages.judge import ledger

    _check_suffixes(options.output, ".csv", ".md", ".html")
    ledger(options.tables, options.output)


def _front(options: argparse.Namespace) -> None:
    from concord.stages.judge import front

    front(options.ledger, options.page, options.results, options.expected, options.output)


def _site(options: argparse.Namespace) -> None:
    from concord.site.build import site

    site(options.config.parent, options.results, options.output, _changes(options))


def _compare(options: argparse.Namespace) -> None:
    from concord.home import HOME
    from concord.stages.compete import compare
    from concord.studies.config import load_config
    from concord.studies.paper import Paper

    own = Path("config", "studies", "arena")
    study = options.arena or (own if own.is_dir() else HOME / own)
    paper = Paper(study, load_config())
    _find_plugins(options)
    names = [_kinds(word)[0][1] if word.endswith(".py") else word for word in options.entries]
    for line in compare(paper, options.experiment, names, options.tasks, options.resources):
        print(line)


def _differing(options: argparse.Namespace) -> None:
    from concord.claims.ledger import compare

    for text in compare(options.ledger, options.expected, options.strict):
        print(text)


def _expect(options: argparse.Namespace) -> None:
    from concord.claims.ledger import expect

    expect(options.ledger, options.expected, options.readme)


def _fetch(options: argparse.Namespace) -> None:
    from concord.datasets.fetch import fetch
    from concord.datasets.registry import find

    if find(options.file).made is None:
        fetch(options.file, options.output, mirror=options.mirror)
    else:
        from concord.stages.certify import certify

        certify(options.file, options.output)


if __name__ == "__main__":
    sys.exit(main())

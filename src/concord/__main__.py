"""The commands: every stage of the pipeline, to be run by hand or by Snakemake."""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from concord import __version__
from concord.errors import ConcordError, in_the_way
from concord.progress import at_work

if TYPE_CHECKING:
    from concord.studies.paper import Paper

CONFIG = Path("config/config.yaml")

Command = Callable[[argparse.Namespace], None]
Part = Callable[[argparse.ArgumentParser], object]  # adds arguments


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return its exit code. A user's mistake ends in one sentence."""
    settle()
    # Figures are files; the backend that Jupyter sets may be missing here, which is an error.
    os.environ["MPLBACKEND"] = "agg"
    try:
        options = _parser().parse_args(arguments)
        with at_work(options.text):
            options.command(options)
        sys.stdout.flush()
    except BaseException as error:
        return _end(error)
    return 0


def _end(error: BaseException) -> int:
    """Say in one sentence what ended a command, and return its exit code; raise what is a bug."""
    if isinstance(error, BrokenPipeError):  # of `concord list | head`, which has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    if isinstance(error, ConcordError):
        return _tell(str(error), 2)
    if isinstance(error, SystemExit) and "concord.plugins" not in sys.modules:
        raise error  # of the parser
    try:
        from concord.provenance import excuse
    except Exception:  # it needs what is missing
        excuse = in_the_way
    if isinstance(error, KeyboardInterrupt):
        return _tell(excuse(error) or "interrupted", 130)
    if sentence := excuse(error):
        return _tell(sentence, 1)
    if isinstance(error, MemoryError):
        detail = f" ({error})" if str(error) else ""
        return _tell(f"there is not enough memory{detail}; lower chains or record less often", 1)
    if isinstance(error, OSError):
        what = f" ({error.filename})" if error.filename else ""
        return _tell(f"{error.strerror or error}{what}", 1)
    raise error


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
# Where torch is installed POT would import it, which takes a second.
BACKENDS = {"POT_BACKEND_DISABLE_PYTORCH": "1"}


def settle(cpu: Path = Path("/proc/cpuinfo")) -> None:
    """Have the libraries compute the same bytes on all machines whose processors have AVX2.

    To be called before numpy is imported; what the user has set stays. ``cpu`` is Linux's
    description of the processors: elsewhere, and without AVX2, the kernels are left alone, since
    OpenBLAS crashes if it is told to use those that the processor lacks.
    """
    settings = THREADS | BACKENDS
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

    def command(name: str, text: str, *parts: Part) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=text, description=text)
        sub.set_defaults(command=COMMANDS[name], text=f"{name}: {text}")
        for part in parts:
            part(sub)
        return sub

    def takes(*names: str, **options: Any) -> Part:
        return lambda sub: sub.add_argument(*names, **options)

    def config(sub: argparse.ArgumentParser) -> None:
        sub.add_argument("--config", type=Path, default=CONFIG, help="default: %(default)s")
        sub.add_argument("--scale", choices=("paper", "smoke", "full"), help="overrides the config")
        sub.add_argument("--seed", type=int, help="overrides the config")

    def paper(sub: argparse.ArgumentParser) -> None:
        sub.add_argument("paper", type=Path, help="config/papers/<key>")
        config(sub)

    def study(default: str) -> Part:
        text = f"folder of the study whose plug-ins are used (default: {default})"
        return takes("--study", type=Path, help=text)

    def plugins(sub: argparse.ArgumentParser) -> None:
        study("all in config/papers")(sub)
        sub.add_argument("--json", action="store_true", help="for programs")

    def outputs(*suffixes: str) -> Part:
        return takes("-o", "--output", type=_path(suffixes), nargs="+", required=True)

    experiment, run = takes("experiment"), takes("run", type=Path)
    output = takes("-o", "--output", type=Path, required=True)
    resources = takes("--resources", type=Path, default=Path("resources"), help="data files")
    results = takes("--results", type=Path, default=Path("results"))
    own = study("config/papers/<key>")
    ledger = takes("ledger", type=Path, help="results/claims.csv")
    expected = takes("--expected", type=Path, default=Path("config/expected_verdicts.yaml"))
    pages = outputs(".csv", ".md")

    sub = command("init", "make a folder with a study of your own")
    sub.add_argument("folder", type=Path, help="a new one; the study is called like it")
    command("check", "check a paper's files and list its runs", paper)
    command("orphans", "list folders of results that no study asks for", config)
    text = "list the kinds there are of samplers, problems, topologies, ..."
    sub = command("list", text, plugins)
    sub.add_argument("packages", nargs="*", help="samplers, problems, topologies, ...; none: all")
    sub = command("describe", "tell a kind's equation, source, price, needs and options", plugins)
    sub.add_argument("kind", help="de_sgld, samplers/de_sgld, or the file of a plug-in")
    sub = command("test", "test that plug-ins keep the contract of their kind", plugins)
    sub.add_argument("kinds", nargs="+", help="files of plug-ins, or kinds by name")
    sub.add_argument("--seed", type=int, default=1, help="of what tests of samplers draw")
    text = "print the JSON Schema of a study's file, for editors"
    command("schema", text, takes("file", choices=("study",)), study("none"))
    command("resolve", "write the run.yaml of one run", paper, experiment, takes("run"), output)
    text = "make the runs of a batch, up to their metrics; what stands of them is left alone"
    sub = command("make", text, paper, results, resources, output)
    sub.add_argument("batch", help="<experiment>/<name>, or multiverse/<universe>/<name>")
    sub.add_argument("runs", nargs="*", help="names of its runs (of a universe: all of them)")
    sub.add_argument("--sampled", action="store_true", help="make no more than the draws")
    sub.add_argument("--chains", type=_range, metavar="FIRST:END", help="sample only these chains")
    sub.add_argument("--progress", action="store_true", default=False, help="show progress bars")
    sub = command("sample", "sample a run.yaml and write its trace.nc", run, output, resources, own)
    text = "show a progress bar at once (default: after four seconds, on a terminal)"
    sub.add_argument("--progress", action="store_true", default=None, help=text)
    sub.add_argument(
        "--chains", type=_range, metavar="FIRST:END", help="only these chains, whole blocks of 50"
    )
    text = "traces of its chains, in order: they are joined, and nothing is sampled"
    sub.add_argument("pieces", type=Path, nargs="*", help=text)
    text = "compute the metrics.csv of a trace.nc"
    command("measure", text, run, takes("trace", type=Path), resources, own, output)
    text = "write the scores, the costs and the entries' cards of a study's arena"
    sub = command("board", text, paper, results)
    sub.add_argument("--cards", type=Path, required=True, help="folder of the cards")
    text = "scores.csv and cost.csv"
    sub.add_argument("-o", "--output", type=_path((".csv",)), nargs=2, required=True, help=text)
    name = takes("name", help="id of the figure or table of the paper")
    text = "draw a figure from metrics (.pdf .svg .png)"
    command("draw", text, paper, name, results, outputs(".pdf", ".svg", ".png"))
    text = "build a table from metrics (.csv .md .tex)"
    command("tabulate", text, paper, name, results, outputs(".csv", ".md", ".tex"))
    command("judge", "judge a paper's claims (.csv .md)", paper, results, pages)
    text = "judge a paper's claims in all universes (.csv .md)"
    sub = command("survey", text, paper, results, pages)
    sub.add_argument("--figures", type=Path, help="folder of the pictures (none: no pictures)")
    text = "alternatives of different assumptions two by two, too"
    sub.add_argument("--pairs", action="store_true", default=None, help=text)
    sub = command("ledger", "join papers' verdicts (.csv .md)", pages)
    sub.add_argument("tables", type=Path, nargs="*", help="results/<key>/claims.csv")
    sub = command("site", "make the site of the results at hand", config)
    sub.add_argument("--results", type=Path, help="default: those of the config")
    sub.add_argument("-o", "--output", type=Path, default=Path("site"), help="default: %(default)s")
    text = "compare samplers on the arena's tasks, in a table"
    sub = command("compare", text, study("all in config/papers"), resources)
    sub.add_argument("entries", nargs="+", help="entries of the arena, or samplers by kind or file")
    sub.add_argument("--tasks", nargs="+", default=[], help="words of tasks' names; none: all")
    sub.add_argument(
        "--arena", type=Path, help="study of the arena (default: config/studies/arena)"
    )
    sub.add_argument("--experiment", default="tasks", help="default: %(default)s")
    sub = command("changes", "list verdicts that differ from the committed ones", ledger, expected)
    sub.add_argument("--strict", action="store_true", help="exit with an error if any differs")
    text = "commit a ledger's verdicts, and update the README's scores"
    sub = command("expect", text, ledger, expected)
    sub.add_argument("--readme", type=Path, default=Path("README.md"))
    sub = command("fetch", "download a data file, or make it, and check its SHA-256", output)
    sub.add_argument("file", help="<data set>/<file> of config/datasets.yaml")
    sub.add_argument("--mirror", help="local folder searched before downloading")
    return parser


def _changes(options: argparse.Namespace) -> dict[str, Any]:
    changes = {key: getattr(options, key, None) for key in ("scale", "seed", "pairs")}
    return {key: value for key, value in changes.items() if value is not None}


def _paper(options: argparse.Namespace) -> Paper:
    from concord.studies.config import load_config
    from concord.studies.paper import Paper

    return Paper(options.paper, load_config(options.config, _changes(options)))


def _calls(target: str, names: str) -> Command:
    """Return the command that calls a function, ``module:name``, with these options in order.

    ``paper`` is read first, and the plug-ins of ``--study`` are found.
    """

    def call(options: argparse.Namespace) -> None:
        from importlib import import_module

        _at_work(options)
        module, _, name = target.partition(":")
        values = {**vars(options), "paper": None}
        if "paper" in names.split():
            values["paper"] = _paper(options)
        getattr(import_module(f"concord.{module}"), name)(*(values[n] for n in names.split()))

    return call


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
    from concord.studies.checks import check_outputs

    paper = _paper(options)
    for run in paper.runs.values():
        print(run.folder)
    check_outputs(paper)


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

    if getattr(options, "study", None):
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
    """Test kinds in a process of its own: what ends that before its checks are done, fails."""
    import json
    from collections import Counter
    from multiprocessing import get_context

    _find_plugins(options)
    chosen = [pair for word in options.kinds for pair in _kinds(word)]
    context = get_context("fork")
    heard, told = context.Pipe(duplex=False)
    process = context.Process(target=_run_checks, args=(chosen, options.seed, told))
    process.start()
    told.close()  # so that nothing more is heard once the process has ended
    found: list[dict[str, str]] = []
    sentence: str | None = None
    try:
        while isinstance(message := json.loads(heard.recv_bytes()), dict):
            found.append(message)
            if not options.json:
                _print_outcome(message, found[-2:-1])
        sentence = message
    except EOFError:
        process.join()
        names = ", ".join(f"{package}/{kind}" for package, kind in chosen)
        sentence = f"{names}: Python ended (exit code {process.exitcode}) before all checks had run"
    finally:
        process.kill()
        process.join()
    if options.json:
        print(json.dumps(found, indent=1))
    ended = Counter(each["ended"] for each in found)
    kinds = ("ok", "failed", "warning", "not applicable")
    counted = ", ".join(f"{ended[kind]} {kind}" for kind in kinds)
    print(f"{len(found)} checks: {counted}", file=sys.stderr if options.json else sys.stdout)
    if sentence:
        raise ConcordError(sentence)
    if ended["failed"] or not found:
        failed = f"{ended['failed']} of {len(found)} checks failed; mend what they name"
        raise ConcordError(failed if found else "no check ran; name a kind that has checks")


def _print_outcome(each: dict[str, str], before: list[dict[str, str]]) -> None:
    if [each["package"], each["kind"]] not in [[b["package"], b["kind"]] for b in before]:
        print(f"{each['package']}/{each['kind']}")
    why = f": {each['why']}" if each["why"] else ""
    print(f"  {each['ended']:14}  {each['check']}{why}", flush=True)


def _run_checks(chosen: Sequence[tuple[str, str]], seed: int, told: Any) -> None:
    """Send the outcome of each check, and in the end nothing, or why there are no more."""
    import json

    from concord import testing
    from concord.provenance import excuse

    def send(what: Any) -> None:
        told.send_bytes(json.dumps(what).encode())

    sys.stdout = sys.stderr  # what plug-ins print is no outcome
    try:
        for package, kind in chosen:
            for outcome in testing.run(package, kind, seed):
                send({"package": package, "kind": kind, **outcome._asdict()})
        send(None)
    except BaseException as error:
        if sentence := excuse(error):
            send(sentence)
        elif not isinstance(error, KeyboardInterrupt):
            raise


def _schema(options: argparse.Namespace) -> None:
    import json

    from concord.studies.editor import study_schema

    _at_work(options)
    print(json.dumps(study_schema()))


def _path(suffixes: Sequence[str]) -> Callable[[str], Path]:
    def path(text: str) -> Path:
        if Path(text).suffix not in suffixes:
            allowed = " or ".join(suffixes)
            raise ConcordError(f"{text}: the output must end in {allowed}; rename it")
        return Path(text)

    return path


def _range(text: str) -> tuple[int, int]:
    try:
        first, end = map(int, text.split(":"))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not FIRST:END, such as 0:50") from None
    return first, end


def _resolve(options: argparse.Namespace) -> None:
    from concord.make import resolve

    resolve(_paper(options).run(options.experiment, options.run), options.output)


def _make(options: argparse.Namespace) -> None:
    from concord.make import Batch, make
    from concord.studies.universes import Multiverse

    whole, _, name = options.batch.rpartition("/")
    universe = whole.removeprefix("multiverse/")
    options.pairs = "+" in universe or None
    paper = _paper(options)
    if universe != whole:
        batch = Multiverse(paper).batch(universe, name)
    else:
        batch = Batch(options.batch, paper.key, tuple(paper.chosen(whole, options.runs)))
    make(
        batch,
        options.results,
        options.resources,
        options.output,
        options.sampled,
        options.chains,
        options.progress,
    )


def _site(options: argparse.Namespace) -> None:
    from concord.pages.site.build import site

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
    from concord.claims.ledger import changes

    found = changes(options.ledger, options.expected, options.strict)
    print(found.text, *found.lines, sep="\n")


def _fetch(options: argparse.Namespace) -> None:
    from concord.datasets.fetch import fetch
    from concord.datasets.registry import find

    if find(options.file).made is None:
        fetch(options.file, options.output, mirror=options.mirror)
    else:
        from concord.stages.certify import certify

        certify(options.file, options.output)


COMMANDS: dict[str, Command] = {
    "init": _init,
    "check": _check,
    "orphans": _orphans,
    "list": _list,
    "describe": _describe,
    "test": _test,
    "schema": _schema,
    "resolve": _resolve,
    "make": _make,
    "sample": _calls("make:sample", "run output resources progress chains pieces"),
    "measure": _calls("make:measure", "run trace output resources"),
    "board": _calls("stages.compete:board", "paper results output cards"),
    "draw": _calls("stages.draw:draw", "paper name results output"),
    "tabulate": _calls("stages.draw:tabulate", "paper name results output"),
    "judge": _calls("stages.judge:judge", "paper results output"),
    "survey": _calls("stages.multiverse:survey", "paper results output figures"),
    "ledger": _calls("stages.judge:ledger", "tables output"),
    "site": _site,
    "compare": _compare,
    "changes": _differing,
    "expect": _calls("claims.ledger:expect", "ledger expected readme"),
    "fetch": _fetch,
}


if __name__ == "__main__":
    sys.exit(main())

"""The commands: every stage of the pipeline, to be run by hand or by Snakemake."""

import argparse
import ctypes
import gc
import os
import signal
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from concord import __version__
from concord.errors import ConcordError, nearest
from concord_cli.progress import announce_if_long
from concord_studies.failures import print_error, user_message

CONFIG = Path("config/config.yaml")

# What `concord --help` shows; `concord help stages` has all others.
FIRST = ("list", "init", "check", "describe", "test", "compare", "recommend")

Part = Callable[[argparse.ArgumentParser], object]  # adds arguments


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return its exit code. A user's mistake ends in one sentence."""
    settle()
    gc.disable()  # until it begins its work: what is imported and read stays
    # Figures are files; the backend that Jupyter sets may be missing here, which is an error.
    os.environ["MPLBACKEND"] = "agg"
    try:
        options = _parse(sys.argv[1:] if arguments is None else arguments)
        with announce_if_long(options.text):
            call(COMMANDS[options.command], options)
        sys.stdout.flush()
    except BrokenPipeError:  # of `concord list | head`, which has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except BaseException as error:
        if sentence := user_message(error):
            interrupted = 130 if isinstance(error, KeyboardInterrupt) else 1
            return print_error(sentence, 2 if isinstance(error, ConcordError) else interrupted)
        raise
    finally:
        gc.enable()
    return 0


# One thread: results must not depend on the number of cores, and jobs share them. Where torch is
# installed POT would import it, which takes a second.
SETTINGS = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "VECLIB_MAXIMUM_THREADS": "1",
    "POT_BACKEND_DISABLE_PYTORCH": "1",
}
# Options of glibc's mallopt, by number in malloc.h, in bytes: memory that is free is kept (1 GiB of
# it; 64 MiB are asked for at a time) and not given back after every step, which took a third of
# some jobs. 32 MiB is the largest array that all versions of glibc can be told to keep.
MEMORY = {-1: 2**30, -2: 2**26, -3: 2**25}  # M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD


def settle() -> None:
    """Have the libraries use one thread, and glibc keep memory between steps.

    To be called before numpy is imported; what the user has set in the environment stays.
    """
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # other C libraries have none
    if mallopt is not None:
        for option, size in MEMORY.items():
            mallopt(option, size)


class _Parser(argparse.ArgumentParser):
    """A parser that refuses a command line in a sentence."""

    def error(self, message: str) -> NoReturn:
        """Raise a ConcordError that says what does not fit, and where help is."""
        command = self.prog.partition(" ")[2]
        about = f"concord help {command}" if command else "concord --help"
        raise ConcordError(f"{command or self.prog}: {message}; `{about}` lists what it takes")


def _parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    parser = _Parser(
        prog="concord",
        description="Reproduce and compare decentralized Bayesian samplers.",
        epilog="`concord help stages` lists all other commands.",
    )
    parser.add_argument("--version", action="version", version=f"concord {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    def command(name: str, text: str, *parts: Part) -> argparse.ArgumentParser:
        """Add a command with its arguments to the parser; return its own parser."""
        shown: dict[str, Any] = {"help": text} if name in FIRST else {}
        sub = commands.add_parser(name, description=text, **shown)
        sub.set_defaults(command=name, text=f"{name}: {text}")
        for part in parts:
            part(sub)
        return sub

    def takes(*names: str, **options: Any) -> Part:
        """Return a function that adds one argument to a parser."""
        return lambda sub: sub.add_argument(*names, **options)

    def config(sub: argparse.ArgumentParser) -> None:
        """Add the options of the configuration."""
        sub.add_argument("--config", type=Path, default=CONFIG, help="default: %(default)s")
        sub.add_argument("--scale", choices=("paper", "smoke", "full"), help="overrides the config")
        sub.add_argument("--seed", type=int, help="overrides the config")

    def study(sub: argparse.ArgumentParser) -> None:
        """Add the argument for a study, and the options of the configuration."""
        sub.add_argument("study", type=Path, help="config/papers/<key>")
        config(sub)
        sub.set_defaults(planned=None)

    def plugins_of(default: str) -> Part:
        """Return a function that adds the option for the study whose plug-ins are used."""
        text = f"folder of the study whose plug-ins are used (default: {default})"
        return takes("--study", dest="plugins", metavar="STUDY", type=Path, help=text)

    def plugins(sub: argparse.ArgumentParser) -> None:
        """Add the options of commands about kinds: whose plug-ins, and output for programs."""
        plugins_of("all in config/papers")(sub)
        sub.add_argument("--json", action="store_true", help="for programs")

    def output(suffix: str) -> Part:
        """Return a function that adds the option for one output file with a suffix."""
        return takes("-o", "--output", type=_path((suffix,)), required=True)

    def outputs(*suffixes: str) -> Part:
        """Return a function that adds the option for output files with these suffixes."""
        return takes("-o", "--output", type=_path(suffixes), nargs="+", required=True)

    runs = takes("runs", type=Path, help="results/<study>/<experiment>/runs.yaml")
    resources = takes("--resources", type=Path, default=Path("resources"), help="data files")
    tables = takes("--tables", type=Path, nargs="*", default=[], help="metrics.csv of experiments")
    ledger = takes("ledger", type=Path, help="results/claims.csv")
    expected = takes("--expected", type=Path, default=Path("config/expected_verdicts.yaml"))
    pages = outputs(".csv", ".md")

    sub = command("init", "make a folder with a study of your own")
    sub.add_argument("folder", type=Path, help="a new one; the study is called like it")
    command("check", "check a study's files and list its runs", study)
    command(
        "orphans",
        "list experiments, figures and tables among the results that no study has",
        config,
    )
    text = "list the kinds there are of samplers, problems, topologies, ..."
    sub = command("list", text, plugins)
    sub.add_argument("rooms", nargs="*", help="samplers, problems, topologies, ...; none: all")
    sub = command("describe", "tell a kind's equation, source, price, needs and options", plugins)
    sub.add_argument("kind", help="de_sgld, samplers/de_sgld, or the file of a plug-in")
    sub = command("test", "test that plug-ins keep the contract of their kind", plugins)
    sub.add_argument("kinds", nargs="+", help="files of plug-ins, or kinds by name")
    sub.add_argument("--seed", type=int, default=1, help="of what tests of samplers draw")
    text = "print the JSON Schema of a study's files, or of config/config.yaml, for editors"
    command("schema", text, takes("file", choices=("study", "config")), plugins_of("none"))
    text = "make one run by itself: runs.yaml, draws.nc and metrics.csv, in a folder"
    sub = command("run", text, study, resources)
    sub.add_argument("experiment")
    sub.add_argument("run", help="its name, as `concord check` lists it")
    text = "default: runs/<study>/<experiment>/<run>"
    sub.add_argument("-o", "--output", dest="folder", type=Path, help=text)
    sub = command("sample", "sample the runs of a runs.yaml", runs, resources, output(".nc"))
    text = "show a progress bar at once (default: after four seconds, on a terminal)"
    sub.add_argument("--progress", action="store_true", default=None, help=text)
    text = "sample the runs of a runs.yaml, or score an arena's cells, and compute their metrics"
    sub = command("measure", text, runs, resources, output(".csv"))
    text = "of several parts that are made apart, each with some runs, numbered from 1"
    sub.add_argument("--part", type=int, default=1, help=text)
    sub.add_argument("--of", dest="parts", type=int, default=1, help="number of parts")
    text = "join the metrics of all parts of a runs.yaml"
    sub = command("gather", text, runs, resources, output(".csv"))
    text = "what `measure --part` made, in the order of the parts"
    sub.add_argument("tables", type=Path, nargs="+", help=text)
    text = "write the scores, the costs and the entries' cards of a study's arena"
    sub = command("board", text, study, tables)
    sub.add_argument("--cards", type=Path, required=True, help="folder of the cards")
    text = "scores.csv and cost.csv"
    sub.add_argument("-o", "--output", type=_path((".csv",)), nargs=2, required=True, help=text)
    entry = takes("entry", type=Path, help="results/<study>/figures/<name>.yaml, or tables")
    text = "draw a figure that is planned (.pdf .svg .png)"
    command("draw", text, entry, outputs(".pdf", ".svg", ".png"))
    text = "build a table that is planned (.csv .md .tex)"
    command("tabulate", text, entry, outputs(".csv", ".md", ".tex"))
    sub = command("judge", "judge a study's claims (.csv .md)", study, tables, pages)
    text = "the table of verdicts over the universes"
    sub.add_argument("--multiverse", type=Path, help=text)
    text = "judge a study's claims in all universes (.csv .md)"
    sub = command("survey", text, study, tables, pages)
    sub.add_argument("--figures", type=Path, help="folder of the pictures (none: no pictures)")
    text = "alternatives of different assumptions two by two, too"
    sub.add_argument("--pairs", action="store_true", default=None, help=text)
    sub = command("ledger", "join studies' verdicts (.csv .md)", pages, expected)
    sub.add_argument("tables", type=Path, nargs="*", help="results/<key>/claims.csv")
    sub.add_argument("--planned", type=Path, help="what planning states of it")
    sub = command("site", "make the site of the results at hand", config)
    sub.add_argument("--results", type=Path, help="default: those of the config")
    text = "default: %(default)s"
    sub.add_argument("-o", "--output", dest="folder", type=Path, default=Path("site"), help=text)
    text = "write what was made into one file that others can check"
    sub = command("crate", text, config, output(".zip"))
    sub.add_argument("--results", type=Path, help="default: those of the config")
    text = "compare samplers on the arena's tasks, in a table"
    sub = command("compare", text, plugins_of("all in config/papers"), resources)
    sub.add_argument("entries", nargs="+", help="entries of the arena, or samplers by kind or file")
    sub.add_argument("--tasks", nargs="+", default=[], help="words of tasks' names; none: all")
    sub.add_argument(
        "--arena", type=Path, help="study of the arena (default: config/studies/arena)"
    )
    text = "default: tasks, or sampled where one of them has no exact law"
    sub.add_argument("--experiment", help=text)
    text = "say which sampler suits a problem and a network, and how far off it will be"
    sub = command("recommend", text, config, resources)
    sub.add_argument("study", type=Path, help="config/papers/<key>, or a runs.yaml")
    sub.add_argument("experiment", nargs="?", help="of a study")
    text = "what an agent may pay: bytes=64000, gradients=2000, seconds=60"
    sub.add_argument("--budget", type=_amount, nargs="+", metavar="PRICE=AMOUNT", help=text)
    sub.add_argument("--target", type=float, help="b2 to be reached at the least --price instead")
    sub.add_argument("--price", help="gradients, bytes or seconds")
    text = "what ranks: the error of a time average, or b2 of the last draw"
    sub.add_argument("--by", choices=("error", "b2"), default="error", help=text)
    sub.add_argument("--tasks", nargs="+", default=[], help="words of tasks' names; none: all")
    sub.add_argument("--verify", action="store_true", help="run the best three, and compare")
    sub.add_argument("--chains", type=int, default=0, help="try what has no law by so many chains")
    sub.add_argument("--batch-size", type=int, help="points of mini-batches; none: full gradients")
    sub.add_argument("--memory", type=float, help="GB that it may take; none: what there is")
    sub.add_argument("-o", "--output", type=_path((".csv", ".pdf", ".svg", ".png")), nargs="+")
    sub = command("changes", "list verdicts that differ from the committed ones", ledger, expected)
    sub.add_argument("--strict", action="store_true", help="exit with an error if any differs")
    text = "commit a ledger's verdicts, and update the documents that show them"
    sub = command("expect", text, ledger, expected)
    sub.add_argument("--pages", type=Path, default=Path("docs"), help="folder of the documents")
    sub = command("fetch", "download a data file, or make it, and check its SHA-256")
    sub.add_argument("-o", "--output", type=Path, required=True)
    sub.add_argument("file", help="<data set>/<file> of config/datasets.yaml")
    sub.add_argument("--mirror", help="local folder searched before downloading")
    sub = command("completion", "print the script by which a shell completes commands and options")
    sub.add_argument(
        "shell", choices=("bash", "zsh"), help='of `eval "$(concord completion bash)"`'
    )
    sub = command("help", "list the commands of the stages, or the documents; explain a command")
    text = "`stages`, `documents`, or a command"
    sub.add_argument("about", nargs="?", default="stages", help=text)
    parser.set_defaults(commands=commands.choices)
    return parser


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Return the options of a command; refuse a misspelt command or option with the nearest."""
    parser = _parser()
    if arguments and arguments[0][:1] != "-" and arguments[0] not in COMMANDS:
        remedy = nearest(arguments[0], COMMANDS)
        raise ConcordError(f"there is no command {arguments[0]!r}; {remedy}")
    options, unknown = parser.parse_known_args(arguments or ["--help"])
    if unknown:
        known = [
            name
            for action in options.commands[options.command]._actions
            for name in action.option_strings
        ]
        raise ConcordError(
            f"{options.command}: there is no option {unknown[0]!r}; {nearest(unknown[0], known)}"
        )
    return options


def explain(options: argparse.Namespace) -> None:
    """List the commands that ``--help`` does not, or print the help of one."""
    about, parsers = options.about, options.commands
    if about in parsers:
        parsers[about].print_help()
    elif about == "documents":
        home = import_module("concord_studies.home").HOME
        print(*sorted([*home.glob("*.md"), *home.glob("docs/*.md")]), sep="\n")
    elif about == "stages":
        for name in sorted(parsers.keys() - FIRST):
            print(f"  {name:10} {parsers[name].description}")
    else:
        remedy = nearest(about, [*parsers, "stages", "documents"])
        raise ConcordError(f"help: there is no command {about!r}; {remedy}")


def completion(options: argparse.Namespace) -> None:
    """Print a script that has a shell complete commands and options, and files elsewhere."""
    words = {
        name: " ".join(word for action in each._actions for word in action.option_strings)
        for name, each in options.commands.items()
    }
    cases = [f'    {name}) words="{flags}" ;;' for name, flags in words.items()]
    lines = [
        *(
            ["autoload -U compinit bashcompinit && compinit && bashcompinit"]
            if options.shell == "zsh"
            else []
        ),
        "_concord() {",
        f'  local words="{" ".join(words)}"',
        '  if [ "$COMP_CWORD" -gt 1 ]; then case "${COMP_WORDS[1]}" in',
        *cases,
        "  esac; fi",
        '  COMPREPLY=($(compgen -W "$words" -- "${COMP_WORDS[COMP_CWORD]}"))',
        "}",
        "complete -o default -F _concord concord",
    ]
    print(*lines, sep="\n")


def _path(suffixes: Sequence[str]) -> Callable[[str], Path]:
    """Return a reader of an argument that is the path of an output with one of the suffixes."""

    def path(text: str) -> Path:
        """Return the path that a text stands for; refuse another suffix."""
        if Path(text).suffix not in suffixes:
            allowed = " or ".join(suffixes)
            raise ConcordError(f"{text}: the output must end in {allowed}; rename it")
        return Path(text)

    return path


def _amount(text: str) -> tuple[str, float]:
    """Return the price and the amount that a text "price=amount" stands for."""
    name, _, amount = text.partition("=")
    try:
        return name, float(amount)
    except ValueError:
        amount = text if name.replace(".", "", 1).isdigit() else "2000"
        raise argparse.ArgumentTypeError(
            f"{text!r} is no price with an amount; give --budget gradients={amount}, "
            f"bytes={amount} or seconds={amount}"
        ) from None


def call(target: str, options: argparse.Namespace) -> None:
    """Call the function of a command (``COMMANDS``) with options.

    ``study`` is read first, and the plug-ins of ``--study`` are found. A command imports what it
    needs: none waits for what another takes.
    """
    place, *names = target.split()
    values = vars(options)
    if names:
        if values.get("plugins"):
            import_module("concord_cli.studies").use_plugins(options)
        if "study" in names:
            values = {**values, **import_module("concord_cli.runs").read_stated(options)}
    module, _, name = place.partition(":")
    function = getattr(import_module(f"concord_{module}"), name)
    gc.enable()
    gc.freeze()
    function(*(values[name] for name in names) if names else [options])


# The function that each command calls, and which of its options the function takes; none: all.
COMMANDS = {
    "init": "cli.studies:init",
    "check": "cli.studies:check",
    "orphans": "cli.studies:orphans",
    "schema": "cli.studies:schema",
    "list": "cli.kinds:list_kinds",
    "describe": "cli.kinds:describe",
    "test": "cli.test:test",
    "run": "cli.runs:run",
    "sample": "studies.experiment:sample runs output resources progress",
    "measure": "studies.experiment:measure runs output resources part parts",
    "gather": "studies.experiment:gather runs tables output resources",
    "board": "arena.compete:write_board study tables output cards planned",
    "draw": "studies.stages.draw:draw entry output",
    "tabulate": "studies.stages.draw:tabulate entry output",
    "judge": "studies.stages.judge:judge study tables output multiverse planned",
    "survey": "studies.stages.survey:survey study tables output figures planned",
    "ledger": "studies.stages.judge:ledger tables output expected planned",
    "expect": "studies.stages.expect:expect ledger expected pages",
    "changes": "cli.results:list_differences",
    "compare": "cli.results:compare",
    "recommend": "cli.recommend:recommend",
    "site": "cli.results:site",
    "crate": "cli.results:crate",
    "fetch": "studies.stages.certify:provide file output mirror",
    "completion": "cli.__main__:completion",
    "help": "cli.__main__:explain",
}


if __name__ == "__main__":
    sys.exit(main())

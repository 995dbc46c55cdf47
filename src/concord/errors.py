"""User-facing error, with an optional "did you mean", and the warning that chains diverged."""

import difflib
import os
import sys
import traceback
from collections.abc import Callable, Iterable
from functools import wraps
from pathlib import Path
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

LISTED = 20  # options that a message names
COMPARED = 100  # characters of a word that are compared with options; comparing is slow


class ConcordError(Exception):
    """A user's mistake, in one sentence: the rule, the value received, the remedy.

    The command line prints the message without a traceback and exits with a non-zero code.
    """


class DivergenceWarning(UserWarning):
    """Chains, or a law, diverged, so that their distances are infinite.

    Examples
    --------
    >>> import concord, warnings
    >>> problem = concord.problems.quadratic(H=[[[1.0]], [[2.0]], [[3.0]]], b=[[1.0], [0.0], [1.0]])
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     trace = concord.sample("de_sgld", problem, "ring", step_size=2.0, iterations=100)
    >>> caught[0].category is concord.DivergenceWarning
    True
    """


def nearest(word: object, options: Iterable[str]) -> str:
    """Return a remedy: the option most like ``word`` if one is close, else the options."""
    names = sorted(options)
    close = difflib.get_close_matches(str(word)[:COMPARED], names, n=1, cutoff=0.6)
    if close:
        return f"did you mean {close[0]!r}?"
    if not names:
        return "there are none to choose from"
    more = f", ... ({len(names)} in all)" if len(names) > LISTED else ""
    return "choose one of " + ", ".join(names[:LISTED]) + more


def short(value: object) -> str:
    """Return the repr of a value, cut and on one line, so that a message stays one sentence."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else text[:57] + "..."


_NEEDED = (
    *("arviz_stats", "h5netcdf", "jinja2", "matplotlib", "msgspec", "networkx", "numpy", "ot"),
    *("pandas", "pooch", "scipy", "sklearn", "tqdm", "xarray", "yaml"),
)


def in_the_way(error: BaseException) -> str | None:
    """Return a sentence about a file that was imported in the place of a module that we need.

    It names one in a folder of ``sys.path`` before Python's own and without distributions, that has
    been imported, or in which the error arose.
    """
    arose, trace = {getattr(error, "filename", None)}, error.__traceback__
    while trace is not None:
        arose.add(trace.tb_frame.f_code.co_filename)
        trace = trace.tb_next
    for folder in map(os.path.abspath, sys.path):
        if folder == os.path.dirname(os.__file__):
            break
        if not os.path.isdir(folder) or any(n.endswith(".dist-info") for n in os.listdir(folder)):
            continue
        for name in sorted({*_NEEDED, *sys.stdlib_module_names}):
            loaded = getattr(sys.modules.get(name), "__file__", None)
            for file in (f"{name}.py", os.path.join(name, "__init__.py")):
                path = os.path.join(folder, file)
                if path in {*arose, os.path.abspath(loaded or "")} and os.path.isfile(path):
                    return f"{path}: it stands in the way of the module {name!r}; rename it"
    return None


_ENDINGS = {
    MemoryError: "there is not enough memory for it; lower chains or record less often",
    KeyboardInterrupt: "it was interrupted",
    SystemExit: "it ends Python; have it raise a ConcordError in the place of that",
}


def blamed(error: BaseException, folder: Path | None = None) -> str | None:
    """Return the file and line of a plug-in where an error arose, None if it did in none.

    folder: that of the plug-in; none: one called plugins, as a study's is.
    """
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        path = Path(frame.filename)
        if "plugins" in path.parts if folder is None else path.is_relative_to(folder):
            return f"{frame.filename}, line {frame.lineno}"
    return None


def excuse(error: BaseException) -> str | None:
    """Return a sentence that replaces an error's traceback; None if the cause is unknown."""
    if isinstance(error, ConcordError):
        return str(error)
    place = blamed(error)
    for kind, text in _ENDINGS.items():
        if place and isinstance(error, kind):
            return f"{place}: {text}"
    ours = isinstance(error, Exception) and not isinstance(error, (OSError, MemoryError))
    return in_the_way(error) if ours else None


def in_a_sentence(function: Callable[P, T]) -> Callable[P, T]:
    """Decorate a function so that a user's mistake ends Python with a sentence."""

    @wraps(function)
    def call(*arguments: P.args, **options: P.kwargs) -> T:
        """Call the function, and exit with one sentence for an error that has one."""
        try:
            return function(*arguments, **options)
        except BaseException as error:
            if sentence := excuse(error):
                sys.exit(f"concord: {sentence}")
            if isinstance(error, OSError):
                sys.exit(f"concord: {error.filename}: {error.strerror}; mend or remove it")
            raise

    return call


def tell(sentence: str, code: int) -> int:
    """Print a sentence on one line, whatever the names in it hold, and return the exit code."""
    text = "".join(c if c.isprintable() else repr(c)[1:-1] for c in sentence)
    print(f"concord: {text}", file=sys.stderr)
    return code

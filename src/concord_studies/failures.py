"""Failures that end a command: one sentence for each, in place of a traceback."""

import os
import sys
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from concord.errors import ConcordError
from concord.failures import place_of

P = ParamSpec("P")
T = TypeVar("T")

_NEEDED = (
    *("arviz_stats", "h5netcdf", "jinja2", "matplotlib", "msgspec", "networkx", "numpy", "ot"),
    *("pandas", "pooch", "scipy", "sklearn", "tqdm", "xarray", "yaml"),
)


def find_shadowing_file(error: BaseException) -> str | None:
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


def user_message(error: BaseException) -> str | None:
    """Return a sentence that replaces an error's traceback; None if the cause is unknown."""
    if isinstance(error, ConcordError):
        return str(error)
    place = place_of(error)
    for kind, text in _ENDINGS.items():
        if place and isinstance(error, kind):
            return f"{place}: {text}"
    ours = isinstance(error, Exception) and not isinstance(error, (OSError, MemoryError))
    return find_shadowing_file(error) if ours else None


def print_error(sentence: str, code: int) -> int:
    """Print a sentence on one line, whatever the names in it hold, and return the exit code."""
    text = "".join(c if c.isprintable() else repr(c)[1:-1] for c in sentence)
    print(f"concord: {text}", file=sys.stderr)
    return code


def exit_with_sentence(function: Callable[P, T]) -> Callable[P, T]:
    """Decorate a function so that a user's mistake ends Python with a sentence."""

    @wraps(function)
    def call(*arguments: P.args, **options: P.kwargs) -> T:
        """Call the function, and exit with one sentence for an error that has one."""
        try:
            return function(*arguments, **options)
        except BaseException as error:
            if sentence := user_message(error):
                sys.exit(f"concord: {sentence}")
            if isinstance(error, KeyboardInterrupt):
                sys.exit("concord: interrupted")
            if isinstance(error, OSError):
                sys.exit(f"concord: {error.filename}: {error.strerror}; mend or remove it")
            raise

    return call

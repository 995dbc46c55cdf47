"""Failures: sentences about errors in plug-ins, and about files in the way of modules."""

import os
import sys
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from concord.errors import ConcordError

P = ParamSpec("P")
T = TypeVar("T")

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


def place_of(error: BaseException, package: str = "concord_plugins") -> str | None:
    """Return the file and line of a study's, or another package's, code where an error arose."""
    place, trace = None, error.__traceback__
    while trace is not None:
        frame = trace.tb_frame
        if f"{frame.f_globals.get('__name__')}.".startswith(f"{package}."):
            place = f"{_relative(frame.f_code.co_filename)}, line {trace.tb_lineno}"
        trace = trace.tb_next
    return place


def _relative(file: str) -> str:
    """Return a file's path from the working folder, if it lies in it."""
    inside = file.startswith(os.path.join(os.getcwd(), ""))
    return os.path.relpath(file) if inside else file


def explain(error: BaseException, whose: str, package: str = "concord_plugins") -> str:
    """Return a sentence on an error in the code of a plug-in, whose package this is."""
    text = " ".join(str(error).split()) or "no reason given"
    what = text if isinstance(error, ConcordError) else f"{type(error).__name__}: {text}"
    place = place_of(error, package)
    if isinstance(error, SyntaxError) and error.filename:
        what = f"{type(error).__name__}: {error.msg}"
        place = f"{_relative(error.filename)}, line {error.lineno}"
    elif isinstance(error, OSError) and error.filename and place is None:
        return f"{error.filename}: cannot be read ({error.strerror})"
    if place and not what.startswith(place.partition(",")[0]):
        what = f"{place}: {what}"
    return what if what.startswith(whose) else f"{whose}: {what}"


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
    return in_the_way(error) if ours else None


def tell(sentence: str, code: int) -> int:
    """Print a sentence on one line, whatever the names in it hold, and return the exit code."""
    text = "".join(c if c.isprintable() else repr(c)[1:-1] for c in sentence)
    print(f"concord: {text}", file=sys.stderr)
    return code


def in_a_sentence(function: Callable[P, T]) -> Callable[P, T]:
    """Decorate a function so that a user's mistake ends Python with a sentence."""

    @wraps(function)
    def call(*arguments: P.args, **options: P.kwargs) -> T:
        """Call the function, and exit with one sentence for an error that has one."""
        try:
            return function(*arguments, **options)
        except BaseException as error:
            if sentence := user_message(error):
                sys.exit(f"concord: {sentence}")
            if isinstance(error, OSError):
                sys.exit(f"concord: {error.filename}: {error.strerror}; mend or remove it")
            raise

    return call

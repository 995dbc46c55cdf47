"""Failures of plug-ins: sentences that say in which file and line an error arose."""

import os
from traceback import walk_tb

from concord.errors import ConcordError


def place_of(error: BaseException, package: str = "concord_plugins") -> str | None:
    """Return the file and line of a study's, or another package's, code where an error arose."""
    place = None
    for frame, line in walk_tb(error.__traceback__):
        if f"{frame.f_globals.get('__name__')}.".startswith(f"{package}."):
            place = f"{_relative_path(frame.f_code.co_filename)}, line {line}"
    return place


def _relative_path(file: str) -> str:
    """Return a file's path from the working folder, if it lies in it."""
    inside = file.startswith(os.path.join(os.getcwd(), ""))
    return os.path.relpath(file) if inside else file


def explain(error: BaseException, origin: str, package: str = "concord_plugins") -> str:
    """Return a sentence on an error in the code of a plug-in, with file and line if they are known.

    origin: the plug-in's file or distribution. package: the top package of its modules.
    """
    text = " ".join(str(error).split()) or "no reason given"
    sentence = text if isinstance(error, ConcordError) else f"{type(error).__name__}: {text}"
    place = place_of(error, package)
    if isinstance(error, SyntaxError) and error.filename:
        sentence = f"{type(error).__name__}: {error.msg}"
        place = f"{_relative_path(error.filename)}, line {error.lineno}"
    if place and not sentence.startswith(place.partition(",")[0]):
        sentence = f"{place}: {sentence}"
    return sentence if sentence.startswith(origin) else f"{origin}: {sentence}"

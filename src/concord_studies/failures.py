"""Failures that end a command: one sentence for each, in place of a traceback."""

import sys
from collections.abc import Callable
from functools import wraps
from inspect import isfunction
from typing import Any, TypeVar

from concord.errors import ConcordError
from concord.failures import place_of

T = TypeVar("T")

_ENDINGS = {
    MemoryError: "there is not enough memory for it; lower chains or record less often",
    KeyboardInterrupt: "interrupted",
    SystemExit: "it ends Python; have it raise a ConcordError in the place of that",
}


def user_message(error: BaseException) -> str | None:
    """Return a sentence that replaces an error's traceback. None if the cause is unknown.

    The sentence names the line of a plug-in in which memory ended or Python was to end.
    """
    if isinstance(error, ConcordError):
        return str(error)
    if isinstance(error, OSError):
        what = f"{error.filename}: " if error.filename else ""
        return f"{what}{error.strerror or error}; mend or remove it"
    place = place_of(error)
    text = next((text for kind, text in _ENDINGS.items() if kind in type(error).__mro__), None)
    if place and text:
        return f"{place}: {text}"
    return None if isinstance(error, SystemExit) else text


def print_error(sentence: str, code: int) -> int:
    """Print a sentence on one line, whatever the names in it hold, and return the exit code."""
    text = "".join(c if c.isprintable() else repr(c)[1:-1] for c in sentence)
    print(f"concord: {text}", file=sys.stderr)
    return code


def exit_with_sentences(kind: type[T]) -> type[T]:
    """Decorate a class so that a user's mistake in a public method ends Python with a sentence."""
    for name, method in list(vars(kind).items()):
        if isfunction(method) and (name == "__init__" or not name.startswith("_")):
            setattr(kind, name, _exit_with_sentence(method))
    return kind


def _exit_with_sentence(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method that exits with one sentence for an error that has one."""

    @wraps(method)
    def call(*arguments: Any, **options: Any) -> Any:
        """Call the method, and exit with the sentence of an error."""
        try:
            return method(*arguments, **options)
        except BaseException as error:
            if sentence := user_message(error):
                sys.exit(f"concord: {sentence}")
            raise

    return call

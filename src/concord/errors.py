"""User-facing error, with an optional "did you mean", and the warning that chains diverged."""

import difflib
import functools
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from numbers import Number
from typing import NoReturn, ParamSpec, TypeVar

from concord.synonyms import ABSENT, SYNONYMS

P = ParamSpec("P")
R = TypeVar("R")

LISTED = 20  # options that a message names
COMPARED = 100  # characters of a word that are compared with options; comparing is slow
LONGEST = 60  # characters of a value that a message shows
WRITABLE = (str, Number, type(None), dict, list, tuple)  # types of values that a message writes out
OF_FIGURES = ("ax", "axes", "fig", "figure", "figsize")  # arguments of other libraries' pictures


class ConcordError(Exception):
    """A user's mistake, in one sentence: the rule, the value received, the remedy.

    The command line prints the message without a traceback and exits with a non-zero code.

    Examples
    --------
    >>> import concord
    >>> try:
    ...     concord.network("rnig", 4)
    ... except concord.ConcordError as error:
    ...     print(error)
    network.kind: there is no topology 'rnig'; did you mean 'ring'?
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


def find_meant(word: object, options: Iterable[str], alike: float = 0.6) -> str:
    """Return the option that a word is most like, or means in another library; "" if none is.

    Case and punctuation do not count, and ``SYNONYMS`` has the words of other libraries. alike: how
    much of a misspelt word has to be right.
    """
    names, letters = list(options), _letters(word)
    same = [name for name in names if _letters(name) == letters]
    same += [
        meant
        for meant, words in SYNONYMS.items()
        if meant.partition("=")[0] in names and letters in map(_letters, words.split())
    ]
    alike -= 0.1 * (len(letters) < 3)  # one letter of two may differ
    if not same and str(word) not in ABSENT:
        same = difflib.get_close_matches(str(word)[:COMPARED], names, n=1, cutoff=alike)
    return same[0] if same else ""


def nearest(word: object, options: Iterable[str]) -> str:
    """Return a remedy: the option that ``word`` means (``find_meant``), else the options."""
    names = sorted(options)
    if meant := find_meant(word, names):
        return f"did you mean {meant.partition('=')[0]!r}?"
    if not names:
        return "there are none to choose from"
    more = f", ... ({len(names)} in all)" if len(names) > LISTED else ""
    return "choose one of " + ", ".join(names[:LISTED]) + more


def suggest_argument(key: str, value: object, names: Iterable[str]) -> str:
    """Return a remedy for an argument that there is not: the one that is meant, with its value.

    Values of words that ``SYNONYMS`` marks are of another quantity, and left to the reader.
    """
    names = list(names)
    if not (meant := find_meant(key, names)):
        return nearest(key, names)
    written = "..." if f"{key.lower()}*" in SYNONYMS.get(meant, "").split() else write_value(value)
    argument = meant.replace("VALUE", written) if "=" in meant else f"{meant}={written}"
    return f"did you mean {argument}?"


def write_value(value: object) -> str:
    """Return a short plain value as Python writes it; "..." for others, such as arrays."""
    text = repr(
        value.item() if hasattr(value, "item") and not getattr(value, "shape", 0) else value
    )
    return text if isinstance(value, WRITABLE) and len(text) <= LONGEST else "..."


def _letters(word: object) -> str:
    """Return the letters and digits of a word in lower case."""
    return "".join(filter(str.isalnum, str(word)[:COMPARED].lower()))


def require_known(what: str, name: object, names: Iterable[str], where: str) -> None:
    """Refuse a name that is none of ``names``, at a place; ``what``: such as "experiment"."""
    names = list(names)
    if name not in names:
        raise ConcordError(f"{where}: there is no {what} {short(name)}; {nearest(name, names)}")


@contextmanager
def prefix_errors(where: str) -> Iterator[None]:
    """Put a place in front of the sentence of a ConcordError."""
    try:
        yield
    except ConcordError as error:
        raise ConcordError(f"{where}: {error}") from None


def short(value: object) -> str:
    """Return the repr of a value, cut and on one line, so that a message stays one sentence."""
    text = " ".join(repr(value).split())
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


def suggest_names(function: Callable[P, R], name: str = "") -> Callable[P, R]:
    """Return a function that refuses a call that does not fit it, in one sentence with a remedy.

    Of an unknown keyword that is the option that may be meant. name: of the function, for messages;
    "": its own.
    """
    from inspect import Parameter, signature  # a few milliseconds, which few commands need to spend

    shape, what = signature(function), name or function.__name__
    known = {name: each for name, each in shape.parameters.items() if name != "self"}
    takes_any = any(each.kind is Parameter.VAR_KEYWORD for each in known.values())
    missing = {
        each.name
        for each in known.values()
        if each.kind is Parameter.KEYWORD_ONLY and each.default is Parameter.empty
    }
    needed = [
        f"{each.name}=..." if each.name in missing else each.name
        for each in known.values()
        if each.kind is Parameter.POSITIONAL_OR_KEYWORD or each.name in missing
    ]

    @functools.wraps(function)
    def checked(*values: P.args, **options: P.kwargs) -> R:
        # Of a function that takes options of others, too, those are unknown that a missing one has.
        names = [name for name in known if not takes_any or name in missing - options.keys()]
        for key in [key for key in options if key not in known]:
            if what.startswith("plot") and key in OF_FIGURES:
                raise ConcordError(
                    f"{what}: {key!r} is no argument; it returns a figure of its own: "
                    "figure.set_size_inches(5, 3) resizes it, and figure.axes are its panels"
                )
            if not takes_any or find_meant(key, names, 0.8):
                refuse_argument(what, key, suggest_argument(key, options[key], names))
        try:
            shape.bind(*values, **options)
        except TypeError as error:
            parts = ("data=(X, y)" if part == "data" else part for part in needed)
            call = ", ".join(parts)
            raise ConcordError(f"{what}: {error}; call {what}({call}), others by name") from None
        return function(*values, **options)

    return checked


def refuse_argument(function: str, key: str, remedy: str) -> NoReturn:
    """Raise the ConcordError for an argument that a function does not have."""
    raise ConcordError(f"{function}: {short(key)} is no argument; {remedy}")


def warn_of_divergence(
    what: str, message: str, remedy: str = "sample again with a smaller step_size"
) -> None:
    """Issue a ``DivergenceWarning`` at the line of the caller's code.

    what: that function's name. message: what diverged; "" for no warning. remedy: what the user may
    do.
    """
    if message:
        from inspect import stack

        modules = [frame.frame.f_globals.get("__name__", "") for frame in stack(0)]
        level = next(n for n, name in enumerate(modules, 1) if not name.startswith("concord."))
        warnings.warn(f"{what}: {message}; {remedy}", DivergenceWarning, stacklevel=level)

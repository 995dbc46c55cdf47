"""User-facing error, with an optional "did you mean", and the warning that chains diverged."""

import difflib
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

LISTED = 20  # options that a message names
COMPARED = 100  # characters of a word that are compared with options; comparing is slow


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


def nearest(word: object, options: Iterable[str]) -> str:
    """Return a remedy: the option most like ``word`` if one is close, else the options."""
    names = sorted(options)
    alike = 0.6 if len(str(word)) > 2 else 0.5  # one letter of two may differ
    close = difflib.get_close_matches(str(word)[:COMPARED], names, n=1, cutoff=alike)
    if close:
        return f"did you mean {close[0]!r}?"
    if not names:
        return "there are none to choose from"
    more = f", ... ({len(names)} in all)" if len(names) > LISTED else ""
    return "choose one of " + ", ".join(names[:LISTED]) + more


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
    return text if len(text) <= 60 else text[:57] + "..."


def warn_of_divergence(
    what: str, message: str, remedy: str = "sample again with a smaller step_size"
) -> None:
    """Issue a ``DivergenceWarning`` at the line that called a public function.

    what: that function's name. message: what diverged; "" for no warning. remedy: what the user may
    do.
    """
    if message:
        warnings.warn(f"{what}: {message}; {remedy}", DivergenceWarning, stacklevel=3)

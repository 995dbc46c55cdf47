"""The command ``test``: the contract tests of kinds, in a process of their own."""

import json
import sys
from argparse import Namespace
from collections import Counter
from collections.abc import Sequence
from multiprocessing import get_context
from typing import Any

from concord.errors import ConcordError
from concord.failures import user_message
from concord_arena import testing
from concord_cli.kinds import find_plugins, named

# Seconds that an import, or a check, may take. What is built in takes seconds, on a busy machine
# up to a minute.
LIMIT = 300.0


def test(options: Namespace) -> None:
    """Test kinds in a process of its own: one that ends, or stands still, before all checks fails.

    It stands still when an import or a check takes longer than ``LIMIT``.
    """
    find_plugins(options)
    chosen = [pair for word in options.kinds for pair in named(word)]
    context = get_context("fork")
    heard, told = context.Pipe(duplex=False)
    process = context.Process(target=_run_checks, args=(chosen, options.seed, told))
    process.start()
    told.close()  # so that nothing more is heard once the process has ended
    found: list[dict[str, str]] = []
    sentence: str | None = None
    try:
        while heard.poll(LIMIT):
            message = json.loads(heard.recv_bytes())
            if not isinstance(message, dict):
                sentence = message
                break
            found.append(message)
            if not options.json:
                _print_outcome(message, found[-2:-1])
        else:
            sentence = (
                f"{_next(chosen, found)} took longer than {LIMIT:g} s; mend what does not end"
            )
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


def _next(chosen: Sequence[tuple[str, str]], found: Sequence[dict[str, str]]) -> str:
    """Return the check that follows on those found, with its kind; at first that is the import."""
    done = Counter((each["package"], each["kind"]) for each in found)
    package, kind = next(pair for pair in chosen if done[pair] < len(testing.CHECKS[pair[0]]))
    if not (place := done[package, kind]):
        return f"{package}/{kind}: its import"
    name = testing.CHECKS[package][place].__name__.replace("_", " ")
    return f"{package}/{kind}: the check {name!r}"


def _print_outcome(each: dict[str, str], before: list[dict[str, str]]) -> None:
    if [each["package"], each["kind"]] not in [[b["package"], b["kind"]] for b in before]:
        print(f"{each['package']}/{each['kind']}")
    why = f": {each['why']}" if each["why"] else ""
    print(f"  {each['ended']:14}  {each['check']}{why}", flush=True)


def _run_checks(chosen: Sequence[tuple[str, str]], seed: int, told: Any) -> None:
    """Send the outcome of each check, and in the end nothing, or why there are no more."""

    def send(what: Any) -> None:
        told.send_bytes(json.dumps(what).encode())

    sys.stdout = sys.stderr  # what plug-ins print is no outcome
    try:
        for package, kind in chosen:
            for outcome in testing.run(package, kind, seed):
                send({"package": package, "kind": kind, **outcome._asdict()})
        send(None)
    except BaseException as error:
        if sentence := user_message(error):
            send(sentence)
        elif not isinstance(error, KeyboardInterrupt):
            raise

"""The command ``test``: the contract tests of kinds."""

import json
import sys
from argparse import Namespace
from collections import Counter
from contextlib import redirect_stdout

from concord.errors import ConcordError
from concord_arena import testing
from concord_cli.kinds import find_named, find_plugins


def test(options: Namespace) -> None:
    """Test kinds, and say how each check ended; a ConcordError if one failed."""
    find_plugins(options, options.kinds)
    output = sys.stderr if options.json else sys.stdout
    outcomes = []
    with redirect_stdout(sys.stderr):  # what plug-ins print is no outcome
        for room, kind in [pair for word in options.kinds for pair in find_named(word)]:
            print(f"{room}/{kind}", file=output)
            for each in testing.run(room, kind, options.seed):
                outcomes.append({"room": room, "kind": kind, **each._asdict()})
                why = f": {each.why}" if each.why else ""
                print(f"  {each.ended:14}  {each.check}{why}", file=output, flush=True)
    if options.json:
        print(json.dumps(outcomes, indent=1))
    ended = Counter(each["ended"] for each in outcomes)
    counted = ", ".join(f"{ended[end]} {end}" for end in ("ok", "failed", "not applicable"))
    print(f"{len(outcomes)} checks: {counted}", file=output)
    if ended["failed"]:
        failed = f"{ended['failed']} of {len(outcomes)} checks failed"
        raise ConcordError(f"{failed}; mend what they name")

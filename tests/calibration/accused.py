"""Right samplers and the checks that chance decides: how often one is accused, and how nearly.

``python tests/calibration/accused.py FIRST END [KIND ...]`` runs the checks of ``concord test``
with these seeds on all samplers of the package and three plug-ins, or on some; the same as
``make reliability`` does for fewer.
"""

import sys
import time
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

import wrong
from concord_arena.testing import Inapplicable, samplers
from concord_arena.testing.variants import SEED
from variants import SAMPLERS

PLUGINS = {
    f"plug-in {name}": wrong.sampler(text, f"accused_{name}") for name, text in wrong.RIGHT.items()
}
RIGHT: dict[str, Any] = {**SAMPLERS, **PLUGINS}


def run(kind: str, seed: int) -> tuple[list[str], float, float]:
    """Return what one run accuses a right sampler of, its least p-value, and standard errors."""
    found, seen = [], {"least_p": [1.0], "_standard_errors": [0.0]}
    before = {name: getattr(samplers, name) for name in seen}

    def note(name: str) -> Any:
        def measure(*given: Any) -> Any:
            result = before[name](*given)
            seen[name].append(result[0] if name == "least_p" else result)
            return result

        return measure

    token = SEED.set(seed)
    try:
        for name in seen:
            setattr(samplers, name, note(name))
        for check in samplers.CHECKS:
            try:
                check(RIGHT[kind])
            except Inapplicable:
                pass
            except Exception as error:
                found.append(f"{kind}, seed {seed}: {check.__name__}: {error}")
    finally:
        SEED.reset(token)
        for name, measure in before.items():
            setattr(samplers, name, measure)
    return found, min(seen["least_p"]), max(seen["_standard_errors"])


if __name__ == "__main__":
    for seed in range(int(sys.argv[1]), int(sys.argv[2])):
        for kind in sys.argv[3:] or RIGHT:
            found, p, off = run(kind, seed)
            numbers = f"{seed}\t{kind}\t{p:.2e}\t{off:.2f}\t{time.process_time():.0f}"
            print(f"{numbers}\t{'; '.join(found)}", flush=True)

"""Right samplers and the checks that chance decides: how often one is accused.

``python tests/calibration/accused.py FIRST END [KIND ...]`` runs the checks of ``concord test``
with these seeds on all samplers of the package and some plug-ins, or on some; the same as
``make reliability`` does for fewer.
"""

import sys
import time
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

import wrong
from variants import SAMPLERS

PLUGINS = {
    f"plug-in {name}": wrong.sampler(text, f"accused_{name}") for name, text in wrong.RIGHT.items()
}
RIGHT: dict[str, Any] = {**SAMPLERS, **PLUGINS}


def run(kind: str, seed: int) -> list[str]:
    """Return what one run accuses a right sampler of."""
    return [f"{kind}, seed {seed}: {one}" for one in wrong.accusations(RIGHT[kind], seed)]


if __name__ == "__main__":
    for seed in range(int(sys.argv[1]), int(sys.argv[2])):
        for kind in sys.argv[3:] or RIGHT:
            found = run(kind, seed)
            print(f"{seed}\t{kind}\t{time.process_time():.0f}\t{'; '.join(found)}", flush=True)

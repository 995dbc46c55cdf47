"""Right samplers and the tests that chance decides: how often one is accused, and how nearly.

``python tests/calibration/accused.py FIRST END [KIND ...]`` runs all tests that draw from the seed,
for these seeds, of all samplers of the package and three plug-ins, or of some; the same as
``make reliability`` does for fewer.
"""

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from concord.testing import Inapplicable, calibration, gate, samplers
from concord.testing.variants import SEED
from samplers import wrong as plugins
from variants import SAMPLERS

DRAWN = (
    *gate.CHECKS,
    samplers.nothing_is_heard_where_all_is_lost,
    samplers.step_without_noise_is_the_matrix_of_the_law,
    samplers.step_with_unit_noise_is_the_covariance_of_the_law,
    samplers.errors_of_gradients_enter_as_the_law_says,
    samplers.positions_have_uniform_ranks_in_their_exact_law,
)
PLUGINS = {
    f"plug-in {name}{', no law' * (not law)}": plugins.module(text, f"right_{number}{law}", law)
    for number, (name, text) in enumerate(plugins.RIGHT.items())
    for law in (True, False)
}
RIGHT: dict[str, Any] = {**SAMPLERS, **PLUGINS}


def run(kind: str, seed: int) -> tuple[list[str], float]:
    """Return what one run of the tests accuses a right sampler of, and its least p-value."""
    found, least, before = [], 1.0, (gate.least_p, calibration.least)

    def noted(measure: Any) -> Any:
        def measured(*given: Any) -> Any:
            nonlocal least
            p, what = measure(*given)
            least = min(least, p)
            return p, what

        return measured

    SEED.set(seed)
    gate.least_p, calibration.least = (noted(one) for one in before)
    try:
        for check in DRAWN:
            try:
                check(RIGHT[kind])
            except Inapplicable:
                pass
            except Exception as error:
                found.append(f"{kind}, seed {seed}: {check.__name__}: {error}")
    finally:
        gate.least_p, calibration.least = before
    return found, least


def runs(first: int, end: int, kinds: list[str]) -> Iterator[tuple[str, int, list[str], float]]:
    """Yield kind, seed, accusations and least p-value of every run."""
    for seed in range(first, end):
        for kind in kinds or RIGHT:
            yield kind, seed, *run(kind, seed)


if __name__ == "__main__":
    ranges = int(sys.argv[1]), int(sys.argv[2])
    for kind, seed, found, p in runs(*ranges, sys.argv[3:]):
        print(f"{seed}\t{kind}\t{p:.2e}\t{time.process_time():.0f}\t{'; '.join(found)}", flush=True)

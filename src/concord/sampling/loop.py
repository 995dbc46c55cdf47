"""The one loop over iterations, and what it records.

A sampler gives ``init`` and ``step`` (see ``concord.samplers``); ``simulate`` advances all chains
and agents together and hands each iterate to a ``Recorder``, which keeps only what was requested.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from concord.contracts import Step
from concord.sampling.recorder import Recorder
from concord.sampling.trace import Trace


def simulate(
    state: Any,
    step: Step,
    iterations: int,
    recorder: Recorder,
    rng: np.random.Generator,
    progress: bool = False,
) -> Trace:
    """Run the chain of states and return what the recorder kept.

    ``state.x`` has shape (chains, agents, dim). Step k = 0, 1, ... produces iteration k + 1. A
    chain that diverges is noted, not stopped: the run's result is that it diverged.
    """
    steps: Iterable[int] = range(iterations)
    if progress:
        from tqdm import tqdm

        steps = tqdm(steps)
    with np.errstate(over="ignore", invalid="ignore"):
        recorder.observe(0, state.x, None)
        for k in steps:
            state, info = step(state, k, rng)
            recorder.observe(k + 1, state.x, info)
    return recorder.trace()

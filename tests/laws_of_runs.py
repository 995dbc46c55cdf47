"""Measurements of runs of which nothing but the law is looked at."""

from types import SimpleNamespace

import numpy as np

import measurements
from concord.minibatches import Batches
from concord.networks.construction import network
from concord.sampling.initial import Law
from concord_studies.metrics import Measurement
from variants import problem

RING = network("ring", 5)


def measurement(
    sampler, net=RING, prob=None, iterations=10, initial=None, batches=None
) -> Measurement:
    return measurements.measurement(
        SimpleNamespace(agent=np.arange(net.agents)),
        problem=prob or problem(net.agents, 2, points=50),
        network=net,
        sampler=sampler,
        batches=batches or Batches(),
        initial=initial or Law("normal"),
        iterations=iterations,
    )

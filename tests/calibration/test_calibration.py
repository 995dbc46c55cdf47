"""Samplers against the posterior, by ranks that must be uniform.

Ranks of draws in the exact posterior of one data set, on a grid, must be uniform up to a Kolmogorov
distance of ``SLACK``, which is what the last step size leaves. (Chains are held against their exact
law by ``concord test`` of every sampler.)

Chains are independent, and no rank comes from successive draws of one chain. With right samplers
the test fails with a probability below ``LEVEL`` (Bonferroni over all its quantities). Where a
difference is known (the published gossip ULA, D-ADMMS) the test is that it is seen, and which way
it goes.
"""

import pytest

from calibration import models
from calibration.models import MODELS
from calibration.ranks import LEVEL, least, width
from calibration.settings import SLACK, settings
from concord import streams
from concord.loop import run as sample
from variants import SAMPLERS

pytestmark = pytest.mark.thorough

# Chains that are held against the posterior.
DRAWS = 1500

LIMIT = LEVEL / sum(len(settings(name)) for name in MODELS)


def generator(*labels):
    return streams.generator(1, "calibration", *map(str, labels))


def run(setting, problem, chains, *labels):
    """Return the last positions of chains that start from the prior, (chains, dim) by place."""
    rng, net = generator("noise", *labels), setting.network
    sampler = SAMPLERS[setting.sampler](**setting.options)
    sampler.check(problem, net)
    x0 = generator("start", *labels).standard_normal((chains, problem.agents, problem.dim))
    state = sample(sampler, problem, net.start(x0), x0, setting.steps, rng)
    places = {f"agent {i}": state.x[:, i] for i in range(problem.agents)}
    return {**places, "average": state.x.mean(axis=1)} if problem.agents > 1 else places


@pytest.mark.parametrize("name", MODELS)
def test_ranks_are_uniform_where_draws_are_of_the_posterior(name, effort, reliability):
    exact, chains = models.Posterior(models.build(name, 1)), DRAWS * effort
    wrong, unseen, tried = [], [], settings(name)
    for label, setting in tried.items():
        problem = models.build(name, setting.network.agents)
        draws = run(setting, problem, chains, name, label)
        ranks = {place: exact.ranks(x) for place, x in draws.items()}
        if setting.expected:
            for place, expected in zip(("agent 0", "average"), setting.expected, strict=True):
                p, seen = least(ranks[place], SLACK)[0], width(ranks[place])
                if p > LIMIT or seen != expected:
                    unseen.append((label, place, p, seen))
        else:
            every = {f"{place}, {q}": u for place in ranks for q, u in ranks[place].items()}
            p, quantity = least(every, SLACK)
            if p < LIMIT:
                wrong.append((label, quantity, p))
    known = sum(setting.expected is not None for setting in tried.values())
    rule = f"ranks are uniform up to a distance of {SLACK:g} (p above {LIMIT:.0e})"
    what = f"posterior: samplers on {name}, {chains} chains"
    reliability("calibration", what, len(tried) - known, len(wrong), rule)
    rule = f"seen, too wide or too narrow as known (p below {LIMIT:.0e})"
    what = f"posterior: known differences on {name}"
    reliability("calibration", what, 2 * known, len(unseen), rule)
    assert not wrong and not unseen

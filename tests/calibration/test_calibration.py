"""Samplers against their exact laws and against the posterior, by ranks that must be uniform.

*Exact law*: ranks of positions in the sampler's own law on linear regression, bias included: of
every coordinate of every agent and of their average, of the network's distance from its mean, and
of all its principal directions. Given who gossips, and which points make the mini-batches, that law
is Gaussian for every chain. *Posterior*: ranks of draws in the exact posterior of one data set, on
a grid. All must be uniform, those in the posterior up to a Kolmogorov distance of ``SLACK``, which
is what the last step size leaves.

Chains are independent, and no rank comes from successive draws of one chain. With right samplers,
either method fails with a probability below ``LEVEL`` (Bonferroni over all its quantities).
Where a difference is known (noise that is wrong, another network, the
published gossip ULA, D-ADMMS) the test is that it is seen, and which way it goes.
"""

import pytest

from calibration import laws, models
from calibration.models import MODELS
from calibration.ranks import LEVEL, least, width
from calibration.settings import SLACK, settings
from concord import streams
from concord.loop import run as sample
from concord.minibatches import batches_of
from concord.networks.construction import network
from variants import SAMPLERS, Scaled

pytestmark = pytest.mark.thorough

CHAINS = 400
# Networks and options of a sampler that are tried, of up to 600, and as many more as is asked.
TRIED = 100
# Chains that are held against the posterior.
DRAWS = 1500

RANKED = [kind for kind in SAMPLERS if any(True for _ in laws.combinations(kind))]
FAULTS = {
    "noise 10 % too large": [kind for kind in RANKED if kind != "sgd"],
    "another network": [kind for kind in RANKED if kind not in ("sgd", "c_ula")],
}
# The star of four agents with one edge moved from its center to a leaf.
MOVED = network("edge_list", 4, edges=[[0, 1], [0, 2], [1, 3]])
LIMIT = LEVEL / sum(len(settings(name)) for name in MODELS)


def generator(*labels):
    return streams.generator(1, "calibration", *map(str, labels))


@pytest.mark.parametrize("kind", RANKED)
def test_positions_have_uniform_ranks_in_their_exact_law(kind, effort, reliability):
    found, all_of_them = [], list(laws.combinations(kind))
    order = generator("tried", kind).permutation(len(all_of_them))
    for case in (all_of_them[i] for i in sorted(order[: TRIED * effort])):
        net, _, sampler = case
        ranks = laws.ranks(case, CHAINS * effort, generator("law", kind, sampler, net.edges))
        if ranks:
            found.append((*least(ranks), net.name, sampler))
    limit = LEVEL / len(RANKED) / len(found)
    wrong = [case for case in found if case[0] < limit]
    what = f"exact law: networks and options of {kind}, {CHAINS * effort} chains each"
    rule = f"ranks are uniform (p above {limit:.0e})"
    reliability("calibration", what, len(found), len(wrong), rule)
    assert not wrong


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_of_a_sampler_are_seen_in_its_exact_law(fault, effort, reliability):
    other = MOVED if fault == "another network" else None
    found = []
    for kind in FAULTS[fault]:
        for case in laws.combinations(kind):
            net, _, sampler = case
            # With a server all agents are equal: too few numbers to see such a fault by.
            if net.agents != (1 if kind == "c_ula" else MOVED.agents) or net.name == "server":
                continue
            if batches_of(sampler) or not (other or getattr(sampler, "noise", 1)):
                continue
            rng = generator("fault", kind, sampler)
            rng = rng if other else Scaled(rng, 1.1)
            chains = 16 * CHAINS * effort // net.agents
            try:
                ranks = laws.ranks(case, chains, rng, other)
            except AssertionError:  # outside of the plane in which the law lies
                found.append((0.0, "plane", kind, sampler))
                continue
            found.append((*least(ranks), kind, sampler))
    limit = LEVEL / len(found)
    unseen = [case for case in found if case[0] > limit]
    what = f"exact law: options of {len(FAULTS[fault])} samplers, {fault}"
    reliability("calibration", what, len(found), len(unseen), f"seen (p below {limit:.0e})")
    assert not unseen


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

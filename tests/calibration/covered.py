"""What the tests of this folder cover, worked out from what they run over."""

from collections.abc import Iterable
from functools import cache

import msgspec

from calibration import laws, ranks, settings
from calibration.models import MODELS
from concord import kinds
from concord.hints import choices
from reliability import table
from variants import SAMPLERS

NOT_COVERED = "**not covered**"

# Why a pair has neither an exact law nor ranks: by problem, or by sampler and problem.
WHY = {
    "sparse_logistic": "no oracle: 124 weights, and data that no prior drew",
    "lenet": "no oracle: a network's weights",
    ("admm", "tied_mixture"): "refused: no proximal step",
    ("sgd", "logistic_regression"): "an optimizer: no posterior",
    ("sgd", "tied_mixture"): "an optimizer: no posterior",
}

WORDS = """
*Exact law*: ranks of positions in the sampler's own law on linear regression, bias included: of
every coordinate of every agent and of their average, of the network's distance from its mean, and
of all its principal directions, for as many combinations of network, options and mini-batches as
the table says. Given who gossips, and which points make the mini-batches, that law is Gaussian for
every chain; where it is a point (ADMM without edges), positions lie there. *Posterior*: ranks of
draws in the exact posterior of one data set, on a grid. *SBC*, simulation-based calibration: ranks
of parameters drawn from the prior among draws of the posterior of data drawn from them. All must be
uniform, those in the posterior up to a Kolmogorov distance of {slack:g}, which is what the last
step size leaves. *Seen*: a known difference from the posterior, which must be found.

Chains and data sets are independent, and no rank comes from successive draws of one chain. With
right samplers, each of the three methods fails with a probability below {level:g} (Bonferroni over
all its quantities).

`make reliability` ranks more chains, and draws `reliability/calibration.png`: the share of ranks
below u, less u, of the distance and of the posterior's density; the histograms of all ranks are in
`reliability/calibration/ranks.csv`. Not covered:

"""


def methods(sampler: str, problem: str, combinations: int) -> list[str]:
    """Return what is done with a sampler on a problem."""
    found = []
    if problem == "linear_regression" and combinations:
        found.append(f"exact law ({combinations})")
    if problem in MODELS:
        for label, setting in settings.settings(problem).items():
            if setting.sampler == sampler and setting.expected is None:
                found.append("posterior, SBC" if "," not in label else f"posterior, SBC ({label})")
            elif setting.sampler == sampler:
                agents, average = setting.expected
                seen = agents if agents == average else f"agents {agents}, average {average}"
                found.append(f"seen: {label} ({seen})")
    return found


def cell(sampler: str, problem: str, combinations: int) -> str:
    """Return the table's text for a sampler on a problem."""
    found = methods(sampler, problem, combinations)
    reason = WHY.get((sampler, problem), WHY.get(problem))
    return "; ".join(found) or reason or NOT_COVERED


@cache
def tried(kind: str) -> tuple[msgspec.Struct, ...]:
    """Return the options of each combination that a sampler's exact law is ranked with.

    Of several agents, unless it is a sampler of one alone: there, no weights matter.
    """
    ranked = [(net.agents, sampler) for net, _, sampler, _ in laws.combinations(kind)]
    several = tuple(sampler for agents, sampler in ranked if agents > 1)
    return several or tuple(sampler for _, sampler in ranked)


def without_law(kind: str) -> list[str]:
    """Return the choices of a sampler's options that no exact law is known for, as "key: value"."""
    seen = [msgspec.structs.asdict(params) for params in tried(kind)]
    return [
        f"{field.name}: {choice}"
        for field in msgspec.structs.fields(SAMPLERS[kind])
        for choice in choices(field.type)
        if not any(options[field.name] == choice for options in seen)
    ]


def page(
    samplers: Iterable[str] = kinds.built_in("samplers"),
    problems: Iterable[str] = kinds.built_in("problems"),
) -> str:
    """Return the list of what is covered, as Markdown."""
    problems = tuple(problems)
    counts = {kind: len(tried(kind)) for kind in SAMPLERS}
    rows = [
        [sampler, *(cell(sampler, problem, counts.get(sampler, 0)) for problem in problems)]
        for sampler in samplers
    ]
    lacking = [f"`{kind}` with {text}" for kind in SAMPLERS for text in without_law(kind)]
    left = "".join(f"- exact law: {text}\n" for text in lacking)
    words = WORDS.format(slack=settings.SLACK, level=ranks.LEVEL)
    return (
        f"What is ranked, of each sampler on each problem:\n\n{table(['', *problems], rows)}{words}"
        f"{left}- posterior and SBC: mini-batches, which change the law by an unknown amount\n"
    )

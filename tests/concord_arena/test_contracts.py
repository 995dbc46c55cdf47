"""Every plug-in keeps its contract, and whoever needs what a problem lacks refuses it."""

import inspect
from contextlib import suppress

import pytest

import everything
from concord import contracts, kinds, problem, reference
from concord.laws.gaussian import Gaussian
from concord.laws.quadrature import Grid
from concord.laws.reference_laws import AnalyticLaw, Draws
from concord.models.jax import CompiledModel
from concord.samplers.de_sgld import DESGLD
from concord_arena.testing import CHECKS, PROTOCOLS, Inapplicable, list_methods
from concord_arena.testing.variants import GradientOnly, variants
from concord_studies import contracts as study_contracts

OF_MODULES = {*PROTOCOLS.values(), study_contracts.OutputKind}
# Whose other checks have tests of their own.
APART = "samplers", "problems"
OF_PROBLEMS = [
    one
    for module in (problem, contracts, study_contracts)
    for one in vars(module).values()
    if getattr(one, "_is_protocol", False)
    and one.__module__ == module.__name__
    and one not in OF_MODULES
    and one not in (reference.Reference, contracts.DataSets, study_contracts.Read)
]
SLOW = (
    "metrics",
    "answers",
)  # takes minutes: tests/concord_studies/configuration/test_recommend_study.py
everything.use()  # whatever another file has used when it was read
ALL = [(package, kind) for package in PROTOCOLS for kind in kinds.names(package)]
ALL.remove(SLOW)
CLASSES = [
    CompiledModel,  # of models, which kinds import where the library is there
    *(
        one
        for kind in kinds.names("problems")
        for one in vars(kinds.find("problems", kind, "tests")).values()
        if inspect.isclass(one) and hasattr(one, "gradient") and one.__module__.endswith(kind)
    ),
]
AGENTS = 4


def members(protocol):
    names = {name for cls in protocol.__mro__ for name in vars(cls).get("__annotations__", {})}
    properties = {n for n, m in vars(protocol).items() if isinstance(m, property)}
    return {n for n in names if not n.startswith("_")} | properties | set(list_methods(protocol))


@pytest.mark.parametrize(("package", "kind"), ALL, ids=["/".join(one) for one in ALL])
def test_every_kind_keeps_its_contract(package, kind):
    """It is documented, its options are described, its functions take what the protocols say."""
    module = kinds.find(package, kind, "tests")
    for check in CHECKS[package][: 3 if package in APART else None]:
        with suppress(Inapplicable):
            check(module)


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_what_problems_offer_has_the_parameters_of_the_contract(cls):
    for protocol in OF_PROBLEMS:
        for name, parameters in list_methods(protocol).items():
            assert hasattr(cls, name) or protocol is not problem.Problem, name
            if hasattr(cls, name):
                found = inspect.signature(getattr(cls, name))
                assert list(found.parameters)[1:] == parameters, f"{cls.__name__}.{name}"


@pytest.mark.parametrize("law", [Gaussian, Grid, AnalyticLaw, Draws])
def test_every_known_posterior_is_a_reference(law):
    assert set(members(reference.Reference)) <= set(dir(law))
    for name, parameters in list_methods(reference.Reference).items():
        assert list(inspect.signature(getattr(law, name)).parameters)[1:] == parameters


def test_a_bare_problem_is_a_problem_and_nothing_else():
    found = [one.__name__ for one in OF_PROBLEMS if isinstance(GradientOnly(AGENTS), one)]
    assert found == ["Problem"]


def test_variants_of_a_sampler_differ_in_its_own_options():
    tried = list(variants(DESGLD))
    assert {(one.batch_scale, one.update_order) for one in tried} == {("data", "simultaneous")}
    assert len({one.weights for one in tried}) > 1

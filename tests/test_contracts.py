"""Every plug-in keeps its contract, and whoever needs what a problem lacks refuses it."""

import ast
import inspect
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import concord
from concord import contracts
from concord.errors import ConcordError
from concord.laws.gaussian import Gaussian
from concord.laws.known import Draws, Known
from concord.laws.quadrature import Grid
from concord.metrics import Measurement, _laws, measure
from concord.networks import topology
from concord.networks.clock import Clock
from concord.networks.edges import Edges
from concord.options import choices
from concord.plugins import built_in, plugin
from concord.problems._jax import Compiled
from concord.problems._newton import Solver
from concord.samplers import de_sgld
from concord.sampling import initial, streams
from concord.sampling.gradients import estimator
from concord.sampling.recorder import Averaged, Probed, Record, Recorder
from concord.sampling.schedules import Schedule
from concord.testing import CHECKS, Inapplicable, methods
from concord.testing import PROTOCOLS as MODULES
from diverged_runs import AGENTS, LAST, sound
from variants import problem

OPTIONAL = {
    "samplers": [
        contracts.SwitchingSampler,
        contracts.AmplifyingSampler,
        contracts.AffineSampler,
        contracts.ReadOut,
        contracts.SizedSampler,
    ],
    "problems": [
        contracts.TakesArrays,
        contracts.NeedsData,
        contracts.TakesData,
        contracts.Extra,
        contracts.Sharing,
    ],
    "topologies": [topology.AveragingKind],
}
OF_MODULES = [
    *MODULES.values(),
    contracts.OutputKind,
    *(one for of in OPTIONAL.values() for one in of),
]
OF_OTHERS = [contracts.Counting, contracts.Times]
OF_PROBLEMS = [
    one
    for one in vars(contracts).values()
    if getattr(one, "_is_protocol", False)
    and one.__module__ == contracts.__name__
    and one not in (*OF_MODULES, *OF_OTHERS, contracts.Reference)
]
ALL = [(p, k) for p in MODULES for k in built_in(p)]
GENERAL = {package: CHECKS[package][:4] for package in MODULES}  # those of any kind
CLASSES = [
    Compiled,  # of models, which kinds import where the library is there
    *(
        one
        for kind in built_in("problems")
        for one in vars(plugin("problems", kind, "tests")).values()
        if inspect.isclass(one) and hasattr(one, "gradient") and one.__module__.endswith(kind)
    ),
]


def members(protocol):
    names = {name for cls in protocol.__mro__ for name in inspect.get_annotations(cls)}
    properties = {n for n, m in vars(protocol).items() if isinstance(m, property)}
    return {n for n in names if not n.startswith("_")} | properties | set(methods(protocol))


@pytest.mark.parametrize(("package", "kind"), ALL, ids="/".join)
def test_every_module_keeps_its_contract(package, kind):
    """It is documented, its options are described, its functions take what the protocols say."""
    module = plugin(package, kind, "tests")
    assert isinstance(module, MODULES[package])
    for check in GENERAL[package]:
        with suppress(Inapplicable):
            check(module)
    for protocol in OPTIONAL.get(package, []):
        if isinstance(module, protocol):
            for name, parameters in methods(protocol).items():
                assert list(inspect.signature(getattr(module, name)).parameters) == parameters
        else:
            offered = [name for name in members(protocol) if hasattr(module, name)]
            assert not offered, f"it has {offered}, but not all of {protocol.__name__}"


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_what_problems_offer_has_the_parameters_of_the_contract(cls):
    for protocol in OF_PROBLEMS:
        for name, parameters in methods(protocol).items():
            assert hasattr(cls, name) or protocol is not contracts.Problem, name
            if hasattr(cls, name):
                found = inspect.signature(getattr(cls, name))
                assert list(found.parameters)[1:] == parameters, f"{cls.__name__}.{name}"


@pytest.mark.parametrize("law", [Gaussian, Grid, Known, Draws])
def test_every_known_posterior_is_a_reference(law):
    assert set(members(contracts.Reference)) <= set(dir(law))
    for name, parameters in methods(contracts.Reference).items():
        assert list(inspect.signature(getattr(law, name)).parameters)[1:] == parameters


@pytest.mark.parametrize("protocol", OF_PROBLEMS, ids=lambda one: one.__name__)
def test_no_contract_is_without_a_problem_that_keeps_it(protocol):
    """Members set when a problem is built show in its code as ``self.<name>``."""
    wanted = members(protocol)
    kept = []
    for cls in CLASSES:
        tree = ast.parse(inspect.getsource(cls))
        stored = {
            node.attr
            for node in ast.walk(tree)
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
        }
        kept += [cls] if all(hasattr(cls, name) or name in stored for name in wanted) else []
    assert kept and protocol.__doc__


def test_what_counts_and_what_tells_the_time_keep_their_contracts():
    solver = Solver(np.zeros((3, 4, 2)), np.zeros((3, 4)), np.ones(3), 5)
    assert isinstance(solver, contracts.Counting) and solver.gradients.shape == (5, 3)
    ring = replace(topology.build("ring", 3), times=np.random.default_rng(0))
    clock = Clock(ring, Edges(ring), 5, 8)
    assert isinstance(clock, contracts.Times) and clock.seconds.shape == (5, 3)
    assert not isinstance(clock, contracts.Counting) and not isinstance(solver, contracts.Times)


def test_nothing_is_found_out_by_hasattr():
    """What may be there has a protocol."""
    source = Path(concord.__file__).parent
    found = [
        path.name for path in source.rglob("*.py")
        if any(isinstance(node, ast.Name) and node.id == "hasattr"
               for node in ast.walk(ast.parse(path.read_text())))
    ]  # fmt: skip
    assert not list(found)


class Bare:
    """A problem that offers nothing beyond the protocol."""

    agents, dim, posterior = AGENTS, 2, None

    def from_chain(self, first):
        return self

    def gradient(self, chains):
        return lambda x, out: np.copyto(out, x)


class NoSampler:
    """Options without any of those that metrics ask for."""


def test_a_bare_problem_is_a_problem_and_nothing_else():
    found = [one.__name__ for one in OF_PROBLEMS if isinstance(Bare(), one)]
    assert found == ["Problem"]


@pytest.mark.parametrize("family", built_in("metrics"))
def test_a_metric_refuses_in_one_sentence_what_it_cannot_measure(family):
    trace = sound(2, 0)
    for name in ("accuracy", "misclassified"):
        del trace.variables[name]
    m = Measurement(
        trace, Bare(), topology.build("ring", AGENTS), NoSampler, NoSampler(),
        initial.Law("normal"), LAST, lambda label: streams.generator(1, label),
    )  # fmt: skip
    try:
        assert len(measure([family], m)) > 1
    except ConcordError as error:
        assert "remove" in str(error) or "record it" in str(error)


def test_mini_batches_need_points():
    with pytest.raises(ConcordError, match="Bare takes no mini-batches; leave"):
        estimator(Bare(), 5, 2)


def test_no_exact_law_is_stated_of_batches_whose_noise_is_unknown():
    """A law without that noise would be another sampler's."""

    class Plain(Bare):
        gram, shift = np.ones((AGENTS, 1, 1)) * np.eye(2), np.zeros((AGENTS, 2))

    for prob, size, known in ((Plain(), None, 1), (Plain(), 3, 0), (problem(AGENTS, 2), 3, 1)):
        params = de_sgld.Params(Schedule(0.01), batch_size=size)
        m = Measurement(
            sound(2, 0), prob, topology.build("ring", AGENTS), de_sgld, params,
            initial.Law("normal"), LAST, lambda label: streams.generator(1, label),
        )  # fmt: skip
        assert (_laws.exact_law(m) is not None) == bool(known)
        unknown = Measurement(**{**vars(m), "initial": initial.Law("problem")})
        assert _laws.exact_law(unknown) is None


@pytest.mark.parametrize("name", [*choices(Probed), *choices(Averaged)])
def test_a_recorder_refuses_what_a_problem_cannot_be_asked(name):
    key = "averages" if name in choices(Averaged) else "probes"
    record = Record(**{key: (name,)})
    if name == "consensus_error":  # of any iterate
        Recorder(record, Bare(), (2, AGENTS, 2), 3)
        return
    with pytest.raises(
        ConcordError, match=rf"record\.{key}: Bare has no '{name}' to probe; remove"
    ):
        Recorder(record, Bare(), (2, AGENTS, 2), 3)

"""Kernels that numba compiles: numpy's bytes, whatever the numbers; asked for where it pays."""

import sys

import numpy as np
import pytest

import concord
from concord import compiled
from concord.compiled import kernels
from concord.networks.matrix import AgentMatrix
from concord.networks.mixing import mixer
from concord.problems._quadratic import QuadraticProblem
from concord.samplers import de_sgld
from concord.sampling.kick import coming, kick

SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e308, -1e308, 5e-324, -1e-310])


@pytest.fixture
def numba(monkeypatch):
    """Choose numpy or numba for what is made next."""

    def choose(there: bool) -> None:
        monkeypatch.setattr(compiled, "_awaited", 0 if there else 1)

    return choose


def same(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two arrays have the same bits, but for those that tell one nan from another."""
    there = ~np.isnan(a)
    bits = (np.ascontiguousarray(each[there]).view(np.int64) for each in (a, b))
    return np.array_equal(there, ~np.isnan(b)) and np.array_equal(*bits)


def odd(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Return numbers of any size, and some that are none."""
    found = rng.standard_normal(shape) * 10.0 ** rng.integers(-3, 4)
    chosen = rng.random(shape) < 0.1 * rng.integers(0, 3)
    found[chosen] = rng.choice(SPECIAL, chosen.sum())
    return found


def numbers(trial: int) -> list[np.ndarray]:
    """Return what the steps of many shapes write: products, gradients, kicks and noise."""
    rng = np.random.default_rng(trial)
    chains, agents, dim = *rng.integers(1, [8, 40]), int(rng.choice([1, 2, 5, 9]))
    shape = chains, agents, dim
    share = rng.random((agents, agents)) < rng.random()
    matrix = AgentMatrix.from_entries(agents, *np.nonzero(share), rng.standard_normal(share.sum()))
    x, g, plus, eta = odd(rng, *shape), odd(rng, *shape), odd(rng, *shape), rng.random()
    problem = QuadraticProblem.__new__(QuadraticProblem)
    problem.gram, problem.shift = odd(rng, agents, dim, dim), odd(rng, agents, dim)
    problem.agents, problem.dim = agents, dim
    noise, found = np.random.default_rng(trial), []
    mix = mixer(matrix, chains, dim, "simultaneous")
    with np.errstate(all="ignore"):
        found += [mix(x, None, np.empty(shape)), mix(x, plus, np.empty(shape))]
        found.append(problem.gradient(chains)(x, np.empty(shape)))
        for _ in range(3):
            more = coming(noise, eta, g.copy(), np.empty(shape))
            found.append(mix(x, more, np.empty(shape)).copy())
            onto = x.copy()
            found.append(kick(noise, eta, g.copy(), onto, onto).copy())
    return [*found, noise.random(3)]


def test_steps_of_any_shape_have_numpys_bytes(numba) -> None:
    for trial in range(100):
        numba(False)
        numpys = numbers(trial)
        numba(True)
        assert all(same(*pair) for pair in zip(numpys, numbers(trial), strict=True)), trial


def test_kernels_say_what_they_do_not_take(numba) -> None:
    """Parts of arrays and single precision are for numpy: no number is written elsewhere."""
    numba(True)
    matrix = AgentMatrix.from_entries(3, [0, 0, 1, 2], [0, 1, 1, 0], [0.5, 0.5, 1.0, 2.0])
    x = np.random.default_rng(0).standard_normal((4, 3, 6))
    apply, expected = matrix.operator(4, 3), matrix.dense() @ x[:, :, ::2]
    assert np.allclose(apply(x[:, :, ::2], np.empty((4, 3, 3))), expected)
    single = x[:, :, ::2].astype(np.float32)
    assert np.allclose(apply(single, np.empty_like(single)), expected, atol=1e-6)
    assert matrix.kicked(3)(single, 0.1, single, 0.1, single, single.copy()) is False


def runs() -> list[bytes]:
    """Return the draws of runs of samplers that have kernels of their own."""
    found, problem = [], concord.problems.gaussian(agents=6, dim=2)
    mixture = concord.problems.tied_mixture(np.linspace(-2.0, 3.0, 12), agents=6)
    options = {"iterations": 200, "chains": 60, "step_size": 1e-3}
    for kind, more in (
        ("de_sgld", {}),
        ("diging_sgld", {}),
        ("de_sghmc", {"friction": 1.0}),
        ("d_ula", {"fusion": 0.1}),
        ("d_ula", {"fusion": 0.1, "neighbors": "in_turn"}),
        ("c_ula", {}),
        ("admm", {"penalty": 3.0}),
        ("gossip_ula", {"fusion": 0.4}),
        ("gossip_ula", {"local_steps": 2}),
        ("gossip_ula", {"communication": "triggered", "threshold": 0.1, "decay": 0.3}),
    ):
        own = {**options, **more}
        if kind == "admm":
            del own["step_size"]
        for posterior in (problem,) if kind == "admm" else (problem, mixture):
            if kind == "c_ula":
                posterior = concord.problems.gaussian(agents=1, dim=2)
            network = None if kind == "c_ula" else "ring"
            found.append(concord.sample(kind, posterior, network, **own)["x"].tobytes())
    return found


def test_runs_that_are_compiled_are_the_same_bytes(numba) -> None:
    numba(False)
    numpys = runs()
    numba(True)
    assert runs() == numpys


def test_enough_work_is_compiled_and_little_is_not(monkeypatch) -> None:
    asked = []
    monkeypatch.setattr(compiled, "_shared", lambda *names: asked.append(names))
    monkeypatch.setattr(compiled, "_awaited", 600 * (2 * 4 * 2 + compiled.CALLS))
    problem = concord.problems.gaussian(agents=4, dim=2)
    for iterations, wanted in ((400, False), (199, False), (1, True)):
        concord.sample("de_sgld", problem, "ring", iterations=iterations, chains=2, step_size=0.01)
        assert bool(asked) == wanted


BROKEN = {
    "of another numpy": "raise ImportError('Numba needs NumPy 2.3 or less')",
    "half removed": "raise AttributeError('module numba has no attribute\\nnjit')",
    "of another Python": "raise SystemError('initialization of _internal failed')",
    "that cannot compile": """
from unittest.mock import MagicMock
boolean = float64 = int64 = uint32 = types = void = MagicMock()
def njit(*signature, **options):
    def compile(function):
        raise RuntimeError('no processor of this name')
    return compile""",
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_numba_is_told_once_before_the_work_and_numpy_goes_on(
    monkeypatch, numba, capsys, tmp_path, kind
) -> None:
    problem = concord.problems.tied_mixture(np.linspace(-2.0, 3.0, 12), agents=4)

    def sample() -> np.ndarray:
        options = {"iterations": 20, "chains": 2, "step_size": 0.01, "record": {"every": 10}}
        return concord.sample("de_sgld", problem, "ring", **options)["x"]

    numba(False)
    expected = sample()
    numba(True)
    (tmp_path / "numba.py").write_text(BROKEN[kind])
    for name in [name for name in sys.modules if name.split(".")[0] == "numba"]:
        monkeypatch.delitem(sys.modules, name)
    for module, place in (("compiled", "kernels"), ("problems", "_compiled")):
        monkeypatch.delitem(sys.modules, f"concord.{module}.{place}", raising=False)
        monkeypatch.delattr(getattr(concord, module), place, raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    told: list[str] = []
    first = de_sgld.init

    def init(*arguments):
        made = first(*arguments)
        told.append(capsys.readouterr().err)  # before the work
        return made

    monkeypatch.setattr(de_sgld, "init", init)
    for cached in (compiled._shared, compiled._tell):
        cached.cache_clear()
    try:
        assert np.array_equal(sample(), expected)
        assert np.array_equal(sample(), expected)
    finally:
        for cached in (compiled._shared, compiled._tell):
            cached.cache_clear()
    told.append(capsys.readouterr().err)
    assert told[0].startswith("concord: numba is installed, but cannot be used (")
    assert told[0].count("\n") == 1 and told[1:] == ["", ""]


def test_what_is_compiled_is_kept_where_there_is_a_place(monkeypatch) -> None:
    """Without a folder for it, it is compiled for this process."""
    tried = []

    def njit(*signature, cache=False, **options):
        def make(function):
            tried.append(cache)
            if cache:
                raise RuntimeError("cannot cache function: no locator available")
            return function

        return make

    monkeypatch.setattr(kernels, "njit", njit)
    assert kernels.weigh(2).__name__ == "weigh" and tried == [True, False]

"""One package has all that users call, and a class of a notebook goes wherever a kind does."""

import subprocess
import sys
from typing import Annotated

import numpy as np
import pytest

import concord
from concord.errors import ConcordError


class Mixed(concord.Sampler):
    """DE-SGLD, written in a notebook."""

    step_size: Annotated[float, "step eta"]

    def step(self, state, k, problem, network, rng):
        gradient = problem.gradient(state.x)
        noise = (2 * self.step_size) ** 0.5 * rng.standard_normal(state.x.shape)
        return state._replace(
            x=network.mix("metropolis", state.x, plus=noise - self.step_size * gradient)
        )


def quadratic():
    H = np.array([1.0, 2.0, 3.0]).reshape(3, 1, 1)
    return concord.problems.quadratic(H, [[1.0], [0.0], [1.0]])


def test_a_class_is_recommended_as_its_kind_would_be():
    answer = concord.recommend(
        quadratic(), "ring", budget={"gradients": 200}, samplers=[Mixed, "extra_sgld"]
    )
    assert set(answer.table.sampler) == {"Mixed", "EXTRA-SGLD"}
    alone = {"budget": {"gradients": 200}, "by": "b2"}
    mine = concord.recommend(quadratic(), "ring", samplers=[Mixed], **alone)
    known = concord.recommend(quadratic(), "ring", samplers=["de_sgld"], **alone)
    assert mine.table.b2[0] == pytest.approx(known.table.b2[0])
    assert concord.sample(**{**mine.best, "chains": 2}).attributes["sampler"] == "Mixed"


def test_a_class_is_compared_on_tasks_of_the_arena():
    found = concord.compare([Mixed, "de_sgld"], tasks=["even, ring"])
    mine, known = (found.table[found.table.sampler == n].b2 for n in ("Mixed", "de_sgld"))
    assert mine.to_numpy() == pytest.approx(known.to_numpy())
    assert "20 tied" in str(found)


def test_a_bias_map_takes_a_class():
    maps = [
        concord.bias_map(quadratic(), "ring", [0.01], sampler=sampler).table
        for sampler in (Mixed, "de_sgld")
    ]
    assert maps[0].w2[0] == pytest.approx(maps[1].w2[0])


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: concord.compare([Mixed(0.1)]), "or a class that begins like class Mine"),
        (lambda: concord.compare({"mixed": Mixed}, tasks=["even, ring"]), "give them as a list"),
        (lambda: concord.compare({"mixed": Mixed(0.1)}), "give them as a list"),
        (
            lambda: concord.sample("adam", quadratic(), "ring", iterations=3),
            "sampler 'adam'; choose one of",
        ),
        (lambda: concord.compare(["de_sgld"], quadratic()), "recommend(..., samplers=[...])"),
        (lambda: concord.compare("de_sgldd"), "did you mean 'de_sgld'?"),
        (lambda: concord.compare([int]), "a class that begins like class Mine"),
    ],
)
def test_what_is_no_sampler_to_compare_is_refused(call, sentence):
    with pytest.raises(ConcordError) as refused:
        call()
    assert sentence in str(refused.value)


def test_a_class_with_an_init_is_refused_in_a_sentence():
    with pytest.raises(ConcordError, match=r"Mine.__init__: leave it out; write its options"):

        class Mine(concord.Sampler):
            def __init__(self, step_size):
                self.step_size = step_size


def test_a_class_named_like_another_sampler_is_refused():
    """By its name the other one would be compared, and not the class."""
    sgd = type("sgd", (Mixed,), {})
    with pytest.raises(ConcordError, match="there is another 'sgd' than the class of this name"):
        concord.compare([sgd, "de_sgld"], tasks=["even, ring"])


CELLS = """
import concord, inspect
from typing import Annotated

class Mine(concord.Sampler):
    \"\"\"Langevin steps, and averages with neighbors.\"\"\"

    step_size: Annotated[float, "step eta"]

    def step(self, state, k, problem, network, rng):
        noise = (2 * self.step_size) ** 0.5 * rng.standard_normal(state.x.shape)
        move = noise - self.step_size * problem.gradient(state.x)
        return state._replace(x=network.mix("metropolis", state.x, plus=move))

problem = concord.problems.quadratic([[[1.0]], [[2.0]], [[3.0]]], [[1.0], [0.0], [1.0]])
run = {"problem": problem, "network": "ring", "step_size": 0.01, "iterations": 50}
print(concord.sample(Mine, **run, chains=2))
print(concord.law(Mine, **run))
entries = [Mine, "de_sgld"]
budget = {"gradients": 60}
print(concord.recommend(problem, "ring", budget=budget, samplers=entries, verify=True))
print(*sorted({*concord.test(Mine).ended}), "of the contract")
print(concord.compare(entries, tasks=["even, ring"]))
"""


def test_a_class_that_has_no_file_goes_everywhere():
    """As of a notebook's cell, or typed into Python."""
    command = [sys.executable, "-W", "error::RuntimeWarning", "-"]
    done = subprocess.run(command, input=CELLS, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for text in (
        "<Trace sampler: Mine;",
        "<Law law: exact",
        "ok of the contract",
        "Mine against DE-SGLD",
    ):
        assert text in done.stdout
    assert "failed" not in done.stdout  # no check of the contract

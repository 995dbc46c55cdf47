"""Samplers whose answer is not their x: what is read of the state is recorded and measured."""

from types import SimpleNamespace

import numpy as np
import pytest

import concord
from concord import contracts
from concord.samplers import de_sgld
from concord.testing import Broken
from concord.testing.samplers import what_is_read_leaves_the_state_as_it_is
from variants import problem

AGENTS, DIM = 5, 2


def read(state, params):
    """Everybody answers twice what agent 0 has."""
    return np.broadcast_to(2 * state.x[:, :1], state.x.shape)


TWICE = SimpleNamespace(**{**vars(de_sgld), "read": read})
RUN = {"iterations": 40, "chains": 2000, "step_size": 0.02, "record": {"at": [0, 7, 40]}}


def pair(sampler, record=None, **more):
    prob = problem(AGENTS, DIM)
    return concord.sample(
        sampler, prob, "ring", **{**RUN, "record": record or RUN["record"], **more}
    )


def test_what_is_read_is_recorded_in_place_of_x():
    assert isinstance(TWICE, contracts.ReadOut) and not isinstance(de_sgld, contracts.ReadOut)
    labels = ("", "", "", "same")
    plain = pair(de_sgld, labels=labels)
    trace = pair(TWICE, {"at": [0, 7, 40], "probes": ["consensus_error"]}, labels=labels)
    wanted = np.broadcast_to(2 * plain["x"][:, :, :1], plain["x"].shape)
    np.testing.assert_array_equal(trace["x"], wanted)
    np.testing.assert_allclose(trace["x_average"], wanted[:, :, 0], rtol=1e-14)
    assert np.abs(trace["consensus_error"]).max() < 1e-20


def test_a_run_diverges_where_what_is_read_does():
    def far(state, params):
        return state.x + 1e9 * (np.arange(len(state.x)) == 3)[:, None, None]

    trace = pair(SimpleNamespace(**{**vars(TWICE), "read": far}), {"at": [7]}, chains=5)
    assert trace["diverged_at"].tolist() == [-1, -1, -1, 7, -1]


def test_the_contract_sees_what_read_does():
    def writing(state, params):
        state.x[:] *= 2
        return state.x

    check = what_is_read_leaves_the_state_as_it_is
    check(SimpleNamespace(**{**vars(de_sgld), "read": read}))
    for wrong, told in (
        (writing, "writes into the state"),
        (lambda state, params: state.x[:, 0], "has the shape"),
    ):
        with pytest.raises(Broken, match=told):
            check(SimpleNamespace(**{**vars(de_sgld), "read": wrong}))

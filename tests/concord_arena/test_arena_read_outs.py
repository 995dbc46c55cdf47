"""What an entry's answer is made of, what that costs, and who pays for tuning."""

from pathlib import Path

import numpy as np
import pytest
from msgspec import structs

from concord_arena import cells
from concord_studies.configuration.config import load_config
from concord_studies.configuration.study import Study

STUDY = """
paper: { title: Tiny, authors: us, year: 2026 }
problems:
  apart: { kind: gaussian, condition: 4.0, dim: 2, heterogeneity: 1.0 }
defaults: { problem: apart, agents: 8, chains: 10, iterations: 2000 }
experiments:
  tasks:
    arena: { budget: { gradients: 300, bytes: 9600 } }
    sweep:
      read: { key: arena.read, values: [agents, 1, 4, average] }
      network:
        ring: { topology: ring }
        directed: { topology: directed_ring }
        server: { topology: server }
        lossy:
          { topology: ring, network: { loss: { kind: bernoulli, rate: 0.1, direction: link } } }
      entry:
        de_sgld: { sampler: { kind: de_sgld, step_size: 0.01 }, arena: { tune: step_size } }
        paper: { sampler: { kind: de_sgld, step_size: 0.1 } }
        paid:
          { sampler: { kind: de_sgld, step_size: 0.01 }, arena: { tune: step_size, paid: true } }
        push_sum: { sampler: { kind: push_sum_sgld, step_size: 0.01 } }
        paper_paid: { sampler: { kind: de_sgld, step_size: 0.1 }, arena: { paid: true } }
"""


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study") / "arena"
    folder.mkdir()
    (folder / "study.yaml").write_text(STUDY, encoding="utf-8")
    return Study(folder, load_config())


def scored(study, read, network="ring", entry="de_sgld"):
    run = study.run("tasks", f"read={read}+network={network}+entry={entry}")
    return cells.score(run, cells.build_task(run, Path()))


def value(found, metric, agent="worst"):
    (number,) = [row.value for row in found.rows if (row.metric, row.agent) == (metric, agent)]
    return number


def test_every_iteration_pays_for_its_read_out(study):
    plain, rounds, average = (scored(study, read) for read in ("agents", "4", "average"))
    of = [f.choice["bytes"]["price of an iteration"] for f in (plain, rounds, average)]
    vector = 2 * 8
    assert [one["bytes"] for one in of] == [2 * vector, (2 + 8) * vector, (2 + 14 / 8) * vector]
    assert {one["gradients"] for one in of} == {1.0}
    assert rounds.choice["bytes"]["iterations"] == 9600 // 160
    assert value(average, "b2_by_gradients") == pytest.approx(
        value(average, "b2_by_gradients", "average"), rel=1e-9
    )
    assert value(plain, "b2_by_gradients") > value(rounds, "b2_by_gradients")
    one = scored(study, "1", "server")
    assert one.choice["bytes"]["price of an iteration"]["bytes"] == (2 + 2) * vector


@pytest.mark.parametrize(("network", "entry"), [("directed", "push_sum"), ("lossy", "de_sgld")])
def test_where_averages_are_not_kept_nothing_is_read(study, network, entry):
    found = scored(study, "1", network, entry)
    assert "arena.read: 1 takes a connected network" in found.choice["not applicable"]
    assert [(row.metric, row.value) for row in found.rows] == [("applicable", 0.0)]


def test_everybody_pays_for_tuning_or_nobody(study):
    nobody, paid = scored(study, "agents"), scored(study, "agents", entry="paid")
    assert nobody.choice["gradients"]["iterations"] == 300
    assert paid.choice["gradients"]["iterations"] == 300 // 37
    assert value(paid, "b2_by_gradients") > value(nobody, "b2_by_gradients")
    own, other = (scored(study, "agents", entry=entry) for entry in ("paper", "paper_paid"))
    assert own.rows == other.rows  # what is not tuned pays for nothing


def test_a_budget_below_one_iteration_leaves_the_start(study):
    run = study.run("tasks", "read=agents+network=ring+entry=de_sgld")
    run = run.vary(arena=structs.replace(run.arena, budget={"bytes": 5.0}))
    found = cells.score(run, cells.build_task(run, Path()))
    assert np.isfinite(value(found, "b2_by_bytes"))

"""``concord list`` and ``concord describe``: what kinds there are, from their texts and types."""

import json

import pytest

from concord import kinds
from concord.kinds import ROOMS
from concord_cli.__main__ import main
from concord_studies.catalog import describe_kind, summarize_kinds

ALL = [(room, kind) for room in ROOMS for kind in kinds.names(room)]


def test_every_kind_is_listed_in_one_line():
    summaries = list(summarize_kinds())
    assert [(each["room"], each["kind"]) for each in summaries] == ALL
    assert all(each["is"] and "\n" not in each["is"] for each in summaries)


@pytest.mark.parametrize(("room", "kind"), ALL, ids="/".join)
def test_every_kind_is_described_and_can_be_written_as_json(room, kind):
    about = json.loads(json.dumps(describe_kind(room, kind)))
    assert about["is"] and about["text"]
    for option in about.get("options", []):
        assert option["type"] and option["means"], option
    if room == "samplers":
        assert all(about[key] for key in ("equation", "source", "price", "needs"))


def test_options_have_types_bounds_and_defaults():
    options = {option["name"]: option for option in describe_kind("samplers", "d_ula")["options"]}
    assert "default" not in options["step_size"]
    assert options["batch_size"]["type"] == "integer >= 1 or none"
    assert options["batch_size"]["default"] is None
    graph_options = {o["name"]: o for o in describe_kind("topologies", "erdos_renyi")["options"]}
    assert graph_options["probability"]["type"] == "number >= 0 and <= 1"
    assert graph_options["seed"]["default"] == 0


def test_a_name_that_several_kinds_have_describes_them_all(capsys):
    assert main(["describe", "equal"]) == 0
    assert capsys.readouterr().out.startswith("partition equal\n")
    assert main(["describe", "w2"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("metric w2\n") and "Metrics: w2" in out
    assert main(["describe", "samplers/ring"]) == 2

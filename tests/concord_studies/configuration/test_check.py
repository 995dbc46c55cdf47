"""What `concord check` sees before anything is sampled: metrics that are read but not computed."""

import re
import shutil
from pathlib import Path

import pytest
import yaml

from concord import kinds
from concord_cli.__main__ import main

ROOT = Path(__file__).parents[3]
PAPER = {
    "paper": {"title": "T", "authors": "A", "year": 2021},
    "problems": {"linear": {"kind": "linear_regression", "points": 30}},
    "defaults": {"agents": 6, "chains": 100, "iterations": 50, "problem": "linear"},
    "experiments": {
        "one": {
            "topology": "ring",
            "sampler": {"kind": "de_sgld", "step_size": 0.005},
            "metrics": ["w2"],
        }
    },
}


def figure(kind, **options):
    return {"figures": {"f": {"kind": kind, "title": "F", "runs": ["one"], "options": options}}}


def table(kind, **options):
    return {"tables": {"t": {"kind": kind, "title": "T", "runs": ["one"], "options": options}}}


def claim(metric):
    check = {"kind": "value", "printed": 1.0, "tolerance": 0.1}
    check["quantity"] = {"experiment": "one", "metric": metric}
    entry = {"where": "Fig 1", "says": "It is one.", "reason": "none", "check": check}
    return {"claims": {"c": entry}}


@pytest.mark.parametrize(
    ("section", "said"),
    [
        (claim("w2_exact"), None),
        (claim("diverged"), None),
        (
            claim("consensus_error"),
            "claims.c: one/run does not compute 'consensus_error'; add consensus_error to the "
            "metrics of the experiment",
        ),
        (claim("w2_exat"), "does not compute 'w2_exat'; did you mean 'w2_exact'?"),
        (figure("curves", metric="w2", lines="agent", agents=["average"]), None),
        (figure("curves", metric="accuracy_mean"), "'accuracy_mean'; add accuracy to the metrics"),
        (figure("curves", metric="w2", layers=[{"floor": "w2_floor"}]), None),
        (
            figure("curves", metric="w2", x={"counts": "unicast_bytes"}),
            "'unicast_bytes'; add messages to",
        ),
        (figure("curves", metric="w2", agents=[6]), "one/run has no 'w2' of agent 6, which"),
        (
            figure("curves", metric="w2", agents=[0, 7]),
            "figures.f: one/run has no 'w2' of agent 7, which it does not record; choose one of "
            "[0, 1, 2, 3, 4, 5], or add it to record.agents",
        ),
        (figure("curves", metric="w2", agents=[7], select={"experiment": "one"}), "of agent 7"),
        (table("final_values", metrics=["w2*"]), None),
        (
            table("final_values", metrics=["condition1.*"]),
            "tables.t: no run that it shows computes 'condition1.*'; add condition1 to the metrics",
        ),
    ],
)
def test_metrics_that_no_run_computes_are_refused(section, said, tmp_path, capsys):
    path = tmp_path / "papers" / "x"
    path.mkdir(parents=True)
    (path / "study.yaml").write_text(yaml.safe_dump({**PAPER, **section}, sort_keys=False))
    shutil.copy(ROOT / "config" / "config.yaml", tmp_path)
    code = main(["check", str(path), "--config", str(tmp_path / "config.yaml")])
    error = capsys.readouterr().err
    assert (code, bool(error)) == ((0, False) if said is None else (2, True)), error
    assert said is None or (said in error and error.count("\n") == 1)


OTHER = {**PAPER["experiments"]["one"], "metrics": ["consensus_error"]}


def checked(paper, folder, capsys):
    path = folder / "papers" / "x"
    path.mkdir(parents=True)
    (path / "study.yaml").write_text(yaml.safe_dump(paper, sort_keys=False))
    shutil.copy(ROOT / "config" / "config.yaml", folder)
    code = main(["check", str(path), "--config", str(folder / "config.yaml")])
    return code, capsys.readouterr().err


def of_two(**options):
    """A figure of two runs, of which the second computes no w2."""
    other = {**OTHER, "record": {"probes": ["consensus_error"]}}
    shown = figure("curves", metric="w2", **options)
    shown["figures"]["f"]["runs"] = ["one", "other"]
    return {**PAPER, "experiments": {**PAPER["experiments"], "other": other}, **shown}


def test_the_one_run_of_a_figure_that_lacks_its_metric_is_named(tmp_path, capsys):
    said = "figures.f: other/run does not compute 'w2'; add w2 to the metrics of the experiment"
    code, error = checked(of_two(lines="experiment"), tmp_path, capsys)
    assert code == 2 and said in error


def test_runs_that_a_figure_does_not_select_may_lack_it(tmp_path, capsys):
    assert checked(of_two(select={"experiment": "one"}), tmp_path, capsys) == (0, "")


def test_a_claim_about_an_agent_that_is_not_recorded_is_refused(tmp_path, capsys):
    one = {**PAPER["experiments"]["one"], "record": {"agents": [0]}}
    asked = claim("w2_exact")
    asked["claims"]["c"]["check"]["quantity"]["agents"] = [3]
    code, error = checked({**PAPER, "experiments": {"one": one}, **asked}, tmp_path, capsys)
    assert code == 2 and "claims.c: one/run has no 'w2_exact' of agent 3" in error


@pytest.mark.parametrize(
    ("families", "record", "said"),
    [
        (["consensus_error"], {}, "consensus_error reads consensus_error, which the run does not"),
        (["consensus_error"], {}, "; add probes: [consensus_error] to its record"),
        (
            ["posterior_draws"],
            {"draws": False},
            "posterior_draws reads draws, which the run does not record; add",
        ),
        (["consensus_error", "w2"], {"probes": ["consensus_error"]}, None),
    ],
)
def test_a_metric_whose_probe_is_not_recorded_is_refused(families, record, said, tmp_path, capsys):
    one = {**PAPER["experiments"]["one"], "metrics": families, "record": record}
    code, error = checked({**PAPER, "experiments": {"one": one}}, tmp_path, capsys)
    assert (code, said is None or said in error) == (0 if said is None else 2, True), error


@pytest.mark.parametrize(
    ("family", "network", "said"),
    [
        ("seconds", None, "seconds needs a network with compute or link"),
        ("seconds", {"awake": 0.5}, "seconds needs a network with compute or link"),
        ("seconds", {"compute": {"seconds": 0.1}}, None),
        ("privacy", {"noise": 0.1}, "metrics[0]: metric privacy needs a network with privacy;"),
        ("privacy", {"privacy": {"clip": 1.0, "sigma": 1.0, "delta": 1e-6}}, None),
        ("stationary", {"awake": 0.5}, "stationary needs a network on which every vector arrives"),
        ("stationary", {"byzantine": {"kind": "sign", "agents": [1]}}, None),
        ("stationary", {"compute": {"seconds": 0.1}}, None),
    ],
)
def test_a_metric_about_what_the_network_has_not_is_refused(
    family, network, said, tmp_path, capsys
):
    one = {**PAPER["experiments"]["one"], "metrics": [family], "network": network}
    code, error = checked({**PAPER, "experiments": {"one": one}}, tmp_path, capsys)
    assert (code, said is None or said in error) == (0 if said is None else 2, True), error


READS = {"x": "draws", "predictive_mean": "predictive", "predictive_sd": "predictive"}


@pytest.mark.parametrize("family", kinds.names("metrics"))
def test_families_say_what_they_read(family):
    """Some take what there is of draws and average; counts are always recorded."""
    module = kinds.find("metrics", family, "")
    text = Path(module.__file__).read_text()
    read = {READS.get(name, name) for name in re.findall(r'm\.trace\["(\w+)"\]', text)}
    read |= {"draws"} if re.search(r"(pooled|positions)\(m\b", text) else set()
    read -= {"diverged_at", "broadcasts", "activations", "gradients"}
    either = family in ("w2", "chains_distance", "constraint")
    read -= {"x_average"} | ({"draws"} if either else set())
    read -= {"accuracy", "draws"} if family == "recorded" else set()  # what the record is of
    assert set(getattr(module, "RECORDS", ())) == read

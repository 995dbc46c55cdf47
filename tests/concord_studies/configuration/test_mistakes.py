"""`concord check` refuses what a study's files name and nothing has, with the nearest name."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from concord.errors import ConcordError
from concord_studies.configuration.checks import check_outputs
from concord_studies.configuration.config import load_config
from concord_studies.configuration.study import Study

ROOT = Path(__file__).parents[3]
STUDY = """
paper: { title: T, authors: A, year: 2021 }
problems: { linear: { kind: linear_regression, points: 30 } }
assumptions:
  start:
    value: at zero
    rests: { sampler: de_sgld }
    shown: { topology: ring }
    of: [w2]
    alternatives:
      - { label: wide, says: w, reason: r, set: { initial.sd: 2.0 }, when: { topology: ring } }
      - { label: other, says: o, reason: r, reads: { metric: { w2_exact: w2 }, agent: 1 } }
discrepancies: { d: { text: t, code: c, checked_by: nearer } }
experiments:
  one:
    problem: linear
    agents: 4
    chains: 4
    iterations: 100
    record: { every: 10, agents: [0, 1, 2] }
    metrics: [w2, messages]
    sweep:
      topology: [ring, complete]
      sampler:
        de_sgld: { sampler: { kind: de_sgld, step_size: 0.005 } }
        de_psgld: { sampler: { kind: de_psgld, step_size: 0.005, smoothing: 1.0,
                               constraint: { kind: ball, radius: 9.0 } } }
      step_size: { key: initial.sd, values: [1.0, 2.0] }
    overrides: [{ when: { topology: ring }, set: { chains: 5 } }]
    smoke: { chains: 2 }
  two: { problem: linear, agents: 4, chains: 4, iterations: 50, topology: ring, metrics: [w2],
         sampler: { kind: de_sgld, step_size: 0.005 } }
figures:
  curves:
    kind: curves
    title: F
    runs: [{ experiment: one, sampler: de_sgld }]
    options: { metric: w2, rows: step_size, columns: topology, lines: sampler, agents: [0] }
  paid:
    kind: curves
    title: F
    runs: [one]
    options: { metric: w2, agents: [0], lines: sampler, rows: topology, columns: step_size,
               x: { counts: unicasts }, layers: [floor: w2_floor], select: { topology: ring } }
tables:
  last: { kind: final_values, title: T, runs: [one], options: { metrics: [w2], across: [sampler] } }
  printed:
    kind: printed_values
    title: T
    runs: [one]
    options:
      by: step_size
      columns: [{ name: ring, select: { topology: ring, sampler: de_sgld } },
                { name: complete, select: { topology: complete, sampler: de_sgld } }]
      rows: [{ name: W2, metric: w2, printed: [1.0, 2.0] }]
claims:
  nearer:
    where: Fig 1
    says: DE-SGLD is nearer on the complete graph.
    rule: nearer
    figure: curves
    cases: { who: [0, 1] }
    check: { both: { experiment: one, metric: w2_exact, agents: ["{who}"], at: 50,
                     runs: { sampler: de_sgld } },
             lower: { runs: { topology: complete } }, higher: { runs: { topology: ring } } }
  rising:
    where: Fig 2
    says: W2 rises with the start.
    rule: rises
    check: { quantity: { experiment: one, metric: w2, agents: [average],
                         runs: { topology: ring, sampler: de_sgld } },
             axis: step_size, direction: rising }
  falling:
    where: Fig 2
    says: W2 falls.
    check: { kind: rate, quantity: { experiment: two, metric: w2_exact, agents: [0], at: [10, 50] },
             against: iteration, at_most: 0.0 }
    reason: none
"""
MISTAKES = [  # a place, what it is set to, and what is said
    (
        "experiments.one.sweep.sampler.de_sgld.sampler.batch_scale",
        "mean",
        "de_sgld.sampler.batch_scale: mean is of mini-batches",
    ),
    (
        "claims.nearer.check.both.metric",
        "w2_exat",
        "claims.nearer: one/*'w2_exat'; did you mean 'w2_exact'?",
    ),
    ("claims.nearer.check.both.metric", "accuracy_sd", "accuracy_sd'; add accuracy to the metrics"),
    (
        "claims.nearer.check.both.runs.sampler",
        "de_psgld",
        "has no 'w2_exact', since sampler 'de_psgld'",
    ),
    (
        "claims.nearer.check.both.experiment",
        "oen",
        "there is no experiment 'oen'; did you mean 'one'?",
    ),
    (
        "claims.nearer.check.both.runs.sampler",
        "de_sgdl",
        "has sampler 'de_sgdl'; did you mean 'de_sgld'?",
    ),
    (
        "claims.nearer.check.both.runs",
        {"samplr": "de_sgld"},
        "no such axis; did you mean 'sampler'?",
    ),
    (
        "claims.nearer.check.both.at",
        55,
        "check.at: one/*does not record iteration 55; the nearest recorded are 50, 60",
    ),
    (
        "claims.nearer.check.both.at",
        [50, 200],
        "does not record iteration 200; the nearest recorded are 100",
    ),
    ("claims.nearer.cases.who", [0, 3], "has no 'w2_exact' of agent 3, which it does not record"),
    ("claims.nearer.cases.who", [0, 9], "has no 'w2_exact' of agent 9"),
    ("claims.nearer.check.both.agents", ["averag"], "of 'averag'; did you mean 'average'?"),
    ("claims.nearer.check.both.agents", ["{whom}"], "no placeholder 'whom'; did you mean 'who'?"),
    ("claims.nearer.check.both.reading", "publishd", "did you mean 'published'?"),
    ("claims.nearer.readings", ["released"], "'released'; change readings"),
    (
        "claims.nearer.check.higher.runs",
        {"topology": "ring", "step_size": [1.0, 3.0]},
        "has step_size 3.0",
    ),
    ("claims.nearer.check.higher.runs", {"topology": ["ring", "complete"]}, None),
    ("claims.nearer.rule", "neare", "'neare'"),
    ("claims.nearer.figure", "curve", "no figure or table 'curve'; did you mean 'curves'?"),
    (
        "claims.rising.check.axis",
        "step_siz",
        "there is no axis 'step_siz'; did you mean 'step_size'?",
    ),
    ("claims.rising.check.axis", "topology", "the axis topology is not a number"),
    (
        "claims.rising.check.quantity.runs",
        {"topology": "ring"},
        "values of step_size; choose one sampler",
    ),
    ("claims.rising.check.quantity.agents", [0, 1], "values of step_size; choose one agent"),
    (
        "claims.falling.check.against",
        "iterations",
        "one number for each of several values of iterations",
    ),
    ("claims.falling.check.quantity.at", "last", "values of iteration"),
    ("claims.falling.check.quantity.at", [10, 51], "does not record iteration 51"),
    ("discrepancies.d.checked_by", "neare", "no claim 'neare'; did you mean 'nearer'?"),
    ("figures.curves.kind", "curve", "did you mean 'curves'?"),
    ("figures.curves.runs", ["tow"], "no experiment 'tow'; did you mean 'two'?"),
    (
        "figures.curves.runs",
        [{"experiment": "one", "sampler": "d_sgld"}],
        "'d_sgld'; did you mean 'de_sgld'?",
    ),
    (
        "figures.curves.options.lines",
        "samplr",
        "curves.options.lines: no run*'samplr'*mean 'sampler'?",
    ),
    ("figures.curves.options.rows", "step_sizes", "options.rows: *did you mean 'step_size'?"),
    ("figures.curves.options.columns", "topolgy", "options.columns: *did you mean 'topology'?"),
    ("figures.curves.options.agents", [7], "of agent 7"),
    ("figures.curves.options.agents", ["averge"], "of 'averge'; did you mean 'average'?"),
    (
        "figures.curves.options.select",
        {"topology": "rin"},
        "select.topology: *'rin'; did you mean 'ring'?",
    ),
    ("figures.paid.options.select", {"topology": "ring", "chains": 4}, "has all of"),
    ("figures.paid.options.metric", "w3", "'w3'"),
    ("figures.paid.options.layers", [{"floor": "w2_flor"}], "did you mean 'w2_floor'?"),
    ("figures.paid.options.x.counts", "unicast", "'unicast'"),
    ("tables.last.options.metrics", ["w2", "accuracy_mea"], "did you mean 'accuracy_mean'?"),
    ("tables.last.options.across", ["smapler"], "across: *did you mean 'sampler'?"),
    ("tables.printed.options.by", "step", "options.by: *'step'"),
    (
        "tables.printed.options.columns[0].select.topology",
        "rnig",
        "columns[0].select.topology: *did you mean 'ring'?",
    ),
    ("tables.printed.options.columns[1].agent", 5, "of agent 5"),
    ("tables.printed.options.rows[0].printed", [1.0], "has 1 printed numbers for 2 columns"),
    ("tables.printed.options.rows[0].metric", "w2_exac", "did you mean 'w2_exact'?"),
    ("assumptions.start.rests", {"samplr": "de_sgld"}, "start.rests: "),
    ("assumptions.start.shown", {"topolgy": "ring"}, "start.shown: *did you mean 'topology'?"),
    (
        "assumptions.start.of",
        ["w22"],
        "start.of[0]: no metric begins with 'w22'; did you mean 'w2'?",
    ),
    ("assumptions.start.alternatives[0].when", {"topology": "rign"}, "did you mean 'ring'?"),
    ("assumptions.start.alternatives[0].set", {"initial.sdd": 2.0}, "did you mean 'sd'?"),
    (
        "assumptions.start.alternatives[1].reads.metric",
        {"w2_exat": "w2"},
        "did you mean 'w2_exact'?",
    ),
    ("assumptions.start.alternatives[1].reads.metric", {"w2_exact": "w22"}, "'w22'"),
    ("assumptions.start.alternatives[1].reads.agent", 8, "agent 8"),
    ("experiments.one.problem", "liner", "did you mean 'linear'?"),
    ("experiments.one.metrics", ["w22"], "there is no metric 'w22'; did you mean 'w2'?"),
    ("experiments.one.record.agents", [0, 4], "no agent 4"),
    ("experiments.one.record.probes", ["acuracy"], "'acuracy'"),
    ("experiments.one.overrides[0].when", {"topolgy": "ring"}, "no*axis; did you mean 'topology'?"),
    ("experiments.one.overrides[0].when", {"topology": "rin"}, "did you mean 'ring'?"),
    ("experiments.one.smoke", {"chain": 2}, "there is no key 'chain'; did you mean 'chains'?"),
    ("experiments.one.full", {"chian": 2}, "there is no key 'chian'; did you mean 'chains'?"),
    ("experiments.two.topology", "rng", "did you mean 'ring'?"),
    (
        "experiments.two.problem",
        {"kind": "gaussian_location", "table": "dglmc2021_gausian"},
        "there is no data set 'dglmc2021_gausian' in *; did you mean 'dglmc2021_gaussian'?",
    ),
    (
        "experiments.two.problem",
        {"kind": "gaussian_location", "table": ""},
        "there is no data set '' in *; ",
    ),
]


def checked(study: dict[str, Any], folder: Path) -> None:
    path = folder / "papers" / "x"
    path.mkdir(parents=True)
    (path / "study.yaml").write_text(yaml.safe_dump(study, sort_keys=False))
    paper = Study(path, load_config(ROOT / "config" / "config.yaml"))
    paper.runs  # noqa: B018 (expands and so checks every run)
    check_outputs(paper)


def test_the_study_without_a_mistake_passes(tmp_path):
    checked(yaml.safe_load(STUDY), tmp_path)


@pytest.mark.parametrize(("place", "value", "said"), MISTAKES)
def test_a_mistake_is_refused_with_its_place_and_the_nearest_name(place, value, said, tmp_path):
    study = yaml.safe_load(STUDY)
    *parts, last = [
        int(part) if part.isdigit() else part
        for part in place.replace("[", ".").replace("]", "").split(".")
    ]
    entry: Any = study
    for part in parts:
        entry = entry[part]
    entry[last] = value
    if said is None:
        return checked(study, tmp_path)
    with pytest.raises(ConcordError) as error:
        checked(study, tmp_path)
    text = str(error.value)
    assert text.startswith(f"{tmp_path}/papers/x/study.yaml: {parts[0]}"), text
    rest = text
    for part in said.split("*"):
        assert part in rest, text
        rest = rest.split(part, 1)[1]

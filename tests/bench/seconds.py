"""Seconds that the simulated clock predicts, against those of agents that are processes.

``python tests/bench/seconds.py -o results/seconds.csv docs/seconds.png`` takes some minutes. What a
step takes besides is fitted on the first settings; the others are predicted.
"""

import argparse
import csv
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import yaml
from matplotlib.figure import Figure
from matplotlib.ticker import ScalarFormatter

from concord.figures import style
from concord.networks.conditions import Conditions
from concord.options import build, plain
from concord.plugins import plugin
from concord.runs import sample
from concord.runs.agents import lived
from concord.runs.run import read

ROOT = Path(__file__).parents[2]
RUN = "linear", "reading=published+points=50+agents=5+topology=ring+sampler=de_sgld"
STEPS, TIMES = 20, 3  # of a run, and how often it is measured
NOTHING = Path("unused")


class Setting(NamedTuple):
    """A network, seconds of a gradient, and what else is said of the clock."""

    topology: str
    agents: int
    seconds: float
    compute: dict[str, Any] | None = None
    link: dict[str, Any] | None = None
    sampler: str = "de_sgld"

    def __str__(self) -> str:
        more = [
            f"{key} {value:g}" for key, value in ((self.compute or {}) | (self.link or {})).items()
        ]
        parts = [f"{self.topology} of {self.agents}", f"gradient {self.seconds:g} s", *more]
        return ", ".join([*parts, *[f"{self.sampler}"][: self.sampler != "de_sgld"]])


FITTED = [
    Setting("ring", 4, 0.03),
    Setting("ring", 8, 0.05, {"spread": 0.5}, {"latency": 0.02}),
    Setting("complete", 6, 0.04, None, {"latency": 0.01}),
]
PREDICTED = [
    Setting("ring", 8, 0.02, None, {"latency": 0.03}),
    Setting("ring", 12, 0.05, {"spread": 0.5}),
    Setting("path", 6, 0.06),
    Setting("star", 8, 0.03, None, {"latency": 0.02}),
    Setting("complete", 8, 0.1),
    Setting("complete", 6, 0.05, {"spread": 0.8}, {"latency": 0.005}),
    Setting("grid", 9, 0.04, {"slowest": 4.0}),
    Setting("torus", 9, 0.03, {"spread": 0.5}, {"latency": 0.05}),
    Setting("ring", 8, 0.03, None, {"bandwidth": 400.0}),
    Setting("ring", 6, 0.03, None, {"bandwidth": 800.0}, "diging_sgld"),
]


def stated(base: dict[str, Any], setting: Setting, path: Path) -> None:
    """Write the run.yaml of a setting."""
    happens = {"compute": {"seconds": setting.seconds} | (setting.compute or {})}
    happens |= {"link": setting.link} if setting.link else {}
    more = {
        "agents": setting.agents,
        "topology": {"kind": setting.topology},
        "network": plain(build(Conditions, happens, "network")),
        "chains": 1,
        "iterations": STEPS,
    }
    made = {key: value for key, value in base.items() if key != "metrics"} | more
    made["record"] = base["record"] | {"agents": None, "every": STEPS}
    made["topology"] |= {"rows": 3} if setting.topology in ("grid", "torus") else {}
    if setting.sampler != "de_sgld":
        options = {"step_size": base["sampler"]["step_size"]}
        params = build(plugin("samplers", setting.sampler, "sampler").Params, options, "sampler")
        made["sampler"] = {"kind": setting.sampler} | plain(params)
    order = [*base][: list(base).index("metrics")]
    made = {key: made[key] for key in [*order, "network"]} | {
        key: base[key] for key in base if key not in order
    }
    path.write_text(yaml.safe_dump(made, sort_keys=False))


def measured(path: Path) -> tuple[float, list[float]]:
    """Return the simulated seconds of a run, mean over agents, and measured ones."""
    run = read(path)
    problem = run.build_problem(NOTHING)
    traces = [sample.sample(run, problem), *(lived(run, problem) for _ in range(TIMES))]
    simulated, *found = (float(trace["seconds"][0, -1].mean()) for trace in traces)
    return simulated, found


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """Draw predicted against measured seconds a step, with 15 % to either side."""
    figure = Figure(figsize=(style.COLUMN, style.COLUMN), layout="constrained")
    axes = figure.subplots()
    low, high = 0.02, 0.3
    axes.fill_between([low, high], [0.85 * low, 0.85 * high], [1.15 * low, 1.15 * high],
                      color="0.9", label="within 15 %")  # fmt: skip
    axes.plot([low, high], [low, high], color="0.6", lw=0.8)
    for kind, marker, label in (("fitted", "o", "used to fit"), ("predicted", "D", "held out")):
        own = [row for row in rows if row["kind"] == kind]
        middle = [row["measured"] for row in own]
        off = [[row["measured"] - row["least"] for row in own],
               [row["most"] - row["measured"] for row in own]]  # fmt: skip
        predicted = [row["predicted"] for row in own]
        axes.errorbar(predicted, middle, off, fmt=marker, ms=4, lw=0.8, label=label)
    for axis, name in ((axes.xaxis, "Predicted"), (axes.yaxis, "Measured")):
        axis.axes.set(**{f"{axis.axis_name}scale": "log", f"{axis.axis_name}lim": (low, high)})
        axis.set_major_formatter(ScalarFormatter())
        axis.set_minor_formatter(ScalarFormatter())
        axis.set_ticks([0.02, 0.05, 0.1, 0.2, 0.3], minor=False)
        axis.set_ticks([], minor=True)
        axis.set_label_text(f"{name} seconds per step")
    axes.legend(loc="upper left")
    style.save(figure, [path])


def main() -> None:
    """Measure, write the table, and draw it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, nargs=2, required=True)
    table, picture = parser.parse_args().output
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "run.yaml")
        command = sys.executable, "-m", "concord", "resolve", "config/papers/tzikas2024", *RUN
        subprocess.run([*command, "--scale", "smoke", "-o", path], cwd=ROOT, check=True)
        base = yaml.safe_load(path.read_text())
        for kind, settings in (("fitted", FITTED), ("predicted", PREDICTED)):
            for setting in settings:
                stated(base, setting, path)
                simulated, found = (value for value in measured(path))
                seconds = sorted(value / STEPS for value in found)
                rows.append(
                    {"kind": kind, "setting": str(setting), "simulated": simulated / STEPS,
                     "measured": median(seconds), "least": seconds[0], "most": seconds[-1]}
                )  # fmt: skip
                print(rows[-1], flush=True)
    more = median(row["measured"] - row["simulated"] for row in rows if row["kind"] == "fitted")
    for row in rows:
        row["predicted"] = row["simulated"] + more
        row["off"] = row["measured"] / row["predicted"] - 1
    with open(table, "w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        for row in rows:
            writer.writerow({k: f"{v:.4f}" if isinstance(v, float) else v for k, v in row.items()})
    style.styled(draw)(rows, picture)


if __name__ == "__main__":
    main()

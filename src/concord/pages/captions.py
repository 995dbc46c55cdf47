"""Captions: what a figure or table shows, for a stranger, and how it was made.

``describe`` gives a caption as data, ``Caption``: the ``.json`` beside every figure and table has
it under ``caption``, and whatever shows one (Markdown, Snakemake's report, the site) renders it.
"""

from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache
from html import escape
from typing import Any, TypedDict

import msgspec

from concord import markup, selection, words
from concord.plugins import plugin
from concord.studies.sections import Assumption
from concord.studies.shown import Output
from concord.studies.study import Study

Pairs = list[tuple[str, str]]


class Part(TypedDict):
    """How one experiment of a figure was run: its setting, and each sampler's parameters."""

    title: str
    setting: Pairs
    samplers: Pairs


class Caption(TypedDict):
    """A caption; all texts are plain, on one line, with formulas as they are written."""

    title: str
    caption: str  # two sentences for a stranger
    source: str  # what showed it before: print, or records where print was not read
    printed: str  # what the paper shows there
    ours: str  # what is shown here, where it differs
    terms: Pairs  # words that it uses, with their meaning
    experiments: list[Part]
    readings: Pairs  # with their meaning
    assumptions: Pairs  # value and reason
    scale: str


def of(paper: Study, section: str, name: str) -> Caption:
    """Return the caption of a figure or table of a study."""
    entry, (kind, params) = paper.output(section, name), paper.kind_of(section, name)
    reads = [read if isinstance(read, str) else read.metric for read in kind.reads(params)]
    runs = [run.document for run in paper.output_runs(section, name)]
    titles = {key: paper.experiments[key].get("title", "") for key in paper.experiments}
    if names := getattr(params, "names", None):  # the study's, too
        entry = msgspec.structs.replace(entry, options={**entry.options, "names": names})
    readings = paper.meanings(runs)
    if not paper.about.reference and "published" not in paper.sections.readings:
        readings.pop("published", None)  # nothing was printed
    found = describe(entry, runs, paper.assumptions, readings, reads, titles)
    return {**found, "source": "Recorded"} if paper.about.read and found["printed"] else found


def describe(
    entry: Output,
    runs: Sequence[Mapping[str, Any]],
    assumptions: Mapping[str, Assumption],
    readings: Mapping[str, str],
    metrics: Sequence[str] = (),
    titles: Mapping[str, str] | None = None,
) -> Caption:
    """Return a caption's parts.

    entry: the figure or table as the paper's file states it.
    runs: the resolved mappings of the runs shown.
    assumptions: the paper's assumptions; those are listed on which a run rests, and which concern
    what is shown of it (``of``).
    readings: the paper's readings, with their meaning.
    metrics: the metrics that are shown, or patterns of them.
    titles: what each experiment is called; none: by its key.
    """
    texts = [markup.line(text) for text in (entry.title, entry.caption, entry.printed, entry.ours)]
    names = entry.options.get("names") or {}
    experiments: dict[str, list[Mapping[str, Any]]] = {}
    for run in runs:
        experiments.setdefault(run["experiment"], []).append(run)
    used = [
        (markup.line(stated.value), markup.line(stated.reason))
        for name, stated in assumptions.items()
        if any(name in run["assumptions"] and _concerns(stated, run, metrics) for run in runs)
    ]
    shown = sorted({run["reading"] for run in runs})
    titled = [(titles or {}).get(key) or key for key in experiments]
    said = " ".join(texts).lower()
    return {
        "title": texts[0],
        "caption": texts[1],
        "source": "In print" if texts[2] else "",
        "printed": texts[2],
        "ours": texts[3],
        "terms": [
            (term, text)
            for term, text in words.TERMS.items()
            if term in said
            or any(fnmatchcase(m, shape) for m in metrics for shape in _SHOWN_BY.get(term, ()))
        ],
        "experiments": [
            {
                # Of two with one title, one is another reading.
                "title": markup.line(
                    title if titled.count(title) == 1 else f"{title}, {group[0]['reading']}"
                ),
                "setting": _setting(group),
                "samplers": _samplers(group, names),
            }
            for title, group in zip(titled, experiments.values(), strict=True)
        ],
        "readings": [(name, markup.line(readings[name])) for name in shown if name in readings],
        "assumptions": used,
        "scale": "smoke" if any(run["scale"] == "smoke" for run in runs) else "paper",
    }


# Metrics whose figures and tables show what a term is about, beside texts that use it.
_SHOWN_BY = {"exact law": ("w2", "*_exact", "stationary*"), "floor": ("w2", "*_floor")}


def _concerns(stated: Assumption, run: Mapping[str, Any], metrics: Sequence[str]) -> bool:
    """Whether an assumption concerns what is shown of a run that rests on it."""
    if not selection.matches(run, stated.shown or {}):
        return False
    return stated.of is None or any(
        fnmatchcase(metric, f"{family}*") for family in stated.of for metric in metrics
    )


def _setting(runs: Sequence[Mapping[str, Any]]) -> Pairs:
    """Return what an experiment's runs share, or between what they vary."""
    found = []
    for key, (said, package, usual) in _SETTING.items():
        values: dict[str, Any] = {str(run.get(key)): run.get(key) for run in runs}  # few of many
        texts = (_kind(package, v, key) if package else words.value(v) for v in values.values())
        found.append((said, words.either(text for text in texts if text != usual)))
    return [(said, text) for said, text in found if text]


# Keys of a run, with what they are called, their package of kinds, and what goes without saying.
_SETTING = {
    "problem": ("problem", "problems", ""),
    "agents": ("agents", "", ""),
    "topology": ("network", "topologies", ""),
    "partition": ("data split", "partitions", "equal"),
    "initial": ("start", "initial", "normal"),
    **{key: (key, "", "") for key in ("chains", "iterations", "seed")},
}


def _samplers(runs: Sequence[Mapping[str, Any]], names: Mapping[str, Any]) -> Pairs:
    """Return each sampler's name and parameters; numbers that vary are listed."""
    rows: dict[tuple[str, ...], list[dict[str, str]]] = {}
    readings: dict[tuple[str, ...], set[str]] = {}
    for run in runs:
        sampler, labels = run["sampler"], run.get("labels") or {}
        own = [labels[key] for key in ("sampler", "entry") if key in labels] or labels.values()
        named = [str(names[str(label)]) for label in own if str(label) in names]
        name = named[0] if named else words.name("sampler", sampler["kind"])
        said = _options("samplers", sampler)
        chosen = [text for key, text in said.items() if isinstance(sampler[key], (str, bool))]
        key = (name, *chosen)
        rows.setdefault(key, []).append(said)
        readings.setdefault(key, set()).add(run["reading"])
    every = {run["reading"] for run in runs}
    return [
        (
            key[0] + ("" if readings[key] == every else f", {words.either(sorted(readings[key]))}"),
            _joined(o),
        )
        for key, o in rows.items()
    ]


def _joined(options: Sequence[Mapping[str, str]]) -> str:
    keys = dict.fromkeys(key for one in options for key in one)
    values = {key: words.either(one[key] for one in options if key in one) for key in keys}
    return "; ".join(f"{key.replace('_', ' ')} {values[key]}" for key in keys)


def _kind(package: str, chosen: Mapping[str, Any], what: str) -> str:
    """Return a component's kind, with those of its options that are not as they usually are."""
    name = words.kind(what, chosen["kind"])
    options = words.options(_options(package, chosen))
    return f"{name} ({options})" if options else name


def _options(package: str, chosen: Mapping[str, Any]) -> dict[str, str]:
    """Return the options of a component that its kind demands, or that are not their defaults."""
    usual = _usual(plugin(package, chosen["kind"], package).Params)
    texts = {
        key: words.value(value) for key, value in chosen.items() if key not in ("kind", "name")
    }
    return {key: text for key, text in texts.items() if usual.get(key) != text}


@cache
def _usual(params: Any) -> dict[str, str]:
    """Return the texts of the defaults of a kind's options."""
    fields = msgspec.structs.fields(params)
    return {f.name: words.value(f.default) for f in fields if f.default is not msgspec.NODEFAULT}


def rst(caption: Caption) -> str:
    """Return a caption in reStructuredText, for Snakemake's report."""
    parts: Caption = _each(markup.rst, caption)
    lines = _said(parts)
    for part in parts["experiments"]:
        lines += [f"How it was run ({part['title']}):", ""]
        lines += [f"- {key} {text}" for key, text in part["setting"]]
        lines += [*(f"- *{name}*: {text}" for name, text in part["samplers"]), ""]
    if parts["assumptions"]:
        lines += ["Assumptions (the paper does not state these):", ""]
        lines += [f"- {value} ({reason})" for value, reason in parts["assumptions"]]
    return "\n".join(lines)


def markdown(caption: Caption) -> str:
    """Return a caption as Markdown, with what is there to look up folded."""
    parts: Caption = _each(markup.markdown, caption)
    lines = _said(parts)
    for part, stated in zip(parts["experiments"], caption["experiments"], strict=True):
        title = escape(stated["title"])  # Markdown's own marks stand for themselves in HTML
        lines += [f"<details><summary>How it was run: {title}</summary>", ""]
        lines += ["; ".join(f"{key} {text}" for key, text in part["setting"]) + ".", ""]
        rows = [[name, text] for name, text in part["samplers"]]
        lines += [*markup.markdown_table(["sampler", "parameters"], rows), "", "</details>", ""]
    if parts["assumptions"]:
        lines += ["<details><summary>Assumptions: what the paper does not state</summary>", ""]
        lines += [f"- {value} ({reason})" for value, reason in parts["assumptions"]]
        lines += ["", "</details>", ""]
    return "\n".join(lines)


def _each(function: Callable[[str], str], part: Any) -> Any:
    if isinstance(part, str):
        return function(part)
    if isinstance(part, Mapping):
        return {key: _each(function, item) for key, item in part.items()}
    return [_each(function, item) for item in part]


def _said(parts: Caption) -> list[str]:
    """Return the lines that are alike in Markdown and in reStructuredText."""
    lines = [f"**{parts['title']}.** {parts['caption']}", ""]
    if parts["scale"] == "smoke":
        lines += ["Smoke scale: few chains and iterations, not a result.", ""]
    for head, text in ((parts["source"], parts["printed"]), ("Here", parts["ours"])):
        lines += [f"*{head}:* {text}", ""] if text else []
    lines += [f"- *{term}*: {meaning}" for term, meaning in parts["terms"]]
    return [*lines, *(f"- Reading *{name}*: {text}" for name, text in parts["readings"]), ""]

"""Captions: what a figure or table shows, for a stranger, and how it was made.

``describe`` gives a caption as data, ``Caption``: the ``.json`` beside every figure and table has
it under ``caption``, and whatever shows one (Markdown, Snakemake's report, the site) renders it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache
from typing import Any, TypedDict

import msgspec

from concord import kinds
from concord.kinds import display_name, options_of
from concord_studies import markup, selection, words
from concord_studies.configuration.sections import Assumption, Output
from concord_studies.configuration.study import Study
from concord_studies.metrics import is_computed, refusal

SENTENCES = 5  # of a caption, above its fold
Pairs = list[tuple[str, str]]
Way = tuple[str, ...]  # a sampler's kind, and those of its options that are words and not usual


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
    reads = [*reads, *_find_line_metrics(params, reads, runs)]
    titles = {key: paper.experiments[key].get("title", "") for key in paper.experiments}
    if names := getattr(params, "names", None):  # the study's, too
        entry = msgspec.structs.replace(entry, options={**entry.options, "names": names})
    readings = paper.meanings(runs)
    if not paper.about.reference and "published" not in paper.sections.readings:
        readings.pop("published", None)  # nothing was printed
    found = describe(entry, runs, paper.assumptions, readings, reads, titles, _sampler_names(paper))
    return {**found, "source": "Recorded"} if paper.about.read and found["printed"] else found


def describe(
    entry: Output,
    runs: Sequence[Mapping[str, Any]],
    assumptions: Mapping[str, Assumption],
    readings: Mapping[str, str],
    metrics: Sequence[str] = (),
    titles: Mapping[str, str] | None = None,
    called: Mapping[Way, str] | None = None,
) -> Caption:
    """Return a caption's parts.

    entry: the figure or table as the paper's file states it.
    runs: the resolved mappings of the runs shown.
    assumptions: the paper's assumptions; those are listed on which a run rests, and which concern
    what is shown of it (``of``).
    readings: the paper's readings, with their meaning.
    metrics: the metrics that are shown, or patterns of them.
    titles: what each experiment is called; none: by its key.
    called: names of samplers that no label of a run tells; none: those of their kinds.
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
    return {
        "title": texts[0],
        "caption": texts[1],
        "source": "In print" if texts[2] else "",
        "printed": texts[2],
        "ours": texts[3],
        "terms": [
            (term, text)
            for term, (text, shapes) in words.TERMS.items()
            if any(fnmatchcase(metric, shape) for metric in metrics for shape in shapes)
        ],
        "experiments": [
            {
                # Of two with one title, one is another reading.
                "title": markup.line(
                    title if titled.count(title) == 1 else f"{title}, {group[0]['reading']}"
                ),
                "setting": _setting(group),
                "samplers": _samplers(group, names, called or {}),
            }
            for title, group in zip(titled, experiments.values(), strict=True)
        ],
        "readings": [(name, markup.line(readings[name])) for name in shown if name in readings],
        "assumptions": used,
        "scale": "smoke" if any(run["scale"] == "smoke" for run in runs) else "paper",
    }


def _find_line_metrics(
    params: Any, reads: Sequence[str], runs: Sequence[Mapping[str, Any]]
) -> Iterator[str]:
    """Yield the metrics that a figure draws beside those it names, where a run has them."""
    lines = [line for line in ("exact", "floor", "point") if line in getattr(params, "layers", ())]
    for metric in reads:
        laws = ["law_sd"] if metric == "draw" else []  # of density_scatter
        for name in (*(f"{metric}_{line}" for line in lines), *laws):
            # What is not computed needs no advice here, which takes long.
            if any(is_computed(run, name) and refusal(run, name) is None for run in runs):
                yield name


def _concerns(stated: Assumption, run: Mapping[str, Any], metrics: Sequence[str]) -> bool:
    """Return whether a figure or table shows what an assumption concerns in a run."""
    if not selection.matches(run, stated.shown or {}):
        return False
    return stated.of is None or any(
        fnmatchcase(metric, f"{family}*") for family in stated.of for metric in metrics
    )


def _setting(runs: Sequence[Mapping[str, Any]]) -> Pairs:
    """Return the settings of an experiment's runs: shared values, or all that vary."""
    found = []
    for key, (said, package, usual) in _SETTING.items():
        values: dict[str, Any] = {str(run.get(key)): run.get(key) for run in runs}  # few of many
        if package:
            text = _kinds(package, list(values.values()), key)
        else:
            text = words.either(map(words.value, values.values()))
        found.append((said, "" if text == usual else text))
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


def _way(sampler: Mapping[str, Any]) -> Way:
    """Return a sampler's kind and those of its options that are words, as a key."""
    said = _options("samplers", sampler)
    chosen = [text for key, text in said.items() if isinstance(sampler.get(key, text), (str, bool))]
    return (str(sampler["kind"]), *chosen)


def _sampler_name(run: Mapping[str, Any], names: Mapping[str, Any]) -> str:
    """Return a study's name for the sampler of a run, by the run's labels. "" if none has one."""
    labels = run.get("labels") or {}
    of_samplers = (str(labels[key]) for key in _OF_SAMPLERS if key in labels)
    return next((str(names[label]) for label in of_samplers if label in names), "")


# Axes whose labels name samplers.
_OF_SAMPLERS = ("sampler", "entry", "training", "gradient", "variant", "method")


@cache
def _sampler_names(study: Study) -> Mapping[Way, str]:
    """Return a study's names of samplers, also for its experiments that do not label them."""
    found: dict[Way, set[str]] = {}
    for run in study.runs.values():
        if run.arena is None and (name := _sampler_name(run.document, study.sections.names)):
            found.setdefault(_way(run.document["sampler"]), set()).add(name)
    return {way: next(iter(called)) for way, called in found.items() if len(called) == 1}


def _samplers(
    runs: Sequence[Mapping[str, Any]], names: Mapping[str, Any], called: Mapping[Way, str]
) -> Pairs:
    """Return each sampler's name and parameters; numbers that vary are listed."""
    rows: dict[Way, list[dict[str, str]]] = {}
    readings: dict[Way, set[str]] = {}
    for run in runs:
        sampler, way = run["sampler"], _way(run["sampler"])
        name = _sampler_name(run, names) or called.get(way) or words.name("sampler", way[0])
        key: Way = (name, *way)
        rows.setdefault(key, []).append(_options("samplers", sampler))
        readings.setdefault(key, set()).add(run["reading"])
    every = {run["reading"] for run in runs}
    return [
        (
            key[0] + ("" if readings[key] == every else f", {words.either(sorted(readings[key]))}"),
            _join_options(o),
        )
        for key, o in rows.items()
    ]


def _join_options(
    options: Sequence[Mapping[str, str]], usual: Mapping[str, str] | None = None
) -> str:
    """Return a text of options and their values; ``usual`` are those that a mapping omits."""
    keys = dict.fromkeys(key for one in options for key in one)
    usual = usual or {}
    every = [{**usual, **one} for one in options]
    values = {key: words.either(one[key] for one in every if key in one) for key in keys}
    return "; ".join(f"{key.replace('_', ' ')} {value}" for key, value in values.items())


def _kinds(package: str, chosen: Sequence[Mapping[str, Any]], what: str) -> str:
    """Return a text of components by kind, with their options that are not defaults."""
    rows: dict[str, list[dict[str, str]]] = {}
    for one in chosen:
        rows.setdefault(one["kind"], []).append(_options(package, one))
    texts = []
    for kind, options in rows.items():
        told = _join_options(options, _usual(kinds.find(package, kind, package).Params))
        texts.append(f"{words.kind(what, kind)} ({told})" if told else words.kind(what, kind))
    return words.either(texts)


def _options(package: str, chosen: Mapping[str, Any]) -> dict[str, str]:
    """Return the options of a component that its kind demands, or that are not their defaults.

    First the kind, if it is a plug-in with the name of what is built in, as readings of it have.
    """
    kind = kinds.find(package, chosen["kind"], package)
    usual = _usual(options_of(kind))
    texts = {
        key: words.value(value) for key, value in chosen.items() if key not in ("kind", "name")
    }
    plugged = {"plug-in": str(chosen["kind"])} if _is_reading(package, kind) else {}
    return plugged | {key: text for key, text in texts.items() if usual.get(key) != text}


@cache
def _is_reading(package: str, kind: Any) -> bool:
    """Return whether a kind is a plug-in with the name of one that is built in."""
    built_in = {name: kinds.find(package, name, package) for name in kinds.built_in(package)}
    names = {display_name(other) or name for name, other in built_in.items()}
    return kind not in built_in.values() and display_name(kind) in names


@cache
def _usual(params: Any) -> dict[str, str]:
    """Return the texts of the defaults of a kind's options."""
    fields = msgspec.structs.fields(params)
    return {f.name: words.value(f.default) for f in fields if f.default is not msgspec.NODEFAULT}


def above(caption: Caption, escape: Callable[[str], str] = markup.markdown) -> list[str]:
    """Return the lines of a caption that stand above its fold: at most ``SENTENCES`` sentences.

    escape: what writes a text in the format of the lines.
    """
    lines = ["Smoke scale: few chains and iterations, not a result.", ""]
    lines = lines if caption["scale"] == "smoke" else []
    return [*_texts(_split(caption)[0], escape), *lines]


def below(caption: Caption, escape: Callable[[str], str] = markup.markdown) -> list[str]:
    """Return the lines of a caption below its fold: definitions, readings, runs, assumptions."""
    lines = _texts(_split(caption)[1], escape)
    readings = [(f"reading {name}", text) for name, text in caption["readings"]]
    lines += _items([*caption["terms"], *readings], escape)
    for part in caption["experiments"]:
        setting = "; ".join(f"{key} {text}" for key, text in part["setting"])
        lines += [f"How it was run ({escape(part['title'])}): {escape(setting)}.", ""]
        lines += _items(part["samplers"], escape)
    if caption["assumptions"]:
        lines += ["Assumptions, which the paper does not state:", ""]
        lines += [f"- {escape(value)} ({escape(why)})" for value, why in caption["assumptions"]]
        lines += [""]
    return lines


def markdown(caption: Caption) -> str:
    """Return a caption as Markdown, with definitions and details folded."""
    folded = markup.fold("How it was made", below(caption))
    return "\n".join([*_title_lines(caption, markup.markdown), *folded])


def rst(caption: Caption) -> str:
    """Return a caption in reStructuredText, for Snakemake's report, which folds nothing."""
    return "\n".join([*_title_lines(caption, markup.rst), *below(caption, markup.rst)])


def _title_lines(caption: Caption, escape: Callable[[str], str]) -> list[str]:
    """Return the title and the lines above the fold."""
    title, lines = f"**{escape(markup.sentence(caption['title']))}**", above(caption, escape)
    return [f"{title} {lines[0]}", *lines[1:]] if caption["caption"] else [title, "", *lines]


def first_sentence(caption: Caption) -> str:
    """Return the first sentence of a caption, which says what is seen; "" of a title alone."""
    return (markup.sentences(caption["caption"]) or [""])[0]


def _split(caption: Caption) -> tuple[Pairs, Pairs]:
    """Return heads and texts above the fold, and below it, where further sentences go."""
    shown: tuple[Pairs, Pairs] = [], []
    left = SENTENCES
    for head, text in (
        ("", caption["caption"]),
        (caption["source"], caption["printed"]),
        ("Here", caption["ours"]),
    ):
        sentences = markup.sentences(text)
        for place, some in zip(shown, (sentences[:left], sentences[left:]), strict=True):
            place.extend([(head, " ".join(some))] if some else [])
        left -= min(left, len(sentences))
    return shown


def _texts(pairs: Pairs, escape: Callable[[str], str]) -> list[str]:
    """Return a paragraph for each head and text."""
    heads = ((f"*{escape(head)}:* " if head else "", text) for head, text in pairs)
    return [line for head, text in heads for line in (head + escape(text), "")]


def _items(pairs: Pairs, escape: Callable[[str], str]) -> list[str]:
    """Return a list of terms and their explanations, in the caption's format."""
    items = [f"- *{escape(word)}*: {escape(text)}" for word, text in pairs]
    return [*items, ""] if items else []

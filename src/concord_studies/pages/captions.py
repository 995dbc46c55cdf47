"""Captions: what a figure or table shows, for a stranger, and how it was made.

``describe_output`` gives a caption as data: the ``.json`` beside every figure and table has it
under ``caption``, and whatever shows one (Markdown, Snakemake's report, the site) renders it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache
from typing import Any, TypedDict

import msgspec

from concord import kinds
from concord.kinds import display_name, options_of
from concord_studies import markup, selection, words
from concord_studies.claims.texts import fill_in_settings
from concord_studies.configuration.sections import Assumption, Output
from concord_studies.configuration.study import Study
from concord_studies.figures.layer import ChosenLayer
from concord_studies.metrics import is_computed, refusal
from concord_studies.runs.run import Run

SENTENCES = 5  # of a caption, above its fold
Document = Mapping[str, Any]  # a run's, as runs.yaml has it
Escape = Callable[[str], str]  # what writes a text in a format, such as Markdown
Pairs = Sequence[tuple[str, ...]]
VariantKey = tuple[
    str, ...
]  # a sampler's kind, and its options whose values are text, not defaults


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


def describe_output(study: Study, section: str, name: str) -> Caption:
    """Return the caption of a figure or table of a study."""
    entry, (kind, params) = study.output(section, name), study.kind_of(section, name)
    shown = study.output_runs(section, name)
    runs = [run.document for run in shown]
    metrics = [read if isinstance(read, str) else read.metric for read in kind.reads(params)]
    metrics += [*_find_companions(params, metrics, shown)]
    titles = {key: study.experiments[key].get("title", "") for key in study.experiments}
    if names := getattr(params, "names", None):  # the study's, too
        entry = msgspec.structs.replace(entry, options={**entry.options, "names": names})
    readings = study.meanings(runs)
    if not study.about.reference and "published" not in study.sections.readings:
        readings.pop("published", None)  # nothing was printed
    samplers = _name_samplers(study)
    caption = compose(entry, runs, study.assumptions, readings, metrics, titles, samplers)
    unread = caption["printed"] and not study.about.was_read
    return {**caption, "source": "Recorded"} if unread else caption


def compose(
    entry: Output,
    runs: Sequence[Document],
    assumptions: Mapping[str, Assumption],
    readings: Mapping[str, str],
    metrics: Sequence[str] = (),
    titles: Mapping[str, str] | None = None,
    samplers: Mapping[VariantKey, str] | None = None,
) -> Caption:
    """Return a caption's parts.

    entry: the figure or table as the paper's file states it.
    runs: the documents of the runs shown.
    assumptions: the paper's assumptions; those are listed on which a run rests, and which concern
    what is shown of it (``of``), with the settings of these runs.
    readings: the paper's readings, with their meaning.
    metrics: the metrics that are shown, or patterns of them.
    titles: what each experiment is called; none: by its key.
    samplers: names of samplers that no label of a run tells; none: those of their kinds.
    """
    texts = [markup.line(text) for text in (entry.title, entry.caption, entry.printed, entry.ours)]
    experiments = _group(runs, lambda run: run["experiment"])
    headings = [(titles or {}).get(key) or key for key in experiments]
    names = entry.options.get("names") or {}
    shown = sorted({run["reading"] for run in runs})
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
                    heading if headings.count(heading) == 1 else f"{heading}, {group[0]['reading']}"
                ),
                "setting": _list_settings(group),
                "samplers": _list_samplers(group, names, samplers or {}),
            }
            for heading, group in zip(headings, experiments.values(), strict=True)
        ],
        "readings": [(name, markup.line(readings[name])) for name in shown if name in readings],
        "assumptions": [
            (value, fill_in_settings(stated.reason, resting))
            for name, stated in assumptions.items()
            if (
                resting := [
                    run
                    for run in runs
                    if name in run["assumptions"] and _concerns(stated, run, metrics)
                ]
            )
            # It is "" where the runs have no such setting.
            and (value := fill_in_settings(stated.value, resting))
        ],
        "scale": "smoke" if any(run["scale"] == "smoke" for run in runs) else "paper",
    }


def _group(runs: Iterable[Document], key: Callable[[Document], Any]) -> dict[Any, list[Document]]:
    """Return the runs by the key that the function gives each, in the order of first keys."""
    groups: dict[Any, list[Document]] = {}
    for run in runs:
        groups.setdefault(key(run), []).append(run)
    return groups


def _find_companions(params: Any, reads: Sequence[str], runs: Sequence[Run]) -> Iterator[str]:
    """Yield the metrics of a figure's layers, such as "w2_floor", that some run has.

    reads: the metrics that the figure shows.
    """
    layers = (of.params for of in getattr(params, "layers", ()) if isinstance(of, ChosenLayer))
    companions = [layer.companion for layer in layers if layer.companion]
    for name in (f"{metric}_{companion}" for metric in reads for companion in companions):
        # What is not computed needs no advice here, which takes long.
        if any(is_computed(run, name) and refusal(run, name) is None for run in runs):
            yield name


def _concerns(stated: Assumption, run: Document, metrics: Sequence[str]) -> bool:
    """Return whether an assumption concerns the metrics that are shown of a run.

    stated: the assumption.
    """
    if not selection.matches(run, stated.shown or {}):
        return False
    return stated.of is None or any(
        fnmatchcase(metric, f"{family}*") for family in stated.of for metric in metrics
    )


def _list_settings(runs: Sequence[Document]) -> Pairs:
    """Return name and values, as text, of each setting of an experiment's runs."""
    settings = []
    for key, (name, package, usual) in _SETTINGS.items():
        values: Any = {str(run.get(key)): run.get(key) for run in runs}.values()  # few of many
        if package:
            text = _describe_kinds(package, values, key)
        else:
            text = words.join_alternatives(map(words.value, values))
        if text not in ("", usual):
            settings.append((name, text))
    return settings


# Keys of a run, with what they are called, their package of kinds, and what goes without saying.
_SETTINGS = {
    "problem": ("problem", "problems", ""),
    "agents": ("agents", "", ""),
    "topology": ("network", "topologies", ""),
    "partition": ("data split", "partitions", "equal"),
    "initial": ("start", "initial", "normal"),
    "chains": ("chains", "", "0"),  # where all numbers are exact there are none
    **{key: (key, "", "") for key in ("iterations", "seed")},
}


def _variant_key(sampler: Mapping[str, Any]) -> VariantKey:
    """Return a key of a sampler's variant: its kind, and its options whose values are text."""
    named = {key: value for key, value in sampler.items() if isinstance(value, (str, bool))}
    return (str(sampler["kind"]), *_list_options("samplers", named).values())


def _find_name(run: Document, names: Mapping[str, Any]) -> str:
    """Return a study's name for the sampler of a run, by the run's labels. "" if none has one."""
    labels = run.get("labels") or {}
    of_samplers = (str(labels[key]) for key in _OF_SAMPLERS if key in labels)
    return next((str(names[label]) for label in of_samplers if label in names), "")


# Axes whose labels name samplers.
_OF_SAMPLERS = ("sampler", "entry", "training", "gradient", "variant", "method")


@cache
def _name_samplers(study: Study) -> Mapping[VariantKey, str]:
    """Return a study's names of samplers by variant, of variants with a single name."""
    names: dict[VariantKey, set[str]] = {}
    for run in study.runs.values():
        if run.arena is None and (name := _find_name(run.document, study.sections.names)):
            names.setdefault(_variant_key(run.document["sampler"]), set()).add(name)
    return {way: next(iter(texts)) for way, texts in names.items() if len(texts) == 1}


def name_sampler(study: Study, run: Document) -> str:
    """Return the name of a run's sampler for readers: the study's for it, or its kind's."""
    variant = _variant_key(run["sampler"])
    return _name_samplers(study).get(variant) or words.name("sampler", variant[0])


def _list_samplers(
    runs: Sequence[Document], names: Mapping[str, Any], samplers: Mapping[VariantKey, str]
) -> Pairs:
    """Return each sampler's name, by labels or variant, and all values of its parameters."""

    def name_and_key(run: Document) -> VariantKey:
        """Return the name of a run's sampler, and the key of its variant."""
        way = _variant_key(run["sampler"])
        name = _find_name(run, names) or samplers.get(way) or words.name("sampler", way[0])
        return (name, *way)

    pairs, every = [], {run["reading"] for run in runs}
    for (name, *_), group in _group(runs, name_and_key).items():
        readings = {run["reading"] for run in group}
        part = "" if readings == every else f", {words.join_alternatives(sorted(readings))}"
        options = _list_varied("samplers", [run["sampler"] for run in group])
        pairs.append((name + part, _join_options(options)))
    return pairs


def _join_options(options: Sequence[Mapping[str, str]]) -> str:
    """Return a text of options with all their values."""
    keys = dict.fromkeys(key for one in options for key in one)
    values = {
        key: words.join_alternatives(one[key] for one in options if key in one) for key in keys
    }
    return "; ".join(f"{key.replace('_', ' ')} {value}" for key, value in values.items())


def _describe_kinds(package: str, chosen: Iterable[Mapping[str, Any]], what: str) -> str:
    """Describe the kinds of a package that runs use, with options that are not defaults.

    chosen: their mappings in the runs. what: the noun for one.
    """
    texts = []
    for kind, group in _group(chosen, lambda one: one["kind"]).items():
        text = words.kind_in_sentence(what, kind)
        options = _join_options(_list_varied(package, group))
        texts.append(f"{text} ({options})" if options else text)
    return words.join_alternatives(texts)


def _list_varied(package: str, chosen: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    """Return the texts of components' options that differ from their defaults in any of them."""
    stated = [_list_options(package, one) for one in chosen]
    keys = {key for one in stated for key in one}
    for one, component in zip(stated, chosen, strict=True):
        usual = _default_texts(options_of(kinds.find(package, component["kind"], package)))
        one.update({key: text for key, text in usual.items() if key in keys - one.keys()})
    return stated


def _list_options(package: str, chosen: Mapping[str, Any]) -> dict[str, str]:
    """Return the texts, by name, of a component's options that differ from their defaults.

    A plug-in of which a built-in kind has the name begins with its own key, as ``plug-in``.
    """
    kind = kinds.find(package, chosen["kind"], package)
    usual = _default_texts(options_of(kind))
    texts = {
        key: words.value(value) for key, value in chosen.items() if key not in ("kind", "name")
    }
    plugged = {"plug-in": str(chosen["kind"])} if _has_built_in_name(package, kind) else {}
    return plugged | {key: text for key, text in texts.items() if usual.get(key) != text}


@cache
def _has_built_in_name(package: str, kind: Any) -> bool:
    """Return whether a kind is a plug-in with the name of one that is built in."""
    built_in = {name: kinds.find(package, name, package) for name in kinds.built_in(package)}
    names = {display_name(other) or name for name, other in built_in.items()}
    return kind not in built_in.values() and display_name(kind) in names


@cache
def _default_texts(params: Any) -> dict[str, str]:
    """Return the texts of the defaults of a kind's options."""
    fields = msgspec.structs.fields(params)
    return {f.name: words.value(f.default) for f in fields if f.default is not msgspec.NODEFAULT}


def lines_above_fold(caption: Caption, escape: Escape = markup.markdown) -> list[str]:
    """Return the lines of a caption that stand above its fold: five sentences at most."""
    smoke = ["Smoke scale: few chains and iterations, not a result.", ""]
    return [
        *_paragraphs(_split_at_fold(caption)[0], escape),
        *smoke * (caption["scale"] == "smoke"),
    ]


def lines_below_fold(caption: Caption, escape: Escape = markup.markdown) -> list[str]:
    """Return the lines of a caption below its fold: further sentences, definitions, runs."""
    lines = _paragraphs(_split_at_fold(caption)[1], escape)
    readings = [(f"reading {name}", text) for name, text in caption["readings"]]
    lines += _list_items([*caption["terms"], *readings], escape)
    for part in caption["experiments"]:
        setting = "; ".join(f"{key} {text}" for key, text in part["setting"])
        lines += [f"How it was run ({escape(part['title'])}): {escape(setting)}.", ""]
        lines += _list_items(part["samplers"], escape)
    if caption["assumptions"]:
        lines += ["Assumptions, which the paper does not state:", ""]
        lines += [f"- {escape(value)} ({escape(why)})" for value, why in caption["assumptions"]]
        lines += [""]
    return lines


def markdown(caption: Caption) -> str:
    """Return a caption as Markdown, with definitions and details folded."""
    title = f"**{markup.markdown(markup.sentence(caption['title']))}**"
    folded = markup.fold("How it was made", lines_below_fold(caption))
    return "\n".join([*_head(title, caption, lines_above_fold(caption)), *folded])


def rst(caption: Caption) -> str:
    """Return a caption in reStructuredText, for Snakemake's report, which folds nothing."""
    title = f"**{markup.rst(markup.sentence(caption['title']))}**"  # bold text has no formulas
    escape = markup.rst_with_formulas
    lines = _head(title, caption, lines_above_fold(caption, escape))
    return "\n".join([*lines, *lines_below_fold(caption, escape)])


def _head(title: str, caption: Caption, lines: Sequence[str]) -> list[str]:
    """Return the lines above the fold, the title before the first of them."""
    return [f"{title} {lines[0]}", *lines[1:]] if caption["caption"] else [title, "", *lines]


def first_sentence(caption: Caption) -> str:
    """Return the first sentence of a caption, which says what is seen; "" of a title alone."""
    return (markup.sentences(caption["caption"]) or [""])[0]


def _split_at_fold(caption: Caption) -> tuple[Pairs, Pairs]:
    """Return the caption's heads and texts above the fold, and those below it."""
    shown: tuple[list[tuple[str, str]], list[tuple[str, str]]] = [], []
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


def _paragraphs(pairs: Pairs, escape: Escape) -> list[str]:
    """Return a paragraph for each head and text.

    pairs: heads and texts. escape: writes a text in the format of the page.
    """
    heads = ((f"*{escape(head)}:* " if head else "", text) for head, text in pairs)
    return [line for head, text in heads for line in (head + escape(text), "")]


def _list_items(pairs: Pairs, escape: Escape) -> list[str]:
    """Return a list of terms and their explanations, in the caption's format.

    pairs: terms and explanations. escape: writes a text in that format.
    """
    items = [f"- *{escape(word)}*: {escape(text)}" for word, text in pairs]
    return [*items, ""] if items else []

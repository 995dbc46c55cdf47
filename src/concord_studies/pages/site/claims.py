"""The page of all claims: one table, a row for each sentence in each reading, that readers filter.

The address keeps what is chosen: ``claims.html?paper=...&verdict=holds``. A count of sentences
leads to the rows of those that it counts: ``claims.html?paper=...&counted+as=fails+in+part``.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from urllib.parse import urlencode

from concord_studies.claims.ledger import (
    COMMITTED,
    OUR_SENTENCE,
    SMOKE,
    ReadingVerdict,
    Row,
    is_smoke,
    scores,
    unmark_committed,
)
from concord_studies.claims.verdicts import part_of
from concord_studies.configuration.study import Study
from concord_studies.markup import fence, fold, line, markdown, markdown_table
from concord_studies.pages import claims as of_claims
from concord_studies.pages.captions import name_sampler
from concord_studies.pages.findings import (
    COUNTED,
    PARTS,
    Sentence,
    count_parts,
    group_by_sentence,
)

SCRIPT, TABLE = Path(__file__).parent / "claims.js", "claims.csv"
COLUMNS = ("paper", "sentence", "sampler", "reading", "verdict", "number")
FILTERS = ("paper", "sampler", "reading", "verdict", "counted as")  # the last is in no column
PLACES = "claims"  # the class of the table, in which the script looks


def claims_table(studies: Mapping[str, Study], rows: Sequence[Row], seeds: str) -> str:
    """Return the page in Markdown. rows: all verdicts; seeds: a sentence on seeds not varied."""
    choices = "".join(
        f'<label>{name.capitalize()} <select data-column="{name}"><option value="">any</option>'
        "</select></label>\n"
        for name in FILTERS
    )
    unit = "A row is a sentence in one reading."
    notes = [unit, SMOKE if is_smoke(rows) else "", of_claims.describe_verdicts(rows, seeds)]
    columns, counts = scores(rows)
    named = [[_name(studies, key), *others] for key, *others in counts]
    table = markdown_table(COLUMNS, _list_rows(studies, rows))
    return "\n".join(
        [
            "# Ledger of claims",
            "",
            f'<p class="filters">\n<label>Words <input id="words" type="search"></label>\n{choices}'
            f'<output id="count"></output> <a href="{TABLE}">all rows, as CSV</a>\n</p>\n'
            f'<script src="_static/{SCRIPT.name}" defer></script>',
            "",
            markdown(" ".join(filter(None, notes))),
            "",
            *fold("How many of each paper, by reading", markdown_table(columns, named)),
            *fence("{table}", "\n".join([f":class: {PLACES}", "", *table])),
        ]
    )


def link_count(text: str, study: Study, kind: str, root: str = "") -> str:
    """Return a link, in HTML, to the sentences of a study that are counted as of a kind.

    root: path from the page with the link to the site's folder, "../".
    """
    chosen = urlencode({"paper": study.name, FILTERS[-1]: kind})
    return f'<a class="count" href="{root}claims.html?{escape(chosen)}">{markdown(text)}</a>'


def link_counts(study: Study, sentences: Iterable[Sentence]) -> str:
    """Return a line that counts a study's sentences, for its page; "" if there is none.

    Those that a paper does not make are not counted.
    """
    counts = count_parts(one for one in sentences if not one.is_ours)
    told = (
        link_count(f"{counts[kind]} {text}", study, kind, "../")
        for kind, text in COUNTED.items()
        if counts[kind]
    )
    number = counts.total()
    return f"{number} sentence{'s' * (number != 1)}: {', '.join(told)}." if number else ""


def _list_rows(studies: Mapping[str, Study], rows: Sequence[Row]) -> Iterator[list[str]]:
    """Yield the cells of the table, as Markdown, sentence by sentence and reading by reading.

    What fails comes first, then what is open, and what holds.
    """
    sentences = group_by_sentence(unmark_committed(rows))
    order = [*PARTS]
    sentences.sort(key=lambda one: (order.index(one.part), one.failing_share < 1, one.is_ours))
    for sentence in sentences:
        key = sentence.first_row["paper"]
        for entry in sentence.entries:
            yield [
                f"[{_name(studies, key)}](papers/{key}.md)",
                _link_sentence(sentence, entry),
                markdown(", ".join(_name_samplers(studies[key], entry))),
                markdown(entry.named_reading),
                _badge(sentence, entry) + " committed" * entry.is_committed,
                _state_number(studies[key], entry),
            ]


def _name(studies: Mapping[str, Study], key: str) -> str:
    """Return a study's name in Markdown."""
    return markdown(studies[key].name if key in studies else key)


def _link_sentence(sentence: Sentence, entry: ReadingVerdict) -> str:
    """Return a sentence, and a link to how it is judged, which is a place to link to by itself."""
    row = sentence.first_row
    whose = "Our sentence. " if row["source"] == OUR_SENTENCE else ""
    place = f"{row['paper']}-{row['claim']}-{entry.rows[0]['reading']}"
    target = f"papers/{row['paper']}.html#{of_claims.anchor(row)}"
    text = markdown(f"{whose}{row['says']}")
    return f'{text} <a id="{escape(place)}" href="{escape(target)}">How it is judged</a>'


def _name_samplers(study: Study, entry: ReadingVerdict) -> list[str]:
    """Return the names of the samplers whose runs a claim reads in a reading."""
    cases = [study.cases.get((r["claim"], r["case"], r["reading"])) for r in entry.rows]
    runs = [run.document for case in cases if case for run in case.runs]
    return list(dict.fromkeys(line(name_sampler(study, run)) for run in runs))


def _badge(sentence: Sentence, entry: ReadingVerdict) -> str:
    """Return a verdict in HTML, with its color, and as what the sentence is counted."""
    kind = OUR_SENTENCE if sentence.is_ours else sentence.counted_as
    badge = f'<span class="badge {part_of(entry.verdict)}" data-kind="{kind}">'
    return f"{badge}{escape(entry.label)}</span>"


def _state_number(study: Study, entry: ReadingVerdict) -> str:
    """Return the number that decides, in how many cases, and why, in Markdown."""
    row = entry.deciding
    number = row["number"] or (row["ours"] if row["ours"] != COMMITTED else "")
    texts = [entry.count_cases(study.sections.names), number]
    stated = [markdown(f"{text[0].upper()}{text[1:].rstrip('.')}.") for text in texts if text]
    why = f"<details><summary>why</summary>{markdown(row['because'])}</details>"
    return " ".join([*stated, *[why] * bool(row["because"])])

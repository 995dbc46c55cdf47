"""The sections of a study that say what shows its runs, and what judges them, typed."""

from typing import Annotated, Literal

from msgspec import Meta, field

from concord.options import Options, Some
from concord_studies.claims.checks import KINDS
from concord_studies.claims.claim import Claim
from concord_studies.configuration.sections import Id, Keys, Sections

Template = Annotated[str, Meta(pattern=r"^[A-Za-z0-9{][A-Za-z0-9_{}]*$(?!\n)")]


class Output(Options):
    """A figure or table: its kind with options, its runs and its texts."""

    kind: Annotated[str, "module of src/concord_studies/figures or src/concord_studies/tables"]
    title: Annotated[str, "short title, used in the report"]
    runs: Annotated[
        Some[str | Keys], "runs shown: experiment ids, or {experiment: id, axis: label or [labels]}"
    ]
    caption: Annotated[str, "what is seen and what for, in two sentences for strangers"] = ""
    printed: Annotated[str, "what the paper shows there"] = ""
    ours: Annotated[str, "what is shown here, where it differs, and how to read it"] = ""
    options: Annotated[Keys, "options of the kind"] = {}


class Check(Options, forbid_unknown_fields=False):
    """A check's kind; its options follow, and ``both``: keys that its quantities share."""

    kind: Annotated[
        Literal[tuple(KINDS)] | None,  # type: ignore[valid-type]
        "what is compared, and how; a rule may set it",
    ] = None


Axes = Annotated[dict[str, Some[bool | int | float | str | Keys | None]], Meta(min_length=1)]


class Family(Claim, kw_only=True):
    """A claim; with ``for`` one for each of its cells (``concord_studies.configuration.cases``)."""

    check: Annotated[Check, "check kind and its options"]
    reason: Annotated[str, "why this rule and tolerance"] = ""
    printed: Annotated[str, "what is printed, as it is printed"] = ""
    cells: Annotated[
        Axes | None,
        "axis: values that {axis} takes in the id and all texts, or mappings of placeholders",
    ] = field(name="for", default=None)
    cases: Annotated[
        Axes | None, "the same for sub-cases of one sentence; a claim holds if all of them do"
    ] = None


class AllSections(Sections):
    """The sections of a study, each in one of its files."""

    figures: Annotated[dict[Id, Output], "figures by id"] = {}
    tables: Annotated[dict[Id, Output], "tables by id"] = {}
    claims: Annotated[dict[Template, Family], "the paper's claims, by id"] = {}

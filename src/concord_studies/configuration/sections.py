"""The sections of a study's files, typed.

What a run, a problem, a figure's options and a claim's check hold is checked by their kinds.
"""

from typing import Annotated, Any, Literal

from msgspec import Meta, field

from concord.options import Count, Index, Options, Some
from concord_studies.claims.checks import KINDS
from concord_studies.claims.claim import Because, Claim
from concord_studies.claims.texts import Number

ID = "an id of letters, digits and _"
Id = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_]*$(?!\n)", title=ID)]
Keys = dict[str, Any]
SomeKeys = Annotated[dict[str, Any], Meta(min_length=1)]
Template = Annotated[str, Meta(pattern=r"^[A-Za-z0-9{][A-Za-z0-9_{}]*$(?!\n)", title=ID)]
Axes = Annotated[dict[str, Some[bool | int | float | str | Keys | None]], Meta(min_length=1)]


class About(Options):
    """The paper that a study reproduces: title, authors, year and where it appeared."""

    title: Annotated[str, "title of the paper"]
    authors: Annotated[str, "authors of the paper"]
    year: Annotated[int, "year of the version reproduced"]
    samplers: Annotated[str, "the samplers that it proposes, by which the site lists it"] = ""
    reference: Annotated[str, "where it appeared"] = ""
    read: Annotated[str, "what of it could be read, and what could not; none: all"] = ""
    images: Annotated[str, "what its figures were judged from, where no image was seen"] = ""

    @property
    def was_read(self) -> bool:
        """Whether the print itself was read, and not its abstract or its code alone."""
        return not self.read or self.read.startswith(("the print", "the whole text"))


class Reads(Options):
    """The metric or agent that claims read of a run in place of the named one."""

    metric: Annotated[dict[str, str], "metric that claims name: the metric read for it"] = {}
    agent: Annotated[Index | None, "agent that is read for agent 0"] = None


class Alternative(Options):
    """Another defensible value of an assumption, run by the multiverse.

    It sets keys of runs, or lets claims read something else of them, or both.
    """

    label: Annotated[
        str,
        Meta(
            pattern=r"^[a-z0-9][a-z0-9_]{0,39}$(?!\n)",
            title="small letters, digits and _",
        ),
        "short name, the only one of its assumption",
    ]
    says: Annotated[str, "what it is, in words"]
    reason: Annotated[str, "why it is defensible"]
    set: Annotated[Keys, "keys to set, dotted or nested, of the runs that rest on it"] = {}
    when: Annotated[
        SomeKeys | None, "of the runs that rest on it just those, as of rests; none: all of them"
    ] = None
    reads: Annotated[Reads, "what claims read of these runs"] = Reads()


class Assumption(Options):
    """A value that the paper does not state, with its reason and alternatives."""

    value: Annotated[
        str, "our choice, as a caption would put it; settings of the runs that rest on it in braces"
    ]
    reason: Annotated[str, "why this choice"] = "not stated"
    rests: Annotated[
        SomeKeys | None,
        "key of the run: value, or list of values, of the runs that rest on it; none: all do",
    ] = None
    shown: Annotated[
        SomeKeys | None, "axis: label, or list of labels; captions of other runs leave it out"
    ] = None
    of: Annotated[
        Some[str] | None, "families of metrics; captions of others leave it out; none: of all"
    ] = None
    alternatives: Annotated[
        tuple[Alternative, ...], "other defensible values, one by one in the place of ours"
    ] = ()
    fixed: Annotated[
        str, "why there are none: no other is defensible, or none can turn a verdict"
    ] = ""


class Erratum(Options):
    """A place where the paper's text is inconsistent."""

    where: Annotated[str, "equation, theorem or section"]
    text: Annotated[str, "what is inconsistent, and what Concord uses"]


class Discrepancy(Options):
    """A place where the released code differs from the paper's text."""

    text: Annotated[str, "the text"]
    code: Annotated[str, "what the released code computes"]
    checked_by: Annotated[str, "id of the claim that shows the difference"] = ""


class Problem(Options, forbid_unknown_fields=False):
    """A named problem of a study's experiments; the options of its kind follow."""

    kind: Annotated[str, "module of src/concord/problems/kinds"]


class Override(Options):
    """A change of keys for the cells of a sweep that match its labels."""

    when: Annotated[SomeKeys, "axis: label, or list of labels, that the cell must have"]
    set: Annotated[Keys | None, "keys of the run to set; null: the cell is no run"]


class Experiment(Options, forbid_unknown_fields=False):
    """An experiment: its sweep and overrides, beside the keys of a run."""

    title: Annotated[str, "what the experiment shows"] = ""
    sweep: Annotated[
        dict[str, Some[Any] | SomeKeys],
        "axes: a list of values, {key, values}, or {label: keys to set}",
    ] = {}
    overrides: Annotated[tuple[Override, ...], "changes to the cells of the sweep that match"] = ()
    jobs: Annotated[
        Count | None, "jobs among which its runs are divided; none: by how long the chains are"
    ] = None
    smoke: Annotated[Keys, "keys of the run to set at smoke scale"] = {}
    full: Annotated[
        Keys,
        "keys of the run to set at full scale, and a sweep whose axes take the place of others",
    ] = {}


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
    numbers: Annotated[dict[Id, Number], "numbers in these texts, {name}, by name"] = {}
    options: Annotated[Keys, "options of the kind"] = {}


class Check(Options, forbid_unknown_fields=False):
    """A check's kind and what its quantities share; the options of the kind follow."""

    kind: Annotated[
        Literal[tuple(KINDS)] | None,  # type: ignore[valid-type]
        "what is compared, and how; a rule may set it",
    ] = None
    both: Annotated[Keys, "keys that its quantities share"] = {}


class ClaimTemplate(Claim, kw_only=True):
    """A claim, or with ``for`` a template that ``configuration.cases`` fills in for each case."""

    check: Annotated[Check, "check kind and its options"]
    # A placeholder stands for a mapping.
    because: Annotated[
        Because | Annotated[str, Meta(pattern=r"^\{\w+\}$(?!\n)", title="a placeholder")],
        "why the verdict is what it is: for each verdict a sentence, or a placeholder of them",
    ] = Because()  # type: ignore[assignment]
    reason: Annotated[str, "why this rule and tolerance"] = ""
    printed: Annotated[str, "what is printed, as it is printed"] = ""
    cells: Annotated[
        Axes | None,
        "axis: values that {axis} takes in the id and all texts, or mappings of placeholders",
    ] = field(name="for", default=None)
    cases: Annotated[
        Axes | None, "the same for sub-cases of one sentence; a claim holds if all of them do"
    ] = None


class Sections(Options):
    """The sections of a study, each in one of its files."""

    paper: Annotated[About | None, "which paper this is"] = None
    readings: Annotated[
        dict[str, str | dict[str, str]],
        "readings that runs follow, with their meaning, or the meaning for each problem; "
        "published, released and corrected have one",
    ] = {}
    assumptions: Annotated[dict[str, Assumption], "values the paper does not state, by id"] = {}
    errata: Annotated[dict[str, Erratum], "inconsistencies of the paper's text, by id"] = {}
    discrepancies: Annotated[
        dict[str, Discrepancy], "where the released code differs from the text, by id"
    ] = {}
    released_code: Annotated[
        str, "what is known of the released code, where there are no discrepancies to state"
    ] = ""
    problems: Annotated[
        dict[str, Problem], "problems that experiments name; runs that name one share its data"
    ] = {}
    defaults: Annotated[Keys, "keys of runs that all experiments share unless they set them"] = {}
    experiments: Annotated[
        Annotated[dict[Id, Experiment], Meta(min_length=1)] | None, "experiments by id"
    ] = None
    names: Annotated[
        dict[str, str],
        "what readers see in place of a label's value, of one label's (problem=noise: unknown "
        "noise), or of the key of numbers; in figures, tables and cases of claims",
    ] = {}
    colors: Annotated[
        dict[str, Annotated[str, Meta(pattern="^#[0-9A-Fa-f]{6}$")]],
        "colors of labels' values, such as a paper's own methods, in curves",
    ] = {}
    figures: Annotated[dict[Id, Output], "figures by id"] = {}
    tables: Annotated[dict[Id, Output], "tables by id"] = {}
    numbers: Annotated[
        dict[Id, Number], "numbers in texts of figures and tables, each of the runs shown there"
    ] = {}
    claims: Annotated[dict[Template, ClaimTemplate], "the paper's claims, by id"] = {}

"""Options that several kinds of figures share."""

from typing import Annotated, Literal

from concord_studies.option_notes import NamesLabel, NamesRuns

Rows = Annotated[str | None, NamesLabel("label with one row of panels per value")]
Columns = Annotated[str | None, NamesLabel("label with one column of panels per value")]
Select = Annotated[
    dict | None, NamesRuns("runs drawn: {label: value or [values]}; a list sets the order")
]
Names = Annotated[dict | None, "other texts for values, or symbols for labels"]
Width = Annotated[
    Literal["auto", "column", "full"],
    "column (3.4 in), full (7 in), or auto: full for panels side by side",
]
Sharing = Annotated[Literal["all", "row", "none"], "panels with one y axis"]
Scale = Literal["linear", "log"]
Limits = tuple[float | None, float | None] | None

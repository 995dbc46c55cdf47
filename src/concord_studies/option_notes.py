"""Descriptions of options that name parts of the runs shown, for checks and the editor's schema."""


class NamesLabel(str):
    """The description of an option that names a label or parameter of the runs shown."""


class NamesRuns(str):
    """The description of an option that selects runs by labels, {label: value or [values]}."""


class NamesIterations(str):
    """The description of an option that names iterations recorded by the runs shown."""

"""The schemas that files of configuration must fit, and what is said where one does not."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from concord.errors import ConcordError, nearest, short

SCHEMAS = Path(__file__).parent / "schemas"


def validate(value: Any, schema: str, path: Path | str) -> None:
    """Check ``value`` against ``schemas/<schema>.schema.json``.

    Raises
    ------
    ConcordError
        For the first violation, with file, key, value and remedy.
    """
    import jsonschema

    errors = list(_validator(schema).iter_errors(value))
    if errors:
        raise ConcordError(_schema_message(jsonschema.exceptions.best_match(errors), path))


@cache
def schema_of(name: str) -> dict[str, Any]:
    """Return a schema."""
    document: dict[str, Any] = json.loads((SCHEMAS / f"{name}.schema.json").read_text())
    return document


@cache
def _validator(schema: str) -> Any:
    import jsonschema

    base = jsonschema.Draft202012Validator
    # JSON takes 1.0 for an integer; a run made with it would not be the run made with 1.
    types = base.TYPE_CHECKER.redefine("integer", lambda _, value: type(value) is int)
    return jsonschema.validators.extend(base, type_checker=types)(schema_of(schema))


def _schema_message(error: Any, path: Path | str) -> str:
    key = ".".join(str(part) for part in error.absolute_path)
    where = f"{path}: {key}" if key else f"{path}"
    if error.validator == "additionalProperties":
        known = error.schema.get("properties", {})
        unknown = next(k for k in error.instance if k not in known)
        return f"{where}{'.' if key else ': '}{unknown}: unknown key; {nearest(unknown, known)}"
    if error.validator == "required":
        missing = next(k for k in error.validator_value if k not in error.instance)
        meaning = error.schema.get("properties", {}).get(missing, {}).get("description", "")
        return f"{where}: the key {missing!r} is missing; add it ({meaning})"
    if error.validator == "enum":
        return (
            f"{where}: {short(error.instance)} is not allowed; "
            f"{nearest(error.instance, map(str, error.validator_value))}"
        )
    if error.validator == "type":
        return f"{where}: {short(error.instance)} is not of type {error.validator_value}"
    hint = error.schema.get("description", "see config/README.md")
    return f"{where}: {short(error.instance)} does not fit ({error.validator}): {hint}"

"""The schemas that editors read: keys and options of studies, generated from the types.

Runs are merged from defaults, sweeps and overrides, so no part of one must be whole: there nothing
is required. Whatever is written is held to its type, its bounds and the options of its kind.
"""

from collections.abc import Mapping
from typing import Any, get_args

import msgspec

from concord import kinds
from concord.hints import meaning_of, members
from concord.kinds import options_of
from concord.options import Chosen, Options
from concord_studies.claims.checks import Check
from concord_studies.claims.quantities import Quantity
from concord_studies.configuration.config import Config
from concord_studies.configuration.sections import Sections
from concord_studies.runs.keys import Keys

REF = "#/$defs/"
DIALECT = "https://json-schema.org/draft/2020-12/schema"
OUTPUTS = ("figures", "tables")
PARTS = {  # what a run holds one kind of, with its options
    "samplers": "sampler",
    "problems": "problem",
    "topologies": "topology",
    "partitions": "partition",
    "schedules": "schedule",
    "initial": "initial",
    "compressions": "compression",
}
PLACEHOLDER = {"anyOf": [{"type": "string", "pattern": r"^\{\w+\}$"}, {"type": "null"}]}


def schema_of_options(execute: bool = True) -> dict[str, Any]:
    """Return the definitions (``$defs``) of all options in JSON Schema.

    Without ``execute`` those of plug-ins that nothing has used yet are left out.

    ``run`` and the ``PARTS`` of one, of which nothing is required; ``figures``,
    ``tables`` and ``claims``, which say what an entry's ``options`` or ``check`` are by its
    ``kind``; and what they refer to.
    """
    rooms = (*PARTS, *OUTPUTS, "layers")
    params = {package: _options_by_kind(package, execute) for package in rooms}
    runs = _option_classes(Keys, *(cls for package in PARTS for cls in params[package].values()))
    outputs = (cls for room in (*OUTPUTS, "layers") for cls in params[room].values())
    types = [*dict.fromkeys([*runs, *_option_classes(Check, *outputs)])]
    schemas, definitions = msgspec.json.schema_components(
        types,
        schema_hook=lambda chosen: {"$ref": f"{REF}{_name_definition(chosen)}"},
        ref_template=f"{REF}{{name}}",
    )
    names = {c: s["$ref"].removeprefix(REF) for c, s in zip(types, schemas, strict=False)}
    for cls, name in names.items():
        definition = definitions[name]
        if cls in runs:
            definition.pop("required", None)
        _describe(definitions, {name: cls})
        if cls is Quantity or issubclass(cls, get_args(Check)):
            # ``both`` may hold what is required, and ``for`` fills in placeholders.
            definition.pop("required", None)
            options = definition["properties"]
            options |= {name: {"anyOf": [option, PLACEHOLDER]} for name, option in options.items()}
            options["both"] = {"description": "keys that its quantities share", "type": "object"}
    run = definitions["run"] = definitions.pop(names[Keys])
    for package, part in PARTS.items():
        for kind, cls in params[package].items():
            keys = definitions[names[cls]].setdefault("properties", {})  # kinds may share options
            keys.setdefault("kind", {"enum": []})["enum"].append(kind)
        definitions[part] = {"anyOf": [{"$ref": REF + names[c]} for c in params[package].values()]}
    for cls in params["problems"].values():
        definitions[names[cls]]["properties"]["name"] = {"type": "string"}
    power = definitions[names[params["schedules"]["power"]]]["properties"]
    power["start"]["anyOf"].append({"type": "string"})  # perhaps over a symbol
    definitions["schedule"]["anyOf"].append({"type": "number", "exclusiveMinimum": 0})
    for part, word in (
        ("problem", {"type": "string"}),
        ("topology", {"enum": [*params["topologies"]]}),
    ):
        run["properties"][part] = {"anyOf": [run["properties"][part], word]}
    for package in OUTPUTS:
        definitions[package] = {
            "properties": {"kind": {"enum": [*params[package]]}},
            "allOf": [
                {
                    "if": {"properties": {"kind": {"const": kind}}, "required": ["kind"]},
                    "then": {"properties": {"options": {"$ref": REF + names[cls]}}},
                }
                for kind, cls in params[package].items()
            ],
        }
    of_layers = {
        kind: next(iter(keys.values())) if len(keys) == 1 else {"$ref": REF + names[cls]}
        for kind, cls in params["layers"].items()
        if (keys := definitions[names[cls]].get("properties"))
    }
    with_option = {"type": "object", "properties": of_layers, "additionalProperties": False}
    definitions["layer"] = {"anyOf": [{"enum": [*params["layers"]]}, with_option]}
    checks = [{"$ref": REF + names[cls]} for cls in get_args(Check)]
    definitions["claims"] = {"properties": {"check": {"anyOf": checks}}}
    return definitions


def _options_by_kind(package: str, execute: bool) -> dict[str, Any]:
    """Return the classes of options of a package's kinds, by kind.

    execute: whether files of plug-ins are executed for it.
    """
    names = [kind for kind in kinds.names(package) if execute or kinds.is_loaded(package, kind)]
    return {kind: options_of(kinds.find(package, kind, package)) for kind in names}


def _name_definition(chosen: type) -> str:
    """Return the name that the schema has for the definition of a type that parses itself."""
    return {**PARTS, "layers": "layer"}[chosen.room] if issubclass(chosen, Chosen) else "schedule"


def config_schema() -> dict[str, Any]:
    """Return the JSON Schema of ``config/config.yaml``."""
    (_,), definitions = msgspec.json.schema_components([Config], ref_template=f"{REF}{{name}}")
    _describe(definitions, {cls.__name__: cls for cls in _option_classes(Config)})
    schema = {"$schema": DIALECT, "title": "config/config.yaml", "$ref": f"{REF}Config"}
    return {**schema, "$defs": definitions}


def study_schema(execute: bool = True) -> dict[str, Any]:
    """Return the JSON Schema of a study's files; ``execute`` plug-ins for their options, too."""
    (_,), definitions = msgspec.json.schema_components([Sections], ref_template=f"{REF}{{name}}")
    _describe(definitions, {cls.__name__: cls for cls in _option_classes(Sections)})
    sections = definitions.pop("Sections")
    run = {"$ref": f"{REF}run"}
    options = schema_of_options(execute)
    experiment = definitions["Experiment"]
    of_experiment = experiment["properties"]
    of_axis = {"type": "object", "additionalProperties": {"anyOf": [run, {"type": "null"}]}}
    by_key = {"required": ["key", "values"], "properties": {"values": {"type": "array"}}}
    of_experiment["sweep"]["additionalProperties"] = {"anyOf": [{"type": "array"}, by_key, of_axis]}
    definitions["Override"]["properties"]["set"] |= {"anyOf": [run, {"type": "null"}]}
    of_experiment["smoke"] |= run
    keys_of_run = options["run"]["properties"]
    of_experiment["full"] |= {"properties": {**keys_of_run, "sweep": of_experiment["sweep"]}}
    experiment["properties"] = of_experiment | keys_of_run
    experiment["additionalProperties"] = False
    sections["properties"]["defaults"] |= run
    definitions["Problem"] |= {"$ref": f"{REF}problem"}
    for section in ("figures", "tables", "claims"):
        entries = sections["properties"][section]
        entry = entries["additionalProperties"]
        entries["additionalProperties"] = {"allOf": [entry, {"$ref": f"{REF}{section}"}]}
    schema = {"$schema": DIALECT, **sections}
    return {**schema, "title": "config/papers/<key>/*.yaml", "$defs": definitions | options}


def _describe(definitions: dict[str, Any], classes: Mapping[str, Any]) -> None:
    """Add the fields' descriptions to schema definitions; ``classes`` are by definition's name."""
    for name, cls in classes.items():
        for field in msgspec.structs.fields(cls):
            if note := meaning_of(field.type):
                definitions[name]["properties"][field.encode_name]["description"] = note


def _option_classes(*hints: Any) -> list[Any]:
    """Return the classes of options that types are made of, and those in their fields' types."""
    classes = []
    for option, _ in (member for hint in hints for member in members(hint)):
        if isinstance(option, type) and issubclass(option, Options):
            fields = msgspec.structs.fields(option)
            classes += [option, *_option_classes(*(field.type for field in fields))]
        else:
            classes += _option_classes(*get_args(option))
    return classes

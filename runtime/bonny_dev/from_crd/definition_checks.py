"""Definition checks: refuses a definition from which no classes can be made.

Everything that becomes part of a file's name, or of a line of Python, is checked here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import isfinite
from typing import Any, Final

from bonny.api.markers import LIST_KEYS, LIST_TYPE, MAP_TYPE
from bonny.api.rules import RULES
from bonny.api.stored import as_stored
from bonny.errors import UsageError
from bonny.kinds import Scope
from bonny.resource import Resource

from ..crd.definition import DEFINITION_BYTES
from ..crd.tree import inside
from ..crd.validation import problems
from ..install import CRD
from ..naming import check_class, check_plural, check_version

NAME: Final = re.compile(r"[a-z0-9-]+(\.[a-z0-9-]+)+")
"""The name of a definition: plural and group."""

_TEXTS: Final = ("metadata.name", "spec.group", "spec.scope", "spec.names.kind", "spec.names.plural")
_VALUES: Final[dict[str, type | tuple[type, ...]]] = {
    **dict.fromkeys(("type", "format", "description", "pattern", LIST_TYPE, MAP_TYPE), str),
    **dict.fromkeys(("minimum", "maximum", "multipleOf"), (int, float)),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"), int),
    **dict.fromkeys(("enum", "required", LIST_KEYS, RULES, "oneOf", "anyOf", "allOf"), list),
    **dict.fromkeys(("properties", "items", "not"), dict),
    "additionalProperties": (dict, bool),
}
_TEXT: Final[Resource] = {"type": "string"}
_LABELS: Final[Resource] = {"type": "object", "additionalProperties": _TEXT}


def _object(*texts: str, required: tuple[str, ...] = (), **others: Resource) -> Resource:
    return {"type": "object", "required": list(required), "properties": {**dict.fromkeys(texts, _TEXT), **others}}


def _list_of(item: Resource) -> Resource:
    return {"type": "array", "items": item}


_RULE: Final = _object(
    "rule",
    "message",
    "messageExpression",
    "reason",
    "fieldPath",
    required=("rule",),
    optionalOldSelf={"type": "boolean"},
)
_PATHS: Final = ("specReplicasPath", "statusReplicasPath")
_VERSION: Final = _object(
    "deprecationWarning",
    subresources=_object(status=_object(), scale=_object(*_PATHS, "labelSelectorPath", required=_PATHS)),
    selectableFields=_list_of(_object("jsonPath", required=("jsonPath",))),
    additionalPrinterColumns=_list_of(
        _object(
            *("name", "type", "jsonPath", "description", "format"),
            required=("name", "type", "jsonPath"),
            priority={"type": "integer"},
        )
    ),
)
# The types of all parts that become Python, apart from the schemas.
_DEFINITION: Final = _object(
    metadata=_object(labels=_LABELS, annotations=_LABELS),
    spec=_object(
        names=_object("singular", "listKind", shortNames=_list_of(_TEXT), categories=_list_of(_TEXT)),
        conversion=_object("strategy"),
        versions=_list_of(_VERSION),
    ),
)
# JSON inside JSON: a field of an object is two levels below the object. Pod templates need 30.
_DEPTH: Final = 100


def checked(where: str, crd: Resource) -> Resource:
    """`crd`, whose place is called `where`. Raises: `UsageError` when it lacks a field that every definition has."""
    _check_values(where, crd)
    if crd.get("apiVersion") != CRD.api_version:
        raise UsageError(
            f"{where} is a definition of {crd.get('apiVersion')}, which no supported Kubernetes serves: convert it to "
            f"{CRD.api_version}"
        )
    for path in _TEXTS:
        if not isinstance(at(crd, *path.split(".")), str):
            raise UsageError(f"{where} has no {path}, which every definition has: add it")
    name, spec = crd["metadata"]["name"], crd["spec"]
    check_class(spec["names"]["kind"])
    check_plural(spec["names"]["plural"])
    if name != f"{spec['names']['plural']}.{spec['group']}" or not NAME.fullmatch(name):
        raise UsageError(f"{where} has the name {name!r}: a definition is called plural.group")
    if spec["scope"] not in list(Scope):
        raise UsageError(f"{where} has the scope {spec['scope']!r}: write Namespaced or Cluster")
    if not isinstance(spec.get("versions"), list) or not spec["versions"]:
        raise UsageError(f"{where} has no spec.versions: add one")
    for version in spec["versions"]:
        _check_version(where, version)
    if problem := next(problems(as_stored(crd, _DEFINITION, prune=False), _DEFINITION, ""), ""):
        raise UsageError(f"{where} cannot be read at {problem.removeprefix('.')}: correct it")
    if not any(has_fields(version) for version in spec["versions"]):
        raise UsageError(
            f"{where} has no schema with fields in version {spec['versions'][0]['name']}, so there is nothing to make "
            "classes from: add schema.openAPIV3Schema"
        )
    return crd


def has_fields(version: Resource) -> bool:
    """Whether the schema of a version has fields, of which classes can be made."""
    return bool(at(version, "schema", "openAPIV3Schema", "properties"))


def _check_values(where: str, crd: Resource) -> None:
    """Refuse values that JSON does not have, and more of them, or deeper ones, than a definition can have."""
    size = 0
    rest: list[tuple[str, int, Any]] = [("", 0, crd)]
    while rest:
        path, depth, value = rest.pop()
        size += len(value) + 2 if isinstance(value, str | list | dict) else 1
        if size > DEFINITION_BYTES or depth > _DEPTH:
            raise UsageError(
                f"{where} is too large with its YAML aliases written out: a definition has up to {DEFINITION_BYTES:,} "
                f"bytes and {_DEPTH} levels, and there are more at {path[:100]}; write a smaller one"
            )
        if isinstance(value, dict):
            rest += ((f"{path}.{name}", depth + 1, each) for name, child in value.items() for each in (name, child))
        elif isinstance(value, list):
            rest += ((f"{path}[{index}]", depth + 1, child) for index, child in enumerate(value))
        if problem := _problem_of(value):
            raise UsageError(f"{where} has {problem} at {path or 'its top'}: correct it")


def _problem_of(value: Any) -> str:
    match value:
        case dict() if names := [name for name in value if not isinstance(name, str)]:
            return f"the name {names[0]!r}, which needs quotes"
        case {"$ref": str()}:
            return "a $ref, which no definition can have"
        case str() if "\0" in value or value.encode(errors="replace").decode() != value:
            return "a text with a character that a file cannot have"
        case float() if not isfinite(value):
            return f"the number {value}, which JSON does not have"
        case dict() | list() | str() | int() | float() | None:
            return ""
    return f"a value of the type {type(value).__name__}, which JSON does not have"


def at(value: Any, *path: str) -> Any:
    """The part of `value` at a path; None where there is none."""
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _check_version(where: str, version: Any) -> None:
    if missing := [key for key in ("name", "served", "storage") if at(version, key) is None]:
        raise UsageError(f"{where} has a version without {missing[0]}: add it")
    for key in ("served", "storage", "deprecated"):
        if not isinstance(version.get(key, False), bool):
            raise UsageError(f"{where} has a version whose {key} is {version[key]!r}: write true or false")
    name = check_version(str(version["name"]))
    schema = at(version, "schema", "openAPIV3Schema")
    if path := schema is not None and _malformed(schema):
        raise UsageError(f"{where} has a schema in version {name} that cannot be read at {path}: correct it")


def _malformed(schema: Any, path: str = "") -> str:
    """The path of the first keyword that has no value of its kind; empty for none."""
    if not isinstance(schema, dict):
        return path
    for key, value in schema.items():
        if not isinstance(value, _VALUES.get(key, object)):
            return f"{path}: {key}"
    if not all(isinstance(each, str) for key in ("required", LIST_KEYS) for each in schema.get(key, ())):
        return f"{path}: required"
    if any(next(problems(rule, _RULE, "", strict=True), "") for rule in schema.get(RULES, ())):
        return f"{path}: {RULES}"
    return next(filter(None, (_malformed(child, f"{path}{step}") for step, child in inside(schema))), "")

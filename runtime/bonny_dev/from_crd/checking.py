"""Checking: refuses a definition from which no classes can be made.

Everything that becomes part of a file's name, or of a line of Python, is checked here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from bonny.api.markers import LIST_KEYS, LIST_TYPE, MAP_TYPE
from bonny.api.rules import RULES
from bonny.errors import UsageError
from bonny.kinds import Scope
from bonny.naming import check_kind, check_plural, check_version
from bonny.resource import Resource

from ..crd.tree import inside
from ..install import CRD

NAME: Final = re.compile(r"[a-z0-9-]+(\.[a-z0-9-]+)+")
"""The name of a definition: plural and group."""

_TEXTS: Final = ("metadata.name", "spec.group", "spec.scope", "spec.names.kind", "spec.names.plural")
_VALUES: Final[dict[str, type | tuple[type, ...]]] = {
    **dict.fromkeys(("type", "format", "description", "pattern", LIST_TYPE, MAP_TYPE), str),
    **dict.fromkeys(("minimum", "maximum", "multipleOf"), (int, float)),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"), int),
    **dict.fromkeys(("enum", "required", LIST_KEYS, RULES), list),
    "properties": dict,
    "items": dict,
}


def checked(where: str, crd: Resource) -> Resource:
    """`crd`, whose place is called `where`. Raises: `UsageError` when it lacks what every definition has."""
    if crd.get("apiVersion") != CRD.api_version:
        raise UsageError(
            f"{where} is a definition of {crd.get('apiVersion')}, which no supported Kubernetes serves: convert it to "
            f"{CRD.api_version}"
        )
    for path in _TEXTS:
        if not isinstance(at(crd, *path.split(".")), str):
            raise UsageError(f"{where} has no {path}, which every definition has: add it")
    name, spec = crd["metadata"]["name"], crd["spec"]
    check_kind(spec["names"]["kind"])
    check_plural(spec["names"]["plural"])
    if name != f"{spec['names']['plural']}.{spec['group']}" or not NAME.fullmatch(name):
        raise UsageError(f"{where} has the name {name!r}: a definition is called plural.group")
    if spec["scope"] not in list(Scope):
        raise UsageError(f"{where} has the scope {spec['scope']!r}: write Namespaced or Cluster")
    if not isinstance(spec.get("versions"), list) or not spec["versions"]:
        raise UsageError(f"{where} has no spec.versions: add one")
    for version in spec["versions"]:
        _check_version(where, version)
    return crd


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
    if not at(schema, "properties"):
        raise UsageError(
            f"{where} has no schema with fields in version {name}, so there is nothing to make classes from: add "
            "schema.openAPIV3Schema"
        )
    if path := _malformed(schema):
        raise UsageError(f"{where} has a schema in version {name} that cannot be read at {path}: correct it")


def _malformed(schema: Any, path: str = "") -> str:
    """The path of the first keyword that has no value of its kind; empty for none."""
    if not isinstance(schema, dict):
        return path
    for key, value in schema.items():
        if not isinstance(value, _VALUES.get(key, object)):
            return f"{path}: {key}"
    if not all(isinstance(at(rule, "rule"), str) for rule in schema.get(RULES, ())):
        return f"{path}: {RULES}"
    return next(filter(None, (_malformed(child, f"{path}{step}") for step, child in inside(schema))), "")

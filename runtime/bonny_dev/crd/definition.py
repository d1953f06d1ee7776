"""CRD: the CustomResourceDefinitions made from version classes.

You need it to install or print the definitions of your kinds: `crds(versions, "example.com")`.
You do not need it to declare a kind (`version`) or to see one schema (`schema`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from inspect import iscoroutinefunction
from itertools import pairwise
from typing import Any, Final, TypeAlias

import msgspec

from bonny.api.conversion import fields_of, has_functions
from bonny.api.stored import types_of
from bonny.api.version import Column, Scale, Version, object_model
from bonny.errors import OptionError, UsageError
from bonny.naming import check_tuple
from bonny.resource import Resource

from ..naming import APPROVAL, check_group, check_plural
from .names import check_version_class
from .schema_checks import checked_schema, field_at
from .types import check_types

Set: TypeAlias = list[type[Version]]
"""All versions of one kind."""

# etcd refuses requests above 1.5 MiB (--max-request-bytes); the API server adds a status and whose the fields are.
DEFINITION_BYTES: Final = 1_500_000

WARNING_BYTES: Final = 256
"""The longest deprecation warning that the API server allows."""

SELECTABLE: Final = 8
"""How many fields of a version the API server lets clients select by."""

# As Kubernetes sorts the versions of a CRD: stable before beta before alpha, then the higher number.
_STABILITY: Final = {"": 2, "beta": 1, "alpha": 0}


def crds(versions: Iterable[type[Version]], group: str) -> list[Resource]:
    """One CustomResourceDefinition a kind, sorted by name; `group` is that of versions which name none.

    Guarantees: equal input in any order gives equal output.
    Raises: `OptionError` naming the class, and the field where there is one.
    """
    definitions = sorted((_definition(each, group) for each in _sets(versions, group)), key=_name)
    for one, other in pairwise(definitions):
        if _name(one) == _name(other):
            kinds = f"{one['spec']['names']['kind']} and {other['spec']['names']['kind']}"
            raise OptionError(f"{kinds} have the same plural: {_name(one)} can name only one; give one another plural")
    return definitions


def _name(definition: Resource) -> str:
    return str(definition["metadata"]["name"])


def _sets(versions: Iterable[type[Version]], group: str) -> list[Set]:
    """The versions by group and kind, each set with the most stable version first."""
    sets: dict[tuple[str, str], Set] = {}
    for version in versions:
        if hasattr(version, "kind"):  # not a base class that several kinds share
            check_version_class(version)
            sets.setdefault((version.group or group, version.kind), []).append(version)
    return [sorted(sets[key], key=_priority, reverse=True) for key in sorted(sets)]


def _priority(version: type[Version]) -> tuple[int, int, int]:
    match = re.fullmatch(r"v(\d+)(?:(alpha|beta)(\d+))?", version.version)
    if match is None:
        raise AssertionError(f"{version.version} was checked before")
    return _STABILITY[match[2] or ""], int(match[1]), int(match[3] or 0)


def _definition(versions: Set, default_group: str) -> Resource:
    hub = _only(versions, "hub", default_group)
    _only(versions, "storage", default_group)
    if not hub.served:
        raise OptionError(
            f"{_place(hub)} is the hub and not served, so the operator could not read it: set served = True"
        )
    for version in versions:
        _check_names(version)
        check_types(version)
    for version in versions:
        _agree(version, hub)
    group = check_group(hub.group or default_group, approved=APPROVAL in hub.crd_annotations)
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{hub.plural}.{group}"}
        | without_empty(labels=dict(hub.crd_labels), annotations=dict(hub.crd_annotations)),
        "spec": {
            "group": group,
            "names": _names(hub),
            "scope": hub.scope.value,
            "versions": [_version(version) for version in versions],
        },
    }
    size = len(msgspec.json.encode(definition))
    if size > DEFINITION_BYTES:
        raise OptionError(
            f"the definition of {hub.kind} has {size:,} bytes, and the API server can store {DEFINITION_BYTES:,}: "
            "embed fewer built-in types (a pod template is 62 kB), or keep them unchecked with PreserveUnknown"
        )
    return definition


def _only(versions: Set, flag: str, group: str) -> type[Version]:
    """The one version with `flag` set."""
    names = [version.version for version in versions]
    if len(set(names)) < len(names):
        places = ", ".join(_place(version) for version in versions)
        raise OptionError(f"a version of {versions[0].kind} is declared twice ({places}): remove one")
    chosen = [version for version in versions if getattr(version, flag)]
    if len(chosen) != 1:
        is_set = f"{len(chosen)} versions with" if chosen else "no version with"
        raise OptionError(
            f"{versions[0].kind} ({versions[0].group or group}) has {is_set} {flag} = True: "
            f"set it on exactly one of {', '.join(names)}"
        )
    return chosen[0]


def _check_names(version: type[Version]) -> None:
    """Refuse names for kubectl that are not names; for reading and writing objects they do not matter."""
    try:
        check_tuple(version.__name__, "short_names", version.short_names, str, '"wd"')
        check_tuple(version.__name__, "categories", version.categories, str, '"all"')
        check_tuple(version.__name__, "columns", version.columns, Column, "AGE")
        for name in version.short_names:
            check_plural(name, "short name", example="ct")
        for name in version.categories:
            check_plural(name, "category", example="all")
    except UsageError as error:
        raise OptionError(f"class {version.__qualname__} in {version.__module__}: {error}") from None


def _agree(version: type[Version], hub: type[Version]) -> None:
    """Refuse versions of a kind that differ in something that all of them share."""
    for name in ("plural", "singular", "scope", "short_names", "categories", "crd_labels", "crd_annotations"):
        if getattr(version, name) != getattr(hub, name):
            raise OptionError(
                f"{name} of {_place(version)} and {_place(hub)} differ: a kind has one for all of its versions"
            )
    fields = fields_of(types_of(object_model(version).model)), fields_of(types_of(object_model(hub).model))
    if fields[0] != fields[1] and (version.served or version.storage) and not has_functions(version):
        field = _first_difference(*fields).removeprefix(".")
        raise OptionError(
            f"{hub.kind} {version.version} and {hub.version} differ at {field}, and a copy of an object would lose it: "
            f"write to_hub and from_hub in {_place(version)}, or set served = False"
        )
    for function in (version.to_hub, version.from_hub):
        if iscoroutinefunction(function):
            raise OptionError(f"{function.__qualname__} is `async def`, and a conversion does not wait: write `def`")


def _first_difference(one: Resource, other: Resource, path: str = "") -> str:
    """The path of the first field in which two different results of `fields_of` differ."""
    fields = one.get("properties", {}), other.get("properties", {})
    for name in sorted(fields[0].keys() | fields[1].keys()):
        pair = fields[0].get(name), fields[1].get(name)
        if pair[0] != pair[1]:
            return f"{path}.{name}" if None in pair else _first_difference(*pair, f"{path}.{name}")
    for name in ("items", "additionalProperties"):
        if name in one and name in other and one[name] != other[name]:
            return _first_difference(one[name], other[name], path)
    return path


def _names(hub: type[Version]) -> Resource:
    return without_empty(
        kind=hub.kind,
        listKind=f"{hub.kind}List",
        plural=hub.plural,
        singular=hub.singular,
        shortNames=list(hub.short_names),
        categories=list(hub.categories),
    )


def _version(version: type[Version]) -> Resource:
    schema, warning = checked_schema(version), version.deprecation_warning
    if warning and not (version.deprecated and warning.isprintable() and len(warning.encode()) <= WARNING_BYTES):
        raise OptionError(
            f"deprecation_warning of {_place(version)} is {warning!r}: use one line of at most {WARNING_BYTES} bytes, "
            "and only with deprecated = True"
        )
    subresources: Resource = {} if version.status_model() is None else {"status": {}}
    if version.scale is not None:
        subresources["scale"] = _scale(version, version.scale, schema)
    flags = {"served": version.served, "storage": version.storage}
    return {"name": version.version, **flags} | without_empty(
        deprecated=version.deprecated,
        deprecationWarning=warning,
        schema={"openAPIV3Schema": schema},
        subresources=subresources,
        selectableFields=[{"jsonPath": path} for path in _selectable(version, schema)],
        additionalPrinterColumns=[_column(version, column, schema) for column in version.columns],
    )


def _scale(version: type[Version], scale: Scale, schema: Resource) -> Resource:
    where = f"scale of {_place(version)}"
    described = {
        "specReplicasPath": _path(scale.spec_replicas, schema, where, types=("integer",), below=(".spec.",)),
        "statusReplicasPath": _path(scale.status_replicas, schema, where, types=("integer",), below=(".status.",)),
    }
    if scale.selector:
        either = (".spec.", ".status.")
        described["labelSelectorPath"] = _path(scale.selector, schema, where, types=("string",), below=either)
    return described


def _selectable(version: type[Version], schema: Resource) -> tuple[str, ...]:
    where = f"selectable of {_place(version)}"
    if len(set(version.selectable)) < len(version.selectable) or len(version.selectable) > SELECTABLE:
        raise OptionError(f"{where} has {len(version.selectable)} paths: name up to {SELECTABLE}, each once")
    for path in version.selectable:
        _path(path, schema, where, types=("string", "boolean", "integer"), below=(".spec.", ".status."))
    return version.selectable


def _path(path: str, schema: Resource, where: str, *, types: tuple[str, ...], below: tuple[str, ...]) -> str:
    """A path that the API server reads values at; it takes any, and finds nothing at a wrong one."""
    field = field_at(schema, path)
    if not path.startswith(below) or "[" in path or field is None or field.get("type") not in types:
        raise OptionError(
            f"{where} names {path!r}: name a field of type {' or '.join(types)} below {' or '.join(below)}, with the "
            "names of YAML"
        )
    return path


def shows(path: str, schema: Resource) -> bool:
    """Whether the path of a column leads to a field. Every path outside of spec and status does."""
    checked = path.startswith((".spec", ".status"))
    return path[:1] == "." and not (checked and field_at(schema, path) is None)


def _column(version: type[Version], column: Column, schema: Resource) -> Resource:
    if not shows(column.path, schema):
        raise OptionError(
            f"column {column.name!r} of {_place(version)} names {column.path!r}, and there is no such field: "
            "write for example '.spec.size'"
        )
    return without_empty(
        name=column.name,
        type=column.type,
        jsonPath=column.path,
        format=column.format,
        description=column.description,
        priority=column.priority,
    )


def without_empty(**fields: Any) -> Resource:
    """As the API server writes it: a field that is false, zero or empty is left out."""
    return {name: value for name, value in fields.items() if value}


def _place(version: type[Version]) -> str:
    return f"{version.__module__}.{version.__qualname__}"

"""CRD: the CustomResourceDefinitions made from version classes.

You need it to install or print the definitions of your kinds: `crds(versions, "example.com")`.
You do not need it to declare a kind (`version`) or to see one schema (`schema`).
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable
from typing import Final, TypeAlias

from ..errors import OptionError
from ..resource import Resource
from .schema import difference, ordered, structural
from .version import Column, Version

__all__ = ["crds"]

Set: TypeAlias = list[type[Version]]
"""All versions of one kind."""

# As Kubernetes sorts the versions of a CRD: stable before beta before alpha, then the higher number.
_STABILITY: Final = {"": 2, "beta": 1, "alpha": 0}


def crds(versions: Iterable[type[Version]], group: str) -> list[Resource]:
    """One CustomResourceDefinition a kind, sorted by name; `group` is that of versions which name none.

    Guarantees: equal input in any order gives equal output.
    Raises: `OptionError` naming the class, and the field where there is one.
    """
    definitions = [_definition(found, group) for found in _sets(versions, group)]
    by_name: dict[str, Resource] = {}
    for definition in definitions:
        name = definition["metadata"]["name"]
        if name in by_name:
            kinds = sorted(each["spec"]["names"]["kind"] for each in (definition, by_name[name]))
            raise OptionError(
                f"{' and '.join(kinds)} have the same plural: {name} can name only one; give one another plural"
            )
        by_name[name] = definition
    return [by_name[name] for name in sorted(by_name)]


def _sets(versions: Iterable[type[Version]], group: str) -> list[Set]:
    """The versions by group and kind, each set with the most stable version first."""
    found: dict[tuple[str, str], Set] = {}
    for version in versions:
        if hasattr(version, "kind"):  # not a base class that several kinds share
            found.setdefault((version.group or group, version.kind), []).append(version)
    return [sorted(found[key], key=_priority, reverse=True) for key in sorted(found)]


def _priority(version: type[Version]) -> tuple[int, int, int]:
    match = re.fullmatch(r"v(\d+)(?:(alpha|beta)(\d+))?", version.version)
    if match is None:
        raise AssertionError(f"{version.version} was checked when its class was made")
    return _STABILITY[match[2] or ""], int(match[1]), int(match[3] or 0)


def _definition(versions: Set, default_group: str) -> Resource:
    hub = _only(versions, "hub", default_group)
    _only(versions, "storage", default_group)
    if not hub.served:
        raise OptionError(
            f"{_place(hub)} is the hub and not served, so the operator could not read it: set served = True"
        )
    for version in versions:
        _agree(version, hub)
    group = hub.group or default_group
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{hub.plural}.{group}"},
        "spec": {
            "group": group,
            "names": _names(hub),
            "scope": hub.scope.value,
            "versions": [_version(version) for version in versions],
        },
    }


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


def _agree(version: type[Version], hub: type[Version]) -> None:
    """What is the same for all versions of a kind must be written the same."""
    for name in ("plural", "scope", "short_names", "categories"):
        if getattr(version, name) != getattr(hub, name):
            raise OptionError(
                f"{name} of {_place(version)} and {_place(hub)} differ: a kind has one for all of its versions"
            )
    path = difference(_schema(version), _schema(hub))
    if path is not None:
        field = re.sub(r"\.(properties|items|additionalProperties)(?=\.)", "", path).removeprefix(".")
        raise OptionError(
            f"{hub.kind} {version.version} and {hub.version} differ at {field}: all versions of a kind must have the "
            "same fields, because the API server copies objects unchanged from one to the other"
        )


def _names(hub: type[Version]) -> Resource:
    names: Resource = {
        "kind": hub.kind,
        "listKind": f"{hub.kind}List",
        "plural": hub.plural,
        "singular": hub.kind.lower(),
    }
    if hub.short_names:
        names["shortNames"] = list(hub.short_names)
    if hub.categories:
        names["categories"] = list(hub.categories)
    return names


def _version(version: type[Version]) -> Resource:
    described: Resource = {
        "name": version.version,
        "served": version.served,
        "storage": version.storage,
        "schema": {"openAPIV3Schema": _schema(version)},
    }
    if version.status_model() is not None:
        described["subresources"] = {"status": {}}
    if version.columns:
        described["additionalPrinterColumns"] = [_column(column) for column in version.columns]
    return described


def _schema(version: type[Version]) -> Resource:
    place = f"{version.kind} {version.version}"
    spec = structural(version.spec_model(), where=f"{place}: spec")
    schema: Resource = {"type": "object"}
    if version.__doc__:
        schema["description"] = inspect.cleandoc(version.__doc__)
    if version.rules:
        schema["x-kubernetes-validations"] = [
            {"rule": rule.expression, "message": rule.message} for rule in version.rules
        ]
    # Without a default the API server would fill in nothing inside of a spec that was left out.
    if spec.get("required"):
        schema["required"] = ["spec"]
    else:
        spec = ordered({**spec, "default": {}})
    schema["properties"] = {"spec": spec}
    status = version.status_model()
    if status is not None:
        schema["properties"]["status"] = structural(status, where=f"{place}: status")
    return schema


def _column(column: Column) -> Resource:
    described: Resource = {"name": column.name, "type": column.type, "jsonPath": column.path}
    if column.description:
        described["description"] = column.description
    if column.priority:
        described["priority"] = column.priority
    return described


def _place(version: type[Version]) -> str:
    return f"{version.__module__}.{version.__qualname__}"

"""Compare: the differences between two CustomResourceDefinitions, by path.

You need it in the test of a ported kind, which compares its classes with the definition they were made from, and to
see what a newer definition changes.

Spellings that mean the same to the API server (`canonical`), descriptions, the order of fields and versions, and
annotations of tools do not count.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from bonny.resource import Resource

from .canonical import canonical_object, comparable, undescribed, without

# Notes of tools: controller-gen, kubectl, helm.
_NOTES: Final = (
    "controller-gen.kubebuilder.io/version",
    "kubectl.kubernetes.io/last-applied-configuration",
    "meta.helm.sh/release-name",
    "meta.helm.sh/release-namespace",
)
_NOTHING: Final[tuple[object, ...]] = (None, "", [], {})


def differences(original: Resource, ours: Resource) -> list[str]:
    """A sentence for each difference, beginning with the version and the path; none for equal definitions.

    `v1 .spec.size: minimum is 1, not 0` means that `ours` has 1, and `original` 0.
    """
    one, other = _comparable(original), _comparable(ours)
    found = list(_compared(one["definition"], other["definition"], "definition"))
    for name in {**one["versions"], **other["versions"]}:
        if name not in other["versions"]:
            found.append(f"{name}: is missing")
        elif name not in one["versions"]:
            found.append(f"{name}: is new")
        else:
            found += _compared_versions(one["versions"][name], other["versions"][name], name)
    return found


def notable(entries: Mapping[str, str] | None) -> dict[str, str]:
    """The labels or annotations of a definition without the notes of tools."""
    return {key: value for key, value in (entries or {}).items() if key not in _NOTES}


def _comparable(crd: Resource) -> Resource:
    spec, names, metadata = crd["spec"], crd["spec"]["names"], crd["metadata"]
    conversion = spec.get("conversion") or {}
    return {
        "definition": {
            "name": metadata["name"],
            "labels": notable(metadata.get("labels")),
            "annotations": notable(metadata.get("annotations")),
            "group": spec["group"],
            "scope": spec["scope"],
            "singular": names["kind"].lower(),
            "listKind": f"{names['kind']}List",
            **{key: value for key, value in names.items() if value},
            "conversion": {} if conversion.get("strategy") == "None" else conversion,
        },
        "versions": {version["name"]: _comparable_version(version) for version in spec["versions"]},
    }


def _comparable_version(version: Resource) -> Resource:
    columns = version.get("additionalPrinterColumns") or []
    return {
        "served": version["served"],
        "storage": version["storage"],
        "deprecated": version.get("deprecated", False),
        "deprecationWarning": version.get("deprecationWarning") or "",
        "subresources": version.get("subresources") or {},
        "selectableFields": [each["jsonPath"] for each in version.get("selectableFields") or []],
        "columns": [{key: value for key, value in column.items() if value} for column in columns],
        "schema": comparable(canonical_object(undescribed((version.get("schema") or {}).get("openAPIV3Schema") or {}))),
    }


def _compared_versions(one: Resource, other: Resource, name: str) -> Iterator[str]:
    yield from _compared(without(one, "schema"), without(other, "schema"), name)
    yield from _schemas(one["schema"], other["schema"], f"{name} ")


def _schemas(one: Resource, other: Resource, where: str) -> Iterator[str]:
    content = ("properties", "items", "additionalProperties")
    yield from _compared(without(one, *content), without(other, *content), where)
    fields, others = one.get("properties", {}), other.get("properties", {})
    for sentence, names in (("lacks", fields.keys() - others.keys()), ("adds", others.keys() - fields.keys())):
        if names:
            yield f"{where.rstrip()}: {sentence} {', '.join(sorted(names))}"
    for name in (name for name in fields if name in others):
        yield from _schemas(fields[name], others[name], f"{where}.{name}")
    for key, suffix in (("items", "[]"), ("additionalProperties", ".*")):
        before, after = one.get(key), other.get(key)
        if isinstance(before, dict) and isinstance(after, dict):
            yield from _schemas(before, after, f"{where}{suffix}")
        else:
            yield from _compared({key: before}, {key: after}, where)


def _compared(one: Resource, other: Resource, where: str) -> Iterator[str]:
    """The keywords of one level that differ. An empty value is none, but for a default."""
    for key in dict.fromkeys((*one, *other)):
        before, after = one.get(key), other.get(key)
        if before == after and type(before) is type(after):
            continue
        said = f"{where.rstrip()}: {key}"
        nothing = (None,) if key == "default" else _NOTHING
        if after in nothing:
            yield f"{said} is missing (it was {_text(before)})"
        elif before in nothing:
            yield f"{said} is new ({_text(after)})"
        else:
            yield f"{said} is {_text(after)}, not {_text(before)}"


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)

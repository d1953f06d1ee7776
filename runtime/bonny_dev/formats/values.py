"""Values: the few values of a chart, each with its type, its default, and its place in the objects.

You need it to add a value: one line in `_of_pod` and its schema. The default of a value is what the manifest says at
its place, also after `Deploy(customize=...)`: with its own values, a chart installs what `invoke manifest` writes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, Final, NamedTuple

import yaml

from bonny.resource import Resource

from ..manifest.bundle import Dumper
from .templates import Appended, Expression, When, is_plain

STRINGS: Final[Resource] = {"type": "object", "additionalProperties": {"type": "string"}}
OBJECTS: Final[Resource] = {"type": "array", "items": {"type": "object"}}
NAMED: Final[Resource] = {
    "type": "array",
    "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string", "minLength": 1}}},
}
# A quantity as Kubernetes writes it; YAML reads `cpu: 2` as a number.
QUANTITIES: Final = {"type": "object", "additionalProperties": {"type": ["string", "number"]}}

SCHEMAS: Final[dict[str, Resource]] = {
    "affinity": {"type": "object"},
    "annotations": STRINGS,
    "imagePullSecrets": NAMED,
    "nodeSelector": STRINGS,
    "priorityClassName": {"type": "string"},
    "tolerations": OBJECTS,
    "imagePullPolicy": {"type": "string", "enum": ["", "Always", "IfNotPresent", "Never"]},
    "resources": {
        "type": "object",
        "additionalProperties": False,
        "properties": {"requests": QUANTITIES, "limits": QUANTITIES, "claims": OBJECTS},
    },
}


class ChartValue(NamedTuple):
    """One value: its name with dots, its default, its JSON schema, and a sentence about it."""

    name: str
    default: Any
    schema: Resource
    text: str


def flag(name: str, text: str, *, default: bool) -> ChartValue:
    """A value that is true or false."""
    return ChartValue(name, default, {"type": "boolean"}, text)


def of_deployment(deployment: Resource, image: object, *, most: int | None) -> Iterator[ChartValue]:
    """Put expressions into the Deployment, and return the values that they stand for.

    Its container is the one with this `image`; without such a container there are only values of the pod. `most` is the
    highest number of replicas.
    """
    spec, template = deployment["spec"], deployment["spec"]["template"]
    limits = {} if most is None else {"maximum": most}
    text = "Pods of the operator. One acts at a time; the others take over when it fails."
    yield ChartValue("replicas", spec.get("replicas", 1), {"type": "integer", "minimum": 0, **limits}, text)
    spec["replicas"] = Expression("{{ .Values.replicas }}")
    containers = template["spec"].get("containers", ())
    for container in (each for each in containers if each.get("image") == image):
        yield from _placed(container, "imagePullPolicy", "image.pullPolicy", "", "Empty: the default of Kubernetes.")
        yield from _placed(container, "resources", "resources", {}, "Requests and limits of the container.")
        container["env"] = Appended(container.get("env", []), ".Values.env")
        text = "Further environment variables of the container, as a list: {name: LOG, value: debug}."
        yield ChartValue("env", [], NAMED, text)
    pod = template["spec"]
    yield from _placed(pod, "imagePullSecrets", "imagePullSecrets", [], "Secrets to pull the image with: {name: ...}.")
    yield from _placed(pod, "priorityClassName", "priorityClassName", "", "Name of a PriorityClass.")
    yield from _placed(pod, "nodeSelector", "nodeSelector", {}, "Labels of the nodes that may run the pods.")
    yield from _placed(pod, "tolerations", "tolerations", [], "Taints that the pods tolerate.")
    yield from _placed(pod, "affinity", "affinity", {}, "Affinity of the pods.")
    yield from _placed(template["metadata"], "annotations", "podAnnotations", {}, "Annotations of the pods.")


def of_service_account(account: Resource) -> Iterator[ChartValue]:
    """As `of_deployment`."""
    text = "Annotations of the ServiceAccount, such as a cloud's role for it."
    yield from _placed(account["metadata"], "annotations", "serviceAccount.annotations", {}, text)


def _placed(owner: Resource, key: str, name: str, empty: Any, text: str) -> Iterator[ChartValue]:
    """A value at `owner[key]`. Where the manifest has something that Helm computes there, it stays, without a value."""
    default = owner.get(key, empty)
    if not is_plain(default):
        return
    owner[key] = When(f"with .Values.{name}", Expression("{{ toJson . }}"))
    yield ChartValue(name, default, SCHEMAS[key], text)


def to_schema(values: Iterable[ChartValue]) -> Resource:
    """The JSON schema of all values. A misspelt or missing name is refused; `extra` and `global` may be anything."""
    schema: Resource = {"$schema": "http://json-schema.org/draft-07/schema#", **_object()}
    for name in ("extra", "global"):
        schema["properties"][name] = {"type": "object"}
    for each in values:
        *groups, last = each.name.split(".")
        inner = schema
        for group in groups:
            _require(inner, group)
            inner = inner["properties"].setdefault(group, _object())
        _require(inner, last)
        inner["properties"][last] = {"description": each.text, **each.schema}
    return schema


def _object() -> Resource:
    return {"type": "object", "additionalProperties": False, "required": [], "properties": {}}


def _require(schema: Resource, name: str) -> None:
    if name not in schema["required"]:
        schema["required"].append(name)


def to_values(values: Iterable[ChartValue]) -> str:
    """The text of values.yaml, each value after a comment about it."""
    lines: list[str] = []
    group = ""
    by_group: dict[str, list[ChartValue]] = {"": []}
    for each in values:
        by_group.setdefault(each.name.rpartition(".")[0], []).append(each)
    for each in chain.from_iterable(by_group.values()):
        head, dot, last = each.name.rpartition(".")
        if head != group:
            lines.append(f"\n{head}:" if head else "")
            group = head
        indent = "  " if dot else ""
        lines.append(f"{indent}# {each.text}")
        dumped = yaml.dump({last: each.default}, Dumper=_Open, sort_keys=False, width=140)
        lines += [f"{indent}{line}" for line in dumped.splitlines()]
    return "".join(f"{line}\n" for line in lines)


def lacking(defaults: str, text: str) -> list[str]:
    """The lines of a values.yaml that `text` lacks, of the one that was generated: `crd.keep: true`."""
    try:
        given = yaml.safe_load(text)
    except yaml.YAMLError:
        return []  # Helm itself says what is wrong with it
    return [*_lacking(yaml.safe_load(defaults), given if isinstance(given, dict) else {})]


def _lacking(defaults: Resource, given: Resource, path: str = "") -> Iterator[str]:
    for name, default in defaults.items():
        if name not in given:
            yield f"{path}{name}: {json.dumps(default)}"
        elif isinstance(default, dict) and isinstance(given[name], dict):
            yield from _lacking(default, given[name], f"{path}{name}.")


class _Open(Dumper):
    """A mapping of one key in a line without braces."""


def _mapping(dumper: yaml.SafeDumper, items: dict[str, Any]) -> yaml.MappingNode:
    return dumper.represent_mapping("tag:yaml.org,2002:map", items, flow_style=False)


_Open.add_representer(dict, _mapping)

"""Facts: reads a table of facts about a published schema, and makes the same table of a schema of ours.

A line is a field: its name, its type, its keywords. Lines that stand further in are fields of it; `&name` is a type
that is described once, at the left edge. `list(map:name) maxItems=3 of string minLength=1` has keywords of the list and
of its items. `rules` says that rules in CEL stand there. `enum=` and `pattern=` take the rest of the line.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, TypeAlias

from bonny.resource import Resource

__all__ = ["Facts", "of_schema", "read"]

Facts: TypeAlias = dict[str, Resource]
"""The keywords of each field, by its path: `spec.rules[].name`; `.*` is any key of a mapping."""

Types: TypeAlias = dict[str, tuple[str, list[str]]]
"""What stands at the left edge: the rest of its line, and the lines below it."""

KEYWORD = re.compile(r" (?:(rules)(?= |$)|(\w+)=((?<=enum=).*|(?<=pattern=).*|[^ ]*))")


def read(path: Path) -> Facts:
    """The facts that a file tells."""
    lines = [line for line in path.read_text("utf-8").splitlines() if line and not line.startswith("#")]
    described: Types = {}
    for line in lines:
        if not line.startswith(" "):
            name, _, rest = line.partition(" ")
            described[name] = (rest, [])
        else:
            described[name][1].append(line.removeprefix("  "))
    facts: Facts = {}
    for name, (rest, inner) in described.items():
        if not name.startswith("&"):
            _describe(facts, name, rest, inner, described)
    return facts


def _describe(
    facts: Facts, path: str, rest: str, inner: list[str], described: dict[str, tuple[str, list[str]]]
) -> None:
    if rest.startswith("&"):
        rest, inner = described[rest]
    container = re.match(r"(list|map)(?:\((.*?)\))?(.*?) of ", rest)
    if container:
        facts[path] = _container(*container.groups()) | _keywords(container[3])
        item = f"{path}[]" if container[1] == "list" else f"{path}.*"
        _describe(facts, item, rest[container.end() :], inner, described)
        return
    kind, _, keywords = rest.partition(" ")
    facts[path] = _keywords(f" {keywords}") | _type(kind)
    if facts[path].get("type") == "integer" and "enum" in facts[path]:
        facts[path]["enum"] = [int(value) for value in facts[path]["enum"]]
    for index, line in enumerate(inner):
        if not line.startswith(" "):
            name, _, its = line.partition(" ")
            end = next((i for i in range(index + 1, len(inner)) if not inner[i].startswith(" ")), len(inner))
            fields = [below.removeprefix("  ") for below in inner[index + 1 : end]]
            _describe(facts, f"{path}.{name}", its, fields, described)


def _container(kind: str, how: str | None, _: str) -> Resource:
    if kind == "map":
        return {"type": "object"} | ({"x-kubernetes-map-type": how} if how else {})
    if how is None:
        return {"type": "array"}
    name, _, keys = how.partition(":")
    return {"type": "array", "x-kubernetes-list-type": name} | (
        {"x-kubernetes-list-map-keys": keys.split("+")} if keys else {}
    )


def _type(kind: str) -> Resource:
    if kind == "int-or-string":
        return {"x-kubernetes-int-or-string": True}
    if kind == "object(atomic)":
        return {"type": "object", "x-kubernetes-map-type": "atomic"}
    return {"type": kind}


def _keywords(text: str) -> Resource:
    found: Resource = {}
    for rules, name, value in KEYWORD.findall(text):
        if rules:
            found["x-kubernetes-validations"] = True
        elif name == "required":
            found[name] = sorted(value.split(","))
        elif name == "enum":
            found[name] = value.split("|")
        else:
            found[name] = value if name in ("pattern", "format") else json.loads(value)
    return found


def of_schema(schema: Resource) -> Facts:
    """The same for the schema of whole objects; what Kubernetes itself says of every object is left out."""
    facts: Facts = {}
    for name, field in schema["properties"].items():
        _flatten(facts, name, field)
    return facts


def _flatten(facts: Facts, path: str, schema: Resource) -> None:
    inner = ("properties", "items", "additionalProperties", "description", "anyOf")
    keywords: dict[str, Any] = {key: value for key, value in schema.items() if key not in inner}
    if "required" in keywords:
        keywords["required"] = sorted(keywords["required"])
    if "x-kubernetes-validations" in keywords:
        keywords["x-kubernetes-validations"] = True
    facts[path] = keywords
    for name, field in schema.get("properties", {}).items():
        _flatten(facts, f"{path}.{name}", field)
    if "items" in schema:
        _flatten(facts, f"{path}[]", schema["items"])
    if "additionalProperties" in schema:
        _flatten(facts, f"{path}.*", schema["additionalProperties"])

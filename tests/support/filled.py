"""Filled: objects of every built-in kind with one text in every string field, by the API server's schemas."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from bonny.kinds import Kind, _table
from bonny.resource import Resource
from bonny_dev.sandbox import Sandbox

# Schemas that hold themselves (JSONSchemaProps) end here.
DEPTH = 9
# What says where something is, and not what it is: names of objects, of containers, of variables.
NAMES = ("name", "namespace", "apiVersion", "kind")
VALID = {"date-time": "2026-01-01T00:00:00Z", "int-or-string": 80}


@dataclass(frozen=True)
class Filling:
    """How an object is filled. `text` stands in every string; the rest says what else is wrong with it."""

    text: str
    typed: bool = True
    """Whether numbers, times and quantities are what they should be, and not the text, too."""

    twice: bool = False
    """Whether each list has its item twice."""

    undeclared: bool = False
    """Whether each mapping has a field that the schema lacks."""


class Schemas:
    """The schemas of one API version."""

    def __init__(self, sandbox: Sandbox, api_version: str) -> None:
        root = "apis" if "/" in api_version else "api"
        self._schemas = sandbox.request("GET", f"/openapi/v3/{root}/{api_version}").body["components"]["schemas"]
        group, _, version = api_version.rpartition("/")
        self._group, self._version = group, version

    def of(self, kind: str) -> Resource:
        wanted = {"group": self._group, "version": self._version, "kind": kind}
        (found,) = [
            known for known in self._schemas.values() if wanted in known.get("x-kubernetes-group-version-kind", ())
        ]
        return dict(found)

    def fill(self, kind: Kind, filling: Filling) -> Resource:
        """An object of this kind."""
        schema = self.of(kind.kind)
        fields = {
            name: self._value(node, filling, depth=0)
            for name, node in schema["properties"].items()
            if name not in ("apiVersion", "kind", "metadata", "status")
        }
        return {**self.named(kind, filling.text), **fields}

    def single(self, kind: Kind, text: str) -> Iterator[Resource]:
        """Objects with the text in one field, one for each string field of the schema."""
        for name, node in self.of(kind.kind)["properties"].items():
            if name not in ("apiVersion", "kind", "metadata", "status"):
                for value in self._singles(node, text, depth=0, seen=frozenset()):
                    yield {**self.named(kind, ""), name: value}

    @staticmethod
    def named(kind: Kind, text: str) -> Resource:
        labels = {"labels": {"app": text}, "annotations": {"note": text}, "finalizers": [text]} if text else {}
        metadata = {"name": "filled", **({"namespace": "default"} if kind.namespaced else {}), **labels}
        return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata}

    def _value(self, node: Resource, filling: Filling, *, depth: int) -> Any:
        node = self._resolved(node)
        if depth > DEPTH:
            return filling.text
        match node.get("type"):
            case "object" if "properties" in node:
                made = {
                    name: "plain" if name in NAMES else self._value(inner, filling, depth=depth + 1)
                    for name, inner in node["properties"].items()
                }
                return {**made, **({"undeclared": filling.text} if filling.undeclared else {})}
            case "object":
                return {"key": self._value(node.get("additionalProperties", {}), filling, depth=depth + 1)}
            case "array":
                return [self._value(node["items"], filling, depth=depth + 1)] * (2 if filling.twice else 1)
            case "string" if node.get("format") == "byte" and filling.typed:
                return base64.b64encode(filling.text.encode()).decode()
            case "integer" | "number" if filling.typed:
                return 1
            case "boolean" if filling.typed:
                return True
        return VALID.get(node.get("format", ""), filling.text) if filling.typed else filling.text

    def _singles(self, node: Resource, text: str, *, depth: int, seen: frozenset[str]) -> Iterator[Any]:
        reference = str(node.get("$ref") or node.get("allOf", [{}])[0].get("$ref", ""))
        if reference in seen:
            return
        seen |= {reference} if reference else set()
        node = self._resolved(node)
        match node.get("type"):
            case "object" if "properties" in node:
                for name, inner in node["properties"].items():
                    for value in self._singles(inner, text, depth=depth + 1, seen=seen):
                        yield {name: value}
            case "object":
                for value in self._singles(node.get("additionalProperties", {}), text, depth=depth + 1, seen=seen):
                    yield {"key": value}
            case "array":
                for value in self._singles(node["items"], text, depth=depth + 1, seen=seen):
                    yield [value]
            case _:
                yield text

    def _resolved(self, node: Resource) -> Resource:
        reference = node.get("$ref") or next((known.get("$ref") for known in node.get("allOf", ())), None)
        if reference is not None:
            return dict(self._schemas[str(reference).rpartition("/")[2]])
        # Quantities and their like are `oneOf` string and number.
        return {"type": "string", "format": "int-or-string"} if "oneOf" in node else node


def kinds() -> list[Kind]:
    """All built-in kinds."""
    return [Kind(api_version, name) for api_version, named in _table().items() for name in named]

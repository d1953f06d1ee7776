"""Classes: the models that a version needs, one for each shape of object in it, and their names.

An object with described fields becomes a model, unless it has a type of Kubernetes (`sayable.TYPE`). Objects share a
model if all their fields are equal, descriptions included. Where the objects themselves have different descriptions,
each stands at its field.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

import bonny.api
from bonny.api.markers import AS_IS, EMBEDDED, INT_OR_STRING, MAP_TYPE, PRESERVE_UNKNOWN
from bonny.resource import Resource

from ..crd.tree import inside
from .canonical import content
from .names import class_name
from .sayable import TYPE

# Of the field, not of its content: written where the model is used.
_OF_FIELD: Final = ("description", "default", "nullable", "minProperties", "maxProperties", MAP_TYPE, EMBEDDED, AS_IS)
IMPORTS: Final = {
    "typing": ("Annotated", "Any", "Literal"),
    "datetime": ("date", "datetime"),
    "ipaddress": ("IPv4Address", "IPv6Address"),
    "uuid": ("UUID",),
    "bonny.api": (*(name for name in dir(bonny.api) if name[0].isupper()), "schemas_beside"),
}
"""The names that a generated module can import, by module."""


@dataclass
class Classes:
    """The models of one version of `kind`, innermost first."""

    kind: str
    models: dict[str, Resource] = field(default_factory=dict)
    """The schema of each, by name."""

    schemas: dict[str, Resource] = field(default_factory=dict)
    """The schemas that are kept as they are, by name: objects with a type of Kubernetes."""

    _names: dict[str, str] = field(default_factory=dict)  # of models and schemas, by content
    _of_nodes: dict[int, str] = field(default_factory=dict)
    _descriptions: dict[str, list[str]] = field(default_factory=dict)

    def add(self, schema: Resource, *path: str) -> None:
        """Name the objects inside of `schema`, breadth first: of two that want a name, the outer one gets it.

        A `path` of one field is that of the spec or the status, whose own name is known.
        """
        own = (self.kind, f"{self.kind}Spec", f"{self.kind}Status")
        taken = {*own, *(name for names in IMPORTS.values() for name in names)}
        level = [(path, schema)]
        while level:
            for way, node in level:
                if way == path:
                    self._of_nodes |= {id(node): f"{self.kind}{name.title()}" for name in path}
                elif TYPE in node and AS_IS in node:
                    wanted = f"{node[TYPE].name} at {_joined(way)}"
                    name = self._of_nodes[id(node)] = self._names.setdefault(content(node[AS_IS]), wanted)
                    self.schemas[name] = node[AS_IS]
                elif is_model(node):
                    key = content(node, *_OF_FIELD)
                    if key not in self._names:
                        self._names[key] = class_name(way, {*taken, *self._names.values()})
                    name = self._of_nodes[id(node)] = self._names[key]
                    self._descriptions.setdefault(name, []).append(node.get("description", ""))
            level = [((*way, step), child) for way, node in level for step, child in inside(node)]
        self._order(schema)

    def name_of(self, node: Resource) -> str:
        """The model of `node`, or the name of its schema; empty for none."""
        return self._of_nodes.get(id(node), "")

    def description_of(self, name: str) -> str:
        """The description of a model: that of the first object, unless some object has none. Schemas have none."""
        descriptions = self._descriptions.get(name, [""])
        return descriptions[0] if all(descriptions) or not any(descriptions) else ""

    def _order(self, node: Resource) -> None:
        for _, child in inside(node):
            self._order(child)
            if is_model(child):
                self.models.setdefault(self.name_of(child), child)


def is_model(node: Resource) -> bool:
    """Whether `node` is an object whose fields are described."""
    if node.get("type") != "object" or "additionalProperties" in node or INT_OR_STRING in node or TYPE in node:
        return False
    return "properties" in node or (not {PRESERVE_UNKNOWN, EMBEDDED} & node.keys() and not _any_content(node))


def _any_content(node: Resource) -> bool:
    return "additionalProperties" in node.get(AS_IS, {})


def _joined(way: Iterable[str]) -> str:
    return "".join(step if step in ("[]", ".*") else f".{step.removeprefix('.')}" for step in way).removeprefix(".")

"""Classes: which models a version needs: one for each shape of object in it, and what each is called.

An object with described fields becomes a model, unless it is the Condition of Kubernetes, or a built-in type covers it
(`cover`). Objects of the same content share a model, wherever they are.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

import bonny.api
from bonny.api.markers import EMBEDDED, INT_OR_STRING, MAP_TYPE, PRESERVE_UNKNOWN
from bonny.resource import Resource

from ..crd.tree import inside
from .canonical import shape
from .cover import built_in, condition_shape
from .names import class_name

# Of the field, not of its content: written where the model is used.
_OF_FIELD: Final = ("default", "nullable", "minProperties", "maxProperties", MAP_TYPE, EMBEDDED)
IMPORTS: Final = {
    "typing": ("Annotated", "Any", "Literal"),
    "datetime": ("date", "datetime"),
    "ipaddress": ("IPv4Address", "IPv6Address"),
    "uuid": ("UUID",),
    "bonny.api": tuple(name for name in dir(bonny.api) if name[0].isupper()),
}
"""The names that a generated module can import, by module."""


@dataclass
class Classes:
    """The models of one version of `kind`, innermost first."""

    kind: str
    models: dict[str, Resource] = field(default_factory=dict)
    """The schema of each, by name."""

    _names: dict[str, str] = field(default_factory=dict)

    def add(self, schema: Resource, *path: str) -> None:
        """Name the shapes inside of `schema`, breadth first: of two that want a name, the outer one gets it."""
        own = (self.kind, f"{self.kind}Spec", f"{self.kind}Status")
        taken = {*own, *(name for names in IMPORTS.values() for name in names)}
        level = [(path, schema)]
        while level:
            for way, node in level:
                if way != path and is_model(node) and shape(node, *_OF_FIELD) not in self._names:
                    name = class_name(way[len(path) :], {*taken, *self._names.values()})
                    self._names[shape(node, *_OF_FIELD)] = name
            level = [((*way, step), child) for way, node in level for step, child in _inside(node)]
        self._order(schema)

    def name_of(self, node: Resource) -> str:
        """The model of `node`, for which `is_model` is true."""
        return self._names[shape(node, *_OF_FIELD)]

    def _order(self, node: Resource) -> None:
        for _, child in _inside(node):
            self._order(child)
            if is_model(child):
                self.models.setdefault(self.name_of(child), child)


def is_model(node: Resource) -> bool:
    """Whether `node` is an object whose fields are described, and not by a type that is there already."""
    if node.get("type") != "object" or "additionalProperties" in node or INT_OR_STRING in node:
        return False
    if "properties" not in node:
        return PRESERVE_UNKNOWN not in node and EMBEDDED not in node
    return not is_condition(node) and built_in(node) is None


def is_condition(node: Resource) -> bool:
    """Whether `node` is the Condition that all of Kubernetes shares."""
    return shape(node, "default", "nullable") == condition_shape()


def _inside(node: Resource) -> Iterable[tuple[str, Resource]]:
    """As `inside`; none inside of types that are there already."""
    known = "properties" in node and (is_condition(node) or built_in(node) is not None)
    return () if known else inside(node)

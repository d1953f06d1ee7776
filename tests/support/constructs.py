"""Constructs: what CustomResourceDefinitions of other projects say, each as a field, and how it is written here.

You need it to compare the schema of each construct, and to try all of them in one kind on a real API server.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import create_model

from bonny.api import (
    Base64,
    BuiltIn,
    Condition,
    Field,
    Int64,
    IntOrString,
    Model,
    Nullable,
    PreserveUnknown,
    Quantity,
    Scope,
    Spec,
    Status,
    Version,
    WithConditions,
)
from bonny.resource import Resource

__all__ = ["CONSTRUCTS", "PENDING", "Beside", "Construct", "Optional", "Untyped", "every_construct"]

EITHER: Resource = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}


class Provider(Model):
    """One of several."""

    aws: str | None = None
    gcp: str | None = None


class Door(Model):
    """With a default inside."""

    width: int = 80
    height: int = 200


class Open(Model, extra="allow"):
    """Described in part."""

    width: int = 80


@dataclass(frozen=True, slots=True)
class Construct:
    """One field: how it is written, its schema, values that are accepted, and one that is refused."""

    name: str
    annotation: Any
    default: Any
    schema: Resource
    accepted: tuple[Any, ...]
    refused: Any


CONSTRUCTS = (
    Construct(
        "patternOfEither",
        Annotated[IntOrString, Field(pattern="^[0-9]+%?$")] | None,
        None,
        {**EITHER, "pattern": "^[0-9]+%?$"},
        (5, "5%"),
        "five",
    ),
    Construct(
        "patternOfQuantity",
        Annotated[Quantity, Field(pattern=r"^\d+Gi$")] | None,
        None,
        {**EITHER, "pattern": r"^\d+Gi$"},
        ("1Gi",),
        "1Mi",
    ),
    Construct(
        "numberOfFields",
        Annotated[Provider, Field(min_length=1, max_length=1)] | None,
        None,
        {
            "type": "object",
            "description": "One of several.",
            "minProperties": 1,
            "maxProperties": 1,
            "properties": {"aws": {"type": "string"}, "gcp": {"type": "string"}},
        },
        ({"aws": "a"},),
        {"aws": "a", "gcp": "g"},
    ),
    Construct("bytes", Base64 | None, None, {"type": "string", "format": "byte"}, ("aGk=", "aGkh"), "aGk"),
    Construct(
        "digits",
        Annotated[str, Field(pattern=r"^\d+$")] | None,
        None,
        {"type": "string", "pattern": r"^\d+$"},
        ("12",),
        "\u0661",
    ),
    Construct(
        "noSpace",
        Annotated[str, Field(pattern=r"^[\S]+\w$")] | None,
        None,
        {"type": "string", "pattern": r"^[\S]+\w$"},
        ("a\u00a0b",),
        "a b",
    ),
    Construct(
        "nullable",
        Annotated[datetime | None, Nullable()],
        None,
        {"type": "string", "format": "date-time", "nullable": True},
        (None, "2024-01-01T00:00:00Z"),
        1,
    ),
    Construct(
        "openObject",
        Open | None,
        None,
        {
            "type": "object",
            "description": "Described in part.",
            "x-kubernetes-preserve-unknown-fields": True,
            "properties": {"width": {"type": "integer", "default": 80}},
        },
        ({"width": 1, "other": [1]},),
        {"width": "wide"},
    ),
    Construct(
        "emptyDefault",
        Door,
        Door(),
        {
            "type": "object",
            "description": "With a default inside.",
            "default": {},
            "properties": {"width": {"type": "integer", "default": 80}, "height": {"type": "integer", "default": 200}},
        },
        ({"width": 1},),
        {"width": "wide"},
    ),
    Construct(
        "weight",
        Annotated[Quantity, Field(json_schema_extra={"default": 1})],
        "1",
        {
            **EITHER,
            "default": 1,
            "pattern": r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)(([KMGTPE]i)|[numkMGTPE]|([eE][+-]?[0-9]{1,3}))?$",
        },
        (2, "500m"),
        "much",
    ),
    Construct(
        "roleRef",
        Annotated[dict[str, Any], BuiltIn("rbac.authorization.k8s.io/v1", "RoleRef")] | None,
        None,
        {
            "type": "object",
            "x-kubernetes-map-type": "atomic",
            "required": ["kind", "name"],
            "properties": {
                "apiGroup": {"type": "string", "default": ""},
                "kind": {"type": "string"},
                "name": {"type": "string"},
            },
        },
        ({"kind": "Role", "name": "r"},),
        {"kind": "Role"},
    ),
    Construct(
        "configMapRef",
        Annotated[dict[str, Any], BuiltIn("v1", "ConfigMapEnvSource")] | None,
        None,
        {
            "type": "object",
            "x-kubernetes-map-type": "atomic",
            "properties": {"name": {"type": "string", "default": ""}, "optional": {"type": "boolean"}},
        },
        ({"name": "m"},),
        {"name": 1},
    ),
)

PENDING = Condition(
    type="Accepted",
    status="Unknown",
    reason="Pending",
    message="no controller saw it",
    last_transition_time=datetime(1970, 1, 1, tzinfo=UTC),
)


class BesideStatus(Status, WithConditions, required=("conditions",)):
    """A status that begins with a condition."""

    observed_generation: Int64 | None = None


def every_construct() -> type[Version]:
    """A kind whose spec has each construct."""
    fields: Any = {each.name: (each.annotation, each.default) for each in CONSTRUCTS}
    spec = create_model("EverySpec", __base__=Spec, **fields)
    body: Any = {"kind": "Every", "version": "v1", "storage": True, "hub": True, "scope": Scope.CLUSTER}
    return type("Every", (Version,), {**body, "__module__": __name__, "__annotations__": {"spec": spec}})


class Beside(Version):
    """Fields beside spec, and a status that objects have from the start."""

    kind = "Beside"
    version = "v1"
    group = "constructs.k8s.io"
    scope = Scope.CLUSTER
    storage = True
    hub = True
    crd_labels = {"part-of": "tests"}
    crd_annotations = {"api-approved.kubernetes.io": "unapproved, a test", "helm.sh/resource-policy": "keep"}
    value: Annotated[int, Field(le=9)]
    rules_: list[str] | None = None
    data: Annotated[Any, PreserveUnknown()] = None
    status: BesideStatus = BesideStatus(conditions=[PENDING], observed_generation=-1)


class OptionalSpec(Spec):
    """Without required fields."""

    size: int = 1


class OptionalStatus(Status, extra="allow"):
    """Written together with the spec."""


class Optional(Version):
    """A spec that may be left out, and a status without the subresource."""

    kind = "Optional"
    version = "v1"
    group = "constructs.k8s.io"
    scope = Scope.CLUSTER
    storage = True
    hub = True
    crd_annotations = Beside.crd_annotations
    status_subresource = False
    spec: OptionalSpec | None = None
    status: OptionalStatus


class Untyped(Version):
    """A spec without a schema."""

    kind = "Untyped"
    version = "v1"
    group = "constructs.k8s.io"
    scope = Scope.CLUSTER
    storage = True
    hub = True
    crd_annotations = Beside.crd_annotations
    spec: Annotated[dict[str, Any], PreserveUnknown()]

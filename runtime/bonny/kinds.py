"""Kinds: which type of Kubernetes object is meant, and which part of its objects.

You need it to name what a controller handles (`Kind`) or creates (`Owned`) when it is not one of your own APIs.
You do not need it for your own APIs: name the `Version` class instead.

Plural and scope of the kinds that Kubernetes serves by default are known (`builtin_kinds.json`, made by discovery on a
real API server: `python tools/builtin_kinds.py`). For other kinds name `plural=` and `scope=`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY, dataclass
from enum import StrEnum
from functools import cache
from importlib.resources import files
from typing import TypeAlias

from .errors import OptionError
from .resource import Resource

__all__ = ["Kind", "List", "Names", "Owned", "Related", "Scope", "builtin", "resource_scope"]


class Scope(StrEnum):
    """Where the objects of a kind live. The values are those of a CustomResourceDefinition."""

    NAMESPACED = "Namespaced"
    CLUSTER = "Cluster"


@dataclass(frozen=True, slots=True)
class Kind:
    """A type of object, as in `Kind("apps/v1", "Deployment")`, and which of its objects are meant.

    Guarantees: once constructed, `plural` and `scope` are known.
    Raises: `OptionError` when they are not known and not named.
    """

    api_version: str
    """Group and version as objects write it: `apps/v1`, or `v1` for the core group."""

    kind: str
    """The name of the type in CamelCase: `Deployment`."""

    _: KW_ONLY

    plural: str = ""
    """The name in URLs and RBAC rules: `deployments`. Default: looked up, where Kubernetes itself serves the kind."""

    scope: Scope | None = None
    """Namespaced or cluster-wide. Default: looked up, as with `plural`."""

    namespace: str | None = None
    """Only objects of this namespace. Default None: the namespaces that the operator watches."""

    label_selector: str = ""
    """Only objects with these labels, in the API's own syntax: `tier=db,env!=test`. Default: all."""

    field_selector: str = ""
    """Only objects with these fields, in the API's own syntax: `spec.nodeName=n1`. Default: all."""

    metadata_only: bool = False
    """Follow only the metadata of the objects: labels, annotations, owners, finalizers. Everything else is missing from
    what handlers see. For kinds with many or large objects of which no more is needed. Default: whole objects."""

    def __post_init__(self) -> None:
        group, separator, version = self.api_version.rpartition("/")
        if not version or "/" in group or (separator and not group):
            raise OptionError(
                f"the API version {self.api_version!r} of kind {self.kind!r} is not of the form group/version: "
                "write for example 'apps/v1', or 'v1' for the core group"
            )
        if not self.kind:
            raise OptionError(
                f"a Kind of {self.api_version} has no kind: write for example Kind('apps/v1', 'Deployment')"
            )
        known = builtin(self.api_version, self.kind)
        plural = self.plural or (known[0] if known else "")
        scope = self.scope or (known[1] if known else None)
        if not plural or scope is None:
            raise OptionError(
                f"plural and scope of {self.kind} ({self.api_version}) are not known: name both, for example "
                f"Kind({self.api_version!r}, {self.kind!r}, plural='{self.kind.lower()}s', scope=Scope.NAMESPACED)"
            )
        if self.namespace is not None and scope is Scope.CLUSTER:
            raise OptionError(
                f"{self.kind} ({self.api_version}) is cluster-scoped and has no namespace: "
                f"leave out namespace={self.namespace!r}"
            )
        object.__setattr__(self, "plural", plural)
        object.__setattr__(self, "scope", scope)

    @property
    def gvk(self) -> tuple[str, str]:
        """API version and kind as objects write them: `("apps/v1", "Deployment")`."""
        return self.api_version, self.kind

    @property
    def group(self) -> str:
        """`apps` of `apps/v1`, the empty string for the core group."""
        return self.api_version.rpartition("/")[0]

    @property
    def version(self) -> str:
        """`v1` of `apps/v1`."""
        return self.api_version.rpartition("/")[2]

    @property
    def namespaced(self) -> bool:
        """Whether objects of this kind live in a namespace."""
        return self.scope is Scope.NAMESPACED

    @property
    def resource(self) -> str:
        """The name that Kubernetes itself uses in messages: `deployments.apps`, `configmaps`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural


@dataclass(frozen=True, slots=True)
class Owned(Kind):
    """A kind whose objects a controller creates: watched for drift, granted in RBAC."""


Names: TypeAlias = Iterable[str | tuple[str, str]]
"""Names of objects: with their namespace, or in that of the object they come from."""


@dataclass(frozen=True, slots=True)
class Related(Kind):
    """A kind whose objects are the handled ones' business, without being theirs: a Secret that they name, say.

    Exactly one of:

        Related("v1", "Secret", named_by=lambda widget: [widget["spec"]["secretName"]])
        Related("v1", "Node", keys=lambda node: [("default", f"agent-{node['metadata']['name']}")])

    When such an object comes, changes or goes, the handled objects that it concerns run as `reconcile`.
    RBAC: get, list and watch. All objects of the kind are held in memory, so select, or take `metadata_only`.
    """

    _: KW_ONLY

    named_by: Callable[[Resource], Names] | None = None
    """Gets a handled object; returns the names of the related objects that it refers to."""

    keys: Callable[[Resource], Names] | None = None
    """Gets a related object, as it was and as it is; returns the names of the handled objects that it concerns."""

    def __post_init__(self) -> None:
        Kind.__post_init__(self)
        if (self.named_by is None) == (self.keys is None):
            raise OptionError(f"Related({self.api_version!r}, {self.kind!r}) needs `named_by` or `keys`, one of them")


@dataclass(frozen=True, slots=True)
class List(Kind):
    """Which objects a `Reconciler` or `Watcher` looks at: `List("v1", "Pod", namespace="default")`."""


def builtin(api_version: str, kind: str) -> tuple[str, Scope] | None:
    """Plural and scope of a kind that Kubernetes serves by default; None for any other."""
    entry = _table().get(api_version, {}).get(kind)
    return None if entry is None else (entry[0], Scope(entry[1]))


def resource_scope(group: str, resource: str) -> Scope | None:
    """The scope of a resource as RBAC rules name it, such as `pods/log`; None for those of others."""
    plural = resource.partition("/")[0]
    for api_version, kinds in _table().items():
        if api_version.rpartition("/")[0] == group:
            for known, scope in kinds.values():
                if known == plural:
                    return Scope(scope)
    return None


@cache
def _table() -> dict[str, dict[str, list[str]]]:
    text = files(__package__).joinpath("builtin_kinds.json").read_text(encoding="utf-8")
    table: dict[str, dict[str, list[str]]] = json.loads(text)
    return table

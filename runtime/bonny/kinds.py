"""Kinds: types of Kubernetes objects, and selections of their objects.

You need it to name the kinds that a controller reconciles (`Kind`), creates (`Owned`) or refers to (`Related`).
You do not need it for your own APIs: use the `Version` class instead.

Plural and scope of the kinds that Kubernetes serves by default are in `builtin_kinds.json`. For other kinds give
`plural=` and `scope=`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from difflib import get_close_matches
from enum import StrEnum
from functools import cache
from importlib.resources import files
from typing import TypeAlias

from .errors import OptionError
from .naming import is_label, is_qualified_name, is_subdomain
from .resource import Resource


class Scope(StrEnum):
    """Whether the objects of a kind belong to namespaces. The values are written as in a CustomResourceDefinition."""

    NAMESPACED = "Namespaced"
    CLUSTER = "Cluster"


@dataclass(frozen=True, slots=True)
class Kind:
    """A type of object, as in `Kind("apps/v1", "Deployment")`, and a selection of its objects.

    Guarantees: `plural` and `scope` are set after construction.
    Raises: `OptionError` when they are neither given nor in the table of built-in kinds; a misspelt one is corrected.
    """

    api_version: str
    """Group and version as in objects: `apps/v1`, or `v1` for the core group."""

    kind: str
    """The name of the type in CamelCase: `Deployment`."""

    _: KW_ONLY

    plural: str = ""
    """The name in URLs and RBAC rules: `deployments`. Default: looked up for built-in kinds."""

    scope: Scope | None = None
    """Namespaced or cluster-wide. Default: looked up for built-in kinds."""

    namespace: str | None = None
    """Select objects of this namespace. Default None: the namespaces that the operator watches."""

    label_selector: str = ""
    """Select objects by labels, in the syntax of the API: `tier=db,env!=test`. Default: all objects."""

    field_selector: str = ""
    """Select objects by fields, in the syntax of the API: `spec.nodeName=n1`. Default: all objects."""

    metadata_only: bool = False
    """Watch only the metadata of the objects: labels, annotations, owners, finalizers. Handlers see nothing else of
    them. Saves memory for kinds with many or large objects. Default: whole objects."""

    def __post_init__(self) -> None:
        group, separator, version = self.api_version.rpartition("/")
        # "*", as in RBAC, is refused where it is used, with the text to write in its place.
        if not (version == "*" or is_label(version)) or bool(separator) != (group == "*" or is_subdomain(group)):
            raise OptionError(
                f"the API version {self.api_version[:60]!r} of kind {self.kind[:60]!r} is not of the form "
                "group/version: write for example 'apps/v1', or 'v1' for the core group"
            )
        if not self.kind:
            raise OptionError(
                f"a Kind of {self.api_version} has no kind: write for example Kind('apps/v1', 'Deployment')"
            )
        for name, text, fits in (
            ("kind", self.kind, is_label(self.kind.lower())),
            ("plural", self.plural, self.plural in ("", "*") or is_label(self.plural)),
            ("namespace", self.namespace or "", self.namespace is None or is_label(self.namespace)),
        ):
            if not fits:
                raise OptionError(
                    f"the {name} of Kind({self.api_version!r}, {self.kind[:60]!r}) cannot be {text[:60]!r}: use "
                    "letters, digits and hyphens, 63 at most"
                )
        builtin_plural, builtin_scope = builtin(self.api_version, self.kind) or ("", None)
        plural, scope = self.plural or builtin_plural, self.scope or builtin_scope
        if not plural or scope is None:
            raise OptionError(
                correction(self.api_version, self.kind)
                or f"plural and scope of {self.kind} ({self.api_version}) are unknown: give both, for example "
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
    """A kind whose objects a controller creates: watched for drift, granted in RBAC.

    A child is found by the label `bonny.dev/owner-uid`, which holds the UID of its owner; the runtime sets it.

    - Wakes the handler: any change of a child by another client, its status included, from its creation on, and its
      deletion. No call is needed for that.
    - Does not wake it: the own writes and deletions of this operator. If the handler looked at the child
      (`axn.observed`, `axn.children`), it runs again after such a write, too.
    - Pruned, after a successful reconcile: each child that the handler neither registered nor kept
      (`axn.keep_descendant`).

    RBAC: get, list, watch, create, patch; delete where children are pruned, or deleted by a finalizer.
    """

    _: KW_ONLY

    prune: bool = True
    """Whether children of this kind that are no longer registered are deleted. Default True. With False and without
    `finalize`, delete is not granted: `register_descendant(recreate=True)` then needs it in the controller's `rules`.
    When the owner is deleted, its children go either way."""


IndexFunction: TypeAlias = "Callable[[Resource], Iterable[str]]"
"""Takes an object; returns the values under which an index finds it."""

ObjectNames: TypeAlias = Iterable[str | tuple[str, str]]
"""Names of objects, or (namespace, name); a name alone is in the namespace of the object that was passed in."""


@dataclass(frozen=True, slots=True)
class Related(Kind):
    """A kind that reconciled objects refer to but do not own, for example a Secret that they name.

    Give exactly one of:

        Related("v1", "Secret", named_by=lambda widget: [widget["spec"]["secretName"]])
        Related("v1", "Node", keys=lambda node: [("default", f"agent-{node['metadata']['name']}")])

    A related object that is added, changed or deleted triggers a reconcile of the objects that `named_by` or `keys`
    connects it with, and of no others; whether a handler saw it in `axn.related` does not matter. So a handler that
    selects Pods by a label needs `keys` that lead from this label back to the object:

        Related("v1", "Pod", keys=lambda pod: [pod["metadata"].get("labels", {}).get("cache", "")])

    RBAC: get, list and watch. All objects of the kind are kept in memory: use selectors, or `metadata_only`.
    """

    _: KW_ONLY

    named_by: Callable[[Resource], ObjectNames] | None = None
    """Takes a reconciled object; returns the names of the related objects that it refers to."""

    keys: Callable[[Resource], ObjectNames] | None = None
    """Takes a related object, before and after a change; returns the names of the reconciled objects to run."""

    indexes: Mapping[str, str | IndexFunction] = field(default_factory=dict, hash=False)
    """Indexes by name, for `axn.related(..., index=(name, value))`: by the value of a label, whose key is given, or by
    each of the values that a function returns for a related object:

        indexes={"app": "app.kubernetes.io/name", "node": lambda pod: [pod["spec"].get("nodeName", "")]}
    """

    def __post_init__(self) -> None:
        Kind.__post_init__(self)
        if (self.named_by is None) == (self.keys is None):
            raise OptionError(f"Related({self.api_version!r}, {self.kind!r}) needs `named_by` or `keys`, one of them")
        for label in self.indexes.values():
            if isinstance(label, str) and not is_qualified_name(label):
                raise OptionError(
                    f"an index of Related({self.api_version!r}, {self.kind!r}) is {label[:60]!r}, which is not the key "
                    "of a label: write for example app.kubernetes.io/name, or a function"
                )


@dataclass(frozen=True, slots=True)
class List(Kind):
    """The objects that a `Reconciler` or `Watcher` runs on: `List("v1", "Pod", namespace="default")`."""


def builtin(api_version: str, kind: str) -> tuple[str, Scope] | None:
    """Plural and scope of a kind that Kubernetes serves by default; None for other kinds."""
    entry = _table().get(api_version, {}).get(kind)
    return None if entry is None else (entry[0], Scope(entry[1]))


def correction(api_version: str, kind: str) -> str:
    """A sentence about a kind that is not built in; empty where a CRD may define it, in a group with a dot."""
    own = _table().get(api_version, {})
    names = {name: version for version, name in reversed(builtin_kinds())}
    match get_close_matches(kind, names, n=1) if own or "." not in api_version else []:
        case [name]:
            advice = f"did you mean {name}{'' if name in own else f' in {names[name]}'}?"
            advice = f"it is in {names[name]}" if name == kind else advice
        case _ if "." in api_version:
            return ""
        case _:
            advice = "correct the kind or the API version"
    return f"Kubernetes has no kind {kind!r} in {api_version}: {advice}"


def builtin_kinds() -> list[tuple[str, str]]:
    """API version and kind of everything that Kubernetes serves by default."""
    return [(api_version, kind) for api_version, kinds in _table().items() for kind in kinds]


@cache
def _table() -> dict[str, dict[str, list[str]]]:
    text = files(__package__).joinpath("builtin_kinds.json").read_text(encoding="utf-8")
    table: dict[str, dict[str, list[str]]] = json.loads(text)
    return table

"""Sources: the frameworks that an operator may come from, and the traces that each leaves on objects.

You need it to find these traces in a cluster. Names that the author of an operator chose, such as the finalizer of a
kubebuilder project, are options of `invoke migrate-from`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from bonny.errors import UsageError
from bonny.naming import check_finalizer


@dataclass(frozen=True, slots=True, kw_only=True)
class Traces:
    """The names that a framework left on objects. One that ends with `/` stands for all names that begin with it."""

    finalizers: tuple[str, ...] = ()
    annotations: tuple[str, ...] = ()
    status: tuple[str, ...] = ()
    """Fields of the status that hold its own progress."""

    managers: tuple[str, ...] = ()
    """Field managers of the children that it wrote."""

    def with_names(self, finalizers: Iterable[str], annotations: Iterable[str], managers: Iterable[str]) -> Traces:
        """These and further names. Raises: `UsageError` for a name that no finalizer can have."""
        return replace(
            self,
            finalizers=(*map(check_finalizer, finalizers), *self.finalizers),
            annotations=(*self.annotations, *annotations),
            managers=(*self.managers, *managers),
        )


# The names are in the sources of these projects, read in November 2026. A field manager that a client does not choose
# is the beginning of its user agent: the name of its program, or OpenAPI-Generator of the official client of Python.
SOURCES: Final = {
    "kopf": Traces(
        finalizers=("kopf.zalando.org/KopfFinalizerMarker",),
        annotations=("kopf.zalando.org/",),
        status=("kopf",),
        managers=("kopf", "OpenAPI-Generator"),
    ),
    "kubebuilder": Traces(managers=("manager", "controller")),
    "operator-sdk": Traces(
        finalizers=("helm.sdk.operatorframework.io/uninstall-release", "uninstall-helm-release"),
        annotations=("helm.sdk.operatorframework.io/", "ansible.sdk.operatorframework.io/"),
        managers=("helm-operator", "ansible-operator", "OpenAPI-Generator"),
    ),
    "bonny": Traces(managers=("Bonny",)),
    "metacontroller": Traces(finalizers=("metacontroller.io/",), managers=("metacontroller",)),
    "shell-operator": Traces(
        managers=("shell-operator", "kubectl", "kubectl-create", "kubectl-client-side-apply", "kubectl-patch"),
    ),
}


def traces_of(source: str) -> Traces:
    """The traces of that framework. Raises: `UsageError` for another framework."""
    if source not in SOURCES:
        raise UsageError(f"{source[:60]!r} is not a source: use one of {', '.join(SOURCES)}")
    return SOURCES[source]


def chosen(names: Iterable[str], patterns: Iterable[str]) -> list[str]:
    """The `names` that a pattern stands for, in their order."""
    exact = {each for each in patterns if not each.endswith("/")}
    prefixes = tuple(each for each in patterns if each.endswith("/"))
    return [each for each in names if each in exact or each.startswith(prefixes)]

"""Every public function that takes a name, namespace, selector, key or label: what cannot be one is refused at once, in
one short sentence, or is documented as fine here. The requests of the client are in test_client_names.py."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

import pytest

from bonny import Axn, Controller, Kind, Operator, Owned, Related, Scope, Status, Version, WithConditions
from bonny.client.api import Client
from bonny.core.selector import requirements_of
from bonny.errors import UsageError
from bonny.events import Event, EventRecorder, EventType
from bonny.kinds import List
from bonny.naming import (
    check_dns_label,
    check_finalizer,
    is_label_value,
    is_object_name,
    is_qualified_name,
    is_subdomain,
    plural_of,
)
from bonny.scheduler import Scheduler
from bonny.stages import StagedAxn, StagedController
from bonny_dev import testing
from bonny_dev.naming import check_group, check_kind, check_plural, check_version

BAD = ("", " ", ".", "..", "a/b", "a\nb", "a" * 10_000)
OWNER = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a", "namespace": "b", "uid": "c"}}


class Owner(Controller[Any]):
    resource = Kind("v1", "Secret")
    owns = (Owned("v1", "ConfigMap"),)
    related = (Related("v1", "Node", keys=lambda node: [], indexes={"zone": "zone"}),)

    async def reconcile(self, axn: Axn[Any]) -> None: ...


def child(name: str = "a", namespace: str = "b", kind: str = "ConfigMap") -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": namespace}}


class Started(Status, WithConditions):
    """A status with the conditions of stages."""


class Thing(Version):
    """A kind whose objects are set up in stages."""

    kind = "Thing"
    version = "v1"
    status: Started


def of_stage(text: str) -> object:
    class Asked(StagedController[Thing]):
        async def reconcile(self, axn: StagedAxn[Thing]) -> None:
            with axn.stage(text):
                pass

    return testing.handle(Asked, {**OWNER, "apiVersion": "example.com/v1", "kind": "Thing"})


def of_axn(act: Callable[[Any, str], object]) -> Callable[[str], object]:
    def call(text: str) -> object:
        class Asked(Owner):
            async def reconcile(self, axn: Axn[Any]) -> None:
                act(axn, text)

        return testing.handle(Asked, OWNER)

    return call


def scheduler(name: str) -> object:
    return type("Made", (Scheduler,), {"name": name})


def true(text: object) -> None:
    if not text:
        raise UsageError("it says so")


# The texts that are fine behind a colon, and why.
EMPTY_IS_DEFAULT = frozenset({""})
EMPTY_IS_ALL = frozenset({"", " "})
TYPE_WITH_DOMAIN = frozenset({"a/b"})
ANY_WORD = frozenset({".", "..", "a/b"})
NONE: frozenset[str] = frozenset()

CALLS: Mapping[str, tuple[Callable[[str], object], frozenset[str]]] = {
    "Kind.api_version": (lambda text: Kind(text, "A", plural="as", scope=Scope.NAMESPACED), TYPE_WITH_DOMAIN),
    "Kind.api_version, group": (lambda text: Kind(f"{text}/v1", "A", plural="as", scope=Scope.NAMESPACED), NONE),
    "Kind.kind": (lambda text: Kind("a.b/v1", text, plural="as", scope=Scope.NAMESPACED), NONE),
    "Kind.plural": (lambda text: Kind("a.b/v1", "A", plural=text, scope=Scope.NAMESPACED), NONE),
    "Kind.plural of a built-in kind": (lambda text: Kind("v1", "Pod", plural=text), EMPTY_IS_DEFAULT),
    "Kind.namespace": (lambda text: Kind("v1", "Pod", namespace=text), NONE),
    "Owned.namespace": (lambda text: Owned("v1", "Pod", namespace=text), NONE),
    "List.namespace": (lambda text: List("v1", "Pod", namespace=text), NONE),
    "Related.namespace": (lambda text: Related("v1", "Pod", namespace=text, keys=lambda pod: []), NONE),
    "Related.indexes, label": (
        lambda text: Related("v1", "Pod", keys=lambda pod: [], indexes={"a": text}),
        TYPE_WITH_DOMAIN,
    ),
    "axn.register_descendant, name": (of_axn(lambda axn, text: axn.register_descendant(child(text))), NONE),
    "axn.register_descendant, namespace": (
        of_axn(lambda axn, text: axn.register_descendant(child(namespace=text))),
        EMPTY_IS_DEFAULT,
    ),
    "axn.register_descendant, after": (
        of_axn(lambda axn, text: axn.register_descendant(child(), after=child(text))),
        NONE,
    ),
    "axn.keep_descendant": (of_axn(lambda axn, text: axn.keep_descendant(child(text))), NONE),
    "axn.observed, name": (of_axn(lambda axn, text: axn.observed(child(text))), NONE),
    "axn.observed, kind": (of_axn(lambda axn, text: axn.observed(child(kind=text))), NONE),
    "axn.observed, namespace": (of_axn(lambda axn, text: axn.observed(child(namespace=text))), EMPTY_IS_DEFAULT),
    "axn.children, api_version": (of_axn(lambda axn, text: axn.children(text, "ConfigMap")), NONE),
    "axn.children, kind": (of_axn(lambda axn, text: axn.children("v1", text)), NONE),
    "axn.children, selector": (
        of_axn(lambda axn, text: axn.children("v1", "ConfigMap", selector=text)),
        EMPTY_IS_ALL | {"a/b"},
    ),
    "axn.related, kind": (of_axn(lambda axn, text: axn.related("v1", text)), NONE),
    "axn.related, namespace": (of_axn(lambda axn, text: axn.related("v1", "Node", namespace=text)), NONE),
    "axn.related, index": (of_axn(lambda axn, text: axn.related("v1", "Node", index=(text, "a"))), NONE),
    "axn.related, selector": (
        of_axn(lambda axn, text: axn.related("v1", "Node", selector=text)),
        EMPTY_IS_ALL | {"a/b"},
    ),
    "axn.set_condition, type": (of_axn(lambda axn, text: axn.set_condition(text, True)), TYPE_WITH_DOMAIN),
    "axn.set_condition, reason": (
        of_axn(lambda axn, text: axn.set_condition("A", True, reason=text)),
        EMPTY_IS_DEFAULT,
    ),
    "axn.stage": (of_stage, NONE),
    "axn.register_event, type": (of_axn(lambda axn, text: axn.register_event(None, text, "A", "B", "c")), NONE),
    "axn.register_event, reason": (
        of_axn(lambda axn, text: axn.register_event(None, "Normal", text, "B", "c")),
        ANY_WORD,
    ),
    "axn.success_event": (of_axn(lambda axn, text: axn.success_event(reason=text)), ANY_WORD | EMPTY_IS_DEFAULT),
    "Event.action": (lambda text: Event(EventType.NORMAL, "A", text, "b"), ANY_WORD),
    "EventRecorder": (
        lambda text: EventRecorder(cast("Client", None), controller=text, instance="a"),
        TYPE_WITH_DOMAIN,
    ),
    "Operator.name": (lambda text: Operator(name=text, group="example.com", version="1"), NONE),
    "Operator.group": (lambda text: Operator(name="a", group=text, version="1"), NONE),
    "Operator.watch": (lambda text: Operator(name="a", group="example.com", watch=text, version="1"), NONE),
    "Operator.version": (lambda text: Operator(name="a", group="example.com", version=text), EMPTY_IS_DEFAULT),
    "Scheduler.name": (scheduler, EMPTY_IS_DEFAULT),
    "a selector": (requirements_of, EMPTY_IS_ALL | {"a/b"}),
    "a selector as a mapping, key": (lambda text: requirements_of({text: "a"}), TYPE_WITH_DOMAIN),
    "a selector as a mapping, value": (lambda text: requirements_of({"a": text}), EMPTY_IS_DEFAULT),
    "check_dns_label": (check_dns_label, NONE),
    "check_finalizer": (check_finalizer, TYPE_WITH_DOMAIN),
    "check_group": (check_group, NONE),
    "check_kind": (check_kind, NONE),
    "check_plural": (check_plural, NONE),
    "check_version": (check_version, NONE),
    "plural_of": (plural_of, NONE),
    "is_object_name": (lambda text: true(is_object_name(text)), NONE),
    "is_subdomain": (lambda text: true(is_subdomain(text)), NONE),
    "is_qualified_name": (lambda text: true(is_qualified_name(text)), TYPE_WITH_DOMAIN),
    "is_label_value": (lambda text: true(is_label_value(text)), EMPTY_IS_DEFAULT),
    "testing.axn, name": (lambda text: testing.axn(child(text)), NONE),
    "testing.axn, namespace": (lambda text: testing.axn(child(namespace=text)), EMPTY_IS_DEFAULT),
}


@pytest.mark.parametrize("text", BAD, ids=lambda text: repr(text[:8]))
@pytest.mark.parametrize("name", CALLS)
async def test_what_cannot_be_a_name_is_refused_in_one_sentence(name: str, text: str) -> None:
    """Regression: the namespace "" of a `Kind` stood for all, and a plural was a part of the path as it was."""
    call, fine = CALLS[name]
    try:
        made = call(text)
        if hasattr(made, "__await__"):
            await cast("Any", made)
    except UsageError as error:
        assert text not in fine
        assert len(str(error)) < 400, len(str(error))  # noqa: PT017  the refusal is one of two outcomes
        assert str(error).isprintable()  # noqa: PT017
    else:
        assert text in fine

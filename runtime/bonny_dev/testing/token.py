"""Token: builds an `Axn` for a handler test without a server, and passes it through a handler.

    token = await testing.handle(WidgetController, widget(size=3))
    testing.assert_descendant(token, "ConfigMap", "w1", data={"size": "3"})

Nothing is sent: the token holds what a handler registered.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, cast

from bonny.api import Version
from bonny.api.writing import check_status
from bonny.axn import State, V_co
from bonny.controller import Controller
from bonny.core.queue import QueueOptions, Reason
from bonny.core.records import Action
from bonny.core.watch import WatchOptions
from bonny.engine.context import ReconcileContext
from bonny.engine.reconcile import Reconcile
from bonny.engine.router import Router
from bonny.engine.stream import Stream
from bonny.events import Event
from bonny.kinds import Kind, Scope
from bonny.pipeline import call_handler, run_step
from bonny.resource import Key, Resource, gvk_of, key_of
from bonny.servers.periodic import PeriodicTasks
from bonny.steps.delegate import DelegateToController

from .servers import NO_CLIENT

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    V = TypeVar("V", bound=Version, default=Any)
    T = TypeVar("T")


def axn(
    resource: Resource,
    *,
    version: type[V] | None = None,
    action: Action | str = Action.ADD,
    observed: Iterable[Mapping[str, Any]] = (),
    reasons: Iterable[Reason | str] = (),
    tries: int = 0,
    options: Mapping[str, Any] | None = None,
) -> Reconcile[V]:
    """The token of an action event on `resource`.

    `version` is the class that types its spec, and by which the object is checked and filled in as the API server does
    it, None for kinds without one; `observed` are the live objects that `axn.observed` finds; `tries` are those before
    this one that did not succeed.
    Raises: `InvalidObject` when the API server would refuse `resource`, or drop a field of it.
    """
    kind = _kind_of(resource, version)
    token: Reconcile[Any] = _Checked(
        action=Action(action),
        resource=resource if version is None else version.check(resource, strict=True),
        kind=kind,
        controller=_Untested.configured(options=options or {})(),
        version=version,
        reasons=frozenset(map(Reason, reasons)),
        tries=tries,
        context=_OfflineContext(observed, kind=kind, key=key_of(resource)),
    )
    _ = token.spec  # refuses what the API server would
    return token


async def handle(
    controller: type[Controller[T]],
    resource: Resource,
    *,
    action: Action | str = Action.ADD,
    observed: Iterable[Mapping[str, Any]] = (),
    reasons: Iterable[Reason | str] = (),
    tries: int = 0,
) -> Reconcile[T]:
    """Call the handler of `controller` that fits `action`, as the operator would, and return the token it leaves.

    The object, and each status that the handler registers, is checked and filled in as the API server does it; unknown
    fields are refused. The controller's own steps run, `def` handlers run in a thread. For `finalize` it is called as
    the step `Finalizer` does; without a handler for `action` nothing is called.
    Raises: what the handler raises; `InvalidObject` for an object or a status that the API server would refuse, or drop
    a field of; `HandlerTimeout` when it takes longer than the controller's `timeout`.
    """
    made = controller()
    version = controller.version_for(resource.get("kind", ""), resource.get("apiVersion", "").rpartition("/")[2])
    kind = _kind_of(resource, version)
    token: Reconcile[T] = _Checked(
        action=Action(action),
        resource=resource if version is None or action == Action.FINALIZE else version.check(resource, strict=True),
        kind=kind,
        controller=made,
        version=version,
        reasons=frozenset(map(Reason, reasons)),
        tries=tries,
        context=_OfflineContext(observed, kind=kind, key=key_of(resource)),
    )
    await run_step(token, DelegateToController())
    if token.action is Action.FINALIZE and controller.finalizes():
        await call_handler(made.finalize, token, seconds=made.timeout, name=f"finalize of {controller.__name__}")
    return token


class _Checked(Reconcile[V_co]):
    """A token whose status is checked when a handler registers it, not when it is sent."""

    def update_status(self, change: Any) -> None:
        super().update_status(change)
        model = None if self._version is None else self._version.status_model()
        if model is not None:
            check_status(self.status_from(self.resource.get("status") or {}), model)


class _Untested(Controller[Any]):
    """The controller of a token that was built without one."""


def _kind_of(resource: Mapping[str, Any], version: type[Version] | None) -> Kind:
    """The kind of a handled object; of an object without type, as in a list, any."""
    kind = resource.get("kind") or "Object"
    return Kind(
        resource.get("apiVersion") or "v1",
        kind,
        plural=version.plural if version is not None else f"{kind.lower()}s",
        scope=Scope.NAMESPACED if key_of(resource).namespace else Scope.CLUSTER,
    )


class _OfflineContext(ReconcileContext):
    """A context that knows some objects and cannot send anything."""

    def __init__(self, observed: Iterable[Mapping[str, Any]], *, kind: Kind, key: Key) -> None:
        stream = Stream(NO_CLIENT, kind, namespace=None, options=WatchOptions())
        self.recorded: list[Event] = []
        self._observed = {_name(resource, key.namespace): cast("Resource", resource) for resource in observed}
        super().__init__(
            operator="test",
            manager="test/Controller",
            finalizer="test.example.com/controller",
            client=NO_CLIENT,
            router=Router(primary=[stream], owned={}, options=QueueOptions(), on_status=False),
            key=key,
            record=lambda _, event: self.recorded.append(event),
            apply_descendants=_mark_descendants,
            apply_status=_mark_status,
            periodic_tasks=PeriodicTasks(NO_CLIENT),
            wrote=True,  # so that success events are emitted, as when something changed
        )

    def observed(self, descendant: Mapping[str, Any]) -> Resource | None:
        return self._observed.get(_name(descendant, self.key.namespace))


def _name(resource: Mapping[str, Any], namespace: str) -> tuple[tuple[str, str], Key]:
    key = key_of(resource)
    return gvk_of(resource), Key(key.namespace or namespace, key.name)


async def _mark_descendants(axn: Reconcile[Any], *, create_events: bool) -> None:  # noqa: ARG001  as in the pipeline
    """A handler may ask for it; nothing is sent."""
    axn.finish_descendants()
    axn.mark_applied(State.DESCENDANTS_APPLIED)


async def _mark_status(axn: Reconcile[Any], *, strict: bool) -> None:  # noqa: ARG001  as in the pipeline
    """A handler may ask for it; nothing is sent."""
    if axn.status:
        axn.mark_applied(State.STATUS_APPLIED)

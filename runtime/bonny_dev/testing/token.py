"""Token: builds an `Axn` for a handler test without a server, and passes it through a handler.

    token = await testing.handle(WidgetController, widget(size=3))
    testing.assert_descendant(token, "ConfigMap", "w1", data={"size": "3"})

Nothing is sent: the token holds what a handler registered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, cast

from bonny.api import Version
from bonny.axn import Action, Axn, Observation, State
from bonny.client.api import Client
from bonny.controller import Controller
from bonny.core.fights import Fights
from bonny.core.ledger import Witness
from bonny.core.objects import Item
from bonny.core.queue import Reason
from bonny.errors import OptionError
from bonny.events import Event
from bonny.kinds import Kind, Owned
from bonny.pipeline import run_step
from bonny.resource import Key, Resource, key_of
from bonny.servers.periodic import PeriodicTasks
from bonny.steps.calling import call_handler
from bonny.steps.delegate import DelegateToController

__all__ = ["axn", "handle"]

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    V = TypeVar("V", bound=Version, default=Any)
    T = TypeVar("T")


def axn(
    resource: Resource,
    *,
    version: type[V] | None = None,
    action: Action | str = Action.ADD,
    observed: Iterable[Resource] = (),
    reasons: Iterable[Reason | str] = (),
    tries: int = 0,
    options: Mapping[str, Any] | None = None,
) -> Axn[V]:
    """The token of an action event on `resource`.

    `version` is the class that types its spec, and by which the object is checked and filled in as the API server does
    it, None for kinds without one; `observed` are the live objects that `axn.observed` finds; `tries` are those before
    this one that did not succeed.
    Raises: `InvalidObject` when the API server would refuse `resource`.
    """
    token: Axn[V] = Axn(
        action=Action(action),
        resource=resource if version is None else version.check(resource),
        version=version,
        reasons=frozenset(map(Reason, reasons)),
        tries=tries,
        options=options,
        workplace=_Bench(list(observed), namespace=key_of(resource).namespace),
    )
    token.validate()
    return token


async def handle(
    controller: type[Controller[T]],
    resource: Resource,
    *,
    action: Action | str = Action.ADD,
    observed: Iterable[Resource] = (),
    reasons: Iterable[Reason | str] = (),
    tries: int = 0,
) -> Axn[T]:
    """Call the handler of `controller` that fits `action`, as the operator would, and return the token it leaves.

    The object is checked and filled in as the API server does it, the controller's own steps run, `def` handlers run
    in a thread. For `finalize` it is called as the step `Finalizer` does; without a handler for `action` nothing is
    called.
    Raises: what the handler raises; `HandlerTimeout` when it takes longer than the controller's `timeout`.
    """
    made = controller()
    version = controller.version_of(resource["apiVersion"], resource["kind"])
    token: Axn[T] = Axn(
        action=Action(action),
        resource=resource if version is None or action == Action.FINALIZE else version.check(resource),
        version=version,
        reasons=frozenset(map(Reason, reasons)),
        tries=tries,
        controller=made,
        options=made.options,
        workplace=_Bench(list(observed), namespace=key_of(resource).namespace),
    )
    await run_step(token, DelegateToController())
    if token.action is Action.FINALIZE and controller.finalizes():
        await call_handler(made.finalize, token, seconds=made.timeout, name=f"finalize of {controller.__name__}")
    return token


class _Bench:
    """A workplace that knows some objects and cannot send anything."""

    operator = "test"
    manager = "test/Controller"
    finalizer = "test.example.com/controller"
    wrote = True
    """So that success events are registered, as when something changed."""

    def __init__(self, observed: Sequence[Resource], *, namespace: str) -> None:
        self.owns: Sequence[Owned] = ()
        self.witnesses: dict[tuple[Kind, Key], Witness] = {}
        self.fights = Fights()
        self.recorded: list[Event] = []
        self._tasks = PeriodicTasks(cast("Any", None))
        self._namespace = namespace
        self._observed = {self._name(resource): resource for resource in observed}

    def _name(self, resource: Mapping[str, Any]) -> tuple[str, str, Key]:
        key = key_of(resource)
        return resource["apiVersion"], resource["kind"], Key(key.namespace or self._namespace, key.name)

    @property
    def client(self) -> Client:
        raise OptionError(
            "a token of bonny_dev.testing sends nothing: test what needs the API server against a sandbox"
        )

    @property
    def tasks(self) -> PeriodicTasks:
        """Registered tasks do not run."""
        return self._tasks

    def observe(self, kind: Kind, key: Key) -> Observation:  # noqa: ARG002  the protocol's shape
        """Nothing is followed."""
        return Observation(known=False, item=None)

    def observed(self, descendant: Mapping[str, Any]) -> Resource | None:
        return self._observed.get(self._name(descendant))

    def children(self, owner_uid: str) -> list[tuple[Owned, Item]] | None:  # noqa: ARG002  the protocol's shape
        """Nothing is followed."""
        return None

    @property
    def up_to_date(self) -> bool:
        return True

    def contested(self, kind: Kind, key: Key) -> None:
        raise OptionError(f"a token of bonny_dev.testing sends nothing: {kind.kind} {key} was to be written")

    def writing(self, kind: Kind, key: Key) -> AbstractContextManager[Callable[[str], None]]:
        raise OptionError(f"a token of bonny_dev.testing sends nothing: {kind.kind} {key} was to be written")

    def deleting(self, kind: Kind, key: Key, uid: str) -> AbstractContextManager[None]:  # noqa: ARG002  the same
        raise OptionError(f"a token of bonny_dev.testing sends nothing: {kind.kind} {key} was to be deleted")

    def record(self, regarding: Resource, event: Event) -> None:  # noqa: ARG002  the protocol's shape
        """Keep it."""
        self.recorded.append(event)

    async def apply_descendants(self, axn: Axn[Any], *, create_events: bool) -> None:  # noqa: ARG002  the protocol's shape
        """A handler may ask for it; nothing is sent."""
        axn.finish_descendants()
        axn.mark_applied(State.DESCENDANTS_APPLIED)

    async def apply_status(self, axn: Axn[Any], *, strict: bool) -> None:  # noqa: ARG002  the protocol's shape
        """A handler may ask for it; nothing is sent."""
        if axn.status:
            axn.mark_applied(State.STATUS_APPLIED)

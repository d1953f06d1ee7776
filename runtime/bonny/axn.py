"""Axn: the token of one reconcile. Handlers register the desired state on it; the last steps apply that.

You need it in every handler and step. It says what happened (`action`, `resource`, `reasons`) and collects the desired
state: descendants, status, conditions, events. Nothing is sent while a handler runs, so a handler test builds a token,
calls the handler and compares (`bonny_dev.testing.axn`).
"""

from __future__ import annotations

import asyncio
import inspect
import math
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeAlias, TypeVar, cast

import msgspec

from .api import Version
from .client.api import Client
from .core.conditions import condition, steadied, with_condition
from .core.objects import Item, decode_item
from .core.queue import Reason
from .core.records import Action
from .engine.context import ReconcileContext, Tasks
from .errors import AlreadyApplied, OptionError
from .events import Event, EventType
from .kinds import Kind
from .resource import Key, Resource, identify, key_of

if TYPE_CHECKING:
    # A controller's handlers take an Axn, and an Axn names its controller: one of the two imports is for types alone.
    from .controller import Controller

S = TypeVar("S")
S_co = TypeVar("S_co", covariant=True)
R = TypeVar("R")
V_co = TypeVar("V_co", covariant=True)

StatusChange: TypeAlias = Callable[[Resource], Resource | None]
"""Gets a copy of the status; returns the new status, or None if it changed the copy in place."""


class State(StrEnum):
    """The parts of an axn that were sent already; changing them raises `AlreadyApplied`."""

    DESCENDANTS_APPLIED = "descendants"
    STATUS_APPLIED = "status"
    EVENTS_EMITTED = "events"


class HasSpec(Protocol[S_co]):
    """A version class with a typed spec."""

    @property
    def spec(self) -> S_co: ...


@dataclass(frozen=True, slots=True)
class Descendant:
    """An object that must exist as long as the handled object does."""

    resource: Resource
    group: int = 0
    omit_owner_ref: bool = False
    adopt: bool = False
    recreate: bool = False


@dataclass(frozen=True, slots=True)
class ReconcileFailure:
    """Why a reconcile failed, as reported in the `Reconciled` condition.

    `reason` is one word in CamelCase; `message` stays the same over retries and never quotes objects.
    """

    reason: str
    message: str


BeforeApplyDescendants: TypeAlias = "Callable[[list[Resource], Axn[Any]], list[Resource]]"
BeforeApplyStatus: TypeAlias = "Callable[[Resource, Axn[Any]], Resource]"
BeforeEmitEvent: TypeAlias = "Callable[[Event, Axn[Any]], Event]"
AfterProcessed: TypeAlias = "Callable[[Axn[Any]], None]"


@dataclass(frozen=True, slots=True)
class RegisteredEvent:
    """An event that waits to be emitted; a success event is dropped if nothing changed."""

    event: Event
    only_if_changed: bool


class Axn(Generic[V_co]):
    """One reconcile on its way through the pipeline.

    `V_co` is the version class of the controller (`Axn[Widget]`); `Axn[Any]` for objects without one.
    """

    def __init__(
        self,
        *,
        action: Action,
        resource: Resource,
        kind: Kind,
        controller: Controller[Any],
        version: type[Version] | None = None,
        reasons: frozenset[Reason] = frozenset(),
        tries: int = 0,
        shown: Item | None = None,
        context: ReconcileContext,
    ) -> None:
        self.action = action
        """The change of the object that is handled."""
        self.resource = resource
        """The object as a plain mapping; for `delete` its last known state."""
        self.reasons = reasons
        """Why the handler runs."""
        self.tries = tries
        """Consecutive tries before this one that failed or asked for another try."""
        self.controller = controller
        """The controller whose handler runs."""
        self.options: Mapping[str, Any] = controller.options
        """The controller's own options."""
        self.kind = kind
        """The kind of the object."""
        self._context = context
        self.assigns: dict[str, Any] = {}
        """For your own steps: values for later steps."""
        self.private: dict[str, Any] = {}
        """For steps of libraries: values for later steps."""
        self.halted = False
        """Whether a step or a handler called `halt`."""
        self.requeue_seconds: float | None = None
        """The wait that `requeue_after` asked for."""
        self.failure: ReconcileFailure | None = None
        """Why the reconcile failed, for reporting steps and `register_after_processed`; None if it did not."""
        self._shown = shown or decode_item(msgspec.json.encode(resource))
        self._version = version
        self._spec: object = None
        self._descendants: list[Descendant] = []
        self._status_changes: list[StatusChange] = []
        self._events: list[RegisteredEvent] = []
        self._before_apply_descendants: list[BeforeApplyDescendants] = []
        self._before_apply_status: list[BeforeApplyStatus] = []
        self._before_emit_event: list[BeforeEmitEvent] = []
        self._after_processed: list[AfterProcessed] = []
        self._states: set[State] = set()
        self._conditions: set[str] = set()
        self._looked_at: set[tuple[str, str, Key]] = set()
        self._sealed = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._calling: Future[Any] | None = None

    # --- what happened ------------------------------------------------------------------------------------------------

    @property
    def spec(self: Axn[HasSpec[S]]) -> S:
        """The validated spec; for controllers of kinds without a version class, the plain mapping."""
        if self._version is None:
            return cast("S", self.resource.get("spec", {}))
        if self._spec is None:
            self._spec = self._version.spec_of(self.resource)
        return cast("S", self._spec)

    @property
    def has_conditions(self) -> bool:
        """Whether the schema of the object's status has conditions."""
        return self._version is not None and self._version.has_conditions()

    @property
    def has_observed_generation(self) -> bool:
        """Whether the schema of the object's status has observedGeneration."""
        return self._version is not None and self._version.has_observed_generation()

    @property
    def key(self) -> Key:
        """Namespace and name of the object; the namespace is empty for cluster-scoped ones."""
        return self._shown.key

    @property
    def uid(self) -> str:
        """metadata.uid; distinguishes objects that reuse a name."""
        return self._shown.meta.uid

    @property
    def identity(self) -> Resource:
        """Type, name, UID and generation of the object, unaffected by changes to `resource`. Use it as `related`."""
        meta = self._shown.meta
        return {
            "apiVersion": self.kind.api_version,
            "kind": self.kind.kind,
            "metadata": {name: getattr(meta, name) for name in ("name", "namespace", "uid", "generation")},
        }

    @property
    def client(self) -> Client:
        """Requests beyond descendants and status. The controller's `rules` must allow them."""
        return self._context.client

    @property
    def tasks(self) -> Tasks:
        """The operator's periodic tasks: `axn.tasks.register(PeriodicTask(...))`, from any thread."""
        return self._context.tasks

    @property
    def operator(self) -> str:
        """The operator's name."""
        return self._context.operator

    def observed(self, descendant: Mapping[str, Any]) -> Resource | None:
        """The live object of that kind and name as the watch last showed it, or None. You may change the mapping.

        When this reconcile changes an object that its handler observed, the handler runs again afterwards, so that its
        conclusions do not stay outdated. The kind must be in the controller's `owns` or `related`.
        Raises: `OptionError` for another kind. RBAC: list and watch, granted by both.
        """
        metadata = descendant["metadata"]
        namespace = metadata.get("namespace") or self.key.namespace
        wanted = {**descendant, "metadata": {**metadata, "namespace": namespace}}
        self._looked_at.add(self._named(wanted))
        return self._context.observed(wanted)

    def identifier(self) -> tuple[str, str, str]:
        """(namespace/name, apiVersion, Kind/action), for logs."""
        return str(self.key), self.kind.api_version, f"{self.kind.kind}/{self.action}"

    def call(self, coroutine: Coroutine[Any, Any, R]) -> R:
        """Run `coroutine` on the operator's loop from a `def` handler's thread, and wait for its result.

        Raises: what the coroutine raises; `AlreadyApplied` after the handler's timeout; `OptionError` outside of a
        `def` handler.
        """
        if self._sealed or self._loop is None:
            coroutine.close()
            self._must_be_open()
            raise OptionError("axn.call is for `def` handlers: in an `async def` handler, await the coroutine")
        self._calling = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        if self._sealed:  # in the meantime
            self._calling.cancel()
        try:
            return cast("R", self._calling.result())
        except CancelledError:
            self._must_be_open()
            raise

    # --- desired state ------------------------------------------------------------------------------------------------

    def register_descendant(
        self,
        resource: Resource,
        *,
        group: int = 0,
        omit_owner_ref: bool = False,
        adopt: bool = False,
        recreate: bool = False,
    ) -> None:
        """Make `resource` exist as given; fields set by other managers stay.

        Groups are applied in ascending order, the objects of one group concurrently. The owner reference is left out
        where Kubernetes forbids one (across namespaces, cluster-scoped under a namespaced owner) or on request.
        `adopt` takes over an existing object of this name that is not ours. `recreate` deletes the object and creates
        it again when the API server refuses to change it, as with immutable fields. Registering a name again replaces
        the earlier registration.

        Raises: `AlreadyApplied`; `OptionError` when it has no apiVersion, kind or name.
        RBAC: create and patch, granted by `owns`; delete for `recreate`, granted where children are pruned.
        """
        self._may_change(State.DESCENDANTS_APPLIED)
        if self.action in (Action.DELETE, Action.FINALIZE):
            raise OptionError(
                f"{identify(self.identity)} is being deleted and cannot get new descendants: use axn.client"
            )
        metadata = resource.get("metadata") or {}
        if not (resource.get("apiVersion") and resource.get("kind") and metadata.get("name")):
            raise OptionError("a descendant needs apiVersion, kind and metadata.name")
        identity = self._named(resource)
        self._descendants = [other for other in self._descendants if self._named(other.resource) != identity]
        self._descendants.append(Descendant(resource, group, omit_owner_ref, adopt, recreate))

    @property
    def descendants(self) -> list[Resource]:
        """The registered descendants, in order of group, then of registration."""
        return [each.resource for each in sorted(self._descendants, key=lambda descendant: descendant.group)]

    def update_status(self, change: StatusChange) -> None:
        """Change the status: `change` gets the status that this controller set so far and returns the new one.

        After a conflict it is called again with a newer status, so it must have no side effects.
        Raises: `AlreadyApplied`. RBAC: patch <plural>/status, granted for your own kinds.
        """
        self._may_change(State.STATUS_APPLIED)
        self._status_changes.append(change)

    def set_condition(
        self,
        type: str,  # noqa: A002  the API's own word
        status: bool | None,
        *,
        message: str | None = None,
        reason: str | None = None,
    ) -> None:
        """Set the condition `type` to True, False or (None) Unknown; lastTransitionTime moves only when that changes.

        `reason` is one CamelCase word; default: the type for True, `Not<type>` for False, `Unknown` for None.
        Raises: `AlreadyApplied`; `OptionError` for any other status.
        """
        wanted = condition(type, status, message=message, reason=reason, of=self.identity)
        self.update_status(lambda status: with_condition(status, wanted))
        self._conditions.add(type)

    def status_from(self, base: Resource) -> Resource:
        """A copy of the status `base` with the registered changes."""
        # Encoding and decoding is twice as fast as copy.deepcopy.
        status: Resource = msgspec.json.decode(msgspec.json.encode(base))
        for change in self._status_changes:
            changed = change(status)
            status = status if changed is None else changed
        return steadied(status, base, self._conditions)

    @property
    def status(self) -> Resource:
        """The registered changes, made to an empty status."""
        return self.status_from({})

    @property
    def conditions(self) -> dict[str, Resource]:
        """The registered conditions by type."""
        return {condition["type"]: condition for condition in self.status.get("conditions", ())}

    def requeue_after(self, seconds: float) -> None:
        """Run the handler again after `seconds`, as action `reconcile`, even if nothing changed."""
        if not 0 < seconds < math.inf:
            raise OptionError(f"requeue_after({seconds}): use more than 0 seconds, or raise Retry for another try")
        self.requeue_seconds = seconds

    def halt(self) -> None:
        """Run no further steps in this reconcile. Registered events are still emitted."""
        self.halted = True

    # --- events -------------------------------------------------------------------------------------------------------

    def success_event(self, *, reason: str = "", message: str = "", related: Resource | None = None) -> None:
        """Register an event of type Normal, emitted if the reconcile succeeds and changed something.

        `reason` is one CamelCase word; default: the action with `Succeeded`. `related` is a second object involved.
        Raises: `AlreadyApplied`. RBAC: create and patch on events, always granted.
        """
        action = self.action.capitalize()
        event = Event(
            EventType.NORMAL, reason or f"{action}Succeeded", action, message or f"{action} succeeded", related
        )
        self._register_event(event, only_if_changed=True)

    def failure_event(self, *, reason: str = "", message: str = "", related: Resource | None = None) -> None:
        """Register an event of type Warning. An exception of a handler is reported without this.

        `reason` is one CamelCase word; default: the action with `Failed`. Raises: `AlreadyApplied`.
        """
        action = self.action.capitalize()
        event = Event(EventType.WARNING, reason or f"{action}Failed", action, message or f"{action} failed", related)
        self._register_event(event, only_if_changed=False)

    def register_event(
        self,
        related: Resource | None,
        type: EventType | str,  # noqa: A002  the API's own word
        reason: str,
        action: str,
        message: str,
    ) -> None:
        """Register any event. Repeats within six minutes are counted in one event; events per object are limited.

        `type` is Normal or Warning; `reason` and `action` are CamelCase words. Raises: `AlreadyApplied`, `OptionError`.
        """
        if type not in set(EventType):
            raise OptionError(f"the type of event {reason} is {type!r}: use 'Normal' or 'Warning'")
        self._register_event(Event(EventType(type), reason, action, message, related), only_if_changed=False)

    def _register_event(self, event: Event, *, only_if_changed: bool) -> None:
        self._may_change(State.EVENTS_EMITTED)
        self._events.append(RegisteredEvent(event, only_if_changed))

    @property
    def events(self) -> list[Event]:
        """The registered events that were not emitted yet."""
        return [registered.event for registered in self._events]

    def clear_events(self) -> None:
        """Drop the registered events."""
        self._may_change(State.EVENTS_EMITTED)
        self._events.clear()

    def emit_events(self) -> None:
        """Hand the registered events to the recorder. The pipeline does so at its end, also after a failure.

        Raises: `AlreadyApplied` if they were emitted already; what a hook raises.
        """
        self._may_change(State.EVENTS_EMITTED)
        for emit in self._emissions():
            emit()

    def _emissions(self) -> list[Callable[[], None]]:
        """Calls that emit the remaining events, also after a timeout or an earlier `emit_events`."""
        self._states.add(State.EVENTS_EMITTED)
        events, self._events = self._events, []
        return [partial(self._emit, registered) for registered in events]

    def _emit(self, registered: RegisteredEvent) -> None:
        if registered.only_if_changed and not self._is_news():
            return
        event = registered.event
        for hook in reversed(self._before_emit_event):
            event = hook(event, self)
        self._context.record(self.identity, event)

    def _is_news(self) -> bool:
        return self.failure is None and (self.action is Action.DELETE or self._context.wrote)

    # --- sending early ------------------------------------------------------------------------------------------------

    async def apply_descendants(self, *, create_events: bool = True) -> None:
        """Apply the registered descendants now instead of after the handler (step `ApplyDescendants`).

        `create_events` emits an event for each that was created or changed. Raises: as the step; `AlreadyApplied`.
        """
        self._may_change(State.DESCENDANTS_APPLIED)
        await self._context.apply_descendants(self, create_events=create_events)

    async def apply_status(self) -> None:
        """Write the registered status now; without one nothing is sent. Raises: as `ApplyStatus`."""
        self._may_change(State.STATUS_APPLIED)
        await self._context.apply_status(self, strict=True)

    async def safe_apply_status(self) -> None:
        """As `apply_status`, but a deleted object is logged as a warning and is not an error."""
        self._may_change(State.STATUS_APPLIED)
        await self._context.apply_status(self, strict=False)

    # --- hooks --------------------------------------------------------------------------------------------------------

    def register_before_apply_descendants(self, hook: BeforeApplyDescendants) -> None:
        """Call `hook(descendants, axn)` before they are applied; its result is applied instead.

        Hooks run in reverse order of registration. They are plain functions (`def`).
        """
        self._before_apply_descendants.append(_plain(hook))

    def register_before_apply_status(self, hook: BeforeApplyStatus) -> None:
        """Call `hook(resource, axn)` before the status is written; `resource` has apiVersion, kind, metadata and the
        status, and the status of what it returns is written instead. Called again after a conflict."""
        self._before_apply_status.append(_plain(hook))

    def register_before_emit_event(self, hook: BeforeEmitEvent) -> None:
        """Call `hook(event, axn)` before an event is emitted; its result is emitted instead."""
        self._before_emit_event.append(_plain(hook))

    def register_after_processed(self, hook: AfterProcessed) -> None:
        """Call `hook(axn)` at the very end, also after a failure (see `failure`) and after `halt`."""
        self._after_processed.append(_plain(hook))

    # --- states -------------------------------------------------------------------------------------------------------

    @property
    def states(self) -> frozenset[State]:
        """The parts that were sent already."""
        return frozenset(self._states)

    def _named(self, resource: Mapping[str, Any]) -> tuple[str, str, Key]:
        """The identity of a descendant; without a namespace it is in that of the handled object."""
        namespace, name = key_of(resource)
        return resource["apiVersion"], resource["kind"], Key(namespace or self.key.namespace, name)

    def _must_be_open(self) -> None:
        if self._sealed:
            raise AlreadyApplied(f"the reconcile of {identify(self.identity)} is over: nothing more is accepted")

    def _may_change(self, state: State) -> None:
        self._must_be_open()
        if state in self._states:
            raise AlreadyApplied(f"the {state} of {identify(self.identity)} were already applied: register them before")


H = TypeVar("H", bound=Callable[..., object])


def _plain(hook: H) -> H:
    if inspect.iscoroutinefunction(hook):
        raise OptionError(f"the hook {hook.__name__} is an `async def`: hooks are plain functions; use a step to await")
    return hook

"""Axn: the token of one reconcile. Handlers register the desired state on it; the last steps apply that.

You need it in every handler and step. It says what happened (`action`, `resource`, `reasons`) and collects the desired
state: descendants, status, conditions, events. Nothing is sent while a handler runs, so a handler test builds a token,
calls the handler and compares (`bonny_dev.testing.axn`).
"""

from __future__ import annotations

import asyncio
import inspect
import math
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial, reduce
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeAlias, TypeVar, cast, overload

import msgspec

from .api import Status, Version
from .api.version import HasSpec
from .api.writing import change_by
from .client.api import Client
from .core.conditions import condition, steadied, with_condition
from .core.objects import Item, decode_item
from .core.ordering import ObjectName, levels
from .core.queue import Reason
from .core.records import Action
from .core.selector import Selector
from .engine.context import ReconcileContext, Tasks
from .errors import AlreadyApplied, OptionError
from .events import Event, EventType
from .kinds import Kind
from .resource import Key, Resource, gvk_of, identify, key_of

if TYPE_CHECKING:
    # A controller's handlers take an Axn, and an Axn names its controller: one of the two imports is for types alone.
    from .controller import Controller

S = TypeVar("S")
T = TypeVar("T", bound=Status)
M = TypeVar("M", bound=Mapping[str, Any])
R = TypeVar("R")
V_co = TypeVar("V_co", covariant=True)

# A handler that keeps asking for a time in the past runs ten times a second, not as often as the event loop can.
SHORTEST_WAIT: Final = 0.1

StatusChange: TypeAlias = Callable[[Resource], Resource | None]
"""Gets a copy of the status; returns the new status, or None if it changed the copy in place."""


class State(StrEnum):
    """The parts of an axn that were sent already; changing them raises `AlreadyApplied`."""

    DESCENDANTS_APPLIED = "descendants"
    STATUS_APPLIED = "status"
    EVENTS_EMITTED = "events"


class HasStatus(Protocol[T]):
    """A version class with a typed status. Not read-only, so that only this one status fits."""

    status: T


class Handles(Protocol[V_co]):
    """An `Axn[V_co]`. mypy skips an overload whose `self` is the class itself with a protocol in brackets."""

    @property
    def controller(self) -> Controller[V_co]: ...


@dataclass(frozen=True, slots=True)
class Descendant:
    """An object that must exist as long as the handled object does."""

    name: ObjectName
    resource: Resource
    group: int = 0
    omit_owner_ref: bool = False
    adopt: bool = False
    recreate: bool = False
    after: tuple[ObjectName, ...] = ()
    when: Callable[[Resource], bool] | None = None


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


class Axn(Generic[V_co]):
    """One reconcile on its way through the pipeline.

    `V_co` is the version class of the controller (`Axn[Widget]`); `Axn[Any]` for objects without one.
    """

    _stage: str | None = None
    _stages_passed = 0
    _stage_failed = False
    _spec: object = None
    _sealed = False
    _loop: asyncio.AbstractEventLoop | None = None
    _calling: Future[Any] | None = None

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
        now: datetime | None = None,
        context: ReconcileContext,
    ) -> None:
        self.now = now or datetime.now(UTC)
        """The time of this reconcile, in UTC with microseconds. It stays the same while the handler runs."""
        self.action = action
        """The change of the object that is handled."""
        self.resource = resource
        """The object as a plain mapping; for `delete` its last known state."""
        self.reasons = reasons
        """Why the handler runs."""
        self.tries = tries
        """Consecutive tries before this one that failed or asked for another try."""
        self.controller: Controller[V_co] = controller
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
        """The wait that `requeue_after` or `requeue_at` asked for; that of `requeue_at` counts from `now`."""
        self.requeue_time: datetime | None = None
        """The time that `requeue_at` asked for."""
        self.failure: ReconcileFailure | None = None
        """Why the reconcile failed, for reporting steps and `register_after_processed`; None if it did not."""
        self.waiting: str | None = None
        """The object or event that the reconcile waits for, as the condition `Reconciled` names it; None if it does
        not wait."""
        self._shown = shown or decode_item(msgspec.json.encode(resource))
        self._version = version
        self._descendants: dict[ObjectName, Descendant] = {}
        self._status_changes: list[StatusChange] = []
        # Those to be emitted, each with whether it is dropped if nothing changed.
        self._events: list[tuple[Event, bool]] = []
        self._before_apply_descendants: list[BeforeApplyDescendants] = []
        self._before_apply_status: list[BeforeApplyStatus] = []
        self._before_emit_event: list[BeforeEmitEvent] = []
        self._after_processed: list[AfterProcessed] = []
        self._states: set[State] = set()
        self._conditions: set[str] = set()
        self._looked_at: set[ObjectName] = set()
        self._listed: set[tuple[str, str]] = set()
        self._found: dict[tuple[str, str], frozenset[Key]] = {}
        self._kept: set[ObjectName] = set()

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
        """Requests beyond descendants and status, uncached. The controller's `rules` must allow them."""
        return self._context.client

    @property
    def tasks(self) -> Tasks:
        """The operator's periodic tasks: `axn.tasks.register(PeriodicTask(...))`, from any thread."""
        return self._context.tasks

    @property
    def operator(self) -> str:
        """The operator's name."""
        return self._context.operator

    @overload
    def observed(self, descendant: dict[str, Any]) -> Resource | None: ...

    @overload
    def observed(self, descendant: M) -> M | None: ...

    def observed(self, descendant: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """The live object of that kind and name as the watch last showed it, or None. You may change the mapping.

        It has the type of `descendant`: a plain dict, or one of `bonny.types`.

        When this reconcile changes or prunes an object that its handler observed, the handler runs again afterwards, so
        that its conclusions do not stay outdated. The kind must be in the controller's `owns` or `related`.
        Raises: `OptionError` for another kind. RBAC: list and watch, granted by both.
        """
        metadata = descendant["metadata"]
        namespace = metadata.get("namespace") or self.key.namespace
        wanted = {**descendant, "metadata": {**metadata, "namespace": namespace}}
        self._looked_at.add(self._named(wanted))
        return self._context.observed(wanted)

    def children(self, api_version: str, kind: str, *, selector: Selector = "") -> Sequence[Resource]:
        """The live children of that kind, by namespace and name: the objects with the UID of this one in the label
        `bonny.dev/owner-uid`, also those under deletion. From the cache, without a request.

        A child is decoded when you read it, each time as a new mapping, which you may change; `len` and `selector`
        decode nothing. `selector` compares labels: `"app=web,tier!=db"`, `"tier in (a, b),!old"`, `{"app": "web"}`, or
        a LabelSelector with matchLabels and matchExpressions.

        When this reconcile changes, adds or prunes a child of this kind, the handler runs again afterwards, as with
        `observed`. A child that this operator wrote is never missing: while the watch does not show it, this raises
        `Retry`. A child that appears after the first list of its kind is not pruned; the handler runs again.
        Raises: `OptionError` for a kind that is not in the controller's `owns`, or a malformed selector; `Retry` while
        the watch is not up to date. RBAC: list and watch, granted by `owns`.
        """
        gvk = api_version, kind
        self._listed.add(gvk)
        # First, so that nothing of the list is missing from it: this may run in a thread.
        self._found.setdefault(gvk, self._context.keys_of_children(gvk, self.uid))
        return self._context.children_of(gvk, self.uid, selector=selector)

    def related(
        self,
        api_version: str,
        kind: str,
        *,
        selector: Selector = "",
        namespace: str | None = None,
        index: tuple[str, str] | None = None,
    ) -> Sequence[Resource]:
        """The live objects of a kind in the controller's `related` or `owns`, by namespace and name. From the cache,
        as it is: each is decoded when you read it, as with `children`.

        `selector` as in `children`. `namespace`: default that of the handled object; `"*"`, and for an object without
        one the default, are all that the operator watches. `index`: name and value of an index that `Related(...,
        indexes=)` declares; without one each object of the kind is looked at, though not decoded.

        Looking at an object does not make its changes wake the handler: `Related` says which changes do.
        Raises: `OptionError` for a kind, namespace or index that is not watched, or a malformed selector; `Retry`
        before the first list is complete. RBAC: list and watch, granted by `related` and `owns`.
        """
        self._listed.add((api_version, kind))
        if namespace == "":
            raise OptionError('the namespace of related objects is empty: name one, or write "*" for all')
        within = self.key.namespace if namespace is None else "" if namespace == "*" else namespace
        return self._context.related_to((api_version, kind), selector=selector, namespace=within, index=index)

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
        resource: Mapping[str, Any],
        *,
        group: int = 0,
        omit_owner_ref: bool = False,
        adopt: bool = False,
        recreate: bool = False,
        after: Mapping[str, Any] | Iterable[Mapping[str, Any]] = (),
        when: Callable[[Resource], bool] | None = None,
    ) -> None:
        """Make `resource` exist as given; fields set by other managers stay.

        It is applied `after` one or several other descendants, once `when(live object)` is true of each; default: once
        they are applied. `bonny.is_ready` fits most kinds. Until then it is left as it is, except that drift is
        corrected; nothing is pruned; and `Reconciled` is False with the reason `Waiting`. `when` is a plain function;
        it gets the object as the watch shows it, of `metadata_only` kinds the metadata. `group` is short for: after all
        that have a lower group and no `after`. A controller with a finalizer deletes in the reverse order (see the step
        `Finalizer`); without one, Kubernetes deletes in any order.

        The owner reference is left out where Kubernetes forbids one (across namespaces, cluster-scoped under a
        namespaced owner) or on request. `adopt` takes over an existing object of this name that is not ours. `recreate`
        deletes the object and creates it again when the API server refuses to change it, as with immutable fields.
        Registering a name again replaces the earlier registration.

        Raises: `AlreadyApplied`; `OptionError` when it has no apiVersion, kind or name, and for `after` with `group`. A
        cycle, or an `after` that is not registered, is an `OptionError` when they are applied.
        RBAC: create and patch, granted by `owns`; delete for `recreate`, granted where children are pruned.
        """
        self._may_change(State.DESCENDANTS_APPLIED)
        if self.action in (Action.DELETE, Action.FINALIZE):
            raise OptionError(
                f"{identify(self.identity)} is being deleted and cannot get new descendants: use axn.client"
            )
        name = self._named(resource)
        before = (after,) if isinstance(after, Mapping) else tuple(after)
        if (before and group) or (when and not before):
            raise OptionError(f"{identify(resource)}: give after= with or without when=, or group= without both")
        names, when = tuple(map(self._named, before)), when and _plain(when)
        self._descendants.pop(name, None)  # so that it comes last
        self._descendants[name] = Descendant(
            name, cast("Resource", resource), group, omit_owner_ref, adopt, recreate, names, when
        )

    def keep_descendant(self, resource: Mapping[str, Any]) -> None:
        """Let a child stay as it is: it is neither applied nor pruned. `resource` is a child from `children`, or any
        mapping with apiVersion, kind and metadata.name.

        A child that is neither registered nor kept is deleted after the reconcile. It is kept in this reconcile only:
        call this each time the handler runs. Has no effect on a child that is registered, too.
        Raises: `AlreadyApplied`; `OptionError` when it has no apiVersion, kind or name, or is of a kind that is not in
        the controller's `owns`.
        """
        self._may_change(State.DESCENDANTS_APPLIED)
        name = self._named(resource)
        if all(kind.gvk != name.gvk for kind in self._context.owns):
            raise OptionError(f"{identify(resource)} cannot be kept: its kind is not in the controller's `owns`")
        self._kept.add(name)

    @property
    def descendants(self) -> list[Resource]:
        """The registered descendants, in the order of `after` and `group`, then of registration."""
        return [each.resource for each in self._ordered()]

    def _ordered(self) -> list[Descendant]:
        """The registered descendants by level; `group` is the level, also of descendants that come after others."""
        descendants = self._by_name()
        after = {name: each.after for name, each in descendants.items() if each.after}
        level = {name: each.group for name, each in descendants.items() if not each.after}
        if after:
            level = levels(level, after)
        placed = [
            each if (each.name, each.group) == (name, level[name]) else replace(each, name=name, group=level[name])
            for name, each in descendants.items()
        ]
        return sorted(placed, key=lambda each: each.group)

    def _by_name(self) -> dict[ObjectName, Descendant]:
        """The descendants by their present names: a handler may change an object that it has registered."""
        return {self._named(each.resource): each for each in self._descendants.values()}

    @overload
    def update_status(self, change: StatusChange) -> None: ...

    @overload
    def update_status(self: Handles[HasStatus[T]], change: T) -> None: ...

    def update_status(self, change: StatusChange | Status) -> None:
        """Change the status by `WidgetStatus(...)` or by a function.

        A status object sets the fields that it was given; a field that was given None is removed. Other fields stay,
        and so do `conditions` (use `set_condition`) and `observedGeneration`, even if they were given.
        A function gets the status that this controller set so far, with the names on the wire, and returns the new one.
        After a conflict it is called again with a newer status, so it must have no side effects.

        Raises: `AlreadyApplied`; `InvalidObject` with the fields when a status object does not fit the schema;
        `OptionError` when it is the status of another kind, or a mapping.
        RBAC: patch <plural>/status, granted for your own kinds.
        """
        self._may_change(State.STATUS_APPLIED)
        if isinstance(change, Status):
            model = None if self._version is None else self._version.status_model()
            if self._version is not None and not (model and isinstance(change, model)):
                wanted = f"a {model.__name__}" if model else "no status"
                raise OptionError(f"update_status got a {type(change).__name__}, and a {self.kind.kind} has {wanted}")
            change = change_by(change)
        elif not callable(change):
            raise OptionError(f"update_status got a {type(change).__name__}: pass a status object or a function")
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
        Raises: `AlreadyApplied`; `OptionError` for any other status, and for a stage of the controller.
        """
        if type in self.controller.stages:
            raise OptionError(f"{type} is a stage: axn.stage sets its condition")
        wanted = condition(type, status, message=message, reason=reason, of=self.identity)
        self.update_status(lambda status: with_condition(status, wanted))
        self._conditions.add(type)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Surrounds a part of a long set-up: `with axn.stage("DatabaseReady"): ...`; `name` is one of `stages`.

        The condition `name` becomes True when the part ends. When it raises, the condition becomes False with the
        reason and message of `Reconciled` (`Waiting` for `Wait`), and the later stages become Unknown. Stages
        are entered in their order. A stage that is not entered keeps its condition.
        Raises: `OptionError` for another name or order; `AlreadyApplied`.
        """
        self._must_be_open()
        stages = self.controller.stages
        if self._stage is not None or name not in stages[self._stages_passed :][:1]:
            raise OptionError(
                f"the stage {name} begins out of turn: the stages of {type(self.controller).__name__} are "
                f"{', '.join(stages) or 'none'}; each begins once, when the one before has ended"
            )
        self._stage = name
        try:
            yield
        except BaseException:
            self._stage_failed = True
            raise
        self._must_be_open()
        self._stage, self._stages_passed = None, self._stages_passed + 1

    def with_stages(self, status: Resource) -> Resource:
        """For the step `ApplyStatus`: `status` with the conditions of the stages that began."""
        stages, why = self.controller.stages, self.unfinished
        staged = [condition(name, True, of=self.identity) for name in stages[: self._stages_passed]]
        if self._stage is not None and (self._stage_failed or why is not None):
            reason, message = (None, None) if why is None else (why.reason, why.message)
            staged.append(condition(self._stage, False, reason=reason, message=message, of=self.identity))
            later, reason = stages[self._stages_passed + 1 :], f"WaitingFor{self._stage}"
            staged += [condition(name, None, reason=reason, of=self.identity) for name in later]
        return reduce(with_condition, staged, status)

    def status_from(self, base: Resource) -> Resource:
        """A copy of the status `base` with the registered changes."""
        # Encoding and decoding is twice as fast as copy.deepcopy.
        status: Resource = msgspec.json.decode(msgspec.json.encode(base))
        for change in self._status_changes:
            changed = change(status)
            status = status if changed is None else changed
        return self.with_stages(steadied(status, base, self._conditions))

    @property
    def status(self) -> Resource:
        """The registered changes, made to an empty status."""
        return self.status_from({})

    @property
    def conditions(self) -> dict[str, Resource]:
        """The registered conditions by type."""
        return {condition["type"]: condition for condition in self.status.get("conditions", ())}

    @property
    def unfinished(self) -> ReconcileFailure | None:
        """Why the reconcile is not complete: its failure, or that it waits; None if it is complete so far."""
        return self.failure or (None if self.waiting is None else ReconcileFailure("Waiting", self.waiting))

    def requeue_after(self, seconds: float) -> None:
        """Run the handler again after `seconds`, as action `reconcile`, even if nothing changed.

        The last call of `requeue_after` and `requeue_at` counts. Raises: `OptionError` for 0 seconds or less.
        """
        if not 0 < seconds < math.inf:
            raise OptionError(f"requeue_after({seconds}): use more than 0 seconds, or raise Retry for another try")
        self.requeue_seconds, self.requeue_time = seconds, None

    def requeue_at(self, time: datetime) -> None:
        """Run the handler again at `time`, as action `reconcile`, even if nothing changed; a time in the past means at
        once.

        `time` needs a time zone, as `axn.now` has: `axn.requeue_at(axn.now + timedelta(days=1))`. A restart loses the
        timer, but runs the handler again, which can ask again. Raises: `OptionError` without a time zone.
        """
        if time.tzinfo is None:
            raise OptionError(f"requeue_at({time}): the time has no time zone: write for example tzinfo=UTC")
        self.requeue_seconds, self.requeue_time = max((time - self.now).total_seconds(), SHORTEST_WAIT), time

    def halt(self) -> None:
        """Run no further steps in this reconcile. Registered events are still emitted."""
        self.halted = True

    # --- events -------------------------------------------------------------------------------------------------------

    def success_event(self, *, reason: str = "", message: str = "", related: Mapping[str, Any] | None = None) -> None:
        """Register an event of type Normal, emitted if the reconcile succeeds and changed something.

        `reason` is one CamelCase word; default: the handler's name with `Succeeded`. `related` is a second object
        involved. Reconciles that emit equal events within six minutes are counted in one event.
        Raises: `AlreadyApplied`. RBAC: create and patch on events, always granted.
        """
        action = event_action(self)
        event = Event(
            EventType.NORMAL, reason or f"{action}Succeeded", action, message or f"{action} succeeded", related
        )
        self._register_event(event, only_if_changed=True)

    def failure_event(self, *, reason: str = "", message: str = "", related: Mapping[str, Any] | None = None) -> None:
        """Register an event of type Warning. An exception of a handler is reported without this.

        `reason` is one CamelCase word; default: the handler's name with `Failed`. Raises: `AlreadyApplied`.
        """
        action = event_action(self)
        event = Event(EventType.WARNING, reason or f"{action}Failed", action, message or f"{action} failed", related)
        self._register_event(event, only_if_changed=False)

    def register_event(
        self,
        related: Mapping[str, Any] | None,
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
        self._events.append((event, only_if_changed))

    @property
    def events(self) -> list[Event]:
        """The registered events that were not emitted yet."""
        return [event for event, _ in self._events]

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
        return [partial(self._emit, *registered) for registered in events]

    def _emit(self, event: Event, only_if_changed: bool) -> None:
        changed = self.unfinished is None and (self.action is Action.DELETE or self._context.wrote)
        if only_if_changed and not changed:
            return
        for hook in reversed(self._before_emit_event):
            event = hook(event, self)
        self._context.record(self.identity, event)

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

    def _name_of(self, gvk: tuple[str, str], key: Key) -> ObjectName:
        """The name of a descendant; without a namespace it is in that of the handled object."""
        return ObjectName(gvk, Key(key.namespace or self.key.namespace, key.name))

    def _named(self, resource: Mapping[str, Any]) -> ObjectName:
        """The name of what a handler calls a descendant."""
        api_version, kind = resource.get("apiVersion"), resource.get("kind")
        name = (resource.get("metadata") or {}).get("name")
        if not (api_version and kind and name):
            has = f"this one has apiVersion={api_version!r}, kind={kind!r}, metadata.name={name!r}"
            raise OptionError(f"a descendant needs apiVersion, kind and metadata.name: {has}")
        return self._name_of(gvk_of(resource), key_of(resource))

    def _must_be_open(self) -> None:
        if self._sealed:
            raise AlreadyApplied(f"the reconcile of {identify(self.identity)} is over: nothing more is accepted")

    def _may_change(self, state: State) -> None:
        self._must_be_open()
        if state in self._states:
            raise AlreadyApplied(f"too late for the {state} of {identify(self.identity)}: register changes earlier")


def event_action(axn: Axn[Any]) -> str:
    """The action of events that are about a handler: its name, such as `Reconcile`.

    A new object is handled as `add`, and again for its children: equal events of the two are counted as one.
    """
    changed = axn.action in (Action.ADD, Action.MODIFY)
    return "Reconcile" if changed and axn.controller.falls_back(axn.action) else axn.action.capitalize()


H = TypeVar("H", bound=Callable[..., object])


def _plain(hook: H) -> H:
    if inspect.iscoroutinefunction(hook):
        raise OptionError(f"the hook {hook.__name__} is an `async def`: hooks are plain functions; use a step to await")
    return hook

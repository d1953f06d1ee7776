"""Axn: the token of one reconcile. Handlers register the desired state on it; the last steps apply that.

You need it in every handler. It has the event (`action`, `resource`, `reasons`) and collects the desired state:
descendants, status, conditions, events. Registrations are sent after the handler, so a handler test builds a token,
calls the handler and compares (`bonny_dev.testing.axn`). Steps and tests see more: the registrations, and the outcome
(`Reconcile`).
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeAlias, TypeVar, cast, overload

from .api import Status, Version
from .api.status import change_by
from .api.version import HasSpec
from .calling import check_plain
from .client.api import Client
from .client.clock import timestamp
from .core.conditions import check_words, condition, with_condition
from .core.objects import Item
from .core.ordering import Descendant, ObjectName
from .core.queue import Reason
from .core.records import Action
from .core.selector import Selector
from .engine.context import ReconcileContext, Tasks
from .errors import AlreadyApplied, OptionError
from .events import Event, EventType
from .kinds import Kind
from .naming import check_gvk, is_object_name
from .resource import Key, Resource, gvk_of, identify, key_of

if TYPE_CHECKING:
    # A controller's handlers take an Axn, and an Axn names its controller: one of the two imports is for types alone.
    from .controller import Controller

S = TypeVar("S")
T = TypeVar("T", bound=Status)
M = TypeVar("M", bound=Mapping[str, Any])
R = TypeVar("R")
V_co = TypeVar("V_co", covariant=True)

StatusChange: TypeAlias = Callable[[Resource], Resource | None]
"""Gets a copy of the status; returns the new status, or None if it changed the copy in place."""


Part: TypeAlias = Literal["descendants", "status", "events"]
"""A part of the desired state; it is sent once."""


class HasStatus(Protocol[T]):
    """A version class with a typed status. Not read-only, so that only this one status fits."""

    status: T


class Handles(Protocol[V_co]):
    """An `Axn[V_co]`. mypy skips an overload whose `self` is the class itself with a protocol in brackets."""

    @property
    def _controller(self) -> Controller[V_co]: ...


@dataclass(kw_only=True, eq=False, repr=False)
class Axn(Generic[V_co]):
    """One reconcile, as its handler sees it.

    `V_co` is the version class of the controller (`Axn[Widget]`); `Axn[Any]` for objects without one.
    """

    action: Action
    """The change of the object that is handled."""

    resource: Resource
    """The object as a plain mapping; for `delete` its last known state."""

    reasons: frozenset[Reason] = frozenset()
    """Why the handler runs."""

    tries: int = 0
    """Consecutive tries before this one that failed or requested another try."""

    now: datetime = field(default_factory=lambda: datetime.now(UTC))
    """The time of this reconcile, in UTC with microseconds. It stays the same while the handler runs."""

    _context: ReconcileContext
    _controller: Controller[V_co]
    _kind: Kind
    _version: type[Version] | None = None
    _shown: Item
    _spec: object = None

    _descendants: dict[ObjectName, Descendant] = field(init=False, default_factory=dict)
    _kept: set[ObjectName] = field(init=False, default_factory=set)
    _looked_at: set[ObjectName] = field(init=False, default_factory=set)
    _listed: set[tuple[str, str]] = field(init=False, default_factory=set)
    _found: dict[tuple[str, str], frozenset[Key]] = field(init=False, default_factory=dict)
    _status_changes: list[StatusChange] = field(init=False, default_factory=list)
    _conditions: set[str] = field(init=False, default_factory=set)
    # Those to be emitted, each with whether it is dropped if nothing changed.
    _events: list[tuple[Event, bool]] = field(init=False, default_factory=list)
    _at_end: list[Callable[[Any], object]] = field(init=False, default_factory=list)
    _requeue: float | datetime | None = None
    _halted: bool = False
    _sent: set[Part] = field(init=False, default_factory=set)
    _closed: bool = False
    _loop: asyncio.AbstractEventLoop | None = None
    _calling: Future[Any] | None = None

    # --- the object and the reason ---

    @property
    def spec(self: Axn[HasSpec[S]]) -> S:
        """The validated spec; for controllers of kinds without a version class, the plain mapping."""
        if self._version is None:
            return cast("S", self.resource.get("spec", {}))
        if self._spec is None:
            self._spec = self._version.spec_of(self.resource)
        return cast("S", self._spec)

    @property
    def key(self) -> Key:
        """Namespace and name of the object; the namespace is empty for cluster-scoped ones."""
        return self._shown.key

    @property
    def uid(self) -> str:
        """metadata.uid; distinguishes objects that reuse a name."""
        return self._shown.meta.uid

    @property
    def client(self) -> Client:
        """Requests beyond descendants and status, uncached. The controller's `rules` must allow them."""
        return self._context.client

    @property
    def tasks(self) -> Tasks:
        """The operator's periodic tasks: `axn.tasks.register(PeriodicTask(...))`, from any thread."""
        return self._context.tasks

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
        gvk = check_gvk((api_version, kind))
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

        Looking at an object does not make its changes wake the handler: `Related` selects the changes that do.
        Raises: `OptionError` for a kind, namespace or index that is not watched, or a malformed selector; `Retry`
        before the first list is complete. RBAC: list and watch, granted by `related` and `owns`.
        """
        gvk = check_gvk((api_version, kind))
        self._listed.add(gvk)
        if not (namespace is None or is_object_name(namespace)):
            given = repr(str(namespace)[:60]) if namespace else "empty"
            raise OptionError(f'the namespace of related objects is {given}: name one, or write "*" for all')
        if index is not None and not index[0]:
            raise OptionError("the name of an index of related objects is empty: name one, or leave out index=")
        within = self.key.namespace if namespace is None else "" if namespace == "*" else namespace
        return self._context.related_to(gvk, selector=selector, namespace=within, index=index)

    def call(self, coroutine: Coroutine[Any, Any, R]) -> R:
        """Run `coroutine` on the operator's loop from a `def` handler's thread, and wait for its result.

        Raises: the errors of the coroutine; `AlreadyApplied` after the handler's timeout; `OptionError` outside of a
        `def` handler.
        """
        if self._closed or self._loop is None:
            coroutine.close()
            self._must_be_open()
            raise OptionError("axn.call is for `def` handlers: in an `async def` handler, await the coroutine")
        self._calling = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        if self._closed:  # in the meantime
            self._calling.cancel()
        try:
            return cast("R", self._calling.result())
        except CancelledError:
            self._must_be_open()
            raise

    # --- desired state ---

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
        self._may_change("descendants")
        if self.action in (Action.DELETE, Action.FINALIZE):
            raise OptionError(
                f"{self._kind.kind} {self.key} is being deleted and cannot get new descendants: use axn.client"
            )
        name = self._named(resource)
        before = (after,) if isinstance(after, Mapping) else tuple(after)
        if (before and group) or (when and not before):
            raise OptionError(f"{identify(resource)}: give after= with or without when=, or group= without both")
        check_plain(when)
        names = tuple(map(self._named, before))
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
        self._may_change("descendants")
        name = self._named(resource)
        if all(kind.gvk != name.gvk for kind in self._context.owns):
            raise OptionError(f"{identify(resource)} cannot be kept: its kind is not in the controller's `owns`")
        self._kept.add(name)

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
        self._may_change("status")
        if isinstance(change, Status):
            model = None if self._version is None else self._version.status_model()
            if self._version is not None and not (model and isinstance(change, model)):
                wanted = f"a {model.__name__}" if model else "no status"
                raise OptionError(f"update_status got a {type(change).__name__}, and a {self._kind.kind} has {wanted}")
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
        Raises: `AlreadyApplied`; `OptionError` for any other status, and for words that the API server would refuse.
        """
        check_words(type, reason)
        wanted = condition(type, status, message=message, reason=reason, generation=self._shown.meta.generation)
        self.update_status(lambda status: with_condition(status, wanted, at=timestamp()))
        self._conditions.add(type)

    def requeue_after(self, seconds: float) -> None:
        """Run the handler again after `seconds`, as action `reconcile`, even if nothing changed.

        The last call of `requeue_after` and `requeue_at` counts. Raises: `OptionError` for 0 seconds or less.
        """
        if not 0 < seconds < math.inf:
            raise OptionError(f"requeue_after({seconds}): use more than 0 seconds, or raise Retry for another try")
        self._requeue = seconds

    def requeue_at(self, time: datetime) -> None:
        """Run the handler again at `time`, as action `reconcile`, even if nothing changed; a time in the past means at
        once.

        `time` needs a time zone, as `axn.now` has: `axn.requeue_at(axn.now + timedelta(days=1))`. A restart loses the
        timer, but runs the handler again, which can ask again. Raises: `OptionError` without a time zone.
        """
        if time.tzinfo is None:
            raise OptionError(f"requeue_at({time}): the time has no time zone: write for example tzinfo=UTC")
        self._requeue = time

    def halt(self) -> None:
        """Run no further steps in this reconcile. Registered events are still emitted."""
        self._halted = True

    # --- events ---

    def success_event(self, *, reason: str = "", message: str = "", related: Mapping[str, Any] | None = None) -> None:
        """Register an event of type Normal, emitted if the reconcile succeeds and changed something.

        `reason` is one CamelCase word; default: the handler's name with `Succeeded`. `related` is a second object
        involved. Reconciles that emit equal events within six minutes are counted in one event.
        Raises: `AlreadyApplied`. RBAC: create and patch on events, always granted.
        """
        self._outcome_event(EventType.NORMAL, "succeeded", reason, message, related)

    def failure_event(self, *, reason: str = "", message: str = "", related: Mapping[str, Any] | None = None) -> None:
        """Register an event of type Warning. An exception of a handler is reported without this.

        `reason` is one CamelCase word; default: the handler's name with `Failed`. Raises: `AlreadyApplied`.
        """
        self._outcome_event(EventType.WARNING, "failed", reason, message, related)

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
            raise OptionError(f"the type of event {reason} is {type[:60]!r}: use 'Normal' or 'Warning'")
        self._register_event(Event(EventType(type), reason, action, message, related))

    def _outcome_event(
        self, kind: EventType, outcome: str, reason: str, message: str, related: Mapping[str, Any] | None
    ) -> None:
        action = self._controller.event_action(self.action)
        reason, message = reason or f"{action}{outcome.capitalize()}", message or f"{action} {outcome}"
        self._register_event(Event(kind, reason, action, message, related), only_if_changed=kind is EventType.NORMAL)

    def _register_event(self, event: Event, *, only_if_changed: bool = False) -> None:
        self._may_change("events")
        self._events.append((event, only_if_changed))

    # --- names and checks ---

    def _name_of(self, gvk: tuple[str, str], key: Key) -> ObjectName:
        """The name of a descendant; without a namespace it is in that of the handled object."""
        return ObjectName(gvk, Key(key.namespace or self.key.namespace, key.name))

    def _named(self, resource: Mapping[str, Any]) -> ObjectName:
        """The name of what a handler calls a descendant."""
        api_version, kind = resource.get("apiVersion"), resource.get("kind")
        own_name = (resource.get("metadata") or {}).get("name")
        if not (api_version and kind and own_name):
            has = f"this one has apiVersion={api_version!r}, kind={kind!r}, metadata.name={own_name!r}"
            raise OptionError(f"a descendant needs apiVersion, kind and metadata.name: {has}")
        name = self._name_of(check_gvk(gvk_of(resource)), key_of(resource))
        if not (is_object_name(name.key.name) and (not name.key.namespace or is_object_name(name.key.namespace))):
            raise OptionError(f"{str(name)[:200]} cannot be a descendant: an object cannot have that name or namespace")
        return name

    def _must_be_open(self) -> None:
        if self._closed:
            raise AlreadyApplied(f"the reconcile of {self._kind.kind} {self.key} is over: nothing more is accepted")

    def _may_change(self, part: Part) -> None:
        self._must_be_open()
        if part in self._sent:
            raise AlreadyApplied(f"{self._kind.kind} {self.key}: too late to change the {part}, already sent")

"""Reconcile: one run for one object, as steps, the worker and tests see it.

A handler needs only its base class, `Axn`: the change, and the desired state that it registers. Here is what it
registered, and the outcome.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

from ..axn import Axn, Part, V_co
from ..core.conditions import ReconcileFailure, keep_transition_times
from ..core.objects import Item, decode_item
from ..core.ordering import Descendant, ordered
from ..core.records import Action, is_paused
from ..events import Event
from ..kinds import Kind, Owned
from ..resource import PAUSED, Key, Resource, gvk_of
from .context import ReconcileContext

if TYPE_CHECKING:
    # As in `bonny.axn`: for types alone.
    from ..controller import Controller

# A handler that keeps asking for a time in the past runs ten times a second, not as often as the event loop can.
SHORTEST_WAIT: Final = 0.1

Step: TypeAlias = "Callable[[Reconcile[Any]], Awaitable[object] | None]"
"""Takes the reconcile; a step that asks for an `Axn` gets it as that. Returns what is to be awaited, if anything is."""


class Reconcile(Axn[V_co]):
    """The token that steps get: an `Axn` with what was registered and the outcome of that."""

    failure: ReconcileFailure | None = None
    """Why the reconcile failed, for reporting steps; None if it did not."""

    waiting: str | None = None
    """The object or event that the reconcile waits for, as the condition `Reconciled` names it; None if it does not
    wait."""

    paused = False
    """Whether the handler rests because of the annotation `bonny.dev/paused`."""

    outdated = False
    """Whether this reconcile changed an object that the handler observed."""

    applied: set[tuple[Kind, Key]] | None = None
    """Kind and key of each descendant, once the cluster has all of them."""

    stored: Resource | None = None
    """The object after the last status write."""

    emitted: tuple[Event, ...] = ()
    """The events that were handed to the recorder."""

    # --- the object ---

    @property
    def context(self) -> ReconcileContext:
        """The parts of the running operator that a reconcile may use."""
        return self._context

    @property
    def controller(self) -> Controller[V_co]:
        """The controller whose handler runs."""
        return self._controller

    @property
    def kind(self) -> Kind:
        """The kind of the object."""
        return self._kind

    @property
    def identity(self) -> Resource:
        """Type, name, UID and generation of the object, unaffected by changes to `resource`. Use it as `related`."""
        meta = self._shown.meta
        return {
            "apiVersion": self._kind.api_version,
            "kind": self._kind.kind,
            "metadata": {name: getattr(meta, name) for name in ("name", "namespace", "uid", "generation")},
        }

    @property
    def has_conditions(self) -> bool:
        """Whether the schema of the object's status has conditions."""
        return self._version is not None and self._version.has_conditions()

    @property
    def has_observed_generation(self) -> bool:
        """Whether the schema of the object's status has observedGeneration."""
        return self._version is not None and self._version.has_observed_generation()

    @property
    def shown(self) -> Item:
        """The object as the handler got it, unaffected by changes that the handler makes to `resource`."""
        return self._shown

    @shown.setter
    def shown(self, item: Item) -> None:
        self._shown = item

    def renew(self, resource: Resource) -> None:
        """For a step before the handler that wrote the object: `resource` is the object after that write.

        Of a metadata-only kind only the metadata is kept, as its stream shows it.
        """
        shown = ("apiVersion", "kind", "metadata") if self.kind.metadata_only else tuple(resource)
        self.resource = {name: resource[name] for name in shown}
        self._shown = decode_item(msgspec.json.encode(self.resource))
        self._spec = None

    def looked_at(self, resource: Mapping[str, Any]) -> bool:
        """Whether the handler looked at this object (`observed`), or at its kind (`children`, `related`)."""
        looked = bool(self._listed or self._looked_at)
        return looked and (gvk_of(resource) in self._listed or self._named(resource) in self._looked_at)

    def unwanted(self, children: Sequence[tuple[Owned, Item]]) -> list[tuple[Owned, Item]]:
        """The live children to prune: neither registered nor kept, nor under deletion, nor of a kind whose children
        stay."""
        names = [self._name_of(kind.gvk, child.key) for kind, child in children]
        wanted = self._kept | self._by_name().keys()
        # Two declarations of a kind may both select a child.
        wanted |= {name for name, (kind, _) in zip(names, children, strict=True) if not kind.prune}
        unwanted = [
            each
            for name, each in zip(names, children, strict=True)
            if name not in wanted and each[1].meta.deletion_timestamp is None
        ]
        # The handler could not keep what it was not shown, such as the last child that a former leader created.
        found = [each for each in unwanted if each[1].key in self._found.get(each[0].gvk, {each[1].key})]
        self.outdated = self.outdated or len(found) < len(unwanted)
        return found

    # --- the handler ---

    def give_loop(self, loop: asyncio.AbstractEventLoop | None) -> None:
        """For the pipeline: give the thread of a `def` handler the loop for `call`; None when it has ended."""
        self._loop = loop

    def close(self) -> None:
        """For the pipeline, after the handler's timeout: cancel its `call`; further registrations and calls raise
        `AlreadyApplied`."""
        self._closed = True
        if self._calling is not None:
            self._calling.cancel()

    @property
    def halted(self) -> bool:
        """Whether a step or a handler called `halt`."""
        return self._halted

    def wait(self, message: str, *, after: float | None = None) -> None:
        """For the pipeline: what is registered is applied, but the reconcile is not complete (`bonny.Wait`)."""
        self.waiting = message if self.waiting is None else f"{self.waiting}; {message}"
        if after is not None:
            self.requeue_after(after)

    def pause(self) -> None:
        """For the pipeline: let the handler rest if the annotation is set."""
        if is_paused(self._shown.meta.annotations, self.action):
            self.paused, self.waiting = True, f"the annotation {PAUSED} is set"

    @property
    def unfinished(self) -> ReconcileFailure | None:
        """Why the reconcile is not complete: its failure, or that it waits; None if it is complete so far."""
        reason = "Paused" if self.paused else "Waiting"
        return self.failure or (None if self.waiting is None else ReconcileFailure(reason, self.waiting))

    # --- the descendants ---

    @property
    def descendants(self) -> list[Resource]:
        """The registered descendants, in the order of `after` and `group`, then of registration."""
        return [each.resource for each in ordered(self._by_name())]

    def descendant_groups(self) -> Iterator[list[Descendant]]:
        """The registered descendants, level by level; the `group` of each is its level (`axn.register_descendant`)."""
        for _, group in groupby(ordered(self._by_name()), key=lambda each: each.group):
            yield list(group)

    @property
    def changes_descendants(self) -> bool:
        """Whether something is registered, or was before."""
        return bool(self._descendants or self._context.applied_records)

    def is_sent(self, part: Part) -> bool:
        """Whether `part` of the desired state was sent."""
        return part in self._sent

    def mark_sent(self, part: Part) -> None:
        """`part` of the desired state was sent: changing it from now on raises `AlreadyApplied`."""
        self._sent.add(part)

    # --- the status ---

    @property
    def status(self) -> Resource:
        """The registered changes, made to an empty status."""
        return self.status_from({})

    @property
    def conditions(self) -> dict[str, Resource]:
        """The registered conditions by type."""
        return {condition["type"]: condition for condition in self.status.get("conditions", ())}

    @property
    def changes_status(self) -> bool:
        """For the step `ApplyStatus`: whether there is a registration, or a part of the runtime's own."""
        return bool(self._status_changes) or self.has_conditions or self.has_observed_generation

    def status_from(self, base: Resource) -> Resource:
        """A copy of the status `base` with the registered changes."""
        # Encoding and decoding is twice as fast as copy.deepcopy.
        status: Resource = msgspec.json.decode(msgspec.json.encode(base))
        for change in self._status_changes:
            changed = change(status)
            status = status if changed is None else changed
        return self.with_own_conditions(keep_transition_times(status, base, self._conditions))

    # --- before something is sent: a subclass may change it ---

    def before_apply_descendants(self) -> None:
        """Called before the descendants are applied."""

    def before_apply_status(self, base: Resource) -> Resource:
        """The status to write; `base` is what this controller wrote before. Called again after a conflict."""
        return self.status_from(base)

    def with_own_conditions(self, status: Resource) -> Resource:
        """`status` with the conditions of a subclass, also where the status of the handler is not written."""
        return status

    def before_emit_event(self, event: Event) -> Event:
        """The event to emit in place of `event`."""
        return event

    # --- the end ---

    @property
    def events(self) -> list[Event]:
        """The registered events that were not emitted yet."""
        return [event for event, _ in self._events]

    def emit_at_end(self, event: Event) -> None:
        """Emit `event` at the end, also after the events were emitted."""
        self._events.append((event, False))

    def at_end(self, call: Callable[[Reconcile[Any]], object]) -> None:
        """Call `call` with this token at the very end, also after a failure and after `halt`, the last one first."""
        self._at_end.append(call)

    def last_calls(self) -> list[Callable[[], None]]:
        """For the pipeline: what emits the remaining events, also after a timeout, and what `at_end` registered."""
        return [*self.emissions(), *(partial(call, self) for call in reversed(self._at_end))]

    def emissions(self) -> list[Callable[[], None]]:
        """For the pipeline: calls that emit the registered events."""
        self.mark_sent("events")
        events, self._events = self._events, []
        return [partial(self._emit, *each) for each in events]

    def _emit(self, event: Event, only_if_changed: bool) -> None:
        changed = self.unfinished is None and (self.action is Action.DELETE or self._context.wrote)
        if changed or not only_if_changed:
            emitted = self.before_emit_event(event)
            self._context.emit(self.identity, emitted)
            self.emitted += (emitted,)

    @property
    def requeue_seconds(self) -> float | None:
        """The wait that `requeue_after` or `requeue_at` asked for; that of `requeue_at` counts from `now`."""
        return self._wait_from(self.now)

    @property
    def requeue_time(self) -> datetime | None:
        """The time that `requeue_at` asked for."""
        return self._requeue if isinstance(self._requeue, datetime) else None

    def requeue_within(self, seconds: float) -> None:
        """Run the handler again after `seconds`, unless it asked for less."""
        if self._requeue is None or seconds < (self.requeue_seconds or 0.0):
            self._requeue = seconds

    def requeue_wait(self) -> float | None:
        """For the worker: seconds from now, the end, until the handler runs again; None when nothing asked for that."""
        return self._wait_from(max(self.now, datetime.now(UTC)))

    def _wait_from(self, begin: datetime) -> float | None:
        wished = self._requeue
        return max((wished - begin).total_seconds(), SHORTEST_WAIT) if isinstance(wished, datetime) else wished

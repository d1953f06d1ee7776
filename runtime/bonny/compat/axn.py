"""Axn: the token with everything that `Bonny.Axn` had; the handlers of a `compat.Controller` get it, and its steps.

It adds hooks, which see and change what is sent; sending before the handler returns; and values for later steps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, TypeAlias, TypeVar

from ..calling import check_plain
from ..core.ordering import Descendant
from ..engine.reconcile import Reconcile
from ..events import Event
from ..resource import Resource
from ..steps.apply_descendants import ApplyDescendants
from ..steps.apply_status import write_status

V_co = TypeVar("V_co", covariant=True)

BeforeApplyDescendants: TypeAlias = "Callable[[list[Resource], Axn[Any]], list[Resource]]"
BeforeApplyStatus: TypeAlias = "Callable[[Resource, Axn[Any]], Resource]"
BeforeEmitEvent: TypeAlias = "Callable[[Event, Axn[Any]], Event]"
AfterProcessed: TypeAlias = "Callable[[Axn[Any]], None]"


class State(StrEnum):
    """The parts of an axn that were sent already; changing them raises `AlreadyApplied`."""

    DESCENDANTS_APPLIED = "descendants"
    STATUS_APPLIED = "status"
    EVENTS_EMITTED = "events"


@dataclass(kw_only=True, eq=False, repr=False)
class Axn(Reconcile[V_co]):
    """One reconcile on its way through the pipeline.

    `V_co` is the version class of the controller (`Axn[Widget]`); `Axn[Any]` for objects without one.
    """

    assigns: dict[str, Any] = field(init=False, default_factory=dict)
    """For your own steps: values for later steps."""

    private: dict[str, Any] = field(init=False, default_factory=dict)
    """For steps of libraries: values for later steps."""

    _before_apply_descendants: list[BeforeApplyDescendants] = field(init=False, default_factory=list)
    _before_apply_status: list[BeforeApplyStatus] = field(init=False, default_factory=list)
    _before_emit_event: list[BeforeEmitEvent] = field(init=False, default_factory=list)

    # --- the object and the reason ---

    @property
    def operator(self) -> str:
        """The operator's name."""
        return self.context.operator

    @property
    def options(self) -> Mapping[str, Any]:
        """The controller's own options."""
        return self.controller.options

    @property
    def states(self) -> frozenset[State]:
        """The parts that were sent already."""
        return frozenset(map(State, self._sent))

    def identifier(self) -> tuple[str, str, str]:
        """(namespace/name, apiVersion, Kind/action), for logs."""
        return str(self.key), self.kind.api_version, f"{self.kind.kind}/{self.action}"

    # --- sending early ---

    async def apply_descendants(self, *, create_events: bool = True) -> None:
        """Apply the registered descendants now instead of after the handler (step `ApplyDescendants`).

        `create_events` emits an event for each that was created or changed. Raises: as the step; `AlreadyApplied`.
        """
        self._may_change("descendants")
        if self.context.offline:
            self.before_apply_descendants()
            self.mark_sent("descendants")
        else:
            await ApplyDescendants(create_events=create_events)(self)

    async def apply_status(self) -> None:
        """Write the registered status now; without one nothing is sent. Raises: as `ApplyStatus`."""
        await self._write_status(strict=True)

    async def safe_apply_status(self) -> None:
        """As `apply_status`, but a deleted object is logged as a warning and is not an error."""
        await self._write_status(strict=False)

    async def _write_status(self, *, strict: bool) -> None:
        self._may_change("status")
        if self.status and self.context.offline:
            self.mark_sent("status")
        elif self.status:
            await write_status(self, self.before_apply_status, strict=strict)

    def emit_events(self) -> None:
        """Hand the registered events to the recorder. The pipeline does so at its end, also after a failure.

        Raises: `AlreadyApplied` if they were emitted already; what a hook raises.
        """
        self._may_change("events")
        for emit in self.emissions():
            emit()

    def clear_events(self) -> None:
        """Drop the registered events."""
        self._may_change("events")
        self._events.clear()

    # --- hooks ---

    def register_before_apply_descendants(self, hook: BeforeApplyDescendants) -> None:
        """Call `hook(descendants, axn)` before they are applied; its result is applied instead.

        Hooks run in reverse order of registration. They are plain functions (`def`).
        """
        check_plain(hook)
        self._before_apply_descendants.append(hook)

    def register_before_apply_status(self, hook: BeforeApplyStatus) -> None:
        """Call `hook(resource, axn)` before the status is written; `resource` has apiVersion, kind, metadata and the
        status, and the status of what it returns is written instead. Called again after a conflict."""
        check_plain(hook)
        self._before_apply_status.append(hook)

    def register_before_emit_event(self, hook: BeforeEmitEvent) -> None:
        """Call `hook(event, axn)` before an event is emitted; its result is emitted instead."""
        check_plain(hook)
        self._before_emit_event.append(hook)

    def register_after_processed(self, hook: AfterProcessed) -> None:
        """Call `hook(axn)` at the very end, also after a failure (see `failure`) and after `halt`."""
        check_plain(hook)
        self._at_end.append(hook)

    # --- where the pipeline asks ---

    @property
    def changes_status(self) -> bool:
        """For the step `ApplyStatus`: whether anything can change the status, also a hook."""
        return bool(self._before_apply_status) or super().changes_status

    def before_apply_descendants(self) -> None:
        """Let the hooks change the descendants. Objects that a hook adds get default options."""
        if not self._before_apply_descendants:
            return
        registered = self._by_name()
        resources = self.descendants
        for hook in reversed(self._before_apply_descendants):
            resources = hook(resources, self)
        final = {self._named(resource): resource for resource in resources}
        self._descendants = {
            name: replace(registered.get(name) or Descendant(name, resource), resource=resource)
            for name, resource in final.items()
        }

    def before_apply_status(self, base: Resource) -> Resource:
        """The status after the hooks."""
        status = super().before_apply_status(base)
        if not self._before_apply_status:
            return status
        resource: Resource = {**self.identity, "status": status}
        for hook in reversed(self._before_apply_status):
            resource = hook(resource, self)
        finished: Resource = resource.get("status") or {}
        return finished

    def before_emit_event(self, event: Event) -> Event:
        """The event after the hooks."""
        for hook in reversed(self._before_emit_event):
            event = hook(event, self)
        return event

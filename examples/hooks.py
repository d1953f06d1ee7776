"""Hooks: a step that sees each object before it is sent, and runs again when the reconcile is complete.

A hook returns the object to send, so it may change it; here all hooks return their argument. Hooks of one kind run in
the reverse order of their registration, so the hook of the first step runs last. Hooks are part of `bonny.compat`.
"""

import logging
from typing import Any

from bonny import Field, Operator, Owned, Resource, Spec, Status, Version, WithConditions, compat
from bonny.events import Event
from bonny.steps import default_steps

log = logging.getLogger(__name__)


class NoteSpec(Spec):
    """The desired state."""

    text: str = Field(min_length=1, description="Text of the note.")


class NoteStatus(Status, WithConditions):
    """The observed state."""

    length: int = 0


class Note(Version):
    """A text in a ConfigMap."""

    kind = "Note"
    plural = "notes"
    version = "v1"
    storage = True
    hub = True
    spec: NoteSpec
    status: NoteStatus


class NoteController(compat.Controller[Note]):
    owns = (Owned("v1", "ConfigMap"),)

    async def reconcile(self, axn: compat.Axn[Note]) -> None:
        metadata = {"name": axn.resource["metadata"]["name"]}
        data = {"text": axn.spec.text}
        axn.register_descendant({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
        axn.update_status(lambda status: {**status, "length": len(axn.spec.text)})
        axn.success_event(reason="Noted", message="the text is in a ConfigMap")


@compat.step
def tell(axn: compat.Axn[Any]) -> None:
    """A step that registers all hooks."""
    axn.register_before_apply_descendants(tell_descendants)
    axn.register_before_apply_status(tell_status)
    axn.register_before_emit_event(tell_event)
    axn.register_after_processed(tell_end)


def tell_descendants(descendants: list[Resource], axn: compat.Axn[Any]) -> list[Resource]:
    for descendant in descendants:
        namespace = descendant["metadata"].get("namespace") or axn.key.namespace
        named = {"kind": descendant["kind"], "name": descendant["metadata"]["name"], "namespace": namespace}
        log.info("descendant is applied", extra={f"descendant_{word}": value for word, value in named.items()})
    return descendants


def tell_status(resource: Resource, axn: compat.Axn[Any]) -> Resource:
    log.info("status is applied", extra={"kind": resource["kind"], "object": str(axn.key)})
    return resource


def tell_event(event: Event, axn: compat.Axn[Any]) -> Event:
    log.info("event is emitted", extra={"type": event.type.value, "reason": event.reason, "object": str(axn.key)})
    return event


def tell_end(axn: compat.Axn[Any]) -> None:
    log.info("done", extra={"object": str(axn.key), "succeeded": axn.failure is None})


operator = Operator(
    name="notes",
    group="notes.example.com",
    controllers=[NoteController],
    steps=(tell, *default_steps()),
)

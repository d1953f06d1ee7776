"""Live objects: read from the API server and not from a stream, and our fields of them; many requests at a time.

Destructive steps read here first: the owner may have changed since the handler saw it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias, TypeVar

import msgspec

from ..calling import add_note, text_of
from ..client.errors import NotFound
from ..core.fields import owned_fields, project
from ..core.handled import handled_state
from ..core.objects import decode_item
from ..engine.reconcile import Reconcile
from ..errors import ALSO
from ..events import Event, EventType
from ..kinds import Kind
from ..resource import Key, Resource

S = TypeVar("S")
T = TypeVar("T")
OwnedPart: TypeAlias = tuple[Mapping[str, Any] | None, Resource]
# After three conflicts in a row the backoff takes over.
TRIES: Final = 3
# Size of the owned paths from which on they are followed in a thread; below it takes up to 2 ms.
LARGE_BYTES: Final = 32_768
# Requests of one reconcile at a time. A server that is 20 ms away still answers 800 a second; each is a connection of
# 120 KiB.
AT_ONCE: Final = 16
# Failed children that a message quotes.
QUOTED: Final = 3

log = logging.getLogger("bonny.steps.live")


async def gather_all(request: Callable[[S], Awaitable[T]], subjects: Sequence[S]) -> list[T]:
    """Await `request` of each subject, `AT_ONCE` at a time and also after one failed; return the outcomes in order.

    Raises: the first error, with notes that quote a few others and count the rest.
    """
    if len(subjects) == 1:
        return [await request(subjects[0])]  # without a task
    left, outcomes, failed = enumerate(subjects), dict[int, T](), dict[int, BaseException]()

    async def work() -> None:
        for number, subject in left:
            if number >= AT_ONCE:
                await asyncio.sleep(0)  # thousands that need no request must not hold the event loop
            try:
                outcomes[number] = await request(subject)
            except Exception as error:  # noqa: BLE001  raised below
                failed[number] = error

    ended = await asyncio.gather(*(work() for _ in subjects[:AT_ONCE]), return_exceptions=True)
    errors = [failed[number] for number in sorted(failed)] + [error for error in ended if error is not None]
    try:
        if errors:
            for other in errors[1:QUOTED]:
                add_note(errors[0], f"{ALSO}{text_of(other)}")
            if len(errors) > QUOTED:
                add_note(errors[0], f"{ALSO}{len(errors) - QUOTED} more of {len(subjects)}")
            raise errors[0]
        return [outcomes[number] for number in range(len(subjects))]
    finally:
        # The error's traceback holds this frame. If the frame held the error, too, the cycle would keep the whole
        # reconcile in memory until the next garbage collection.
        failed.clear()
        del ended, errors


async def read(axn: Reconcile[Any], kind: Kind, key: Key) -> Resource | None:
    """The object, uncached; None if it does not exist. RBAC: get."""
    try:
        return await axn.client.get(kind, key.name, namespace=key.namespace or None)
    except NotFound:
        return None


async def read_owner(axn: Reconcile[Any]) -> Resource | None:
    """The handled object, uncached; None if it is gone or was re-created. RBAC: get."""
    live = await read(axn, axn.kind, axn.key)
    return live if live is not None and live["metadata"]["uid"] == axn.uid else None


async def owner_is_as_shown(axn: Reconcile[Any]) -> bool:
    """Whether the object is as the handler was shown it, and not under deletion. RBAC: get.

    Its status counts where status changes count for the controller, unless this reconcile wrote it already.
    """
    live = await read_owner(axn)
    if live is None:
        return False
    with_status = axn.controller.on_status and axn.stored is None
    now, then = (
        handled_state(item, with_status=with_status, metadata_only=axn.kind.metadata_only)
        for item in (decode_item(msgspec.json.encode(live)), axn.shown)
    )
    return now == then and now.deletion is None


async def owned_part(live: Resource, manager: str, *, subresource: str = "") -> OwnedPart:
    """The paths that `manager` owns of the live object (None for none), and the values there; `live` may be empty."""
    fields = owned_fields(live, manager, subresource=subresource) if live else None
    if fields is None:
        return None, {}
    return fields, await in_thread(len(msgspec.json.encode(fields)), project, live, fields)


async def in_thread(size: int, work: Callable[..., T], *arguments: object) -> T:
    """Call `work`; for inputs of many bytes (`size`) in a thread.

    A list of 15,000 items takes 50 ms; a thread keeps the event loop free for other objects and the probes.
    """
    if size < LARGE_BYTES:
        return work(*arguments)
    return await asyncio.to_thread(work, *arguments)


def report_fight(axn: Reconcile[Any], message: str, *, related: Resource | None = None) -> None:
    """Log that another writer undoes the writes of this controller, and emit an event on the handled object."""
    log.warning("corrections delayed: another writer undoes them", extra={"object": str(axn.key), "because": message})
    axn.emit_at_end(Event(EventType.WARNING, "RepeatedDrift", "Correct", f"{message}; corrections now wait", related))

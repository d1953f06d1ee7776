"""Values for the tests of the core: objects, pages, lines and refusals as bytes, and a hand to lead a stream by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from bonny.core import watch
from bonny.core.objects import Item, decode_item
from bonny.core.watch import Change, Command, Decision, WatchInput, WatchOptions, WatchState
from bonny.resource import Resource


def thing(
    name: str = "w1",
    *,
    namespace: str = "default",
    uid: str = "",
    version: int | str = 1,
    generation: int = 0,
    labels: Mapping[str, str] | None = None,
    owners: Sequence[Mapping[str, str]] = (),
    deleting: bool = False,
    **content: Any,
) -> Resource:
    """An object of any kind; its UID is made from its name unless one is given."""
    metadata: Resource = {"name": name, "uid": uid or f"uid-{name}", "resourceVersion": str(version)}
    if namespace:
        metadata["namespace"] = namespace
    if generation:
        metadata["generation"] = generation
    if labels is not None:
        metadata["labels"] = dict(labels)
    if owners:
        metadata["ownerReferences"] = [dict(owner) for owner in owners]
    if deleting:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return {"metadata": metadata, **content}


def item(name: str = "w1", **fields: Any) -> Item:
    """The same, decoded as far as the core decodes."""
    return decode_item(msgspec.json.encode(thing(name, **fields)))


def page(*things: Resource, version: int | str = 10, token: str = "") -> bytes:
    """One page of a list."""
    return msgspec.json.encode({"metadata": {"resourceVersion": str(version), "continue": token}, "items": things})


def line(kind: str, resource: Resource) -> bytes:
    """One line of a watch."""
    return msgspec.json.encode({"type": kind, "object": resource})


def bookmark(version: int | str) -> bytes:
    return line("BOOKMARK", {"metadata": {"resourceVersion": str(version)}})


def status(code: int, reason: str = "", message: str = "", *, retry_after: int | None = None) -> Resource:
    """A Status, as the API server refuses with."""
    told: Resource = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": code}
    details = {} if retry_after is None else {"details": {"retryAfterSeconds": retry_after}}
    return {**told, "reason": reason, "message": message, **details}


class Led:
    """A stream that is led by hand: `tell` it what happened, at the time `now`."""

    def __init__(self, options: WatchOptions | None = None, *, chance: float = 0.5) -> None:
        # Pages of one size; what makes them grow has tests of its own.
        self.options = options or WatchOptions(page_size=watch.LIST_PAGE)
        self.chance = chance
        self.now = 1000.0
        first = watch.start(WatchState(limit=min(self.options.page_size, watch.LIST_PAGE)), self.options)
        self.state: WatchState = first.state
        self.command: Command = first.command
        self.changes: list[Change] = []

    def tell(self, *events: WatchInput, after: float = 0.0) -> Decision:
        """Let `events` happen, `after` seconds from now; returns the outcome of the last."""
        self.now += after
        for event in events:
            outcome = watch.step(self.state, event, now=self.now, chance=self.chance, options=self.options)
            self.state, self.command = outcome.state, outcome.command
            self.changes += outcome.changes
        return outcome

    def lists(self, *things: Resource, version: int = 10) -> Decision:
        """A complete list in one page."""
        return self.tell(watch.Reply(200, page(*things, version=version)))

    def opens(self) -> Decision:
        """The server accepts the watch."""
        return self.tell(watch.Opened())

    def waits_out(self) -> Decision:
        """The wait that was asked for passes; where the server's version is asked for then, it is the known one."""
        assert isinstance(self.command, watch.Pause), self.command
        step = self.tell(watch.Tick(), after=self.command.seconds)
        if isinstance(self.state.phase, watch.Confirming):
            return self.tell(watch.Reply(200, page(version=self.state.newest)))
        return step


def watching(options: WatchOptions | None = None, *, chance: float = 0.5) -> Led:
    """A stream with an open watch from version 10 and nothing in its store."""
    led = Led(options, chance=chance)
    led.lists(version=10)
    led.opens()
    return led

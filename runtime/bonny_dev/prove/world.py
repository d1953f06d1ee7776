"""World: how an operator sees the API server in one life: late, with events lost, from a replica that stands still."""

from __future__ import annotations

import json
import ssl
import threading
import time
from contextlib import closing
from http.client import HTTPSConnection
from typing import Final
from urllib.parse import urlsplit

from bonny.client.api import MERGE_PATCH

from ..sandbox import SandboxError
from ..sandbox.admin import Admin
from ..testing import faults
from ..testing.faults import FaultProxy, Hold, Past, Predicate, ProxiedRequest, Respond, is_list, is_watch
from ..testing.lossy import Coalesce, Late, Lose
from .orders import Turn
from .plans import COALESCED_SECONDS, EVENTS, LATE_SECONDS, LOAD_SECONDS, LOST_SECONDS, Fault
from .points import PATH
from .state import ANNOTATION
from .traffic import Traffic

EXPIRED: Final = Respond(
    410,
    json.dumps(
        {
            "kind": "Status",
            "apiVersion": "v1",
            "status": "Failure",
            "code": 410,
            "reason": "Expired",
            "message": "too old resource version",
        }
    ).encode(),
    "application/json",
)
# The longest wait for another writer. Most writes follow each other within milliseconds.
HOLD_SECONDS: Final = 3.0


class World:
    """The lists and watches of one life, as its proxy shows them."""

    def __init__(self, proxy: FaultProxy, handled: frozenset[str] = frozenset()) -> None:
        """`handled` are the plural names of the kinds of a sample."""
        self._proxy, self._handled = proxy, handled
        self._lost = threading.Event()
        self._since = 0.0
        self._old: faults.Fault | None = None
        self._loses = self._on_watches(Lose(self._lost))
        self._turn: Turn | None = None
        self._held: faults.Fault | None = None
        self._gate = threading.Event()
        self._waits_since: float | None = None
        self._came_in_turn = True

    def prepare(self, fault: Fault) -> None:
        """Before the operator starts: change its watches by `fault`."""
        match fault:
            case Fault.LATE:
                self._proxy.add(self._on_watches(Late(LATE_SECONDS)))
            case Fault.LOAD:
                self._proxy.add(faults.Fault(Late(LOAD_SECONDS), on=self._is_of_others, times=None))
            case Fault.COALESCED:
                self._proxy.add(self._on_watches(Coalesce(COALESCED_SECONDS)))
            case Fault.EVENTS_LOST:
                self._proxy.add(self._loses)

    def _is_of_others(self, request: ProxiedRequest) -> bool:
        match = PATH.fullmatch(request.path)
        return request.is_watch and match is not None and match["resource"] not in self._handled

    @staticmethod
    def _on_watches(effect: Late | Coalesce | Lose) -> faults.Fault:
        return faults.Fault(effect, on=is_watch, times=None)

    def lose(self) -> None:
        """From now on, no watch shows an event."""
        self._since = time.monotonic()
        self._lost.set()

    def is_losing(self) -> bool:
        """Whether events are lost now. After a second the watches open again from lists, without those events."""
        if not self._lost.is_set():
            return False
        if time.monotonic() - self._since >= LOST_SECONDS:
            self._proxy.remove(self._loses)
            self._proxy.add(faults.Fault(EXPIRED, on=_first_of_each(), times=None))
            self._lost.clear()
            self._proxy.cut_all(is_watch)
        return self._lost.is_set()

    def past(self, version: str) -> None:
        """Show the state at a resource version to the process that starts next, and all later changes with a delay.

        That is for the first list of each collection that was watched before: a stream of the operator reads it.
        Its handlers' own reads show the present.
        """
        watched = {each.path for each in list(self._proxy.requests) if each.is_watch}
        since = time.monotonic()

        def is_first(request: ProxiedRequest) -> bool:
            opened = {each.path for each in list(self._proxy.requests) if each.is_watch and each.time >= since}
            return is_list(request) and request.path in watched - opened

        self._old = self._proxy.add(faults.Fault(Past(version), on=is_first, times=None))
        self._proxy.add(self._on_watches(Late(LATE_SECONDS)))

    def hold(self, turn: Turn, traffic: Traffic) -> faults.Fault:
        """Let a write wait for that of another writer; `turns` ends the wait."""
        count = 0

        def is_its_turn(request: ProxiedRequest) -> bool:
            nonlocal count
            if traffic.chapter is not turn.chapter or not traffic.is_write(request, turn.what, turn.held):
                return False
            count += 1
            return count == turn.nth

        self._turn, self._held = turn, faults.Fault(Hold(self._gate), on=is_its_turn)
        return self._proxy.add(self._held)

    def turns(self, traffic: Traffic) -> None:
        """Release a write that is held, if the other writer wrote, or if it waited for too long."""
        if self._turn is None or self._held is None or not self._held.hits or self._gate.is_set():
            return
        self._waits_since = self._waits_since or time.monotonic()
        self._came_in_turn = traffic.writes(self._turn.what, self._turn.first) >= self._turn.after
        if self._came_in_turn or time.monotonic() - self._waits_since > HOLD_SECONDS:
            self._gate.set()

    def was_seen(self) -> bool:
        """Whether the operator came into the situation that a plan is about: it read the older state, and its writes
        came in the order of the plan."""
        return (self._old is None or self._old.hits > 0) and self._came_in_turn


def _first_of_each() -> Predicate:
    seen = set[str]()

    def is_first(request: ProxiedRequest) -> bool:
        if not request.is_watch or request.path in seen:
            return False
        seen.add(request.path)
        return True

    return is_first


def flood(sandbox: Admin, path: str) -> None:
    """Write an annotation of the object at `path` a thousand times, the last time to remove it, over one connection.

    Raises: `SandboxError`.
    """
    context = ssl.create_default_context(cafile=sandbox.ca_file)
    headers = {"Authorization": f"Bearer {sandbox.token}", "Content-Type": MERGE_PATCH}
    with closing(HTTPSConnection(urlsplit(sandbox.url).netloc, context=context)) as connection:
        for value in (*map(str, range(EVENTS - 1)), None):
            patch = {"metadata": {"annotations": {ANNOTATION: value}}}
            connection.request("PATCH", path, json.dumps(patch), headers)
            answer = connection.getresponse()
            answer.read()
            if answer.status != 200:
                raise SandboxError(f"PATCH {path} was refused ({answer.status})")


def write_too(sandbox: Admin, path: str) -> None:
    """Change the annotation of the object at `path`, as another writer, if the object is there."""
    patch = {"metadata": {"annotations": {ANNOTATION: "another writer"}}}
    sandbox.request("PATCH", path, patch, content_type=MERGE_PATCH)

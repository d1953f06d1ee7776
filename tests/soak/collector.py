"""Collector: plays the garbage collector, which the sandbox lacks: children whose owner is gone are deleted.

Those of a deletion that it is told of go within seconds, as with the real one. A sweep now and then finds what was
created for an owner after its end, and remembers how long after.
"""

from __future__ import annotations

import queue
import threading
import time
from datetime import datetime
from heapq import heappop, heappush
from random import Random
from typing import Final

from bonny.resource import Resource
from bonny_dev.sandbox.admin import Admin

from .world import CHILDREN, WIDGETS, insist, is_gone

__all__ = ["Collector", "owner_uids"]

LONGEST_DELAY_SECONDS: Final = 3.0
SWEEP_SECONDS: Final = 10.0
TICK_SECONDS: Final = 0.1


class Collector:
    """`late` are the seconds between an owner's end and the creation of a child for it, by the owner's UID."""

    def __init__(self, admin: Admin, *, seed: int) -> None:
        self.collected = 0
        self.late: dict[str, list[float]] = {}
        self._admin = admin
        self._random = Random(f"collector {seed}")
        self._told: queue.SimpleQueue[tuple[float, str, str]] = queue.SimpleQueue()
        self._deleted: dict[str, float] = {}

    def deleted(self, name: str, uid: str) -> None:
        """The object `name` with this UID is gone."""
        self._deleted[uid] = time.time()
        self._told.put((time.monotonic() + self._random.uniform(0.0, LONGEST_DELAY_SECONDS), name, uid))

    def run(self, stop: threading.Event) -> None:
        """Collect until `stop`, and once more then. Raises: `AssertionError` when the API server stays away."""
        due: list[tuple[float, str, str]] = []
        swept = time.monotonic()
        while not stop.wait(TICK_SECONDS):
            while not self._told.empty():
                heappush(due, self._told.get())
            while due and due[0][0] <= time.monotonic():
                _, name, uid = heappop(due)
                self._collect(name, uid)
            if time.monotonic() - swept > SWEEP_SECONDS:
                self._sweep()
                swept = time.monotonic()
        self._sweep()

    def _collect(self, name: str, owner: str) -> None:
        """Delete the child `name` if it is that of the owner with this UID."""
        answer = insist(self._admin, "GET", f"{CHILDREN}/{name}")
        if not is_gone(answer) and owner in owner_uids(answer.body):
            self._remove(answer.body)

    def _sweep(self) -> None:
        # First the children: an owner that is missing in the second list was deleted, not yet to be created.
        children = insist(self._admin, "GET", CHILDREN).body["items"]
        owners = {widget["metadata"]["uid"] for widget in insist(self._admin, "GET", WIDGETS).body["items"]}
        for child in children:
            uids = owner_uids(child)
            if uids and not owners.intersection(uids):
                self._remove(child)

    def _remove(self, child: Resource) -> None:
        metadata = child["metadata"]
        created = datetime.fromisoformat(metadata["creationTimestamp"]).timestamp()
        for uid in owner_uids(child):
            # A creation time is in whole seconds: what seems to be later is later.
            if created > self._deleted.get(uid, created):
                self.late.setdefault(uid, []).append(created - self._deleted[uid])
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": metadata["uid"]}}
        insist(self._admin, "DELETE", f"{CHILDREN}/{metadata['name']}", options)
        self.collected += 1


def owner_uids(child: Resource) -> list[str]:
    return [reference["uid"] for reference in child["metadata"].get("ownerReferences", ())]

"""World: the users of the cluster. They create, change and delete objects, meddle with their children, and remember.

What the API server accepted is what must be so in the end: `wanted`. The world talks to the API server directly; while
that is down it tries again, so that each change happens, and happens once as far as anybody can tell.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from bonny.resource import Resource
from bonny_dev.sandbox.admin import Admin, AdminAnswer

__all__ = ["CHILDREN", "GROUP_VERSION", "NAMESPACE", "WIDGETS", "Wanted", "World", "insist", "is_gone"]

GROUP_VERSION: Final = "example.com/v1"
NAMESPACE: Final = "default"
WIDGETS: Final = f"/apis/{GROUP_VERSION}/namespaces/{NAMESPACE}/widgets"
CHILDREN: Final = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
MERGE_PATCH: Final = "application/merge-patch+json"

CHANGES_A_SECOND: Final = 20.0
# A server that is killed, stays down for 12 s and starts on a busy machine is back in half of that.
PATIENCE_SECONDS: Final = 180.0
AGAIN_SECONDS: Final = 0.2
LARGEST: Final = 100


@dataclass(slots=True)
class Wanted:
    """One object that exists."""

    uid: str
    size: int


class World:
    """`objects` names, most of which exist at any time. `changes` counts what was done, by kind."""

    def __init__(self, admin: Admin, *, objects: int, seed: int, on_deleted: Callable[[str, str], None]) -> None:
        """`on_deleted` is told the name and UID of each deleted object."""
        self.wanted: dict[str, Wanted] = {}
        self.deleted: dict[str, float] = {}
        """By UID: when it was surely gone (seconds since the epoch)."""

        self.changes: Counter[str] = Counter()
        self._admin = admin
        self._random = Random(f"world {seed}")
        self._missing = {f"w{number:05}" for number in range(objects)}
        self._on_deleted = on_deleted

    def populate(self) -> None:
        """Create every object that does not exist."""
        for name in sorted(self._missing):
            self._create(name)

    def run(self, stop: threading.Event) -> None:
        """Change something at random, paced, until `stop`. Raises: `AssertionError` when the API server stays away."""
        kinds = {
            self._resize: 40,
            self._relabel: 10,
            self._delete: 8,
            self._create_missing: 8,
            self._re_create: 6,
            self._edit_child: 12,
            self._delete_child: 8,
            self._strip_child: 4,
        }
        while not stop.is_set():
            began = time.monotonic()
            (change,) = self._random.choices(list(kinds), list(kinds.values()))
            change()
            stop.wait(max(began + 1 / CHANGES_A_SECOND - time.monotonic(), 0.0))

    # --- objects ------------------------------------------------------------------------------------------------------

    def _create_missing(self) -> None:
        if self._missing:
            self._create(self._random.choice(sorted(self._missing)))
            self.changes["created"] += 1

    def _create(self, name: str) -> None:
        size = self._random.randint(1, LARGEST)
        metadata = {"name": name, "namespace": NAMESPACE}
        widget = {"apiVersion": GROUP_VERSION, "kind": "Widget", "metadata": metadata, "spec": {"size": size}}
        answer = insist(self._admin, "POST", WIDGETS, widget)
        if answer.status == 409:  # an earlier try was carried out, and its answer lost
            answer = insist(self._admin, "GET", f"{WIDGETS}/{name}")
        self.wanted[name] = Wanted(answer.body["metadata"]["uid"], size)
        self._missing.discard(name)

    def _resize(self) -> None:
        name = self._any()
        size = self._random.randint(1, LARGEST)
        insist(self._admin, "PATCH", f"{WIDGETS}/{name}", {"spec": {"size": size}})
        self.wanted[name].size = size
        self.changes["resized"] += 1

    def _relabel(self) -> None:
        labels = {"team": f"t{self._random.randint(1, 9)}"}
        insist(self._admin, "PATCH", f"{WIDGETS}/{self._any()}", {"metadata": {"labels": labels}})
        self.changes["relabelled"] += 1

    def _delete(self) -> None:
        if len(self.wanted) > 1:
            self._remove(self._any())
            self.changes["deleted"] += 1

    def _re_create(self) -> None:
        name = self._any()
        self._remove(name)
        self._create(name)
        self.changes["re-created"] += 1

    def _remove(self, name: str) -> None:
        insist(self._admin, "DELETE", f"{WIDGETS}/{name}")
        uid = self.wanted.pop(name).uid
        self._missing.add(name)
        self.deleted[uid] = time.time()
        self._on_deleted(name, uid)

    def _any(self) -> str:
        return self._random.choice(list(self.wanted))

    # --- their children -----------------------------------------------------------------------------------------------

    def _edit_child(self) -> None:
        self._meddle({"data": {"size": "edited by hand"}}, "child edited")

    def _strip_child(self) -> None:
        """Without its label the child is out of the operator's sight."""
        self._meddle({"metadata": {"labels": {"app.kubernetes.io/managed-by": None}}}, "child's label removed")

    def _delete_child(self) -> None:
        insist(self._admin, "DELETE", f"{CHILDREN}/{self._any()}")
        self.changes["child deleted"] += 1

    def _meddle(self, patch: Resource, counted_as: str) -> None:
        insist(self._admin, "PATCH", f"{CHILDREN}/{self._any()}", patch)
        self.changes[counted_as] += 1


def insist(admin: Admin, method: str, path: str, body: Resource | None = None) -> AdminAnswer:
    """Ask until the API server did it, or says that the object exists already, or that it is gone.

    Raises: `AssertionError` after three minutes.
    """
    content_type = MERGE_PATCH if method == "PATCH" else "application/json"
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        last: Any
        try:
            last = answer = admin.request(method, path, body, content_type=content_type)
            if answer.status in (200, 201, 409) or is_gone(answer):
                return answer
        except OSError as error:
            last = error
        if time.monotonic() > deadline:
            raise AssertionError(f"{method} {path} was not carried out in {PATIENCE_SECONDS:.0f} s: {last!r}")
        time.sleep(AGAIN_SECONDS)


def is_gone(answer: AdminAnswer) -> bool:
    """Whether it says that this object does not exist. A text 404 says that its kind is not served yet."""
    return answer.status == 404 and isinstance(answer.body, dict) and answer.body.get("reason") == "NotFound"

"""Replicas: processes of one operator that share the work, their buckets, and the journal of their handlers."""

from __future__ import annotations

import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bonny.sharding.assignment import bucket_of
from bonny_dev.sandbox import Sandbox
from tests.support.processes import OperatorProcess, requests

SHARER: Final = Path(__file__).with_name("sharer.py")
LEASE: Final = ("coordination.k8s.io/v1", "Lease")
BUCKETS: Final = 16
OBJECTS: Final = 40
WRITES: Final = ("PUT", "POST", "PATCH", "APPLY")
# Several times what each takes on an idle machine; python -m bench.scale measures it.
WITHIN_SECONDS: Final = 60.0


def command() -> list[str]:
    """The command line of one replica."""
    return [sys.executable, str(SHARER)]


def settings(name: str, pod: str, journal: Path) -> dict[str, str]:
    """The environment of the replica `pod` of the operator `name`."""
    own = {"BONNY_POD_NAME": pod, "BONNY_POD_NAMESPACE": "default", "BONNY_LEADER_ELECTION": "true"}
    return own | {"TEST_JOURNAL": str(journal), "TEST_NAME": name, "BONNY_LOG_LEVEL": "info"}


@dataclass
class Replicas:
    """Replicas of one operator, their objects, and the journal of their handlers."""

    name: str
    sandbox: Sandbox
    start: Callable[..., OperatorProcess]
    journal: Path

    def apply(self, number: str, *, objects: int = OBJECTS) -> None:
        """Give all objects new content."""
        metadata = {"namespace": "default", "labels": {"of": self.name}}
        names = [f"{self.name}-{each}" for each in range(objects)]
        kind = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"number": number}}
        self.sandbox.apply([{**kind, "metadata": {**metadata, "name": name}} for name in names])

    def children(self) -> Counter[str]:
        """How many children have which content."""
        items = self.sandbox.items("v1", "ConfigMap", namespace="default")
        ours = [each for each in items if re.fullmatch(f"{self.name}-\\d+-child", each["metadata"]["name"])]
        return Counter(each["data"]["number"] for each in ours)

    def wait_handled(self, number: str, *, objects: int = OBJECTS) -> None:
        Sandbox.eventually(lambda: self.children() == {number: objects}, within_seconds=WITHIN_SECONDS)

    def remove(self) -> None:
        """Delete the objects and the Leases of the operator."""
        for label in ("of", "app.kubernetes.io/managed-by"):
            query = f"labelSelector={label}%3D{self.name}"
            self.sandbox.request("DELETE", f"/api/v1/namespaces/default/configmaps?{query}")
        for lease in self.sandbox.items(*LEASE, namespace="default"):
            if re.fullmatch(f"{self.name}(-(bucket|member)-.+)?", lease["metadata"]["name"]):
                self.sandbox.delete(*LEASE, lease["metadata"]["name"])

    def holders(self) -> dict[str, list[int]]:
        """The buckets by the replica that holds them."""
        held = defaultdict(list)
        for each in self.sandbox.items(*LEASE, namespace="default"):
            match = re.fullmatch(f"{self.name}-bucket-(\\d+)", each["metadata"]["name"])
            if match and (holder := each["spec"].get("holderIdentity")):
                held[holder.partition("_")[0]].append(int(match[1]))
        return held

    def are_even(self, *names: str) -> bool:
        """Whether these replicas hold all buckets, and the numbers differ by at most one."""
        held = self.holders()
        numbers = [len(each) for each in held.values()]
        return held.keys() == set(names) and sum(numbers) == BUCKETS and max(numbers) - min(numbers) <= 1

    def wait_even(self, *names: str) -> None:
        Sandbox.eventually(lambda: self.are_even(*names), within_seconds=WITHIN_SECONDS)

    def wait_handled_by_holders(self, running: Mapping[str, OperatorProcess]) -> None:
        """Wait until the last handler of each object has ended, in the replica that holds its bucket."""

        def are_handled() -> bool:
            holder = {bucket: running[pod].process.pid for pod, held in self.holders().items() for bucket in held}
            last = {uid: (what, process) for _, process, what, uid in self._lines()}
            return all(each == ("end", holder.get(bucket_of(uid, BUCKETS))) for uid, each in last.items())

        Sandbox.eventually(are_handled, within_seconds=WITHIN_SECONDS)

    def begun(self, *, since: float = 0.0) -> Counter[str]:
        """How often a handler of each object began."""
        return Counter(uid for at, _, what, uid in self._lines() if what == "begin" and at >= since)

    def overlaps(self, *, dead: tuple[int, ...] = ()) -> list[str]:
        """UIDs whose handlers ran at the same time, but for those that ended with their process."""
        running: dict[str, int] = {}
        found = []
        for _, process, what, uid in self._lines():
            if what == "end":
                running.pop(uid, None)
            else:
                if running.get(uid, process) not in (*dead, process) or running.get(uid) == process:
                    found.append(uid)
                running[uid] = process
        return found

    def _lines(self) -> list[tuple[float, int, str, str]]:
        lines = (line.split() for line in self.journal.read_text("utf-8").splitlines())
        return sorted((float(at), int(process), what, uid) for at, process, what, uid, _ in lines)


def lease_writes(sandbox: Sandbox) -> float:
    """Lease writes that the API server has seen."""
    return lease_requests(sandbox)[0]


def lease_requests(sandbox: Sandbox) -> tuple[int, int]:
    """Writes and reads of Leases that the API server has seen. A watch counts when it ends."""
    counts = {True: 0, False: 0}
    for (verb, resource, _), number in requests(sandbox).items():
        if resource == "leases":
            counts[verb in WRITES] += number
    return counts[True], counts[False]

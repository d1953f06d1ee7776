"""Flood: thousands of objects in a namespace of their own, an operator for them behind the proxy, and what it holds."""

from __future__ import annotations

import random
import secrets
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from bonny.core.watch import LARGEST_PAGE
from bonny.resource import Resource
from bonny_dev.crd.definition import crds
from bonny_dev.sandbox import Sandbox
from bonny_dev.testing.faults import FaultProxy, ProxiedRequest, is_list, is_watch
from tests.conftest import Start
from tests.faults.scene import GROUP, LONG_WATCH_SECONDS, SEEN_SECONDS, Scene, asks_for_the_version
from tests.support import load, memory
from tests.support.flooded import LOOP_FILE, operator
from tests.support.loop_monitor import Hold, holds
from tests.support.processes import OperatorProcess, flooded

# What is measured is read from /proc.
LINUX: Final = pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="memory is read from Linux' /proc")


class Flood(Scene):
    """See the module. What it makes is in a namespace that no other row looks at, and stays there."""

    def __init__(self, sandbox: Sandbox, proxy: FaultProxy, start: Start) -> None:
        super().__init__(sandbox, proxy, start)
        self.namespace = f"flood-{secrets.token_hex(3)}"
        self.grains = f"/apis/{GROUP}/v1/namespaces/{self.namespace}/grains"
        namespace: Resource = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}}
        sandbox.apply([*crds(operator.crds, GROUP), namespace])
        sandbox.eventually(lambda: sandbox.request("GET", self.grains).status == 200)

    # --- the operator -------------------------------------------------------------------------------------------------

    def begin_flooded(self, *, page_size: int = LARGEST_PAGE) -> OperatorProcess:
        """Start the operator for floods; return at once."""
        return self.begin(
            flooded(),
            watch_seconds=LONG_WATCH_SECONDS,
            TEST_PAGE_SIZE=str(page_size),
            BONNY_WATCH_NAMESPACE=self.namespace,
        )

    def sync(self, *, page_size: int = LARGEST_PAGE, within_seconds: float = SEEN_SECONDS) -> None:
        """Start it, and return when it is ready."""
        self.begin_flooded(page_size=page_size).wait_ready(within_seconds=within_seconds)

    @property
    def pid(self) -> int:
        return self.operator.process.pid

    def until_handled(self, count: int, *, action: str = "add", within_seconds: float = SEEN_SECONDS) -> None:
        """Return when so many handlings of this kind succeeded since the start."""
        said = f'"action":"{action}"'  # thousands of lines are counted faster than decoded
        self.sandbox.eventually(lambda: self.operator.text.count(said) >= count, within_seconds=within_seconds)

    def handled_names(self, action: str = "add") -> set[str]:
        """The names of all objects that were handled in this way."""
        lines = self.operator.lines("reconciled")
        return {line["object"].partition("/")[2] for line in lines if line["action"] == action}

    def held(self, *, since: float = 0.0) -> Sequence[Hold]:
        """What held the operator's loop for 20 ms or longer, the longest first."""
        return holds(self.operator.log_file.with_name(LOOP_FILE), since=since)

    def settled(self) -> float:
        """Forget the peak of the operator's memory; returns what it holds now, in MiB."""
        memory.forget_peak(self.pid)
        return memory.resident(self.pid)

    def peak(self) -> float:
        """The most that the operator held since `settled`, in MiB."""
        return memory.peak(self.pid)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Print what this part of a row cost: time, memory, and what held the loop for longest."""
        began = time.time()
        self.settled()
        yield
        print(f"{name}: {time.time() - began:.1f} s, at most {self.peak():.0f} MiB")
        for hold in self.held(since=began)[:3]:
            print(f"    {hold}")

    # --- requests -----------------------------------------------------------------------------------------------------

    def of_grains(self, request: ProxiedRequest) -> bool:
        return request.path == self.grains

    def list_of_grains(self, request: ProxiedRequest) -> bool:
        return is_list(request) and self.of_grains(request) and not asks_for_the_version(request)

    def watch_of_grains(self, request: ProxiedRequest) -> bool:
        return is_watch(request) and self.of_grains(request)

    # --- objects ------------------------------------------------------------------------------------------------------

    def create(self, names: Iterable[str], *, kibibytes: int = 0) -> None:
        """Make these grains, as fast as the API server takes them, each with so much that cannot be compressed away."""
        chance = random.Random(0)
        load.create(
            self.sandbox,
            self.grains,
            (self._object("Grain", name, payload=chance.randbytes(kibibytes * 512).hex()) for name in names),
        )

    def remove(self, names: Iterable[str]) -> None:
        load.remove(self.sandbox, (f"{self.grains}/{name}" for name in names))

    def apply_grain(self, name: str, *, size: int, seconds: float = 0.0) -> None:
        """One that publishes its size, and takes so long to be handled."""
        self.sandbox.apply(self._object("Grain", name, size=size, publish=True, seconds=seconds))

    def light(self, name: str, *, size: int) -> None:
        """Make or change a beacon."""
        self.sandbox.apply(self._object("Beacon", name, size=size))

    def _object(self, kind: str, name: str, **spec: object) -> Resource:
        metadata = {"name": name, "namespace": self.namespace}
        return {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": metadata, "spec": spec}


@contextmanager
def flooding(sandbox: Sandbox, start_operator: Start) -> Iterator[Flood]:
    """A flood on any sandbox; a row that went well is also checked for what must always hold."""
    with FaultProxy(sandbox) as proxy:
        flood = Flood(sandbox, proxy, start_operator)
        yield flood
        flood.check()
        flood.kill()

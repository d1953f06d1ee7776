"""An operator whose replicas share ConfigMaps, each with a child. Run as a script.

It writes to a journal when each handler begins and ends.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time

from bonny import Axn, Controller, Kind, Operator, Owned
from bonny.core.lease import LeaseTiming
from bonny.main import main
from bonny.sharding import Sharding

JOURNAL = os.open(os.environ["TEST_JOURNAL"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
DURATION, DEADLINE, PERIOD = os.environ.get("TEST_TIMING", "15/10/2").split("/")
NAME = os.environ.get("TEST_NAME", "sharer")
SECONDS = float(os.environ.get("TEST_SECONDS", "0.05"))
CPU_SECONDS = float(os.environ.get("TEST_CPU_SECONDS", "0"))
BUCKETS = int(os.environ.get("TEST_BUCKETS", "16"))
VERSION = os.environ.get("TEST_VERSION", "1.0.0")
AGAIN = "TEST_AGAIN" in os.environ
CHILDREN = os.environ.get("TEST_CHILDREN", "yes") == "yes"


def note(what: str, axn: Axn) -> None:
    """One line, written at once: other processes write to the same file."""
    uid = axn.resource["metadata"]["uid"]
    moment = time.clock_gettime(time.CLOCK_BOOTTIME)
    os.write(JOURNAL, f"{moment:.6f} {os.getpid()} {what} {uid} {axn.key.name}\n".encode())


class Shared(Controller):
    """Copies the data of a ConfigMap to its child."""

    resource = Kind("v1", "ConfigMap", namespace="default", label_selector=f"of={NAME}")
    owns = (Owned("v1", "ConfigMap", namespace="default"),) if CHILDREN else ()
    max_concurrent = 10

    async def reconcile(self, axn: Axn) -> None:
        note("begin", axn)
        try:
            await asyncio.sleep(SECONDS)
            ends = time.thread_time() + CPU_SECONDS
            while time.thread_time() < ends:
                pass
            if CHILDREN:
                axn.register_descendant(
                    {
                        "apiVersion": "v1",
                        "kind": "ConfigMap",
                        "metadata": {"name": f"{axn.key.name}-child", "namespace": "default"},
                        "data": axn.resource.get("data") or {},
                    }
                )
            if AGAIN:
                axn.requeue_after(0.01)
        finally:
            note("end", axn)


TIMING = LeaseTiming(lease_duration=int(DURATION), renew_deadline=float(DEADLINE), retry_period=float(PERIOD))

if __name__ == "__main__":
    sharding = Sharding(buckets=BUCKETS) if BUCKETS else None
    operator = Operator(
        name=NAME, group="example.com", controllers=[Shared], sharding=sharding, lease=TIMING, version=VERSION
    )
    sys.exit(main(operator, ["run"]))

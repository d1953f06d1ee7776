"""Transport: the CPU of one request, by our transport and by the reference on aiohttp, on a real API server.

    python -m bench.transport            four rounds, about a minute
    python -m bench.transport --quick    does it work?

Prints medians in us of this process's CPU for each request, ten at a time, with [smallest..largest].
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any, Final

import uvloop

from bonny.client.config import Connection
from bonny.client.transport import Transport
from bonny_dev.sandbox import Sandbox
from tests.support import aiohttp_transport

Loop = Callable[[], asyncio.AbstractEventLoop]
VARIANTS: Final[dict[str, tuple[Loop, Callable[..., Any]]]] = {
    "aiohttp": (asyncio.new_event_loop, aiohttp_transport.Transport),
    "ours": (asyncio.new_event_loop, Transport),
    "ours, uvloop": (uvloop.new_event_loop, Transport),
}
AT_ONCE: Final = 10
PATH: Final = "/api/v1/namespaces/default/configmaps"
OBJECT: Final = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "bench-transport"},
    "data": {"size": "1"},
}
REQUESTS: Final[dict[str, dict[str, Any]]] = {
    "GET": {"method": "GET", "target": f"{PATH}/bench-transport"},
    "PATCH": {
        "method": "PATCH",
        "target": f"{PATH}/bench-transport?fieldManager=bench",
        "body": json.dumps(OBJECT).encode(),
        "headers": {"Content-Type": "application/apply-patch+yaml"},
    },
}


async def measured(make: Callable[..., Any], connection: Connection, request: dict[str, Any], count: int) -> float:
    """CPU us of one request."""
    transport = make(user_agent="bench")

    async def send(times: int) -> None:
        for _ in range(times):
            answer = await transport.request(connection, timeout=30.0, **request)
            if answer.status not in (200, 201):
                raise RuntimeError(f"{request['method']} was answered with {answer.status}")

    await asyncio.gather(*(send(2) for _ in range(AT_ONCE)))  # connections are made, and the object exists
    before = time.process_time()
    await asyncio.gather(*(send(count // AT_ONCE) for _ in range(AT_ONCE)))
    used = time.process_time() - before
    await transport.close()
    return used / count * 1e6


def main(arguments: list[str]) -> int:
    rounds, count = (1, 100) if arguments == ["--quick"] else (4, 4_000)
    with Sandbox() as sandbox:
        connection = Connection(
            server=sandbox.url, authorization=f"Bearer {sandbox.token}", ca_file=str(sandbox.ca_file)
        )
        for verb in ("PATCH", "GET"):
            results: dict[str, list[float]] = {name: [] for name in VARIANTS}
            for _ in range(rounds):
                for name, (loop, make) in VARIANTS.items():
                    with asyncio.Runner(loop_factory=loop) as runner:
                        results[name].append(runner.run(measured(make, connection, REQUESTS[verb], count)))
            for name, values in results.items():
                print(f"{verb:6}{name:14}{statistics.median(values):6.0f} [{min(values):.0f}..{max(values):.0f}]")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Command: `invoke console` and `invoke top`, for an operator that runs somewhere."""

from __future__ import annotations

import asyncio
import secrets
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from bonny.client.api import Client
from bonny.client.config import Cluster
from bonny.errors import ApiError, UsageError
from bonny.operator import Operator
from bonny.resource import printable

from ..inside.reading import AtAddress, Inside, inside_of
from ..manifest.recorder import NOT_RECORDED
from ..sandbox.ports import LOOPBACK, free_ports
from .board import shown
from .memory import Memory
from .server import serve

SECONDS: Final = 2.0
# Of one controller.
ROWS: Final = 5
CLEAR: Final = "\033[H\033[2J"


def open_console(
    cluster: Cluster, operator: Operator, *, namespace: str, url: str, port: int, root: Path | None = None
) -> None:
    """Serve the page until Ctrl-C. Raises: `UsageError`, `ApiError`."""

    def reach(client: Client) -> Inside:
        return inside_of(url, client, operator, namespace, root)

    serving = serve(cluster, operator, namespace=namespace, reach=reach, port=port, opened=_announce)
    try:
        asyncio.run(serving)
    except KeyboardInterrupt:
        print()


@contextmanager
def beside(cluster: Cluster, operator: Operator, *, namespace: str) -> Iterator[tuple[int, str]]:
    """Serve the page in a thread meanwhile; yields the port and the token for the console of the operator itself."""
    (port,), token = free_ports(1), secrets.token_urlsafe(24)
    inside = AtAddress(f"http://{LOOPBACK}:{port}", token)
    loop = asyncio.new_event_loop()
    task = loop.create_task(serve(cluster, operator, namespace=namespace, reach=lambda _: inside, opened=_announce))

    def run() -> None:
        try:
            loop.run_until_complete(task)
        except asyncio.CancelledError:
            loop.close()
        except (ApiError, UsageError) as error:
            print(f"the console ended: {error}", flush=True)

    # The requests of the page are not requests of the operator.
    thread = threading.Thread(target=run, name=NOT_RECORDED, daemon=True)
    thread.start()
    try:
        yield port, token
    finally:
        if thread.is_alive():
            loop.call_soon_threadsafe(task.cancel)
        thread.join(SECONDS)


def _announce(link: str) -> None:
    print(f"the console is at {link}; Ctrl-C ends it", flush=True)


def top(cluster: Cluster, operator: Operator, *, namespace: str, url: str, once: bool, root: Path | None = None) -> int:
    """Print the operator's queues and streams, and again every two seconds until Ctrl-C; returns 1 without an answer.

    Raises: `UsageError`.
    """
    try:
        return asyncio.run(_top(cluster, operator, namespace=namespace, url=url, once=once, root=root))
    except KeyboardInterrupt:
        print()
        return 0


async def _top(
    cluster: Cluster, operator: Operator, *, namespace: str, url: str, once: bool, root: Path | None = None
) -> int:
    async with (
        Client(cluster, user_agent=f"{operator.user_agent} top", timeout=SECONDS * 5) as client,
        inside_of(url, client, operator, namespace, root) as inside,
    ):
        memory = Memory(inside)
        while True:
            found = await inside.ask("/overview")
            if "problem" not in found:
                await memory.look()
                found = shown(found, memory)
            clear = CLEAR if sys.stdout.isatty() and not once else ""
            print(clear + "\n".join(table(found)), flush=True)
            if once:
                return int("problem" in found)
            await asyncio.sleep(SECONDS)


def table(found: Mapping[str, Any]) -> Iterator[str]:
    """The lines of one look at an operator."""
    if "problem" in found:
        yield str(found["problem"])
        return
    role, now = "leads" if found["leading"] else "stands by", time.time()
    yield f"{found['operator']} {found['version']} {found['pod']} {role}"
    yield f"{'controller':<32}{'busy':>8}{'ready':>8}{'oldest':>10}{'retry':>8}{'done':>10}{'failed':>8}{'mean':>10}"
    for each in found["controllers"]:
        queue = each["queue"]
        busy, oldest = f"{queue['working']}/{each['slots']}", f"{queue['oldest']:.1f} s"
        numbers = f"{queue['ready']:>8}{oldest:>10}{queue['delayed']:>8}{each['succeeded']:>10}{each['errors']:>8}"
        yield f"{each['name'][:31]:<32}{busy:>8}{numbers}{each['mean'] * 1e3:>7.0f} ms"
        yield from (f"  runs     {run['object']} for {run['seconds']:.1f} s" for run in each["running"][:ROWS])
        for run in each["retries"][:ROWS]:
            wait = max(run["due"] - now, 0.0)
            yield f"  retry    {run['object']} in {wait:.0f} s, try {run['tries'] + 1}: {printable(run['error'])}"
        yield from (f"  slowest  {run['object']} {run['seconds']:.3f} s" for run in each["slowest"][:ROWS])
    yield f"{'stream':<48}{'objects':>10}{'open for':>10}  state"
    for each in found["streams"]:
        state = each["error"] or ("in sync" if each["synced"] else "syncing")
        open_for = "-" if each["opened"] is None else f"{each['opened']:.0f} s"
        yield f"{each['name'][:47]:<48}{each['objects']:>10}{open_for:>10}  {state}"
    yield from found["notes"]

"""Command: `invoke console` and `invoke top`, for an operator that runs somewhere."""

from __future__ import annotations

import asyncio
import os
import secrets
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from bonny.client.config import Cluster
from bonny.errors import ApiError, UsageError
from bonny.operator import Operator

from ..manifest.recorder import NOT_RECORDED
from ..sandbox.ports import LOOPBACK, free_ports
from .inside import Inside
from .server import serve

SECONDS: Final = 2.0
CLEAR: Final = "\033[H\033[2J"
VARIABLES: Final = ("BONNY_CONSOLE_URL", "BONNY_CONSOLE_TOKEN")


def inside_of(url: str) -> Inside:
    """The operator's own console at `url`, or at BONNY_CONSOLE_URL. Raises: `UsageError` for another scheme."""
    found = url or os.environ.get(VARIABLES[0], "")
    if found and not found.startswith(("http://127.0.0.1:", "http://localhost:")):
        raise UsageError(f"the operator's console is {found[:60]!r}: write for example http://127.0.0.1:8090")
    return Inside(found, os.environ.get(VARIABLES[1], ""))


def open_console(cluster: Cluster, operator: Operator, *, namespace: str, url: str, port: int) -> None:
    """Serve the page until Ctrl-C. Raises: `UsageError`, `ApiError`."""
    serving = serve(cluster, operator, namespace=namespace, inside=inside_of(url), port=port, opened=_announce)
    try:
        asyncio.run(serving)
    except KeyboardInterrupt:
        print()


@contextmanager
def beside(cluster: Cluster, operator: Operator, *, namespace: str) -> Iterator[tuple[int, str]]:
    """Serve the page in a thread meanwhile; yields the port and the token for the console of the operator itself."""
    (port,), token = free_ports(1), secrets.token_urlsafe(24)
    inside = Inside(f"http://{LOOPBACK}:{port}", token)
    loop = asyncio.new_event_loop()
    task = loop.create_task(serve(cluster, operator, namespace=namespace, inside=inside, opened=_announce))

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


def top(url: str, *, once: bool) -> int:
    """Print the operator's queues and streams, and again every two seconds until Ctrl-C; returns 1 without an answer.

    Raises: `UsageError`.
    """
    try:
        return asyncio.run(_top(inside_of(url), once=once))
    except KeyboardInterrupt:
        print()
        return 0


async def _top(inside: Inside, *, once: bool) -> int:
    async with inside:
        while True:
            found = await inside.ask("/overview")
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
    role = "leads" if found["leading"] else "stands by"
    yield f"{found['operator']} {found['version']} {found['pod']} {role}"
    yield f"{'controller':<32}{'busy':>8}{'ready':>8}{'oldest':>10}{'retry':>8}{'done':>10}{'failed':>8}"
    for each in found["controllers"]:
        busy, oldest = f"{each['busy']}/{each['slots']}", f"{each['oldest']:.1f} s"
        numbers = f"{each['ready']:>8}{oldest:>10}{each['delayed']:>8}{each['succeeded']:>10}{each['errors']:>8}"
        yield f"{each['name'][:31]:<32}{busy:>8}{numbers}"
        yield from (f"  {run['object']} for {run['seconds']:.1f} s" for run in each["running"][:5])
    yield f"{'stream':<48}{'objects':>10}  state"
    for each in found["streams"]:
        state = each["error"] or ("in sync" if each["synced"] else "syncing")
        yield f"{each['name'][:47]:<48}{each['objects']:>10}  {state}"

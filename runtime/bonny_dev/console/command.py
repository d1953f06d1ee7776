"""Command: `invoke console` and `invoke top`, for an operator that runs somewhere."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator, Mapping
from typing import Any, Final

from bonny.client.config import Cluster
from bonny.errors import UsageError
from bonny.operator import Operator

from .inside import Inside
from .server import serve

SECONDS: Final = 2.0
CLEAR: Final = "\033[H\033[2J"
# The log lines of an operator that `run-local` runs name it, too.
VARIABLES: Final = ("BONNY_CONSOLE_URL", "BONNY_CONSOLE_TOKEN")


def inside_of(url: str) -> Inside:
    """The operator's own console at `url`, or where BONNY_CONSOLE_URL says. Raises: `UsageError` for another scheme."""
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

"""Ready: which Widgets have a status that says so, as anybody sees it who watches them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable

from bonny.resource import Resource
from bonny_dev.sandbox import Sandbox

from .run import Run, patience
from .traffic import PATH, follow

__all__ = ["Awaited", "is_ready", "until_ready"]


def is_ready(resource: Resource) -> bool:
    """Whether the condition Ready is True, for the object as it is now."""
    return any(
        known["type"] == "Ready"
        and known["status"] == "True"
        and known.get("observedGeneration") == resource["metadata"]["generation"]
        for known in resource.get("status", {}).get("conditions", ())
    )


class Awaited:
    """Objects that are not ready yet; called with the events of a watch, until it returns True."""

    def __init__(self, names: Iterable[str]) -> None:
        self.left = set(names)
        self.at: dict[str, float] = {}
        """When each was first seen to be ready (monotonic seconds)."""

    def __call__(self, kind: str, resource: Resource) -> bool:
        name = resource["metadata"]["name"]
        if kind != "DELETED" and name in self.left and is_ready(resource):
            self.left.discard(name)
            self.at[name] = time.monotonic()
        return not self.left


async def until_ready(run: Run, sandbox: Sandbox, awaited: Awaited, *, since: str) -> None:
    """Watch from the version `since` until all are ready.

    Raises: `RuntimeError`, with the last lines of the contestant, when that takes too long.
    """
    try:
        async with asyncio.timeout(patience(len(awaited.left))):
            await follow(sandbox, PATH, since, awaited)
    except TimeoutError as error:
        raise run.failure(f"left {len(awaited.left)} objects without a status") from error

"""Writes: the requests that the API server served, by its own metrics; refused ones count, too."""

from __future__ import annotations

import time
from collections import Counter
from typing import Final, TypeAlias

from bonny_dev.sandbox import Sandbox
from tests.support.processes import requests, writes

__all__ = ["Writes", "asked", "sent", "settled"]

Writes: TypeAlias = Counter[tuple[str, str, str]]
"""How many, by verb, resource and subresource."""

# What contestants may write to. The API server itself writes none of these.
RESOURCES: Final = ("widgets", "configmaps", "events")
# Reviews are how operators look at their own permissions.
REVIEWS: Final = ("selfsubjectaccessreviews", "selfsubjectrulesreviews")
QUIET_SECONDS: Final = 5.0
LOOK_SECONDS: Final = 0.5


def sent(sandbox: Sandbox, *resources: str) -> Writes:
    """All so far, of `resources`. Default: those that operators of Widgets write."""
    return Counter(writes(sandbox, *(resources or RESOURCES)))


def asked(sandbox: Sandbox) -> int:
    """All requests for what operators of Widgets read, write or review; a watch counts when it ends."""
    return sum(count for (_, resource, _), count in requests(sandbox).items() if resource in (*RESOURCES, *REVIEWS))


def settled(sandbox: Sandbox, *resources: str) -> Writes:
    """All so far, as `sent` counts them, once no more of them come."""
    seen, since = sent(sandbox, *resources), time.monotonic()
    while time.monotonic() - since < QUIET_SECONDS:
        time.sleep(LOOK_SECONDS)
        now = sent(sandbox, *resources)
        if now != seen:
            seen, since = now, time.monotonic()
    return seen

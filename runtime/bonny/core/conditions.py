"""Conditions: the entries of `status.conditions`, as meta/v1 defines them.

You need it in steps that write conditions of their own.
You do not need it in handlers: `axn.set_condition`.
"""

from __future__ import annotations

from collections.abc import Set
from datetime import UTC, datetime
from typing import Final

from ..errors import OptionError
from ..resource import Resource

RECONCILED: Final = "Reconciled"
"""The runtime's own condition: whether the last reconcile succeeded."""

# The limit in the schema of a condition: a longer message would make the API server refuse the whole status.
LONGEST_MESSAGE: Final = 32_768


def condition(
    type: str,  # noqa: A002  the API's own word
    status: bool | None,
    *,
    of: Resource,
    message: str | None = None,
    reason: str | None = None,
) -> Resource:
    """A condition of the object `of`, without lastTransitionTime."""
    if status not in (True, False, None):
        raise OptionError(f"the status of condition {type} is {status!r}: use True, False or None")
    # A type may have a domain, hyphens and dots (`example.com/Ready`), a reason may not.
    word = "".join(filter(str.isalnum, type.rpartition("/")[2]))
    words = {True: word, False: f"Not{word}", None: "Unknown"}
    fields = {
        "type": type,
        "status": {True: "True", False: "False", None: "Unknown"}[status],
        "reason": reason or words[status],
        "message": (message or "")[:LONGEST_MESSAGE],
    }
    generation = of["metadata"].get("generation")
    return {**fields, "observedGeneration": generation} if generation else fields


def with_condition(status: Resource, wanted: Resource) -> Resource:
    """`status` with the condition `wanted` in the place of the one of its type."""
    conditions = list(status.get("conditions") or ())
    before: Resource = next((each for each in conditions if each.get("type") == wanted["type"]), {})
    same = before.get("status") == wanted["status"] and "lastTransitionTime" in before
    moved = before["lastTransitionTime"] if same else datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    merged = {**wanted, "lastTransitionTime": moved}
    if not before:
        return {**status, "conditions": [*conditions, merged]}
    return {**status, "conditions": [merged if each is before else each for each in conditions]}


def steadied(status: Resource, base: Resource, types: Set[str]) -> Resource:
    """Restore lastTransitionTime of conditions that ended with the status they started with."""
    before = {each.get("type"): each for each in base.get("conditions") or () if "lastTransitionTime" in each}
    conditions = [
        {**each, "lastTransitionTime": before[each["type"]]["lastTransitionTime"]}
        if each.get("type") in types and before.get(each["type"], {}).get("status") == each["status"]
        else each
        for each in status.get("conditions") or ()
    ]
    return {**status, "conditions": conditions} if conditions else status

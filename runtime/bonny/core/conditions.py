"""Conditions: the entries of `status.conditions`, as meta/v1 defines them.

You need it in steps that write conditions of their own, not in handlers (`axn.set_condition`).
"""

from __future__ import annotations

import re
from collections.abc import Set
from dataclasses import dataclass
from typing import Final

from ..errors import OptionError
from ..naming import is_qualified_name
from ..resource import Resource

RECONCILED: Final = "Reconciled"
"""The runtime's own condition: whether the last reconcile succeeded."""

# The limit in the schema of a condition: a longer message would make the API server refuse the whole status.
LONGEST_MESSAGE: Final = 32_768
# As in the schema of meta/v1 Condition. With another reason the API server refuses the whole status.
_REASON: Final = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]{0,1022}[A-Za-z0-9_])?")


@dataclass(frozen=True, slots=True)
class ReconcileFailure:
    """Why a reconcile failed, as reported in the `Reconciled` condition.

    `reason` is one word in CamelCase; `message` stays the same over retries and never quotes objects.
    """

    reason: str
    message: str


def check_words(type: str, reason: str | None) -> None:  # noqa: A002  the API's own word
    """Check the words of a condition that a handler sets. Raises: `OptionError`."""
    if not is_qualified_name(type) or (reason and not _REASON.fullmatch(reason)):
        raise OptionError(
            f"condition {type[:60]!r} has the reason {str(reason)[:60]!r}: use CamelCase words, such as Ready and "
            "ImagePulled, or leave out the reason"
        )


def condition(
    type: str,  # noqa: A002  the API's own word
    status: bool | None,
    *,
    generation: int | None,
    message: str | None = None,
    reason: str | None = None,
) -> Resource:
    """A condition of an object of this generation, without lastTransitionTime."""
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
    return {**fields, "observedGeneration": generation} if generation else fields


def with_condition(status: Resource, wanted: Resource, *, at: str) -> Resource:
    """`status` with the condition `wanted` in place of the one of its type; a new status counts from `at`."""
    conditions = list(status.get("conditions") or ())
    before: Resource = next((each for each in conditions if each.get("type") == wanted["type"]), {})
    same = before.get("status") == wanted["status"] and "lastTransitionTime" in before
    moved = before["lastTransitionTime"] if same else at
    merged = {**wanted, "lastTransitionTime": moved}
    if not before:
        return {**status, "conditions": [*conditions, merged]}
    return {**status, "conditions": [merged if each is before else each for each in conditions]}


def keep_transition_times(status: Resource, base: Resource, types: Set[str]) -> Resource:
    """Restore lastTransitionTime of conditions that ended with the status they started with."""
    before = {each.get("type"): each for each in base.get("conditions") or () if "lastTransitionTime" in each}
    conditions = [
        {**each, "lastTransitionTime": before[each["type"]]["lastTransitionTime"]}
        if each.get("type") in types and before.get(each["type"], {}).get("status") == each["status"]
        else each
        for each in status.get("conditions") or ()
    ]
    return {**status, "conditions": conditions} if conditions else status

"""Causes: the root causes of operator bugs, in the words of Xu, Gao and Wei (ISSTA 2024), who read 210 of them.

The other classification in a report, `plans.Sort`, has Sieve's words, and says which fault shows a bug.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from .plans import Sort


class Cause(StrEnum):
    """Where the bug probably is."""

    ACCESS = "access control misconfiguration"
    DEFINITION = "incorrect CRD"
    OBSERVATION = "incorrect state observation and analysis"
    RECONCILIATION = "incorrect reconciliation"


OF_OBSERVATION: Final = frozenset({Sort.STALE, Sort.UNOBSERVED})


def usual_cause(sort: Sort) -> Cause:
    """The cause of most bugs of a sort."""
    return Cause.OBSERVATION if sort in OF_OBSERVATION else Cause.RECONCILIATION

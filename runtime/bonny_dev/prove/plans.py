"""Plans: the faults of an operator's lives, their names in reports, and the sort of bug that each finds.

The sorts of bugs are named as in Sieve (OSDI 2022): an intermediate state is left when an operator stops between two
writes; a stale state is an old answer taken for the present one; an unobserved state came and went unseen.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from bonny.errors import UsageError
from bonny.resource import listed

from ..testing.faults import CommitThenRespond, Effect, Respond, Slow
from .orders import Turn
from .points import API, SERVICE, Chapter, Point, object_in

LATE_SECONDS: Final = 2.0
LOAD_SECONDS: Final = 5.0
COALESCED_SECONDS: Final = 1.0
# For so long after a write no watch shows anything. Other writes follow it within milliseconds.
LOST_SECONDS: Final = 1.0
EVENTS: Final = 1_000
WILD: Final = frozenset("*?[")
# The sample in the name of what only a whole run shows.
ALL_SAMPLES: Final = "all-samples"
# Longer than the rest of a step of a life, and shorter than the timeouts of clients.
SLOW_SECONDS: Final = 4.0


class Sort(StrEnum):
    """Which sort of bug a plan finds."""

    INTERMEDIATE = "intermediate state"
    STALE = "stale state"
    UNOBSERVED = "unobserved state"
    ERROR = "unhandled error"
    UNDISTURBED = "no fault needed"


class Fault(StrEnum):
    """A fault of a life; the text stands in the name of its plan."""

    NONE = "undisturbed"
    KILL_BEFORE = "kill-before"
    KILL_AFTER = "kill-after"
    KILL_DELETE = "kill-delete"
    LOST = "answer-lost"
    CONFLICT = "409"
    THROTTLED = "429"
    FAILED = "500"
    TIMEOUT = "504"
    EXISTS = "already-exists"
    SLOW = "slow"
    OLD = "old-answer"
    LATE = "late-events"
    COALESCED = "coalesced"
    EVENTS_LOST = "events-lost"
    OLDER = "older-replica"
    LOAD = "under-load"
    WRITTEN = "other-writer"
    ORDER = "order"
    FUZZ = "fuzz"
    DOWN = "down"
    AT_ONCE = "at-once"
    UPGRADE = "upgrade"
    DOWNGRADE = "downgrade"
    PERMISSIONS = "permissions"


SORTS: Final = {
    Fault.NONE: Sort.UNDISTURBED,
    Fault.KILL_BEFORE: Sort.INTERMEDIATE,
    Fault.KILL_AFTER: Sort.INTERMEDIATE,
    Fault.KILL_DELETE: Sort.INTERMEDIATE,
    Fault.LOST: Sort.INTERMEDIATE,
    Fault.CONFLICT: Sort.ERROR,
    Fault.THROTTLED: Sort.ERROR,
    Fault.FAILED: Sort.ERROR,
    Fault.TIMEOUT: Sort.ERROR,
    Fault.EXISTS: Sort.ERROR,
    Fault.SLOW: Sort.INTERMEDIATE,
    Fault.OLD: Sort.STALE,
    Fault.LATE: Sort.STALE,
    Fault.COALESCED: Sort.UNOBSERVED,
    Fault.EVENTS_LOST: Sort.UNOBSERVED,
    Fault.OLDER: Sort.STALE,
    Fault.LOAD: Sort.STALE,
    Fault.WRITTEN: Sort.STALE,
    Fault.ORDER: Sort.STALE,
    Fault.FUZZ: Sort.UNDISTURBED,
    Fault.DOWN: Sort.UNOBSERVED,
    Fault.AT_ONCE: Sort.UNOBSERVED,
    Fault.UPGRADE: Sort.UNDISTURBED,
    Fault.DOWNGRADE: Sort.UNDISTURBED,
    Fault.PERMISSIONS: Sort.UNDISTURBED,
}
WHOLE: Final = {
    Fault.LATE: f"every watch event comes {LATE_SECONDS:g} s late",
    Fault.COALESCED: (
        "the object is changed at once, and a watch shows only the last event of each object in "
        f"{COALESCED_SECONDS:g} s"
    ),
    Fault.LOAD: f"watches of other kinds are {LOAD_SECONDS:g} s late, while the object is changed {EVENTS:,} times",
    Fault.UPGRADE: "the last release runs, and then this version",
    Fault.DOWNGRADE: "this version runs after the last release, and then that release again",
    Fault.PERMISSIONS: "in all lives",
}
TOLD: Final = {
    Fault.KILL_BEFORE: "killed before {} reaches the server, and started again",
    Fault.KILL_AFTER: "killed after {} is stored, and started again",
    Fault.KILL_DELETE: "killed after {} is stored, and started again after the object was deleted",
    Fault.LOST: "the answer to {} is lost",
    Fault.CONFLICT: "{} is answered with 409 Conflict, once",
    Fault.THROTTLED: "{} is answered with 429 Too Many Requests, once",
    Fault.FAILED: "{} is answered with 500, once",
    Fault.EVENTS_LOST: (
        f"no watch event comes for {LOST_SECONDS:g} s from {{}} on, and then the watches start again from lists"
    ),
    Fault.WRITTEN: "another writer changes an annotation of the object right before {}",
    Fault.EXISTS: "{} is carried out, and answered with 409 as if it had been there before",
    Fault.SLOW: f"{{}} takes {SLOW_SECONDS:g} s, and the object goes on meanwhile",
    Fault.OLD: "{} is answered with the state before the last change there",
    Fault.TIMEOUT: "{} is carried out and answered with 504 Timeout",
}


# Those whose sentence depends on the chapter or the object.
IN_GENERAL: Final = {
    Fault.NONE: "without any fault",
    Fault.OLDER: "started again, and shown an older state for a while",
    Fault.ORDER: "two writers of one object, in either order",
    Fault.FUZZ: "with objects made from the schema",
    Fault.DOWN: "the operator does not run when the object changes",
    Fault.AT_ONCE: "the object is deleted and created again at once",
}


def meaning(fault: Fault) -> str:
    """A fault in a few words, without the request that it is about."""
    return IN_GENERAL.get(fault) or WHOLE.get(fault) or TOLD[fault].format("a request")


@dataclass(frozen=True, slots=True)
class Plan:
    """One life: its sample, its fault, and the point or the chapter of the fault."""

    sample: str
    fault: Fault
    at: Point | Chapter | Turn | int | None = None
    """A number is that of an object which is made from the schema."""

    @property
    def name(self) -> str:
        """For `--only`: `widget-v1/kill-after/created/write-configmaps-widget`."""
        return "/".join(str(part) for part in (self.sample, self.fault, self.at) if part is not None)

    @property
    def sort(self) -> Sort:
        """The sort of bug that it finds."""
        return SORTS[self.fault]

    def told(self) -> str:
        """The fault, as the beginning of a sentence."""
        match self.at:
            case Point():
                return TOLD[self.fault].format(self.at.told())
            case Turn():
                return self.at.told()
            case int():
                return f"with object {self.at} made from the schema"
            case Chapter():
                if self.fault is Fault.AT_ONCE:
                    return "the object is deleted and created again at once"
                chapter = str(self.at).replace("-", " ")
                if self.fault is Fault.OLDER:
                    return f"started again after the object was {chapter}, and shown the state before that for a while"
                return f"the operator does not run when the object is {chapter}"
        return WHOLE.get(self.fault, "without any fault")

    def effect(self) -> Effect:
        """The answer to a request that fails, for the faults that are one."""
        match self.fault:
            case Fault.CONFLICT:
                return _refusal(409, "Conflict", "the object has been modified; please apply your changes again")
            case Fault.THROTTLED:
                return _refusal(429, "TooManyRequests", "too many requests, please try again later", retry_after="1")
            case Fault.EXISTS:
                return CommitThenRespond(_refusal(409, "AlreadyExists", "it exists already"))
            case Fault.SLOW:
                return Slow(SLOW_SECONDS)
            case Fault.TIMEOUT:
                return CommitThenRespond(_refusal(504, "Timeout", "request did not complete within 60 s"))
        return _refusal(500, "InternalError", "internal error, please try again")


def _refusal(code: int, reason: str, message: str, *, retry_after: str | None = None) -> Respond:
    status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason}
    return Respond(code, json.dumps({**status, "message": message}).encode(), "application/json", retry_after)


def plans_for(
    sample: str,
    points: Iterable[Point],
    chapters: Iterable[Chapter],
    turns: Iterable[Turn] = (),
    *,
    objects: Iterable[int] = (),
) -> Iterator[Plan]:
    """All plans for a sample: the crash sweep first, then late and lost events, then errors, then other writers.

    `objects` are the numbers of objects that are made from the schema.
    """
    known = list(points)
    writes = [point for point in known if point.is_write and point.chapter is not Chapter.START]
    yield from _sweep(sample, writes)
    yield from _hidden(sample, writes, list(chapters))
    for point in known:
        yield Plan(sample, Fault.FAILED, point)
        if point.server == API:
            yield Plan(sample, Fault.THROTTLED, point)
            if point.is_write:
                if point.verb != "create":
                    yield Plan(sample, Fault.CONFLICT, point)
                yield Plan(sample, Fault.TIMEOUT, point)
    yield from _outside(sample, known)
    yield from _beside(sample, writes)
    yield from (Plan(sample, Fault.ORDER, turn) for turn in turns)
    yield from (Plan(sample, Fault.FUZZ, number) for number in objects)


def _outside(sample: str, points: Iterable[Point]) -> Iterator[Plan]:
    """Plans about the external service: what APIs do besides failing."""
    changed = set[Chapter]()
    for point in points:
        if point.server != SERVICE:
            continue
        if point.verb == "GET":
            # Only after a change in the same chapter: an old answer then cannot be what the chapter asks for.
            if point.chapter in changed:
                yield Plan(sample, Fault.OLD, point)
            continue
        changed.add(point.chapter)
        yield Plan(sample, Fault.SLOW, point)
        if point.verb in ("POST", "PUT"):
            yield Plan(sample, Fault.EXISTS, point)


def refuse_unknown(words: Iterable[str], samples: Iterable[str]) -> None:
    """Before anything starts: refuse names of lives whose sample or fault does not exist; `*` stands for any text.

    Raises: `UsageError`.
    """
    names = sorted(samples)
    for word in words:
        sample, _, rest = word.partition("/")
        fault = rest.partition("/")[0]
        if set(sample) & WILD:  # it may stand for more than the sample
            continue
        if sample not in (*names, ALL_SAMPLES) and fault not in (Fault.UPGRADE, Fault.DOWNGRADE):
            raise UsageError(f"--only {word}: there is no sample {sample}; use {listed(names)}, or * for any text")
        if fault and not set(fault) & WILD and fault not in set(Fault):
            raise UsageError(
                f"--only {word}: there is no fault {fault}; use {listed(sorted(Fault))}, or * for any text"
            )


def _beside(sample: str, writes: Iterable[Point]) -> Iterator[Plan]:
    """Plans in which another writer changes an object that is there already."""
    seen = set[str]()
    for point in writes:
        what = object_in(point.what)
        if point.server == API and point.verb != "create" and what in seen:
            yield Plan(sample, Fault.WRITTEN, point)
        seen.add(what)


def _sweep(sample: str, writes: Iterable[Point]) -> Iterator[Plan]:
    for point in writes:
        yield Plan(sample, Fault.KILL_BEFORE, point)
        yield Plan(sample, Fault.KILL_AFTER, point)
        if point.chapter is not Chapter.DELETED:
            yield Plan(sample, Fault.KILL_DELETE, point)
        yield Plan(sample, Fault.LOST, point)


def _hidden(sample: str, writes: Iterable[Point], chapters: Iterable[Chapter]) -> Iterator[Plan]:
    """Plans in which the operator sees changes late, or not at all."""
    for fault in (Fault.LOAD, Fault.LATE, Fault.COALESCED):
        yield Plan(sample, fault)
    for point in writes:
        if point.server == API:
            yield Plan(sample, Fault.EVENTS_LOST, point)
    yield Plan(sample, Fault.AT_ONCE, Chapter.AGAIN)
    for chapter in chapters:
        yield Plan(sample, Fault.DOWN, chapter)
        if chapter is not Chapter.DELETED:
            yield Plan(sample, Fault.OLDER, chapter)


# How many lives of such a fault a usual run has for each sample, and in which chapters; a thorough run has all.
USUAL: Final = {
    Fault.EVENTS_LOST: (Chapter.CREATED, Chapter.CHANGED, Chapter.DELETED),
    Fault.OLDER: (Chapter.CHANGED, Chapter.AGAIN),
    Fault.WRITTEN: (Chapter.CREATED, Chapter.CHANGED, Chapter.DELETED),
}


def usual(plans: Iterable[Plan]) -> Iterator[Plan]:
    """The plans of a usual run: of some faults only the first one in each of a few chapters.

    Of the orders of two writers it has the orders of their first writes.
    """
    seen = set[tuple[str, Fault, Chapter | None]]()
    for plan in plans:
        if isinstance(plan.at, Turn) and (plan.at.nth, plan.at.after) != (1, 1):
            continue
        if plan.fault not in USUAL or isinstance(plan.at, Turn | int):
            yield plan
            continue
        chapter = plan.at.chapter if isinstance(plan.at, Point) else plan.at
        if chapter in USUAL[plan.fault] and (plan.sample, plan.fault, chapter) not in seen:
            seen.add((plan.sample, plan.fault, chapter))
            yield plan

"""Schedule: which fault strikes when, for how long and on which requests; a pure function of the seed.

Kinds are dealt from a shuffled pack, so that each of them comes up before any comes up a third time. Now and then there
is a lull, in which the operator can catch up: a fault that strikes a busy operator differs from one at rest.
Elsewhere: what a kind does (`chaos`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from random import Random
from typing import Final

__all__ = ["ALWAYS", "TARGETS", "Kind", "Strike", "Target", "schedule"]


class Kind(StrEnum):
    """What happens. The values are names in the report."""

    CUT = "watch cut in the middle of a line"
    STALL = "watch silent"
    EXPIRED_EVENT = "410 as an event"
    EXPIRED = "410"
    GARBAGE_TEXT = "garbage in a watch"
    GARBAGE_BYTES = "line that is not UTF-8"
    GARBAGE_OBJECT = "event without an object"
    GARBAGE_HTML = "HTML in a watch"
    EMPTY_LINES = "empty lines in a watch"
    THROTTLED = "429"
    THROTTLED_FOR = "429 with Retry-After"
    ERROR_JSON = "500 JSON"
    ERROR_TEXT = "500 text"
    GATEWAY_HTML = "502 HTML"
    UNAVAILABLE_JSON = "503 JSON"
    UNAVAILABLE_EMPTY = "503 without a body"
    TIMEOUT_TEXT = "504 text"
    TIMEOUT_HTML = "504 HTML"
    NO_JSON = "200 HTML"
    HALF_JSON = "200 half a document"
    UNAUTHORIZED = "401"
    DROP = "request dropped"
    COMMIT_THEN_DROP = "write stored, answer dropped"
    HOLD = "request held"
    RESET = "all connections reset"
    SERVER_KILLED = "kube-apiserver SIGKILL"
    SERVER_TERMINATED = "kube-apiserver SIGTERM"
    SERVER_FROZEN = "kube-apiserver frozen"
    ETCD_FROZEN = "etcd frozen"
    OPERATOR_FROZEN = "operator frozen"
    OPERATOR_KILLED = "operator SIGKILL"


class Target(StrEnum):
    """Which requests a fault of the proxy is for."""

    ANY = "any"
    READS = "reads"
    WRITES = "writes"
    WATCHES = "watches"
    OWNERS = "watch of the owners"
    CHILDREN = "watch of the children"


_ALL: Final = (Target.ANY, Target.READS, Target.WRITES, Target.WATCHES)
_STREAMS: Final = (Target.WATCHES, Target.OWNERS, Target.CHILDREN)

TARGETS: Final[Mapping[Kind, tuple[Target, ...]]] = {
    Kind.CUT: _STREAMS,
    Kind.STALL: _STREAMS,
    Kind.EXPIRED_EVENT: _STREAMS,
    Kind.EXPIRED: (Target.READS, *_STREAMS),
    Kind.GARBAGE_TEXT: _STREAMS,
    Kind.GARBAGE_BYTES: _STREAMS,
    Kind.GARBAGE_OBJECT: _STREAMS,
    Kind.GARBAGE_HTML: _STREAMS,
    Kind.EMPTY_LINES: _STREAMS,
    Kind.THROTTLED: _ALL,
    Kind.THROTTLED_FOR: _ALL,
    Kind.ERROR_JSON: _ALL,
    Kind.ERROR_TEXT: _ALL,
    Kind.GATEWAY_HTML: _ALL,
    Kind.UNAVAILABLE_JSON: _ALL,
    Kind.UNAVAILABLE_EMPTY: _ALL,
    Kind.TIMEOUT_TEXT: _ALL,
    Kind.TIMEOUT_HTML: _ALL,
    Kind.NO_JSON: (Target.READS, Target.WRITES),
    Kind.HALF_JSON: (Target.READS, Target.WRITES),
    Kind.UNAUTHORIZED: _ALL,
    Kind.DROP: _ALL,
    Kind.COMMIT_THEN_DROP: (Target.WRITES,),
    Kind.HOLD: _ALL,
}
"""The targets of the kinds that the proxy carries out; the other kinds strike processes and connections."""

ALWAYS: Final = frozenset(Kind) - {Kind.OPERATOR_KILLED}
"""What strikes unless told otherwise: a deletion that a dead operator misses is, as promised, never noticed."""

MEAN_GAP_SECONDS: Final = 3.0
LULL_SECONDS: Final = (15.0, 30.0)
STRIKES_BETWEEN_LULLS: Final = 10
LONGEST_SECONDS: Final = 12.0
# A frozen process holds up everything; half of that is long enough for the client's own deadlines to matter.
LONGEST_FROZEN_SECONDS: Final = 6.0
MOST_REQUESTS: Final = 20
_FROZEN: Final = (Kind.SERVER_FROZEN, Kind.ETCD_FROZEN, Kind.OPERATOR_FROZEN)


@dataclass(frozen=True, slots=True)
class Strike:
    """One fault. Times are seconds since the beginning of the chaos."""

    at: float
    lasts: float
    kind: Kind
    target: Target | None
    """None: not on requests."""

    times: int | None
    """On how many requests at most; None: on all while it lasts."""

    resets: bool
    """Whether open connections are reset first, so that it meets the watches at once."""


def schedule(seed: int, *, seconds: float, kinds: Collection[Kind] = ALWAYS) -> tuple[Strike, ...]:
    """The strikes of a chaos of `seconds`, in order; none lasts longer than it."""
    random = Random(f"chaos {seed}")
    pack = _pack(random, kinds)
    strikes: list[Strike] = []
    at = random.expovariate(1 / MEAN_GAP_SECONDS)
    while at < seconds:
        strikes.append(_strike(random, next(pack), at=at, end=seconds))
        at += random.expovariate(1 / MEAN_GAP_SECONDS)
        if len(strikes) % STRIKES_BETWEEN_LULLS == 0:
            at += random.uniform(*LULL_SECONDS)
    return tuple(strikes)


def _pack(random: Random, kinds: Collection[Kind]) -> Iterator[Kind]:
    """The kinds in random order, again and again."""
    # Sorted: the order of a set of strings differs from process to process.
    pack = sorted(kinds)
    while True:
        random.shuffle(pack)
        yield from pack


def _strike(random: Random, kind: Kind, *, at: float, end: float) -> Strike:
    # Everything is drawn for every kind, so that a change of one kind's rules leaves the others' fate as it was.
    lasts = random.uniform(0.5, LONGEST_SECONDS)
    times = random.choice((None, random.randint(1, MOST_REQUESTS)))
    resets = random.random() < 0.5
    choice = random.random()
    if kind in _FROZEN:
        lasts = min(lasts, LONGEST_FROZEN_SECONDS)
    targets = TARGETS.get(kind)
    return Strike(
        at=round(at, 3),
        lasts=round(min(lasts, end - at), 3),
        kind=kind,
        target=None if targets is None else targets[int(choice * len(targets))],
        times=None if targets is None else times,
        resets=resets and targets is not None,
    )

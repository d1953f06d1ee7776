"""Life: the setup of all lives of a run, the outcome of one life, and the reference for the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from threading import Event
from typing import Final

from bonny.operator import Operator
from bonny.resource import Resource, listed

from ..manifest.rbac import Permission
from ..sandbox import Sandbox
from .points import Chapter, Point, Sort, Writer, object_in
from .state import Nature, State
from .variants import Sample

# Two writers that undo each other wait longer and longer, so they may be silent when it is looked.
REPEATED: Final = 8
POLL_SECONDS: Final = 0.05
# How long an operator must not write at the end of a life without a fault.
REST_SECONDS: Final = 5.0


class Interrupted(Exception):
    """The run ends before this life does."""


class Broken(Exception):
    """A life cannot continue; the text has the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """The part that all lives have in common."""

    operator: Operator
    package: str
    root: Path
    sandbox: Sandbox
    token: str
    """Of the operator's ServiceAccount."""

    externals: Sequence[str]
    """Environment variables that get the address of the external service."""

    wide: bool
    """The operator watches all namespaces, so there can be one life at a time."""

    seed: int
    stopped: Event = field(default_factory=Event)


@dataclass(slots=True)
class Life:
    """The outcome of one life."""

    states: dict[Chapter, State] = field(default_factory=dict)
    sorts: list[Sort] = field(default_factory=list)
    done: list[tuple[str, Sort]] = field(default_factory=list)
    """Objects that the operator created and deleted."""

    problem: str = ""
    """The consequence of the fault, as the end of a sentence; empty if there is none."""

    diff: list[str] = field(default_factory=list)
    chapter: Chapter = Chapter.START
    struck: bool = True
    """Whether the request that the plan is about was sent."""

    writers: Counter[Writer] = field(default_factory=Counter)
    """How often each writer wrote each object, by chapter."""

    shown: list[str] = field(default_factory=list)
    """Sentences about values of Secrets that can be read where they should not."""

    log: str = ""
    used: set[Permission] = field(default_factory=set)
    """Permissions that its requests needed."""


@dataclass(frozen=True, slots=True)
class Reference:
    """The life without a fault, that all others are compared with."""

    states: Mapping[Chapter, State]
    done: Sequence[tuple[str, Sort]]
    """Objects that the operator created and deleted."""

    nature: Nature
    names: frozenset[str]
    """Of objects in requests that two lives sent."""

    def named(self, name: str) -> str:
        """The name of an object in the name of a point."""
        return name if name in self.names else "generated"

    def done_until(self, chapter: Chapter) -> Counter[str]:
        """How often each object was created and deleted up to the end of a chapter: some lives end there."""
        begun = list(Chapter)[: list(Chapter).index(chapter) + 1]
        return counted((what, sort) for what, sort in self.done if sort[0] in begun)


def counted(done: Iterable[tuple[str, Sort]]) -> Counter[str]:
    """How often each object was created and deleted, by `created configmaps lamp`."""
    return Counter(f"{what} {sort[3]}" for what, sort in done)


def more_often(done: Mapping[str, int], wanted: Mapping[str, int]) -> list[str]:
    """A line about each object that was created or deleted more often than wanted; deletions first, since they lose
    what was there."""
    lines = [
        f"+ {what} {count} {'time' if count == 1 else 'times'}, not {wanted.get(what, 0)}"
        for what, count in done.items()
        if count > wanted.get(what, 0)
    ]
    return sorted(lines, key=lambda line: not line.startswith("+ deleted"))


def repeated(life: Life) -> str:
    """A sentence about the write that an operator repeats in a chapter without a fault; empty if there is none."""
    counts = Counter(point for point in (Point(*sort) for sort in life.sorts) if point.is_write)
    point, count = max(counts.items(), key=itemgetter(1), default=(None, 0))
    if point is None or count <= REPEATED:
        return ""
    names = [who for chapter, what, who in life.writers if (chapter, what) == (point.chapter, object_in(point.what))]
    by = f"; {listed(sorted(names))} write that object" if len(names) > 1 else ""
    return f"it does not come to rest: {point.told()} was sent {count} times{by}"


def forms_of(sample: Sample) -> Mapping[Chapter, Sequence[Resource]]:
    """The form in which the subjects are applied in each chapter."""
    return {
        Chapter.CREATED: sample.subjects,
        Chapter.CHANGED: sample.changed,
        Chapter.BACK: sample.back,
        Chapter.REDUCED: sample.reduced,
        Chapter.AGAIN: sample.reduced or sample.back or sample.changed or sample.subjects,
    }


def chapters_of(sample: Sample) -> list[Chapter]:
    """The chapters of a life of `sample`, without the start of the operator."""
    left_out = {Chapter.START}
    left_out |= set() if sample.changed else {Chapter.CHANGED}
    left_out |= set() if sample.back else {Chapter.BACK}
    left_out |= set() if sample.reduced else {Chapter.REDUCED}
    return [chapter for chapter in Chapter if chapter not in left_out]

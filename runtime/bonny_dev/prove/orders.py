"""Orders: two controllers, or other field managers, that write one object, each once before the other.

A write is held until the other write is done. Two lives with opposite orders must end in the same state. If they do
not, both are repeated, to learn the differences by nature.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Final

from ..testing.faults import ProxiedRequest
from .life import Life
from .points import API, Chapter, Point, Sort, Writer, object_in
from .state import Nature, Told, contrasts, learned

# Of each controller so many writes to an object are tried against each other, in a thorough run.
WRITES: Final = 3


@dataclass(frozen=True, slots=True)
class Turn:
    """In a chapter, the `nth` write of `what` by `held` waits for the write number `after` of it by `first`."""

    chapter: Chapter
    what: str
    held: str
    first: str
    nth: int = 1
    after: int = 1

    @property
    def swapped(self) -> Turn:
        """The opposite order."""
        return Turn(self.chapter, self.what, self.first, self.held, self.after, self.nth)

    def __str__(self) -> str:
        """As in the name of a plan."""
        words = [re.sub(r"[^\w.-]+", "-", each) for each in (self.what, self.held, self.first)]
        numbers = f"-{self.nth}-{self.after}" if (self.nth, self.after) != (1, 1) else ""
        return "/".join((self.chapter, words[0], f"{words[1]}-after-{words[2]}{numbers}"))

    def told(self) -> str:
        """As the beginning of a sentence."""
        return f"{self.held} and {self.first} both write {self.what}, in either order"


def writers_of(sent: Iterable[tuple[ProxiedRequest, Sort]]) -> Counter[Writer]:
    """How often each field manager wrote each object in each chapter, with success."""
    return Counter(
        (sort[0], object_in(sort[3]), request.manager)
        for request, sort in sent
        if sort[1] == API and Point(*sort).is_write and (request.status or 500) < 400
    )


def turns_of(lives: Sequence[Life]) -> Iterator[Turn]:
    """One turn of each pair of orders: of all objects that have two writers in each of these lives."""
    counts = Counter({key: min(life.writers[key] for life in lives) for key in lives[0].writers})
    for key, count in counts.items():
        chapter, what, who = key
        for (other_chapter, other_what, other), others in counts.items():
            if (other_chapter, other_what) == (chapter, what) and who < other and chapter is not Chapter.START:
                for nth, after in product(range(1, min(count, WRITES) + 1), range(1, min(others, WRITES) + 1)):
                    yield Turn(chapter, what, who, other, nth, after)


def differs(turn: Turn, pairs: Sequence[tuple[Life, Life]]) -> list[str]:
    """How the end states of opposite orders differ, a line each; `pairs` are one or two lives of each order."""
    states = [[life.states[turn.chapter] for life in pair] for pair in pairs]
    nature = learned(states) if len(states) > 1 else Nature()
    one, other = (nature.without(state) for state in states[0])
    words = [f"the order {first}, {second}" for first, second in ((turn.first, turn.held), (turn.held, turn.first))]
    return contrasts(one, other, Told(words[0], words[1]))


def opposed(live: Callable[[Turn], Life], turn: Turn) -> Life:
    """The lives of both orders, as one. `live` is one life with an order."""
    pairs = list[tuple[Life, Life]]()
    for _ in range(2):
        pair = live(turn), live(turn.swapped)
        for each in pair:
            each.chapter = turn.chapter
            if each.problem or not each.struck:
                return each
        pairs.append(pair)
        pair[0].diff = differs(turn, pairs)
        if not pair[0].diff:
            return pair[0]
    pair[0].problem = "the end depends on which of them comes first"
    return pair[0]

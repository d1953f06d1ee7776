"""Heard: what a listener was told of telemetry events, for tests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from bonny import telemetry
from tests.support.telemetry_page import check


class Told(NamedTuple):
    """One event."""

    name: str
    measurements: Mapping[str, float]
    metadata: Mapping[str, Any]


@dataclass
class Heard:
    """All that was told so far, in order."""

    events: list[Told] = field(default_factory=list)

    @property
    def names(self) -> list[str]:
        return [told.name for told in self.events]

    def of(self, name: str) -> list[Told]:
        return [told for told in self.events if told.name == name]

    def __call__(self, name: str, measurements: Mapping[str, float], metadata: Mapping[str, Any], config: Any) -> None:
        self.events.append(Told(name, measurements, metadata))


@contextmanager
def heard(*names: str) -> Iterator[Heard]:
    """Listen to these events, or to all.

    What fails the test: a listener that was detached in the middle, and an event of ours with other keys than its
    reference page says.
    """
    listener = Heard()
    telemetry.attach_many("the test", names or telemetry.EVENTS, listener)
    yield listener
    assert telemetry.detach("the test")
    for told in listener.events:
        check(*told)

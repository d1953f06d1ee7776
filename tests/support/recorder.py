"""A recorder that keeps events for the test to look at."""

from __future__ import annotations

from bonny.events import Event
from bonny.resource import Resource, identify


class KeptEvents:
    """Stands where the operator has its recorder."""

    def __init__(self) -> None:
        self.events: list[tuple[str, Event]] = []
        """Each with the name of the object that it is about."""

    def record(self, regarding: Resource, event: Event) -> None:
        """Keep it."""
        self.events.append((identify(regarding), event))

    emit = record
    """As a context has it."""

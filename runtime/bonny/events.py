"""Events (to be replaced by the recorder room)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from .resource import Resource

__all__ = ["Event", "EventType"]


class EventType(StrEnum):
    NORMAL = "Normal"
    WARNING = "Warning"


@dataclass(frozen=True, slots=True)
class Event:
    type: EventType
    reason: str
    action: str
    message: str
    related: Resource | None = None


class EventRecorder:
    def __init__(self, client: object, *, controller: str, instance: str) -> None: ...

    def record(self, regarding: Resource, event: Event) -> None: ...

    async def run(self) -> None: ...

    async def drain(self, *, seconds: float) -> None: ...

"""Events: the entries under `kubectl describe`, as objects of events.k8s.io/v1.

`core.series` decides which events are written and which are only counted. In handlers, register events on the axn.

Two events are equal when object, related object (never their versions), type, reason, action and message are. client-go
ignores the message and keeps the first one; but the message of an event cannot be changed, so the count would grow
beside an outdated text. Messages that differ each time form no series; the budget of their object limits them.

RBAC: create and patch of events.events.k8s.io in the namespaces of the objects, and in `default` for objects without
one (the manifest grants it).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import random
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, Final

import msgspec

from .client.api import Client
from .client.clock import pause
from .client.errors import Forbidden, Invalid, NotFound, Refusal, missing_rule
from .core.backoff import Backoff
from .core.series import Correlator, Series
from .errors import ApiError, OptionError, UsageError
from .kinds import Kind
from .naming import SUBDOMAIN_LENGTH, is_qualified_name, is_subdomain
from .resource import Resource

EVENT: Final = Kind("events.k8s.io/v1", "Event")
EVENT_VERBS: Final = ("create", "patch")

DEFAULT_NAMESPACE: Final = "default"
"""The namespace of events about objects without one; the API server accepts `default` and `kube-system`."""

# The API server's limits (pkg/apis/core/validation/events.go), in bytes.
WORD_BYTES: Final = 128
NOTE_BYTES: Final = 1024

WRITE_BACKOFF: Final = Backoff(base=2.0, cap=30.0)
REPORT_SECONDS: Final = 60.0
# Short against the window of a series; looking at all of them takes a millisecond.
SWEEP_SECONDS: Final = 30.0

log = logging.getLogger("bonny.events")


class EventType(StrEnum):
    """Severity of an event. The API server accepts no other values."""

    NORMAL = "Normal"
    WARNING = "Warning"


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to an object.

    Raises: `OptionError` when reason or action is empty, longer than 128 bytes, or not printable.
    """

    type: EventType

    reason: str
    """The machine-readable reason, one word: `Created`."""

    action: str
    """The action that was taken or tried: `Reconcile`."""

    message: str
    """Human-readable, cut to 1 KiB. Do not put secrets here: more people can read events."""

    related: Mapping[str, Any] | None = None
    """Another object that the event is about, such as a child."""

    def __post_init__(self) -> None:
        for name, word in (("reason", self.reason), ("action", self.action)):
            if not (word.strip() and word.isprintable() and len(word.encode()) <= WORD_BYTES):
                raise OptionError(
                    f"the {name} of an event is {word[:60]!r}: use one word, {WORD_BYTES} bytes at most, for example "
                    "Created"
                )
        object.__setattr__(self, "message", _cut(self.message, NOTE_BYTES))


class EventRecorder:
    """Sends events in the background, one request at a time, so that they do not slow down reconciles."""

    def __init__(self, client: Client, *, controller: str, instance: str) -> None:
        """`controller` is the reporter: `widgets-operator` or `example.com/widgets-operator`; `instance` its process,
        such as the name of the pod, cut to 128 bytes.

        Raises: `OptionError` when the API server would refuse them.
        """
        if not is_qualified_name(controller) or not instance:
            raise OptionError(
                f"{controller[:60]!r} ({instance[:60]!r}) cannot report events: name a controller such as "
                "example.com/widgets-operator and its instance, such as a pod"
            )
        self.correlator = Correlator()
        """Decides which events are sent; counts recorded, limited, refused and dropped events."""

        self._client = client
        self._reporter = {"reportingController": controller, "reportingInstance": _cut(instance, WORD_BYTES)}
        # Part of the names of all its events: no other process has the same.
        self._mark = secrets.token_hex(5)
        self._wake = asyncio.Event()
        self._one_request = asyncio.Lock()
        self._last_error = ""
        self._refusals: set[int] = set()
        self._reported = 0
        self._reported_at = float("-inf")

    def __str__(self) -> str:
        return "event recorder"

    def record(self, regarding: Resource, event: Event) -> None:
        """Queue `event`; call it from the thread of the event loop.

        Guarantees: returns at once and raises nothing. Does not: guarantee that it is sent; see `core.series`.
        """
        about = _reference(regarding)
        related = {} if event.related is None else {"related": _reference(event.related)}
        words = {"type": event.type, "reason": event.reason, "action": event.action, "note": event.message}
        # By type, too, as in client-go: a flood of normal events hides no warning.
        subject = (*about.values(), event.type)
        encoded = msgspec.json.encode({"regarding": about, **related, **words})
        if self.correlator.record(encoded, subject=subject, now=time.monotonic()):
            self._wake.set()

    async def run(self) -> None:
        """Send recorded events, until cancelled."""
        while True:
            if time.monotonic() - self._reported_at >= REPORT_SECONDS:
                self._report()
            if not await self._send(now=time.monotonic()):
                self._wake.clear()
                await pause(SWEEP_SECONDS, wake=self._wake)

    async def drain(self, *, seconds: float) -> None:
        """Send the remaining events, counts of series included; after `seconds` the rest is dropped and logged."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self.correlator.unsent:
                    await self._send(now=math.inf)  # when every window is over
        self._report(left=self.correlator.unsent)

    async def _send(self, *, now: float) -> bool:
        """Send the next event that is due. Returns: whether there was one.

        An apply creates an event and counts its repeats: it does not matter whether an earlier try was carried out, or
        whether the server has deleted the event since.
        """
        async with self._one_request:
            series = self.correlator.take(now=now)
            if series is None:
                return False
            stored: bool | None = False  # also when it is cancelled
            try:
                await self._client.apply(EVENT, self._object(series))
                stored = True
            except (Forbidden, Invalid, NotFound) as error:
                stored = None
                self._log_once(error)
            except (ApiError, UsageError) as error:
                self._last_error = str(error)
            finally:
                self.correlator.settle(series, stored=stored, now=time.monotonic())
        if stored is False:
            # All events wait: the cause is rarely the single event.
            await asyncio.sleep(WRITE_BACKOFF.delay(series.tries, chance=random.random()))
        return True

    def _object(self, series: Series) -> Resource:
        """The event as it is applied."""
        event: Resource = msgspec.json.decode(series.key)
        series.event_time = series.event_time or _micro_time(series.first)
        suffix = f".{self._mark}{series.number:06x}"
        name = event["regarding"]["name"][: SUBDOMAIN_LENGTH - len(suffix)]
        # Not every name is valid for an event, for example that of the ClusterRole system:node.
        name = (name if is_subdomain(name) else "event") + suffix
        metadata = {"name": name, "namespace": event["regarding"]["namespace"] or DEFAULT_NAMESPACE}
        times = {"count": series.writing, "lastObservedTime": _micro_time(series.last)} if series.writing > 1 else None
        fixed = {"apiVersion": EVENT.api_version, "kind": EVENT.kind, "metadata": metadata, **self._reporter}
        return {**event, **fixed, "eventTime": series.event_time, **({"series": times} if times else {})}

    def _log_once(self, error: Refusal) -> None:
        # NotFound: the namespace is gone.
        if isinstance(error, NotFound) or "NamespaceTerminating" in error.causes or error.status in self._refusals:
            return
        self._refusals.add(error.status)
        rule = missing_rule(group=EVENT.group, plural=EVENT.plural, verbs=EVENT_VERBS)
        extra = {"missing_rule": rule} if isinstance(error, Forbidden) else {}
        log.warning("the API server rejected an event", extra={"error": str(error), **extra})

    def _report(self, *, left: int = 0) -> None:
        dropped = self.correlator.dropped - self._reported + left
        if dropped:
            self._reported, self._reported_at = self.correlator.dropped, time.monotonic()
            log.warning("events dropped", extra={"count": dropped, "error": self._last_error})


def _reference(resource: Mapping[str, Any]) -> dict[str, str]:
    """A reference to the object, without its resourceVersion, which would make each event a new one."""
    names = {"apiVersion": resource.get("apiVersion", ""), "kind": resource.get("kind", "")}
    metadata = resource.get("metadata") or {}
    return names | {name: metadata.get(name) or "" for name in ("namespace", "name", "uid")}


def _cut(text: str, longest: int) -> str:
    """The longest prefix of `text` that has at most `longest` bytes in UTF-8."""
    return text.encode(errors="replace")[:longest].decode(errors="ignore")


def _micro_time(at: float) -> str:
    """A time of the monotonic clock in the API's MicroTime format."""
    moment = datetime.now(UTC) - timedelta(seconds=time.monotonic() - at)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")

"""Everything that reads texts or objects of users on the event loop: twice the input is at most 2.5 times the work.

A quadratic reader takes minutes at the API server's limit of 1.5 MiB, and the lease is over after 3 s of CPU.
"""

from __future__ import annotations

import io
import json
import logging
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from copy import deepcopy
from datetime import date, datetime
from ipaddress import IPv4Address, IPv6Address
from typing import Annotated, Any, cast
from uuid import UUID

import msgspec
import pytest

from bonny.api import Base64, Condition, Duration, Field, ListMap, Model, PreserveUnknown, Quantity, Spec, Status, Version
from bonny.api.patterns import matches
from bonny.api.status import WithConditions
from bonny.api.validation import FORMATS, as_stored, fitting, problems
from bonny.api.values import base64_value, duration_seconds, parse_quantity, quantity_value
from bonny.calling import text_of
from bonny.client.api import Client
from bonny.client.errors import log_text_of, refusal
from bonny.core.conditions import condition, steadied, with_condition
from bonny.core.fields import digest, merged, overridden, owned_fields, project, same, unowned
from bonny.core.handled import handled_state
from bonny.core.objects import UNREADABLE, decode_cut, decode_event, decode_failure, decode_item, version_number
from bonny.core.ordering import ObjectName, levels
from bonny.core.selector import hold, requirements_of
from bonny.errors import BonnyError
from bonny.events import Event, EventRecorder, EventType
from bonny.naming import is_label_value, is_qualified_name, is_subdomain
from bonny.readiness import is_ready
from bonny.resource import Key, has_all_of, identify, owners_of
from bonny.scheduler.demand import decode_pod, demand_of
from bonny.telemetry.logging import _Console, _Json
from bonny.webhooks.lost import losses, restored
from bonny.webhooks.patch import difference, merge
from bonny.webhooks.review import NotAReview, read

# The API server takes requests of 3 MiB, and etcd objects of 1.5 MiB.
LARGEST = 1_500_000
SMALLEST = 1024
# What takes less at the limit does not hold up a lease, whatever its growth.
NOTHING_SECONDS = 0.05
TRIES = 4
EXPECTED = (BonnyError, ValueError, *UNREADABLE)

Read = Callable[[Any], object]


def seconds(read: Read, given: Any) -> float:
    """The CPU of one call. What is refused by an error of ours was read, too."""
    began = time.process_time()
    with suppress(*EXPECTED):
        read(given)
    return time.process_time() - began


def too_much_for_twice_the_size(read: Read, make: Callable[[int], Any]) -> str:
    """Why the work grows faster than the input; empty if it does not.

    By the best of a few tries: other processes, caches and the garbage collector only ever add to the time.
    """
    size = SMALLEST
    while size < LARGEST:
        size *= 2
        half, whole = make(size // 2), make(size)
        best = (float("inf"), float("inf"))
        for _ in range(TRIES):
            best = (min(best[0], seconds(read, half)), min(best[1], seconds(read, whole)))
            if best[1] <= 2.5 * best[0] + NOTHING_SECONDS:
                break
        else:
            return f"{size // 2} bytes take {best[0]:.3f} s of CPU, {size} bytes {best[1]:.3f} s"
    return ""


# --- texts ------------------------------------------------------------------------------------------------------------

# Each is repeated. They are what the expressions and parsers of the runtime begin, separate or end with.
PATTERNS = (
    *(" ", "a", "0", "é", "\n", "\x1b", "-", ".", "/", ":", "=", ",", "(", ")", "[", "{", '"', "\\", '\\"', "a,", "a.", "a/"),
    *(",a", "(,", ",(a)", "a=b,", "a in (b),", "!a,", "1h", "1.5m", "9.", "::", "0:", "aGk=", "299 a ", '299 a "b" ', "[a="),
    *("updates to x spec for fields other than ", "conversion webhook for ", "conversion webhook for a failed ", 'User "a'),
    *('a "b" is forbidden: ', "field is immutable", "minimum a usage per b is 1, ", '.a[b="c"]: expected map', "maximum "),
    *('{"a":', '[{"a":1},', '"\\ud800', "NAME NAME is ", 'supported values: "a", ', "must be a valid ", "; in step "),
)


def filled(pattern: str, size: int) -> str:
    return (pattern * (size // len(pattern) + 1))[:size]


def refused(message: str, *, verb: str, causes: Any = ()) -> None:
    body = {"kind": "Status", "code": 403, "reason": "Forbidden", "message": message, "details": {"causes": causes}}
    for code in (403, 422, 500):
        error = refusal(decode_failure(code, msgspec.json.encode(body)), verb=verb, resource="pods a/b")
        log_text_of(error)


class Texts(Spec):
    plain: str = ""
    pattern: Annotated[str, Field(pattern="^([a-z]+/)*[a-z]+$")] = ""
    quantity: Quantity = "1"
    duration: Duration = "1s"
    base64: Base64 = ""
    four: IPv4Address | None = None
    six: IPv6Address | None = None
    uuid: UUID | None = None
    day: date | None = None
    at: datetime | None = None
    number: int = 0
    labels: dict[str, str] = {}


class Holder(Version):
    kind = "Holder"
    version = "v1"
    spec: Texts


def in_each_field(text: str) -> None:
    for name in Texts.model_fields:
        for read in (Holder.spec_of, Holder.check):
            with suppress(*EXPECTED):
                read({"spec": {name: text}})
            with suppress(*EXPECTED):
                read({"spec": {text: name, "labels": {text: name}}})


def logged(formatter: logging.Formatter, text: str) -> None:
    for logger in ("bonny.engine.worker", "test"):
        record = logging.LogRecord(logger, logging.WARNING, "", 0, "reconcile failed", (), None)
        vars(record).update({"error": text, "object": text, "seconds": 1.0, text: text})
        formatter.format(record)
        formatter.format(logging.LogRecord(logger, logging.WARNING, "", 0, text, (), None))


def emitted(text: str) -> None:
    recorder = EventRecorder(cast("Client", None), controller="a", instance="b")
    regarding = {"apiVersion": "v1", "kind": text, "metadata": {"name": text, "namespace": text, "uid": text}}
    for reason in ("Created", text):
        with suppress(BonnyError):
            recorder.record(regarding, Event(EventType.NORMAL, reason, "Apply", text, regarding))
    recorder._key(regarding["metadata"], 1)


def decoded(text: str) -> None:
    item = {"metadata": {"name": text, "labels": {text: text}, "resourceVersion": text}, text: text}
    for raw in (text.encode(), b'{"metadata":' + text.encode(), msgspec.json.encode(item), b'{"a": "' + text.encode()):
        for decode in (decode_item, decode_cut, decode_event, read):
            with suppress(NotAReview, *UNREADABLE):
                decode(raw)


TEXTS: dict[str, Callable[[str], object]] = {
    "a refused read": lambda text: refused(text, verb="get"),
    "a refused write": lambda text: refused(text, verb="apply"),
    "a cause": lambda text: refused("invalid", verb="apply", causes=[{"reason": text, "field": text, "message": text}]),
    "a warning": lambda text: Client(cast("Any", None), user_agent="a")._warn(text),
    "a selector": lambda text: requirements_of(text),
    "values of a selector": lambda text: requirements_of(f"a in ({text})"),
    "a label selector": lambda text: requirements_of({"matchLabels": {text: text}}),
    "names": lambda text: (is_label_value(text), is_qualified_name(f"{text}/{text}"), is_subdomain(text)),
    "a version": version_number,
    "a quantity": quantity_value,
    "a quantity that is parsed": parse_quantity,
    "a duration": duration_seconds,
    "base64": base64_value,
    "a pattern": lambda text: matches("^(a|b/)*c$", text),
    "formats": lambda text: [check(text) for check in FORMATS.values()],
    "typed fields": in_each_field,
    "a line of the console": lambda text: logged(_Console(colour=False), text),
    "a line of JSON": lambda text: logged(_Json(), text),
    "an event": emitted,
    "a condition": lambda text: condition(text, True, of={"metadata": {}}, message=text, reason=text),
    "an error": lambda text: text_of(ValueError(text)),
    "a name": lambda text: (str(Key(text, text)), identify({"kind": text, "metadata": {"name": text}})),
    "JSON": decoded,
}


@pytest.mark.parametrize("name", TEXTS)
def test_a_text_is_read_in_linear_time(name: str) -> None:
    """Regression: the message of a conversion webhook, refusals and selectors were read in quadratic time."""
    slow = {pattern: too_much_for_twice_the_size(TEXTS[name], lambda n, p=pattern: filled(p, n)) for pattern in PATTERNS}
    assert {pattern: why for pattern, why in slow.items() if why} == {}

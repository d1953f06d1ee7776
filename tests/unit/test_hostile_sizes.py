"""Everything that reads texts or objects of users on the event loop: twice the input is at most 2.5 times the work.

A quadratic reader takes minutes at the API server's limit of 1.5 MiB, and the lease is over after 3 s of CPU.
"""

from __future__ import annotations

import gc
import logging
import math
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from copy import deepcopy
from datetime import date, datetime
from functools import partial
from ipaddress import IPv4Address, IPv6Address
from typing import Annotated, Any, cast
from uuid import UUID

import msgspec
import pytest

from bonny.api import (
    Base64,
    Duration,
    Field,
    ListMap,
    Model,
    PreserveUnknown,
    Quantity,
    Spec,
    Status,
    Version,
)
from bonny.api.status import WithConditions
from bonny.api.stored import as_stored
from bonny.api.values import base64_value, duration_seconds, parse_quantity, quantity_value
from bonny.calling import text_of
from bonny.client.api import Client
from bonny.client.clock import timestamp
from bonny.client.errors import log_text_of, refusal
from bonny.core.conditions import condition, keep_transition_times, with_condition
from bonny.core.fields import digest, merged, overridden, owned_fields, project, same, unowned
from bonny.core.handled import handled_state
from bonny.core.objects import UNREADABLE, decode_event, decode_failure, decode_item, decode_whole, version_number
from bonny.core.ordering import ObjectName, levels
from bonny.core.selector import hold, requirements_of
from bonny.errors import BonnyError
from bonny.events import Event, EventRecorder, EventType
from bonny.filters.demand import _demand
from bonny.naming import is_label_value, is_qualified_name, is_subdomain
from bonny.readiness import is_ready
from bonny.resource import Key, has_all_of, identify, owners_of
from bonny.scheduler import PodView
from bonny.telemetry.logging import _Json
from bonny.webhooks import review
from bonny.webhooks.conversion import fitting, is_deep
from bonny.webhooks.lost import losses, restored
from bonny.webhooks.patch import difference, merge
from bonny_dev.console_log import Console
from bonny_dev.crd import check_object, schema_of
from bonny_dev.crd.validation import FORMATS, matches, problems

# The slow set goes up to the largest object that etcd takes, and a third of it for whole objects, which take seconds.
QUICK = (4096, 65_536, 200_000)
SIZES = (1_500_000,)
SIZES_OF_OBJECTS = (500_000,)
each_size = pytest.mark.parametrize("large", [False, pytest.param(True, marks=pytest.mark.slow)])
# What takes less at the limit does not hold up a lease, whatever its growth.
NOTHING_SECONDS = 0.05
# A quadratic reader takes four times as long in each of them; a busy machine spoils only some.
TRIES = 10
EXPECTED = (BonnyError, ValueError, *UNREADABLE)

Read = Callable[[Any], object]


def seconds(read: Read, given: Any) -> float:
    """The CPU of one call. What is refused by an error of ours was read, too."""
    gc.disable()  # a collection looks at all objects of this process
    try:
        began = time.process_time()
        with suppress(*EXPECTED):
            read(given)
        return time.process_time() - began
    finally:
        gc.enable()


def too_much_for_twice_the_size(read: Read, make: Callable[[int], Any], sizes: tuple[int, ...] = QUICK) -> str:
    """Why the work grows faster than the input; empty if it does not.

    By the best of a few tries: other processes and caches only ever add to the time.
    """
    for size in sizes:
        whole = make(size)
        of_whole = seconds(read, whole)
        if of_whole <= NOTHING_SECONDS:
            continue
        half, of_half = make(size // 2), float("inf")
        for _ in range(TRIES):
            of_half = min(of_half, seconds(read, half))
            if of_whole <= 2.5 * of_half + NOTHING_SECONDS:
                break
            of_whole = min(of_whole, seconds(read, whole))
        else:
            return f"{size // 2} bytes take {of_half:.3f} s of CPU, {size} bytes {of_whole:.3f} s"
    return ""


# --- texts ------------------------------------------------------------------------------------------------------------

# Each is repeated. They are what the expressions and parsers of the runtime begin, separate or end with.
PATTERNS = (
    *(" ", "a", "0", "é", "\n", "\x1b", "-", ".", "/", ":", "=", ",", "(", ")", "[", "{", '"', "\\", '\\"'),
    *("a,", "a.", "a/", ",a", "(,", ",(a)", "a=b,", "a in (b),", "!a,", "[a=", '{"a":', '[{"a":1},', '"\\ud800'),
    *("1h", "1.5m", "9.", "::", "0:", "aGk=", "299 a ", '299 a "b" ', "NAME NAME is ", "; in step "),
    *("updates to x spec for fields other than ", "conversion webhook for ", "conversion webhook for a failed "),
    *('User "a', 'a "b" is forbidden: ', "minimum a usage per b is 1, ", '.a[b="c"]: expected map', "maximum "),
    *("field is immutable", 'supported values: "a", ', "must be a valid "),
)

# What JSON is read by.
AS_BYTES = set('"\\{[é')


def filled(pattern: str, size: int) -> str:
    return (pattern * (size // len(pattern) + 1))[:size]


def refused(message: str, *, verb: str, causes: Any = ()) -> None:
    body = {"kind": "Status", "code": 403, "reason": "Forbidden", "message": message, "details": {"causes": causes}}
    for code in (403, 422, 500):
        error = refusal(decode_failure(code, msgspec.json.encode(body)), verb=verb, resource="pods a/b")
        log_text_of(error)


def causes_of(text: str) -> list[dict[str, str]]:
    parts = [text[at : at + 4000] for at in range(0, len(text), 4000)]
    return [{"reason": "a", "field": part, "message": part} for part in parts[:100]]


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
        for read in (Holder.spec_of, partial(check_object, Holder)):
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
    series = recorder.correlator.take(now=math.inf)
    assert series is not None
    recorder._object(series)


def decoded(text: str) -> None:
    item = {"metadata": {"name": text, "labels": {text: text}, "resourceVersion": text}, text: text}
    for raw in (text.encode(), b'{"metadata":' + text.encode(), msgspec.json.encode(item), b'{"a": "' + text.encode()):
        for decode in (decode_item, lambda raw: decode_whole(raw, "a"), decode_event, review.read):
            with suppress(review.NotAReview, BonnyError, *UNREADABLE):
                decode(raw)


TEXTS: dict[str, Callable[[str], object]] = {
    "a refused read": lambda text: refused(text, verb="get"),
    "a refused write": lambda text: refused(text, verb="apply"),
    "a cause": lambda text: refused("invalid", verb="apply", causes=[{"reason": text, "field": text, "message": text}]),
    "a hundred causes": lambda text: refused("invalid", verb="apply", causes=causes_of(text)),
    "a warning": lambda text: Client(cast("Any", None), user_agent="a")._warn(text),
    "a selector": requirements_of,
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
    "a line of the console": lambda text: logged(Console(colour=False), text),
    "a line of JSON": lambda text: logged(_Json(), text),
    "an event": emitted,
    "a condition": lambda text: condition(text, True, generation=None, message=text, reason=text),
    "an error": lambda text: text_of(ValueError(text)),
    "a name": lambda text: (str(Key(text, text)), identify({"kind": text, "metadata": {"name": text}})),
    "JSON": decoded,
}


@each_size
@pytest.mark.parametrize("name", TEXTS)
def test_a_text_is_read_in_linear_time(name: str, large: bool) -> None:
    """Regression: the message of a conversion webhook, refusals and selectors were read in quadratic time."""
    chosen = [each for each in PATTERNS if not AS_BYTES.isdisjoint(each)] if name == "JSON" else PATTERNS
    sizes = SIZES if large else QUICK
    slow = {
        pattern: too_much_for_twice_the_size(TEXTS[name], lambda n, p=pattern: filled(p, n), sizes)
        for pattern in chosen
    }
    assert {pattern: why for pattern, why in slow.items() if why} == {}


# --- objects ----------------------------------------------------------------------------------------------------------


class Port(Model):
    name: str = ""
    protocol: str = "TCP"
    number: int = 1


class Told(Status, WithConditions):
    sizes: list[int] = []
    named: dict[str, Port] = {}
    ports: Annotated[list[Port], ListMap("name", "protocol")] = Field(default_factory=list)
    free: Annotated[dict[str, Any], PreserveUnknown()] = {}


class Lists(Spec):
    sizes: list[int] = []
    named: dict[str, Port] = {}
    nested: dict[str, dict[str, int]] = {}
    ports: Annotated[list[Port], ListMap("name", "protocol")] = Field(default_factory=list)
    plain: list[Port] = []
    free: Annotated[dict[str, Any], PreserveUnknown()] = {}


class Shapes(Version):
    kind = "Shapes"
    version = "v1"
    spec: Lists
    status: Told


SCHEMA = schema_of(Shapes)


def nested(depth: int, inside: Any) -> Any:
    for _ in range(depth):
        inside = {"a": inside}
    return inside


def spec(**fields: Any) -> dict[str, Any]:
    metadata = {"name": "a", "namespace": "b", "uid": "c", "generation": 1, "resourceVersion": "1"}
    return {"apiVersion": "example.com/v1", "kind": "Shapes", "metadata": metadata, "spec": fields}


def below_a_long_key(size: int, value: Any) -> Any:
    return {"k" * (size // 2): dict.fromkeys(map(str, range(size // 20)), value)}


def owned_by(number: int) -> dict[str, Any]:
    return {"manager": f"{number}", "operation": "Apply", "fieldsV1": {f"f:f{number}": {}}}


def condition_of(number: int) -> dict[str, str]:
    at = "2024-01-01T00:00:00Z"
    return {"type": f"T{number}", "status": "True", "reason": "A", "message": "", "lastTransitionTime": at}


# Of about n bytes.
SHAPES: dict[str, Callable[[int], dict[str, Any]]] = {
    "equal numbers": lambda n: spec(sizes=[1] * (n // 2)),
    "numbers": lambda n: spec(sizes=list(range(n // 7))),
    "wrong numbers": lambda n: spec(sizes=["x"] * (n // 4)),
    "floats": lambda n: spec(sizes=[1.0] * (n // 4)),
    "empty items": lambda n: spec(plain=[{}] * (n // 3)),
    "items": lambda n: spec(plain=[{"name": f"a{number}"} for number in range(n // 18)]),
    "keyed items": lambda n: spec(ports=[{"name": f"a{number}", "protocol": "TCP"} for number in range(n // 36)]),
    "equal keyed items": lambda n: spec(ports=[{"name": "a", "protocol": "TCP"}] * (n // 30)),
    "fields": lambda n: spec(named={f"a{number}": {"number": 2} for number in range(n // 24)}),
    "free fields": lambda n: spec(free={f"a{number}": number for number in range(n // 14)}),
    "unknown fields": lambda n: spec(**{f"a{number}": number for number in range(n // 14)}),
    "nulls": lambda n: spec(**{f"a{number}": None for number in range(n // 14)}),
    "a long key around many fields": lambda n: spec(
        nested={"k" * (n // 2): dict.fromkeys(map(str, range(n // 20)), 1)}
    ),
    "a long key around wrong fields": lambda n: spec(
        nested={"k" * (n // 2): dict.fromkeys(map(str, range(n // 20)), "")}
    ),
    "deep": lambda n: spec(free=nested(min(n // 6, 300), list(range(n // 7)))),
    "too deep": lambda n: spec(free=nested(min(n // 6, 900), 1)),
    "labels": lambda n: {
        **spec(),
        "metadata": {"name": "a", "labels": {f"a{number}": "b" for number in range(n // 14)}},
    },
    "owners": lambda n: {
        **spec(),
        "metadata": {
            "name": "a",
            "ownerReferences": [{"kind": "a", "name": "b", "uid": f"{number}"} for number in range(n // 48)],
            "finalizers": [f"example.com/{number}" for number in range(n // 40)],
        },
    },
    "conditions": lambda n: {**spec(), "status": {"conditions": [condition_of(number) for number in range(n // 100)]}},
    "status": lambda n: {**spec(), "status": {f"f{number}": number for number in range(n // 14)}},
    "managers": lambda n: {
        **spec(),
        "status": {f"f{number}": number for number in range(n // 30)},
        "metadata": {
            "name": "a",
            "managedFields": [owned_by(number) for number in range(n // 140)],
        },
    },
}


def fields_of(value: Any) -> dict[str, Any]:
    """The fieldsV1 of a manager that owns all of `value`."""
    if isinstance(value, dict):
        return {f"f:{name}": fields_of(item) for name, item in value.items()}
    if isinstance(value, list):
        return {f"i:{index}": {} for index in range(len(value))}
    return {}


def changed(value: Any) -> Any:
    """`value` with each list one longer and each number and text another one."""
    if isinstance(value, dict):
        return {name: changed(item) for name, item in value.items()}
    if isinstance(value, list):
        return [*map(changed, value), {}]
    return f"{value}!" if isinstance(value, str) else 7


def with_managers(given: dict[str, Any]) -> None:
    entries = given["metadata"].get("managedFields") or [{"fieldsV1": fields_of(given["spec"])}]
    fields = [each["fieldsV1"] for each in entries]
    owned_fields(given, "m")
    unowned(given.get("status") or {}, fields)
    for each in fields[:3]:
        project(given["spec"], each)
        list(overridden(given["spec"], changed(given["spec"]), each))


def with_conditions(given: dict[str, Any]) -> None:
    status = given.get("status") or {}
    with_condition(status, condition("T1", True, generation=given["metadata"].get("generation")), at=timestamp())
    keep_transition_times(status, status, {each["type"] for each in status.get("conditions") or ()})
    is_ready(given)
    owners_of(given)


def converted(given: dict[str, Any]) -> None:
    if is_deep(msgspec.json.encode(given)):  # as `Converter` does
        return
    other = {**given, "spec": changed(given["spec"])}
    restored(given, losses(given, other, SCHEMA), SCHEMA)


def compared(given: dict[str, Any]) -> None:
    same(given, deepcopy(given))
    has_all_of(given, given)
    merged(given, given)
    digest(given)
    labels = given["metadata"].get("labels") or {}
    hold(requirements_of("a=b,!c,d in (e,f)"), labels)


def as_it_is_stored(given: dict[str, Any]) -> None:
    fitting(as_stored(given, SCHEMA), SCHEMA)


def checked(given: dict[str, Any]) -> None:
    stored = as_stored(given, SCHEMA)
    for strict in (False, True):
        list(problems(stored, SCHEMA, "", strict=strict))
        with suppress(BonnyError):
            check_object(Shapes, given, strict=strict)


def as_bytes(given: dict[str, Any]) -> None:
    raw = msgspec.json.encode(given)
    for part in (raw, raw[:-5]):
        with suppress(*EXPECTED):
            handled_state(decode_item(part), with_status=True, trust_generation=False)
        with suppress(*EXPECTED):
            decode_whole(part, "a")
        decode_failure(422, part)


OBJECTS: dict[str, Callable[[dict[str, Any]], object]] = {
    "checked": checked,
    "stored": as_it_is_stored,
    "read": Shapes.spec_of,
    "the status is read": Shapes.status_of,
    "decoded": as_bytes,
    "compared": compared,
    "field managers": with_managers,
    "conditions": with_conditions,
    "a conversion": converted,
    "a difference": lambda given: list(difference(given, changed(given))),
    "a merge": lambda given: merge(given, given, changed(given)),
    "a merge of one change": lambda given: merge(given, given, {**given, "spec": {**given["spec"], "sizes": [2]}}),
}


# No lease waits for the checks of the developer tools, and they take longest.
OF_TOOLS = ("checked",)


@each_size
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name in OF_TOOLS else ()) for name in OBJECTS]
)
def test_an_object_is_read_in_linear_time(name: str, shape: str, large: bool) -> None:
    """Regression: a longer list of equal items, or of items that `default` changed, was merged in quadratic time; the
    path of each field repeated a long key; the fields of many managers were looked through for each field."""
    assert too_much_for_twice_the_size(OBJECTS[name], SHAPES[shape], SIZES_OF_OBJECTS if large else QUICK) == ""


def pod(**fields: Any) -> Any:
    return PodView(decode_item(msgspec.json.encode({"metadata": {"name": "a"}, "spec": fields})))


PODS: dict[str, Callable[[int], Any]] = {
    kind: lambda n, kind=kind: pod(  # type: ignore[misc]
        **{kind: [{"name": f"c{i}", "resources": {"requests": {f"example.com/{i}": "1"}}} for i in range(n // 70)]}
    )
    for kind in ("containers", "initContainers")
}
PODS["sidecars"] = lambda n: pod(
    initContainers=[
        {"name": f"c{i}", "restartPolicy": "Always" if i % 2 else "", "resources": {"requests": {f"a.b/{i}": "1"}}}
        for i in range(n // 90)
    ]
)
PODS["tolerations"] = lambda n: pod(tolerations=[{"key": f"a{number}"} for number in range(n // 16)])
PODS["nodeSelector"] = lambda n: pod(nodeSelector={f"a{number}": "b" for number in range(n // 14)})


@pytest.mark.parametrize("shape", PODS)
def test_a_pod_is_read_in_linear_time(shape: str) -> None:
    """Regression: the sums of requests were copied for each container."""
    assert too_much_for_twice_the_size(_demand, PODS[shape]) == ""


def test_a_pod_that_would_hold_up_the_scheduler_is_refused_in_one_sentence() -> None:
    """Each requirement is compared with each node."""
    few, many = (pod(tolerations=[{"key": f"a{number}"} for number in range(count)]) for count in (100, 10_000))
    assert _demand(few).refusal == ""
    assert _demand(many).refusal == "pod has requirements of more than 65536 bytes"


def test_the_order_of_many_objects_is_found_in_linear_time() -> None:
    def named(number: int) -> ObjectName:
        return ObjectName(("v1", "ConfigMap"), Key("a", str(number)))

    def made(size: int) -> Mapping[ObjectName, list[ObjectName]]:
        return {named(number): [named(number - 1)] for number in range(1, size // 40)}

    assert too_much_for_twice_the_size(lambda after: levels({named(0): 0}, after), made) == ""


def test_a_selector_of_many_requirements_or_values_is_refused_without_being_quoted_whole() -> None:
    """Each is compared with each object of the kind, on the event loop."""
    for selector in (
        "!a," * 200 + "b",
        f"a in ({'b,' * 2000})",
        {str(number): "a" for number in range(200)},
        "a" * 70_000,
    ):
        with pytest.raises(BonnyError) as refused:
            requirements_of(selector)
        assert len(str(refused.value)) < 600

"""Specs: Hypothesis strategies for values of a structural schema, most of which fit it, and some of which do not.

You need it to ask two judges of one schema about the same values.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC
from functools import cache
from typing import Any, Final

from hypothesis import strategies as st

from bonny.resource import Resource

__all__ = ["values"]

# One value in so many does not fit where it stands; about every other spec of some fields is so refused.
ODD: Final = 25
# One field in so many is given.
GIVEN: Final = 3
SCALARS: Final[tuple[Any, ...]] = (
    *(None, True, False, 0, 1, -1, 1.0, 2.5, 10**6, 2**31, 2**53, 2**63, 2**64, 1e20),
    *("", "a", "0", "x" * 300, "2024-13-01", "1Gi", "1h", "ü\n"),
)
OBJECTS: Final[tuple[Any, ...]] = ({}, {"a": 1}, {"a": None}, {"name": "x"})
LISTS: Final[tuple[Any, ...]] = ([], [None], [1, 1], ["a", "a"], [{}], [{"name": "x"}, {"name": "x"}])
# Half a surrogate pair cannot be sent.
CHARACTERS: Final = st.characters(codec="utf-8")
FORMATS: Final = {
    "date": st.dates().map(str),
    "date-time": st.datetimes(timezones=st.just(UTC)).map(lambda when: when.isoformat().replace("+00:00", "Z")),
    "uuid": st.uuids().map(str),
    "ipv4": st.ip_addresses(v=4).map(str),
    "ipv6": st.ip_addresses(v=6).map(str),
}


@st.composite
def values(draw: st.DrawFn, schema: Resource) -> Any:
    """A value for `schema`."""
    return _value(draw, schema)


# Plain functions: to draw from a strategy of its own for each field takes twice the time.
def _value(draw: st.DrawFn, schema: Resource) -> Any:
    if draw(_once_in(ODD)):
        # The API server takes any list for a string with a format; nothing else does (docs/reference/api-markers.md).
        return draw(st.sampled_from((*SCALARS, *OBJECTS, *(() if "format" in schema else LISTS))))
    if "enum" in schema:
        return draw(st.sampled_from(schema["enum"]))
    if schema.get("nullable") and draw(st.booleans()):
        return None
    kind = "either" if "anyOf" in schema else schema.get("type", "anything")
    return KINDS[kind](draw, schema)


@cache
def _once_in(times: int) -> st.SearchStrategy[bool]:
    return st.integers(1, times).map(lambda drawn: drawn == times)


def _objects(draw: st.DrawFn, schema: Resource) -> Resource:
    if "additionalProperties" in schema:
        shortest = max(schema.get("minProperties", 0) - draw(_once_in(ODD)), 0)
        longest = schema.get("maxProperties", 3) + draw(_once_in(ODD))
        inner = values(schema["additionalProperties"])
        return draw(st.dictionaries(st.sampled_from("abcde"), inner, min_size=shortest, max_size=longest))
    made = {}
    if schema.get("x-kubernetes-embedded-resource"):
        made = {"apiVersion": draw(st.sampled_from(("v1", "a/v1"))), "kind": draw(st.sampled_from(("Pod", "x")))}
    if schema.get("x-kubernetes-preserve-unknown-fields") or draw(_once_in(ODD)):
        made["unknown"] = draw(st.sampled_from((*SCALARS, *OBJECTS, *LISTS)))
    for name, field in schema.get("properties", {}).items():
        wanted = name in schema.get("required", ())
        if not draw(_once_in(ODD)) if wanted else draw(_once_in(GIVEN)):
            made[name] = _value(draw, field)
    return made


def _lists(draw: st.DrawFn, schema: Resource) -> list[Any]:
    shortest = max(schema.get("minItems", 0) - draw(_once_in(ODD)), 0)
    longest = schema.get("maxItems", 3) + draw(_once_in(ODD))
    return draw(st.lists(values(schema["items"]), min_size=shortest, max_size=longest))


def _strings(draw: st.DrawFn, schema: Resource) -> str:
    if schema.get("format") in FORMATS:
        return draw(FORMATS[schema["format"]])
    least, most = schema.get("minLength", 0), schema.get("maxLength", 6)
    text = st.text(CHARACTERS, min_size=max(least - draw(_once_in(ODD)), 0), max_size=most + draw(_once_in(ODD)))
    if "pattern" in schema and not draw(_once_in(ODD)):
        matching = st.from_regex(schema["pattern"], alphabet=CHARACTERS)
        return draw(matching if "maxLength" not in schema else matching.filter(lambda made: least <= len(made) <= most))
    return draw(text)


def _integers(draw: st.DrawFn, schema: Resource) -> Any:
    least, most = schema.get("minimum", -(2**20)), schema.get("maximum", 2**20)
    step = schema.get("multipleOf", 1)
    number = draw(st.integers(least, most)) // step * step
    off = draw(st.sampled_from((least - 1, most + 1, number + 1))) if draw(_once_in(ODD)) else number
    return float(off) if draw(_once_in(ODD)) else off


def _numbers(draw: st.DrawFn, schema: Resource) -> float:
    # With few digits: for the API server 1.0000000001 is nearly a whole number.
    least, most = schema.get("minimum", -100), schema.get("maximum", 100)
    inside = draw(st.integers(least * 64 + 1, most * 64 - 1)) / 64
    return draw(st.sampled_from((least, most, least - 0.5, most + 1))) if draw(_once_in(ODD)) else inside


KINDS: Final[dict[str, Callable[[st.DrawFn, Resource], Any]]] = {
    "object": _objects,
    "array": _lists,
    "string": _strings,
    "integer": _integers,
    "number": _numbers,
    "boolean": lambda draw, schema: draw(st.booleans()),
    "either": lambda draw, schema: draw(st.integers(-5, 100)) if draw(st.booleans()) else _strings(draw, schema),
    "anything": lambda draw, schema: draw(st.sampled_from((*SCALARS, *OBJECTS, *LISTS))),
}

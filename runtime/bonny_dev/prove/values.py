"""Values: specs made from a structural schema, so that a few of them have all choices of each field.

Number `n` takes the choice `n` of each field, in an order that depends on the seed and the field alone. To leave an
optional field out is one choice, so four objects have each of three values of an enum. Conditions
outside of the schema, such as rules in CEL, are judged by the API server: each further try for a number takes more of
the sample.
"""

from __future__ import annotations

import copy
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

ABSENT: Final = object()
"""A field that is left out."""

# Texts for patterns and formats: times, sizes, names and addresses as they are usual in specs.
TEXTS: Final = (
    "a", "b-2", "1", "10", "1s", "10m", "1Gi", "100m", "v1", "1.0.0", "0 0 * * *", "example.com", "https://example.com",
    "example.com/a:1", "10.0.0.1", "10.0.0.0/24", "a@example.com", "YQ==", "2030-01-01T00:00:00Z", "2030-01-01",
)  # fmt: skip
FORMATS: Final = {"date-time": "2030-01-01T00:00:00Z", "date": "2030-01-01", "duration": "10s", "byte": "YQ=="}
FEW: Final = 5
"""No number without a maximum is larger, and no list longer: a child for each is enough."""


class Values:
    """The values of one try for one number. `keep` is the part of the fields that are taken from the sample."""

    def __init__(self, seed: str, number: int, *, keep: float = 0.0) -> None:
        self._seed, self._number, self._keep = seed, number, keep
        self._random = random.Random(f"{seed}/{number}/{keep}")

    def of(self, schema: Mapping[str, Any], sample: Any = ABSENT, path: str = "", *, optional: bool = False) -> Any:
        """A value for `schema`, or `ABSENT` when there is none, and where the field is `optional`, sometimes."""
        if sample is not ABSENT and "properties" not in schema and self._random.random() < self._keep:
            return copy.deepcopy(sample)
        if "properties" in schema or schema.get("type") == "array":
            if optional and not self._pick(f"{path}?", (True, False)):
                return ABSENT
            make = self._object if "properties" in schema else self._list
            return make(schema, sample, path)
        choices = list(_choices(schema, sample)) or [sample]
        chosen = self._pick(path, [*choices, ABSENT] if optional else choices)
        return chosen if chosen is ABSENT else copy.deepcopy(chosen)

    def _pick(self, path: str, choices: Sequence[Any]) -> Any:
        if self._keep:
            return self._random.choice(choices)
        order = random.Random(f"{self._seed}/{path}").sample(range(len(choices)), len(choices))
        return choices[order[self._number % len(choices)]]

    def _object(self, schema: Mapping[str, Any], sample: Any, path: str) -> Any:
        known = sample if isinstance(sample, dict) else {}
        made = {}
        for name, child in schema["properties"].items():
            optional = name not in schema.get("required", ())
            value = self.of(child, known.get(name, ABSENT), f"{path}.{name}", optional=optional)
            if value is not ABSENT:
                made[name] = value
        return made

    def _list(self, schema: Mapping[str, Any], sample: Any, path: str) -> Any:
        known = sample if isinstance(sample, list) else []
        least, most = schema.get("minItems", 0), min(schema.get("maxItems", FEW), FEW)
        length = self._pick(path, range(least, max(least, most, 1) + 1)[: len(known) + 2])
        items: list[Any] = []
        for index in range(length):
            item = self.of(schema.get("items", {}), known[index] if index < len(known) else ABSENT, f"{path}[{index}]")
            if item is not ABSENT and not any(_same_key(item, other, schema) for other in items):
                items.append(item)
        return items


def _same_key(one: Any, other: Any, schema: Mapping[str, Any]) -> bool:
    """Whether a list with unique items may not have both."""
    keys = schema.get("x-kubernetes-list-map-keys", ())
    if keys and isinstance(one, dict) and isinstance(other, dict):
        return all(one.get(key) == other.get(key) for key in keys)
    return bool(one == other)


def _choices(schema: Mapping[str, Any], sample: Any) -> Iterator[Any]:
    """The values of a field that has no fields of its own, with the value of the sample."""
    if "enum" in schema:
        yield from schema["enum"]
        return
    if sample is not ABSENT:
        yield sample
    match schema.get("type"):
        case "boolean":
            yield from (each for each in (True, False) if each is not sample)
        case "integer" | "number":
            yield from (each for each in _numbers(schema) if each != sample)
        case "string":
            yield from (each for each in _texts(schema) if each != sample)
        case "object" if sample is ABSENT:
            yield {}


def _numbers(schema: Mapping[str, Any]) -> Iterator[int]:
    """Both ends of the range, as far as they are small, and a number between them."""
    step = schema.get("multipleOf", 1)
    step = int(step) if step >= 1 else 1
    least = schema.get("minimum", schema.get("exclusiveMinimum", 0))
    first = -(-int(least) // step) * step
    most = schema.get("maximum", schema.get("exclusiveMaximum", first + FEW * step))
    yield from dict.fromkeys((first, first + step, min(int(most), first + FEW * step) // step * step))


def _texts(schema: Mapping[str, Any]) -> Iterator[str]:
    """Texts that fit the pattern, the format and the length; without any of them only a word."""
    least, most = schema.get("minLength", 0), schema.get("maxLength", 64)
    if schema.get("format") in FORMATS:
        yield FORMATS[schema["format"]]
        return
    texts = TEXTS if "pattern" in schema or "format" in schema else TEXTS[:1]
    fitting = (text if len(text) >= least else text * least for text in texts)
    pattern = schema.get("pattern", "")
    yield from [text for text in fitting if least <= len(text) <= most and _fits(pattern, text)][:3]


def _fits(pattern: str, text: str) -> bool:
    try:
        return re.search(pattern, text) is not None
    except re.error:  # the syntax of the API server is another one
        return True

"""State: what a life left in the API server, without what differs by nature, and how two states differ.

Two lives without a fault show which names and fields are different each time (`Nature`), such as a password that the
operator makes. UIDs, versions and times differ in every life, and are replaced from the start.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from bonny.resource import Resource

Fields: TypeAlias = dict[str, Any]
"""The fields of an object by their paths: `spec.size`."""

State: TypeAlias = dict[str, Fields]
"""Objects by `Kind name`."""

LEFT_OUT: Final = frozenset(
    {"managedFields", "uid", "resourceVersion", "creationTimestamp", "generation", "deletionGracePeriodSeconds"}
)
UUID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)")
NAMESPACE: Final = "(namespace)"
# What `prove` writes on objects as another writer.
ANNOTATION: Final = "bonny.dev/prove"
SHOWN: Final = 60
MISSING: Final = "missing"


@dataclass(frozen=True, slots=True)
class Nature:
    """Differences between two lives without a fault: names of objects, and fields of the others."""

    names: frozenset[str] = frozenset()
    """Of objects that both lives have: `Kind name`."""

    generated: frozenset[str] = frozenset()
    """Kinds of which each life has objects with other names."""

    fields: frozenset[tuple[str, str]] = frozenset()
    """Fields whose values differ, as (`Kind name`, path)."""

    def named(self, label: str) -> str:
        """`Kind name`, or `Kind with a generated name`."""
        kind = label.partition(" ")[0]
        return f"{kind} with a generated name" if kind in self.generated and label not in self.names else label

    def without(self, state: State) -> State:
        """`state` without what differs by nature; objects with generated names are numbered."""
        made: State = {}
        groups: dict[str, list[Fields]] = {}
        for label, fields in state.items():
            groups.setdefault(self.named(label), []).append(fields)
        for label, objects in groups.items():
            kept = [
                {path: value for path, value in fields.items() if (label, path) not in self.fields}
                for fields in objects
            ]
            if label in state:
                made[label] = kept[0]
                continue
            for number, fields in enumerate(sorted(kept, key=lambda each: json.dumps(each, sort_keys=True)), start=1):
                made[f"{label}, number {number}"] = {
                    path: value for path, value in fields.items() if path != "metadata.name"
                }
        return made


def learned(lives: Sequence[Sequence[State]]) -> Nature:
    """Learn from the states of two lives, chapter by chapter."""
    one, other = lives
    pairs = list(zip(one, other, strict=True))
    names = frozenset(label for a, b in pairs for label in set(a) & set(b))
    generated = frozenset(label.partition(" ")[0] for a, b in pairs for label in set(a) ^ set(b) if label not in names)
    rough = Nature(names, generated)
    fields = set[tuple[str, str]]()
    for a, b in pairs:
        left, right = rough.without(a), rough.without(b)
        for label in set(left) & set(right):
            known = label.split(", number ")[0]
            fields |= {
                (known, path)
                for path in set(left[label]) | set(right[label])
                if left[label].get(path) != right[label].get(path)
            }
    return Nature(names, generated, frozenset(fields))


def fields_of(resource: Resource, *, words: Mapping[str, str]) -> Fields:
    """The fields of an object, alike in each life: `words` says what stands for the UIDs and names of this one."""
    metadata = {name: item for name, item in resource["metadata"].items() if name not in LEFT_OUT}
    current = resource["metadata"].get("generation")
    others = {name: text for name, text in metadata.pop("annotations", {}).items() if name != ANNOTATION}
    pruned = {**resource, "metadata": metadata | ({"annotations": others} if others else {})}
    flat: Fields = {}
    _flatten(json.loads(alike(json.dumps(pruned), words)), "", flat, current)
    return flat


def alike(text: str, words: Mapping[str, str]) -> str:
    """`text` with what differs in each life replaced."""
    for word, replacement in words.items():
        text = text.replace(word, replacement)
    return TIME.sub("(time)", UUID.sub("(another UID)", text))


def _flatten(value: Any, path: str, flat: Fields, generation: object) -> None:
    if path.rpartition(".")[2] == "observedGeneration":
        flat[path] = "the current one" if value == generation else "an earlier one"
    elif isinstance(value, dict) and value:
        for name, item in value.items():
            _flatten(item, f"{path}.{name}" if path else name, flat, generation)
    elif isinstance(value, list) and value:
        # Conditions have no order, but names; items that share a name keep their numbers, or one would hide the other.
        names = [item.get("type") or item.get("name") if isinstance(item, dict) else None for item in value]
        for number, (name, item) in enumerate(zip(names, value, strict=True)):
            place = name if name and names.count(name) == 1 else number
            _flatten(item, f"{path}[{place}]", flat, generation)
    else:
        flat[path] = value


def differences(found: State, wanted: State) -> list[str]:
    """How `found` differs from `wanted`, a line each; empty if it does not."""
    lines = []
    for label, left, right in _pairs(found, wanted):
        if left is None:
            lines.append(f"- {label} is missing")
        elif right is None:
            lines.append(f"+ {label} should not be there")
        else:
            lines += [
                f"~ {label}: {path} is {is_there}, should {'not be there' if wish == MISSING else f'be {wish}'}"
                for path, is_there, wish in _fields_that_differ(left, right)
            ]
    return lines


@dataclass(frozen=True, slots=True)
class Told:
    """The names of two ways to a state, and more words about them where a whole object is missing."""

    one: str
    other: str
    more: tuple[str, str] = ("", "")


CHANGE_AND_CREATION: Final = Told("the change", "the creation", (" to this spec", " with this spec"))


def contrasts(changed: State, created: State, told: Told = CHANGE_AND_CREATION) -> list[str]:
    """How an object that was changed to a spec differs from one that was created with it, a line each.

    `told` names other ways to two states.
    """
    lines = []
    for label, left, right in _pairs(changed, created):
        if left is None:
            lines.append(f"+ {label} is only there after {told.other}{told.more[1]}")
        elif right is None:
            lines.append(f"- {label} is only there after {told.one}{told.more[0]}")
        else:
            lines += [
                f"~ {label}: {path} is {before} after {told.one}, {after} after {told.other}"
                for path, before, after in _fields_that_differ(left, right)
            ]
    return lines


def _pairs(one: State, other: State) -> Iterator[tuple[str, Fields | None, Fields | None]]:
    """The objects of two states by label; None where a state has no such object."""
    for label in sorted(one.keys() | other.keys(), key=_in_order):
        yield label, one.get(label), other.get(label)


def _in_order(label: str) -> tuple[str, int]:
    """For `sorted`: the numbers of objects with generated names count as numbers."""
    name, _, number = label.partition(", number ")
    return name, int(number or 0)


def _fields_that_differ(one: Fields, other: Fields) -> Iterator[tuple[str, str, str]]:
    """The path of each field that differs, with both values as text. As text, since `True == 1` in Python."""
    for path in sorted(one.keys() | other.keys()):
        left, right = _text_at(path, one), _text_at(path, other)
        if left != right:
            yield path, _cut(left), _cut(right)


def _text_at(path: str, fields: Fields) -> str:
    return json.dumps(fields[path], ensure_ascii=False) if path in fields else MISSING


def _cut(text: str) -> str:
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."

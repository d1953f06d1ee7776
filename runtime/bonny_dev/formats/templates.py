"""Templates: objects whose values Helm computes, and their text as files of a chart.

You need it to put a value of a chart into an object: `Expression("{{ .Values.replicas }}")` in place of a number,
`Text` in place of a string, `When(...)` in place of what may be left out.
Everything else in an object is written so that Helm leaves it as it is, also where it holds `{{`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import yaml

from bonny.errors import OptionError

from ..manifest.bundle import Dumper

WIDTH: Final = 140
UNFOLDED: Final = 1_000_000_000
INDENT: Final = "  "
# Helm's own words for two braces.
BRACES: Final = '{{ "{{" }}'


@dataclass(frozen=True, slots=True)
class Expression:
    """A value that Helm computes: `{{ .Values.replicas }}`."""

    text: str


@dataclass(frozen=True, slots=True)
class Text:
    """A string of literal parts and of expressions."""

    parts: tuple[str | Expression, ...]


@dataclass(frozen=True, slots=True)
class When:
    """A node that is there only under a condition: a document, or the value of a mapping together with its key."""

    condition: str
    """An action of Helm: `if .Values.crd.keep`; after `with .Values.affinity` a dot is the value of it."""

    value: Any


@dataclass(frozen=True, slots=True)
class Appended:
    """A list that is followed by the items of a value of the chart."""

    items: list[Any]
    value: str
    """`.Values.env`."""


def filled(node: Any, marks: Mapping[str, Expression]) -> Any:
    """`node` with an expression in place of each mark in a string.

    Raises: `OptionError` for a mark in the key of a mapping.
    """
    if isinstance(node, dict):
        if key := next((key for key in node for mark in marks if mark in str(key)), None):
            raise OptionError(
                f"the manifest has the key {key!r}, which depends on the namespace or the image: a chart cannot have "
                "such a key, so change Deploy(customize=...)"
            )
        return {key: filled(value, marks) for key, value in node.items()}
    if isinstance(node, list):
        return [filled(value, marks) for value in node]
    if isinstance(node, str) and (parts := _split(node, marks)) != (node,):
        return Text(parts)
    return node


def _split(text: str, marks: Mapping[str, Expression]) -> tuple[str | Expression, ...]:
    parts: list[str | Expression] = [text]
    for mark, expression in marks.items():
        for number in reversed(range(len(parts))):
            part = parts[number]
            if isinstance(part, str) and mark in part:
                found: list[str | Expression] = []
                for literal in part.split(mark):
                    found += [expression, literal] if found else [literal]
                parts[number : number + 1] = [each for each in found if each != ""]
    return tuple(parts)


def to_template(documents: list[Any]) -> str:
    """The documents as the text of one file of a chart."""
    return "".join(f"{line}\n" for each in documents for line in _document(each))


def _document(node: Any) -> Iterator[str]:
    if isinstance(node, When):
        yield f"{{{{- {node.condition} }}}}"
        yield from _document(node.value)
        yield "{{- end }}"
    else:
        yield "---"
        yield from _block(node)


def _block(node: Any) -> Iterator[str]:
    """The lines of a mapping or a list that is not empty, at the left margin."""
    if isinstance(node, dict):
        for key, value in node.items():
            yield from _entry(_scalar(key), value)
    elif isinstance(node, Appended):
        for item in node.items:
            yield from _item(item)
        yield f"{{{{- range {node.value} }}}}"
        yield "- {{ toJson . }}"
        yield "{{- end }}"
    else:
        for item in node:
            yield from _item(item)


def _entry(key: str, value: Any) -> Iterator[str]:
    if isinstance(value, When):
        yield f"{{{{- {value.condition} }}}}"
        yield from _entry(key, value.value)
        yield "{{- end }}"
    elif is_plain(value):
        # As one mapping, so that the YAML library lays out a text of several lines itself.
        yield from _dumped({"key": value}, f"{key}:", "key:")
    elif isinstance(value, str | Expression | Text):
        yield f"{key}: {_computed(value)}"
    else:
        yield f"{key}:"
        yield from (f"{INDENT}{line}" if line else line for line in _block(value))


def _item(value: Any) -> Iterator[str]:
    if is_plain(value):
        yield from _dumped([value], "-", "-")
    elif isinstance(value, str | Expression | Text):
        yield f"- {_computed(value)}"
    else:
        # The dash has a line of its own: what follows may begin with a condition.
        yield "-"
        yield from (f"{INDENT}{line}" if line else line for line in _block(value))


def is_plain(node: Any) -> bool:
    """Whether Helm computes nothing in it."""
    if isinstance(node, dict):
        return all(map(is_plain, node.values())) and "{{" not in "".join(map(str, node))
    if isinstance(node, list):
        return all(map(is_plain, node))
    return not isinstance(node, Expression | Text | When | Appended) and "{{" not in str(node)


def _dumped(node: Any, head: str, stand_in: str) -> Iterator[str]:
    first, *rest = yaml.dump(node, Dumper=_Blocks, sort_keys=False, width=WIDTH).splitlines()
    yield head + first.removeprefix(stand_in)
    yield from rest


def _computed(value: str | Expression | Text) -> str:
    if isinstance(value, Expression):
        return value.text
    parts = (value,) if isinstance(value, str) else value.parts
    return f'"{"".join(each.text if isinstance(each, Expression) else _quoted(each) for each in parts)}"'


def _scalar(text: object) -> str:
    """A key, or a string in which Helm computes nothing, in one line."""
    if "{{" in str(text):
        return f'"{_quoted(str(text))}"'
    return str(yaml.dump(text, Dumper=_Blocks, width=UNFOLDED)).partition("\n")[0]


def _quoted(text: str) -> str:
    """The inside of a double-quoted string of YAML."""
    dumped = yaml.dump(text, default_style='"', width=UNFOLDED, allow_unicode=True)
    return str(dumped)[1 : dumped.rindex('"')].replace("{{", BRACES)


class _Blocks(Dumper):
    """Each key and each item in a line of its own."""


def _in_blocks(dumper: yaml.SafeDumper, items: dict[str, Any]) -> yaml.MappingNode:
    return dumper.represent_mapping("tag:yaml.org,2002:map", items, flow_style=False)


def _list_in_blocks(dumper: yaml.SafeDumper, items: list[Any]) -> yaml.SequenceNode:
    return dumper.represent_sequence("tag:yaml.org,2002:seq", items, flow_style=False)


_Blocks.add_representer(dict, _in_blocks)
_Blocks.add_representer(list, _list_in_blocks)

"""Field checks: refuses an expression in CEL that reads a field which a custom kind does not have.

The API server compiles expressions when they are applied, but does not compare them with the schema of a custom kind: a
misspelt field would then refuse every write.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, NoReturn, TypeAlias

from bonny.api.markers import PRESERVE_UNKNOWN
from bonny.errors import OptionError
from bonny.kinds import Kind
from bonny.resource import Resource

OF_EVERY_OBJECT: Final = ("apiVersion", "kind", "metadata")

_STRING: Final = re.compile(r"""[rR]?("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')""")
# A chain of fields; a function call is none.
_CHAIN: Final = re.compile(r"(?<![\w.])(object|oldObject|params)((?:\.\??[A-Za-z_]\w*(?![\w(]))+)")

Schemas: TypeAlias = Mapping[tuple[str, str, str], Resource]
"""Schemas by group, kind and version."""


def schemas_of(definitions: Iterable[Resource]) -> Schemas:
    """The schemas in CustomResourceDefinitions."""
    return {
        (definition["spec"]["group"], definition["spec"]["names"]["kind"], version["name"]): version["schema"][
            "openAPIV3Schema"
        ]
        for definition in definitions
        for version in definition["spec"]["versions"]
    }


def check_fields(
    owner: str,
    expressions: Iterable[str],
    kind: Kind,
    schemas: Schemas,
    roots: tuple[str, ...] = ("object", "oldObject"),
) -> None:
    """Look up the fields below `roots` in the schema of `kind`, if there is one. `owner` begins the message.

    Raises: `OptionError` for the first field that does not exist.
    """
    schema = schemas.get((kind.group, kind.kind, kind.version))
    if schema is None:
        return
    for expression in expressions:
        for root, chain in _CHAIN.findall(without_strings(expression)):
            if root in roots:
                _check_chain(owner, kind, schema, root, chain.replace("?", "").split(".")[1:])


def without_strings(expression: str) -> str:
    """The expression with empty texts in it."""
    return _STRING.sub("''", expression)


def refuse(owner: str, problem: str) -> NoReturn:
    """Raises: `OptionError` about the class `owner`."""
    raise OptionError(f"{owner} {problem}")


def _check_chain(owner: str, kind: Kind, schema: Resource, root: str, names: list[str]) -> None:
    node: Any = {**schema, "properties": {**schema["properties"], **{name: {} for name in OF_EVERY_OBJECT}}}
    for number, name in enumerate(names):
        fields = node.get("properties")
        # A mapping, a value without a type and metadata have no fields in the schema.
        if not fields or PRESERVE_UNKNOWN in node or name.startswith("__"):
            return
        if name not in fields:
            (meant,) = difflib.get_close_matches(name, fields, 1) or [""]
            path = ".".join([root, *names[: number + 1]])
            refuse(
                owner,
                f"reads {path}, and {kind.kind} {kind.api_version} has no such field: "
                + (f"did you mean {meant!r}?" if meant else f"it has {', '.join(sorted(fields))}"),
            )
        node = fields[name]

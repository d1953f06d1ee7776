"""Patterns: makes models match text as the API server does.

The API server matches with Go's regexp, pydantic with Rust's regex. They differ in `\\d`, `\\s` and `\\w`, which are
ASCII in Go and Unicode in Rust. The schema keeps a pattern as it was written; the model gets a translation.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any, Final

from pydantic_core import SchemaError, SchemaValidator, core_schema

from ..errors import OptionError

WRITTEN: Final = "bonny_pattern"
"""The key of a core schema's metadata with the pattern that its field was declared with."""

# https://github.com/google/re2/wiki/Syntax
_ASCII: Final = {
    r"\d": "[0-9]",
    r"\D": "[^0-9]",
    r"\s": r"[\t\n\f\r ]",
    r"\S": r"[^\t\n\f\r ]",
    r"\w": "[0-9A-Za-z_]",
    r"\W": "[^0-9A-Za-z_]",
}


def match_as_the_server(schema: Any, where: str) -> None:
    """Change the core schema of a model: translate its patterns; the pattern of an `IntOrString` checks text alone.

    Nested models are left out: they have been changed already. Raises: `OptionError` for a pattern that is not one.
    """
    for name, child in schema.items() if isinstance(schema, dict) else enumerate(schema):
        if name == "default" and schema.get("type") == "default":
            continue  # a value of the user's
        if isinstance(child, dict) and child.get("type") == "model":
            continue
        if isinstance(child, dict) and child.get("type") == "chain":
            child["steps"] = [_on_text_alone(step) for step in child["steps"]]
        if isinstance(child, dict) and child.get("type") == "str" and isinstance(child.get("pattern"), str):
            _translate(child, where)
        elif isinstance(child, dict | list | tuple):
            match_as_the_server(child, where)


def _on_text_alone(step: Any) -> Any:
    """A step that pydantic made of a pattern on a type other than str, without its `TypeError` for numbers."""
    if step["type"] != "function-wrap" or step["schema"]["type"] != "str":
        return step
    written = core_schema.simple_ser_schema("any")  # as the value is: numbers, too
    return core_schema.no_info_wrap_validator_function(_text_alone, step["schema"], serialization=written)


def _text_alone(value: Any, check: Callable[[Any], Any]) -> Any:
    if isinstance(value, str):
        check(value)
    return value


def _translate(schema: dict[str, Any], where: str) -> None:
    pattern = schema["pattern"]
    try:
        compiled(pattern)
    except SchemaError as error:
        reason = str(error).rpartition("error: ")[2]
        raise OptionError(
            f"{where}: the pattern {pattern!r} cannot be matched by the API server ({reason}): write it without "
            "look-around and references to groups, which Go does not have, or as a Rule"
        ) from None
    schema["pattern"] = _translated(pattern)
    schema["metadata"] = {WRITTEN: pattern, **schema.get("metadata", {})}  # of a schema that is used again, the first


def _translated(pattern: str) -> str:
    return re.sub(r"\\.", lambda escape: _ASCII.get(escape[0], escape[0]), pattern, flags=re.DOTALL)


@cache
def compiled(pattern: str) -> SchemaValidator:
    """A matcher of `pattern` as Go reads it. Raises: `SchemaError` for a pattern that only Go reads."""
    return SchemaValidator(core_schema.str_schema(pattern=_translated(pattern)))

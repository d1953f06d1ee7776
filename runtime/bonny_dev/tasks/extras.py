"""Extras: adds the optional dependency of webhooks to the pyproject.toml of a repository.

Only lines as the template writes them are extended; where there are none, a sentence says what to add.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from typing import Any, Final, NamedTuple

CRYPTOGRAPHY: Final = '"cryptography>=46,<51"'


class _Edit(NamedTuple):
    """A line to add: whether it is there, where it goes, the line, and the same in words."""

    is_there: Callable[[dict[str, Any]], bool]
    after: re.Pattern[str]
    line: str
    words: str


def _optional(table: dict[str, Any]) -> dict[str, list[str]]:
    optional: dict[str, list[str]] = table.get("project", {}).get("optional-dependencies", {})
    return optional


WEBHOOKS: Final = (
    _Edit(
        lambda table: any(each.startswith("cryptography") for each in _optional(table).get("dev", ())),
        re.compile(r"^dev = \[\n", re.MULTILINE),
        f"    {CRYPTOGRAPHY},  # certificates of webhooks in tests and in the sandbox\n",
        f"{CRYPTOGRAPHY} to the extra dev",
    ),
    _Edit(
        lambda table: "webhooks" in _optional(table),
        re.compile(r"^dev = \[\n.*?^\]\n", re.MULTILINE | re.DOTALL),
        f"webhooks = [{CRYPTOGRAPHY}]  # their certificates, unless cert-manager makes them\n",
        f"webhooks = [{CRYPTOGRAPHY}] to [project.optional-dependencies]",
    ),
    _Edit(
        lambda table: "webhooks" in table.get("tool", {}).get("bonny", {}).get("extras", ()),
        re.compile(r"^\[tool\.bonny\]\n(?:[^\[\n].*\n)*?extras = \[", re.MULTILINE),
        '"webhooks", ',
        'extras = ["webhooks"] to [tool.bonny]',
    ),
)


def with_webhooks(text: str) -> tuple[str, list[str]]:
    """A pyproject.toml with the extra `webhooks`, which `invoke lock` then puts into the image, and what is left to do.

    Raises: `ValueError` for a text that is not TOML.
    """
    left = []
    for edit in WEBHOOKS:
        if not edit.is_there(tomllib.loads(text)):
            text = edit.after.sub(rf"\g<0>{edit.line}", text, count=1)
        if not edit.is_there(tomllib.loads(text)):
            left.append(f"Next: add {edit.words} in pyproject.toml.")
    return text, left

"""Version: the version of a Python distribution as that of a chart or a bundle, which are semantic versions."""

from __future__ import annotations

import re
from typing import Final

from bonny.errors import UsageError

# The versions of PEP 440 that have an equal among semantic versions; the longest word first.
VERSION: Final = re.compile(r"(\d+(?:\.\d+){0,2})(?:[-.]?(alpha|beta|rc|dev|a|b)\.?(\d+))?")


def semantic(version: str) -> str:
    """`1.2.0` for 1.2, `1.2.0-rc.1` for 1.2rc1. Raises: `UsageError` for a version without an equal."""
    match = VERSION.fullmatch(version)
    if match is None:
        raise UsageError(
            f"the version {version} in pyproject.toml is not one that a chart or a bundle can have: write "
            "1.2.3 or 1.2.3rc1, for example"
        )
    numbers = [str(int(number)) for number in match[1].split(".")]
    release = ".".join([*numbers, "0", "0"][:3])
    return f"{release}-{match[2]}.{int(match[3])}" if match[2] else release

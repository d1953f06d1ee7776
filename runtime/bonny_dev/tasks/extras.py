"""Extras: adds the extra `webhooks` to the extras of the image in the pyproject.toml of a repository.

Only a line as the template writes it is extended; for everything else a sentence says what to add.
"""

from __future__ import annotations

import re
import tomllib
from typing import Final

PROJECT: Final = "pyproject.toml"
CRYPTOGRAPHY: Final = '"cryptography>=46,<51"'
_EXTRAS: Final = re.compile(r"^\[tool\.bonny\]\n(?:[^\[\n].*\n)*?extras = \[", re.MULTILINE)


def with_webhooks(text: str) -> tuple[str, list[str]]:
    """A pyproject.toml with the extra `webhooks`, which `invoke lock` then puts into the image, and what is left to do.

    Raises: `ValueError` for a text that is not TOML.
    """
    table, left = tomllib.loads(text), []
    if "webhooks" not in table["project"].get("optional-dependencies", {}):
        line = f"webhooks = [{CRYPTOGRAPHY}]"
        left.append(f"Next: add {line} to [project.optional-dependencies] in pyproject.toml, and the package to dev.")
    if "webhooks" not in table["tool"]["bonny"].get("extras", ()):
        text, found = _EXTRAS.subn(r'\g<0>"webhooks", ', text, count=1)
        left += [] if found else ['Next: add extras = ["webhooks"] to [tool.bonny] in pyproject.toml.']
    return text, left

"""Pyproject: adds what a repository needs to the lists in its pyproject.toml.

Only a line as the template writes it is extended; for everything else a sentence says what to add.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from typing import Final

from bonny.errors import UsageError

PROJECT: Final = "pyproject.toml"
CRYPTOGRAPHY: Final = '"cryptography>=46,<51"'
_DEPENDENCIES: Final = re.compile(r"^dependencies = \[$", re.MULTILINE)
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


def with_requirements(text: str, requirements: Sequence[str]) -> tuple[str, list[str]]:
    """Add the requirements whose packages are not among the dependencies; another specifier is the user's decision."""
    try:
        dependencies = tomllib.loads(text).get("project", {}).get("dependencies", [])
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"pyproject.toml is not valid TOML ({error}): correct it and try again") from error
    asked, wanted = ({normal_name(line): line for line in lines} for lines in (dependencies, requirements))
    differing = [(asked[name], line) for name, line in wanted.items() if asked.get(name, line) != line]
    left = [f"it asks for {theirs}, and the runtime for {line}" for theirs, line in differing]
    missing = [line for name, line in wanted.items() if name not in asked]
    added = "".join(f'\n    "{line}",' for line in missing)
    text, found = _DEPENDENCIES.subn(lambda match: match[0] + added, text, count=1)
    if missing and not found:
        left.append(f"add {', '.join(missing)} to the dependencies")
    return text, left


def normal_name(requirement: str) -> str:
    """The name of a requirement, as `PyYAML` and `pyyaml` are compared (Python packaging, "Name normalization")."""
    name = re.split(r"[^\w.-]", requirement.strip(), maxsplit=1)[0]
    return re.sub(r"[-_.]+", "-", name).lower()

"""Pyproject: adds requirements to the lists in the pyproject.toml of a repository.

Only a line as the template writes it is extended; for everything else a sentence names the line to add.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from typing import Any, Final

from bonny.errors import UsageError

PROJECT: Final = "pyproject.toml"
FAST: Final = "fast"
"""The extra that developers do without: it changes no behaviour."""

_OPTIONAL: Final = re.compile(r"^\[project\.optional-dependencies\]\n", re.MULTILINE)
_DEV: Final = re.compile(r"^dev = \[\n", re.MULTILINE)
_DEPENDENCIES: Final = re.compile(r"^dependencies = \[$", re.MULTILINE)
_EXTRAS: Final = re.compile(r"^\[tool\.bonny\]\n(?:[^\[\n].*\n)*?extras = \[", re.MULTILINE)


def with_extra(text: str, name: str, packages: Sequence[str]) -> str:
    """A pyproject.toml that lists the extra in [tool.bonny], and its packages as an optional dependency and in `dev`.

    Raises: `UsageError` for a text that is not TOML, or that lacks one of these places.
    """
    project = _parsed(text)
    optional = project.get("project", {}).get("optional-dependencies", {})
    if packages and name not in optional:
        text = _inserted(text, _OPTIONAL, f"{_line(name, packages)}\n", "[project.optional-dependencies]")
    there = {normal_name(each) for each in optional.get("dev", ())}
    more = [each for each in packages if normal_name(each) not in there and name != FAST]
    if more:
        text = _inserted(text, _DEV, "".join(_for_dev(name, each) for each in more), "dev = [")
    if name not in project.get("tool", {}).get("bonny", {}).get("extras", ()):
        text = _inserted(text, _EXTRAS, f'"{name}", ', "extras = [ in [tool.bonny]").replace(
            f'"{name}", ]', f'"{name}"]'
        )
    return text


def without_extra(text: str, name: str, packages: Sequence[str]) -> str:
    """A pyproject.toml without the lines that `with_extra` writes; others stay."""
    text = text.replace(f"{_line(name, packages)}\n", "")
    for each in packages:
        text = text.replace(_for_dev(name, each), "")
    before, after = f'"{name}"', _EXTRAS.search(text)
    if after is None:
        raise UsageError(f"pyproject.toml has no extras = [...] in [tool.bonny]: remove {before} there by hand")
    end = text.index("]", after.end())
    names = [each for each in re.findall(r'"[^"]*"', text[after.end() : end]) if each != before]
    return text[: after.end()] + ", ".join(names) + text[end:]


def _line(name: str, packages: Sequence[str]) -> str:
    return f"{name} = [{', '.join(f'{chr(34)}{each}{chr(34)}' for each in packages)}]"


def _for_dev(name: str, package: str) -> str:
    return f'    "{package}",  # the extra {name}\n'


def _inserted(text: str, place: re.Pattern[str], more: str, what: str) -> str:
    text, found = place.subn(lambda match: match[0] + more, text, count=1)
    if not found:
        raise UsageError(f"pyproject.toml has no {what}: add it as the template has it, and try again")
    return text


def _parsed(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"pyproject.toml is not valid TOML ({error}): correct it and try again") from error


def with_requirements(text: str, requirements: Sequence[str]) -> tuple[str, list[str]]:
    """Add the requirements whose packages are not among the dependencies; another specifier is the user's decision."""
    dependencies = _parsed(text).get("project", {}).get("dependencies", [])
    asked, wanted = ({normal_name(line): line for line in lines} for lines in (dependencies, requirements))
    differing = [(asked[name], line) for name, line in wanted.items() if asked.get(name, line) != line]
    left = [f"it requires {theirs}, and the runtime {line}" for theirs, line in differing]
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

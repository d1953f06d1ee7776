"""Carry over: edits a repository whose files refer to the vendored packages as a former version had them.

Until 0.1 there was one package: `bonny.tasks`, `bonny.testing` and others are in `bonny_dev` now. Only text that the
template or a generator wrote is replaced; where it was changed too much, a sentence names the line to edit.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from bonny.errors import UsageError

MOVED: Final = ("manifest", "sandbox", "tasks", "testing")
DOTTED: Final = re.compile(rf"(?<![\w./])bonny\.(?=(?:{'|'.join(MOVED)})\b)")
IMPORTS: Final = re.compile(r"^(?P<indent>[ \t]*)from bonny import (?P<names>[\w, ]+)(?P<end>\r?)$", re.MULTILINE)
# With brackets or a comment.
OTHER_IMPORTS: Final = re.compile(rf"^[ \t]*from bonny import (?:\([^)]*|[^(\n]*)\b({'|'.join(MOVED)})\b", re.MULTILINE)
# By file: what the template wrote, and what it writes now.
LINES: Final = {
    ".gitattributes": ("vendor/bonny/** -text", "vendor/bonny/** -text\nvendor/bonny_dev/** -text"),
    ".dockerignore": ("!vendor", "!vendor/bonny"),
    "Dockerfile": ("COPY vendor vendor", "COPY vendor/bonny vendor/bonny"),
    ".github/workflows/ci.yml": (
        "key: control-plane-${{ runner.os }}-${{ hashFiles('vendor/bonny/sandbox/**') }}",
        "key: control-plane-${{ runner.os }}-${{ hashFiles('vendor/bonny_dev/sandbox/**') }}",
    ),
    ".gitlab-ci.yml": ("files: [vendor/bonny/sandbox/versions.py]", "files: [vendor/bonny_dev/sandbox/versions.py]"),
}
NAME: Final = re.compile(r"[\w.-]+")
DEPENDENCIES: Final = re.compile(r"^dependencies = \[$", re.MULTILINE)


class Carried(NamedTuple):
    """The new texts by file, and a sentence for each thing that is left to do by hand."""

    texts: Mapping[str, str]
    left: tuple[str, ...]


def carry_over(root: Path, requirements: Sequence[str]) -> Carried:
    """The edits that the repository at `root` needs for two packages that need `requirements`; writes nothing.

    Raises: `UsageError` when one of the files cannot be read.
    """
    texts: dict[str, str] = {}
    left: list[str] = []
    for name, text in _texts(root):
        if name == "pyproject.toml":
            new, sentences = _with_requirements(text, requirements)
        elif name in LINES:
            new, sentences = _with_line(text, *LINES[name]), []
        else:
            new, sentences = _with_imports(text)
        if new != text:
            texts[name] = new
        left += [f"{name}: {sentence}" for sentence in sentences]
    return Carried(texts, tuple(left))


def _texts(root: Path) -> Iterator[tuple[str, str]]:
    """The files that may have to be edited, with their line endings as they are."""
    paths = [root / name for name in ("pyproject.toml", *LINES, "tasks.py")]
    for path in (*paths, *sorted(root.glob("tests/**/*.py"))):
        if path.is_file():
            try:
                yield path.relative_to(root).as_posix(), path.read_bytes().decode("utf-8")
            except UnicodeDecodeError as error:
                raise UsageError(f"{path} is not UTF-8 ({error}): correct it and try again") from error


def _with_line(text: str, old: str, new: str) -> str:
    """`text` with the line `old` replaced, unless `new` is there already."""
    return text if new in text else re.sub(rf"(?m)^(\s*){re.escape(old)}(?=\s*$)", rf"\g<1>{new}", text)


def _with_imports(text: str) -> tuple[str, list[str]]:
    """Name `bonny_dev` where `text` names a part of `bonny` that is there now."""
    new = IMPORTS.sub(_two_imports, DOTTED.sub("bonny_dev.", text))
    return new, [f"import {match[1]} from bonny_dev, not from bonny" for match in OTHER_IMPORTS.finditer(new)]


def _two_imports(match: re.Match[str]) -> str:
    """`from bonny import Axn, testing` in two lines, one for each package."""
    names = [name.strip() for name in match["names"].split(",")]
    moved = [name for name in names if name.partition(" ")[0] in MOVED]
    if not moved:
        return match[0]
    lines = {"bonny": [name for name in names if name not in moved], "bonny_dev": moved}
    return (
        f"{match['end']}\n".join(
            f"{match['indent']}from {package} import {', '.join(names)}" for package, names in lines.items() if names
        )
        + match["end"]
    )


def _with_requirements(text: str, requirements: Sequence[str]) -> tuple[str, list[str]]:
    """Add the requirements whose packages are not among the dependencies; another specifier is the user's decision."""
    try:
        dependencies = tomllib.loads(text).get("project", {}).get("dependencies", [])
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"pyproject.toml is not valid TOML ({error}): correct it and try again") from error
    asked = {_name(line): line for line in dependencies}
    missing = [line for line in requirements if _name(line) not in asked]
    left = [
        f"it asks for {asked[_name(line)]}, and the runtime for {line}"
        for line in requirements
        if asked.get(_name(line), line) != line
    ]
    if not missing:
        return text, left
    if not DEPENDENCIES.search(text):
        return text, [*left, f"add {', '.join(missing)} to the dependencies"]
    lines = "".join(f'\n    "{line}",' for line in missing)
    return DEPENDENCIES.sub(lambda match: match[0] + lines, text, count=1), left


def _name(requirement: str) -> str:
    match = NAME.match(requirement)
    return re.sub(r"[-_.]+", "-", match[0]).lower() if match else requirement

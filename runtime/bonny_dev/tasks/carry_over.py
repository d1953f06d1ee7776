"""Carry over: edits a repository whose files refer to the vendored packages as a former version had them.

Until 0.1 there was one package: `bonny.tasks`, `bonny.testing` and others are in `bonny_dev` now. Only text that the
template or a generator wrote is replaced; `bonny` forwards what else names them, and warns with the new name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from bonny.errors import UsageError

from .pyproject import PROJECT, with_requirements

FILES: Final = (PROJECT, ".gitattributes", ".dockerignore", "Dockerfile", ".github/workflows/ci.yml", ".gitlab-ci.yml",
                "tasks.py", "tests/**/*.py")  # fmt: skip
# The text that the template wrote, and the text that it writes now.
EDITS: Final = {
    r"(?<![\w.])bonny([./])(?=(?:manifest|sandbox|tasks|testing)\b)": r"bonny_dev\1",
    r"^([ \t]*)from bonny import (.+), (testing\b.*?)(\r?)$": r"\1from bonny import \2\4\n\1from bonny_dev import \3\4",
    r"^([ \t]*)from bonny import testing\b": r"\1from bonny_dev import testing",
    r"^vendor/bonny/\*\* -text$(?!\nvendor/bonny_dev/)": "vendor/bonny/** -text\nvendor/bonny_dev/** -text",
    r"^!vendor$": "!vendor/bonny",
    r"^COPY vendor vendor$": "COPY vendor/bonny vendor/bonny",
}


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
    for path in (path for name in FILES for path in sorted(root.glob(name)) if path.is_file()):
        before = text = _text(path)
        if path.name == PROJECT:
            text, left = with_requirements(before, requirements)
        else:
            for former, now in EDITS.items():
                text = re.sub(former, now, text, flags=re.MULTILINE)
        if text != before:
            texts[path.relative_to(root).as_posix()] = text
    return Carried(texts, tuple(f"{PROJECT}: {sentence}" for sentence in left))


def _text(path: Path) -> str:
    """With the line endings as they are."""
    try:
        return path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 ({error}): correct it and try again") from error

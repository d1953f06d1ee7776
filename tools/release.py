"""Release: moves the notes of CHANGELOG.md below their version, commits that, and makes the tag.

    python -m tools.release [--version 0.2.0] [--dry-run]

The version stands in one place, `__version__` in `runtime/bonny/__init__.py`; rendered repositories, their wheel and
`invoke update-runtime` read it there. Nothing is pushed. A release that is refused changes nothing, and ends with one
sentence and exit code 2.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Final

__all__ = ["Refused", "Release", "carry_out", "main", "planned"]

ROOT: Final = Path(__file__).resolve().parent.parent
PLACE: Final = "runtime/bonny/__init__.py"
CHANGELOG: Final = "CHANGELOG.md"
UNRELEASED: Final = "## [Unreleased]\n"
NUMBERS: Final = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)")
CURRENT: Final = re.compile(r'^__version__ = "([^"]*)"$', re.MULTILINE)
ENTRY: Final = re.compile(r"^[-*] ", re.MULTILINE)


class Refused(Exception):
    """The release cannot be made. The text is one sentence with the reason and the remedy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """A release: the version, its notes, and both files as they will be."""

    version: str
    notes: str
    code: str
    changelog: str

    @property
    def tag(self) -> str:
        return f"v{self.version}"


def _git(root: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Refused(f"git {words[0]} failed: {' '.join((done.stderr or done.stdout).split())}")
    return done.stdout


def _order(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def planned(root: Path, version: str | None, *, today: date) -> Release:
    """The release of the work tree at `root`; without a version that of the code. Raises: Refused."""
    if _git(root, "status", "--porcelain"):
        raise Refused("the work tree has changes that are not committed: commit or remove them (`git status`)")
    code = (root / PLACE).read_text("utf-8")
    found = CURRENT.search(code)
    if found is None:
        raise Refused(f'{PLACE} has no line `__version__ = "..."`: add it')
    new = version or found[1]
    if not NUMBERS.fullmatch(new):
        raise Refused(f"{new!r} is not a version: use three numbers, for example 0.2.0")
    tagged = [tag[1:] for tag in _git(root, "tag", "--list", "v*").split() if NUMBERS.fullmatch(tag[1:])]
    last = max(tagged, key=_order, default="")
    if last and _order(new) <= _order(last):
        raise Refused(f"{new} is not newer than the last release, {last}: choose a newer one with --version")
    changelog = (root / CHANGELOG).read_text("utf-8")
    before, mark, rest = changelog.partition(UNRELEASED)
    section, heading, older = rest.partition("\n## ")
    notes = section.strip("\n")
    if not mark or not ENTRY.search(notes):
        raise Refused(f"{CHANGELOG} has no entries below [Unreleased]: add the changes that users notice")
    dated = f"{before}{UNRELEASED}\n## [{new}] - {today.isoformat()}\n\n{notes}\n{heading}{older}"
    return Release(version=new, notes=notes, code=CURRENT.sub(f'__version__ = "{new}"', code, count=1), changelog=dated)


def carry_out(root: Path, release: Release) -> None:
    """Write both files, commit them, and make the tag with the notes. Raises: Refused; then the files are as before."""
    names = (PLACE, CHANGELOG)
    before = {name: (root / name).read_text("utf-8") for name in names}
    try:
        for name, text in zip(names, (release.code, release.changelog), strict=True):
            (root / name).write_text(text, "utf-8")
        _git(root, "add", *names)
        _git(root, "commit", "--quiet", "--message", f"build: release {release.version}")
    except Refused:
        for name, text in before.items():
            (root / name).write_text(text, "utf-8")
        _git(root, "add", *names)
        raise
    # `verbatim`: the headings of the notes begin with the sign of a comment.
    message = f"{release.version}\n\n{release.notes}\n"
    _git(root, "tag", "--annotate", "--cleanup=verbatim", "--message", message, release.tag)


def main(arguments: list[str], root: Path = ROOT) -> int:
    parser = argparse.ArgumentParser(description="Make a release of this repository.")
    parser.add_argument("--version", help="three numbers; without it that of the code")
    parser.add_argument("--dry-run", action="store_true", help="print the release, and change nothing")
    given = parser.parse_args(arguments)
    try:
        release = planned(root, given.version, today=datetime.now(UTC).date())
        if not given.dry_run:
            carry_out(root, release)
    except Refused as refused:
        print(refused, file=sys.stderr)
        return 2
    would = "would be" if given.dry_run else "is"
    print(f"{PLACE} {would} at version {release.version}")
    print(f"{CHANGELOG} {would} changed: the notes below move to {release.version}, and [Unreleased] is empty")
    print(f"a commit with both {would} made, and the tag {release.tag} with the notes")
    if given.dry_run:
        print("nothing was changed")
    else:
        print(f"to publish it: git push --atomic origin HEAD {release.tag}")
        print(f"for Windows: `invoke archive --ref {release.tag}` writes a zip; attach it to the release")
    print(f"\n{release.notes}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

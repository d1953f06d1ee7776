"""Update: replaces vendor/bonny, in one step, by the runtime of another version of the template.

`vendor/bonny/CHECKSUMS` says what the template delivered, as `sha256sum --check` reads it; what differs was edited.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import re
import secrets
import shutil
import subprocess
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from bonny.errors import UsageError

__all__ = ["CHECKSUMS", "Report", "checksums", "update_runtime"]

CHECKSUMS: Final = "CHECKSUMS"
CACHES: Final = ("__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache")
# Those that cookiecutter and cruft know.
ABBREVIATIONS: Final = {"gh": "https://github.com", "gl": "https://gitlab.com", "bb": "https://bitbucket.org"}
# renameat2(2)
AT_FDCWD: Final = -100
RENAME_EXCHANGE: Final = 2


class Kept(NamedTuple):
    """A file that was edited here and stays; `changed` when the new version has another text for it, too."""

    name: str
    changed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What was done: the version before and after, where it comes from, what was kept, and what is new."""

    before: str
    after: str
    origin: str
    kept: tuple[Kept, ...]
    changelog: str


class _Runtime(NamedTuple):
    """A runtime to take over, the changelog of its template, and its origin for people."""

    folder: Path
    changelog: str
    origin: str


def update_runtime(root: Path, *, ref: str = "", origin: str = "", force: bool = False) -> Report:
    """Replace the runtime of the repository at `root`.

    `origin` is the folder or the URL of the template (default: what .cruft.json or [tool.bonny] records). `ref` is a
    tag, a branch or a commit; by default a folder is taken as it is, and of a URL its newest tag. `force` also replaces
    what was edited here.
    Guarantees: after any failure vendor/bonny is whole: the old one or the new one. On Linux after a kill, too; where
    the system cannot let two folders change places (renameat2), a kill between two renames leaves the old one beside
    its place, as vendor/.bonny-...-old.
    Raises: `UsageError` when one of the two is no runtime, or cannot be read or written; when git fails.
    """
    vendored = root / "vendor" / "bonny"
    if vendored.is_symlink() or not (vendored / "__init__.py").is_file():
        raise UsageError(f"{vendored} is not a vendored runtime: render the template anew, or restore it from git")
    recorded = _recorded(vendored)
    if not recorded and not force:
        raise UsageError(
            f"{vendored / CHECKSUMS} is missing, so it cannot be told what was edited: with --force all is replaced"
        )
    present = checksums(vendored)
    edited = [] if force else [name for name, found in present.items() if recorded.get(name) != found]
    with _fetched(root, ref=ref, origin=origin) as new:
        if not (new.folder / "__init__.py").is_file():
            raise UsageError(f"{new.origin} has no runtime/bonny: name the template's own folder or URL by --from")
        delivered = checksums(new.folder)
        before = _version(vendored)
        try:
            _replace(vendored, new.folder, delivered, edited)
        except OSError as error:
            # copytree goes on after an error and tells all of them; the first says enough.
            why = error.args[0][0][-1] if isinstance(error, shutil.Error) else error
            raise UsageError(f"vendor/bonny could not be replaced and is as before ({why})") from error
        return Report(
            before=before,
            after=_version(vendored),
            origin=new.origin,
            kept=tuple(Kept(name, delivered.get(name) != recorded.get(name)) for name in edited),
            changelog=_news(new.changelog, before=before, after=_version(new.folder)),
        )


def checksums(folder: Path) -> dict[str, str]:
    """SHA-256 of every file, by its path within `folder`; without caches and the list itself.

    A checkout with core.autocrlf edits nothing: its line endings count as those that were delivered.
    """
    found = (path for path in sorted(folder.rglob("*")) if path.is_file() and not set(CACHES) & set(path.parts))
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes().replace(b"\r\n", b"\n")).hexdigest()
        for path in found
        if path != folder / CHECKSUMS
    }


def _recorded(vendored: Path) -> dict[str, str]:
    path = vendored / CHECKSUMS
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    return {name: found for found, _, name in (line.partition("  ") for line in lines)}


def _replace(vendored: Path, new: Path, delivered: Mapping[str, str], kept: list[str]) -> None:
    """Build the whole folder beside the old one, and let them change places."""
    for stale in vendored.parent.glob(".bonny-*"):  # of an update that was killed
        shutil.rmtree(stale)
    staged = vendored.with_name(f".bonny-{secrets.token_hex(4)}")
    try:
        shutil.copytree(new, staged, ignore=shutil.ignore_patterns(*CACHES))
        lines = [f"{found}  {name}\n" for name, found in delivered.items()]
        (staged / CHECKSUMS).write_text("".join(lines), encoding="utf-8", newline="\n")
        for name in kept:
            (staged / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(vendored / name, staged / name)
        _exchange(staged, vendored)
    finally:
        shutil.rmtree(staged, ignore_errors=True)


def _exchange(one: Path, other: Path) -> None:
    """Let two folders change places: on Linux in one step, elsewhere in three with nothing but renames."""
    rename = getattr(ctypes.CDLL(None), "renameat2", None) if os.name == "posix" else None
    if rename and not rename(AT_FDCWD, os.fsencode(one), AT_FDCWD, os.fsencode(other), RENAME_EXCHANGE):
        return
    aside = one.with_name(f"{one.name}-old")
    other.rename(aside)
    try:
        one.rename(other)
    except BaseException:
        aside.rename(other)
        raise
    aside.rename(one)


def _version(runtime: Path) -> str:
    found = re.search(r'^__version__ = "(.+)"$', (runtime / "__init__.py").read_text(encoding="utf-8"), re.MULTILINE)
    return found[1] if found else "unknown"


def _news(changelog: str, *, before: str, after: str) -> str:
    """The changelog's sections that are newer than `before`; going back, that of `after`."""
    sections = re.split(r"^(?=## )", changelog, flags=re.MULTILINE)[1:]
    names = [section.partition("]")[0].removeprefix("## [") for section in sections]
    if before in names:
        return "".join(sections[: names.index(before)]).rstrip()
    if before == after and names:  # before the first release
        return sections[0].rstrip()
    return "".join(section for name, section in zip(names, sections, strict=True) if name == after).rstrip()


# --- where it comes from ----------------------------------------------------------------------------------------------


@contextmanager
def _fetched(root: Path, *, ref: str, origin: str) -> Iterator[_Runtime]:
    origin = origin or _recorded_origin(root)
    name, _, rest = origin.partition(":")
    origin = f"{ABBREVIATIONS[name]}/{rest}.git" if name in ABBREVIATIONS else origin
    for what, text in (("--ref", ref), ("--from", origin)):
        if text.startswith("-"):
            raise UsageError(f"{what} is {text!r}: it cannot begin with a dash")
    folder = Path(origin).expanduser().absolute()
    if folder.is_dir() and not ref:
        changelog = folder / "CHANGELOG.md"
        text = changelog.read_text(encoding="utf-8") if changelog.is_file() else ""
        yield _Runtime(folder / "runtime" / "bonny", text, origin)
        return
    with tempfile.TemporaryDirectory(prefix="bonny-update-") as temporary:
        clone = Path(temporary)
        _git("clone", "--quiet", "--no-checkout", "--", str(folder) if folder.is_dir() else origin, str(clone))
        tags = _git("tag", "--list", "v*", "--sort=-version:refname", cwd=clone).split()
        # A release candidate is taken by those who name it.
        ref = ref or next((tag for tag in tags if re.fullmatch(r"v\d+(\.\d+)*", tag)), "HEAD")
        known = [name for name in (ref, f"origin/{ref}") if _git("rev-parse", "-q", "--verify", name, cwd=clone, ok=1)]
        if not known:
            raise UsageError(f"{_told(origin)} has no tag, branch or commit {ref!r}: name another one by --ref")
        # Nothing else is checked out: some systems do not allow the names of the template's folders.
        if _git("ls-tree", known[0], "runtime/bonny", cwd=clone):
            _git("checkout", "--quiet", known[0], "--", "runtime/bonny", cwd=clone)
        changelog_text = _git("show", f"{known[0]}:CHANGELOG.md", cwd=clone, ok=128)
        yield _Runtime(clone / "runtime" / "bonny", changelog_text, f"{ref} of {_told(origin)}")


def _recorded_origin(root: Path) -> str:
    """What cruft wrote down, or else the template itself."""
    try:
        if (root / ".cruft.json").is_file():
            return str(json.loads((root / ".cruft.json").read_text(encoding="utf-8"))["template"])
        return str(tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["bonny"]["template"])
    except (OSError, ValueError, KeyError, TypeError):
        raise UsageError(
            'where the template is was not recorded: say --from, or add template = "https://..." to [tool.bonny] in '
            "pyproject.toml"
        ) from None


def _told(text: str) -> str:
    """For people and logs: a URL of the template may hold a token."""
    return re.sub(r"(?<=://)[^/\s]*@", "", text)


def _git(*arguments: str, cwd: Path | None = None, ok: int = 0) -> str:
    """What git prints; nothing when it ends with the code `ok`. Raises: `UsageError` for every other code but 0."""
    try:
        # Delivered as the checksums say, whatever this machine does with line endings.
        command = ["git", "-c", "core.autocrlf=false", *arguments]
        done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise UsageError("git is not installed here: install it, or name a folder by --from and no --ref") from error
    if done.returncode not in (0, ok):
        why = (done.stderr.strip().splitlines() or ["it does not say why"])[-1]
        raise UsageError(f"git {arguments[0]} failed: {_told(why)}")
    return "" if done.returncode else done.stdout

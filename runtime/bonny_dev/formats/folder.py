"""Folder: writes generated files beside files that belong to the user, so that generating again keeps edits.

Generated files are replaced, and removed when they are no longer made. One that was edited is named, and nothing is
written. Files of the user are written once; until they are edited, they follow what is generated.
The file CHECKSUMS records what was written, as `sha256sum --check` reads it.
"""

from __future__ import annotations

import hashlib
import secrets
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from bonny.errors import UsageError

CHECKSUMS: Final = "CHECKSUMS"


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """The texts of files by their paths below the folder."""

    generated: Mapping[str, str]
    own: Mapping[str, str] = field(default_factory=dict)
    """Files that belong to the user once they are written."""

    def below(self, name: str) -> Folder:
        """The same files in a folder `name`."""
        generated, own = (
            {f"{name}/{path}": text for path, text in each.items()} for each in (self.generated, self.own)
        )
        return Folder(generated=generated, own=own)

    def __or__(self, other: Folder) -> Folder:
        return Folder(generated={**self.generated, **other.generated}, own={**self.own, **other.own})


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """The paths of files that were written, removed, or kept for the user."""

    changed: list[str]
    removed: list[str]
    kept: list[str]


def write(folder: Path, files: Folder, *, force: bool = False) -> Written:
    """Write `files` to `folder`, all or nothing. With `force`, edited generated files are replaced, too.

    Raises: `UsageError` naming generated files that were edited, or when the folder cannot be written; nothing changed.
    """
    try:
        return _write(folder, files, force=force)
    except OSError as error:
        raise UsageError(f"{folder} cannot be written ({error.strerror}): name another folder by --out") from None


def _write(folder: Path, files: Folder, *, force: bool) -> Written:
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file: name a folder by --out")
    recorded = _recorded(folder)
    there = {
        name: _checksum(path) for name in {*files.generated, *files.own, *recorded} if (path := folder / name).is_file()
    }
    stale = [name for name in recorded if name not in files.generated and name not in files.own]
    made = {
        name: hashlib.sha256(text.encode()).hexdigest() for name, text in (*files.generated.items(), *files.own.items())
    }
    edited = [
        name
        for name in (*files.generated, *stale)
        if name in there and there[name] not in (recorded.get(name), made.get(name))
    ]
    if edited and not force:
        names = ", ".join(sorted(edited))
        raise UsageError(
            f"{folder} was not written, because generated files were edited: {names}; move the changes to a file of "
            "your own or to Deploy(customize=...), or replace them with --force"
        )
    kept = [name for name in files.own if (name in recorded or name in there) and there.get(name) != recorded.get(name)]
    texts = {**files.generated, **{name: text for name, text in files.own.items() if name not in kept}}
    changed = [name for name in texts if there.get(name) != made[name]]
    removed = [name for name in stale if name in there]
    sums = {name: made[name] for name in texts} | {name: recorded.get(name, made[name]) for name in kept}
    listed = "".join(f"{checksum}  {name}\n" for name, checksum in sorted(sums.items()))
    _replace(folder, {name: texts[name] for name in changed} | {CHECKSUMS: listed}, removed)
    return Written(changed=changed, removed=removed, kept=[name for name in kept if name in there])


def _recorded(folder: Path) -> dict[str, str]:
    path = folder / CHECKSUMS
    if not path.is_file():
        return {}
    lines = (line.partition("  ") for line in path.read_text("utf-8").splitlines())
    return {name: checksum for checksum, _, name in lines if name and ".." not in name and not name.startswith("/")}


def _checksum(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _replace(folder: Path, texts: Mapping[str, str], removed: list[str]) -> None:
    """Change a copy of the folder, and let it take the folder's place."""
    mark = secrets.token_hex(4)
    new, old = folder.with_name(f".{folder.name}.{mark}.new"), folder.with_name(f".{folder.name}.{mark}.old")
    try:
        if folder.exists():
            shutil.copytree(folder, new, symlinks=True)
        for name, text in texts.items():
            (new / name).parent.mkdir(parents=True, exist_ok=True)
            (new / name).write_text(text, encoding="utf-8", newline="\n")
        for name in removed:
            (new / name).unlink()
            _remove_empty((new / name).parent, new)
        if folder.exists():
            folder.rename(old)
        try:
            new.rename(folder)
        except BaseException:
            if old.exists():
                old.rename(folder)
            raise
    finally:
        shutil.rmtree(new, ignore_errors=True)
        if folder.exists():
            shutil.rmtree(old, ignore_errors=True)


def _remove_empty(folder: Path, top: Path) -> None:
    """Remove a folder below `top` and those above it while they are empty."""
    while folder != top and not any(folder.iterdir()):
        folder.rmdir()
        folder = folder.parent

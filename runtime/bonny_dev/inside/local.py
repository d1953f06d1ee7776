"""Local: where the console of this project's `run-local` answers, for `why`, `console` and `top` in another terminal.

`run-local` writes that to `.sandbox/run-local`, which only its user can read, and holds a lock on the file as long as
it runs: so a file that a killed process left is recognised. It is used for the cluster of that run alone.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

from ..sandbox.commands import project_folder
from ..sandbox.lock import try_lock

NAME: Final = "run-local"


class Answering(NamedTuple):
    """A console on this machine, and the API server of its operator."""

    url: str
    token: str
    server: str


@contextmanager
def announced(root: Path, console: Answering) -> Iterator[None]:
    """Let other processes find the console meanwhile; not if a `run-local` of the same project is found already."""
    file = project_folder(root) / NAME
    lock = try_lock(file)
    if lock is None:
        yield
        return
    try:
        os.fchmod(lock, 0o600)
        os.ftruncate(lock, 0)
        os.write(lock, json.dumps(console._asdict()).encode())
        yield
    finally:
        file.unlink(missing_ok=True)
        os.close(lock)


def answering(root: Path, server: str) -> Answering | None:
    """The console of the `run-local` of this project that works with this API server."""
    file = root / ".sandbox" / NAME
    with suppress(OSError, ValueError, TypeError):  # it starts or ends just now, or belongs to another user
        found = Answering(**json.loads(file.read_text("utf-8")))
        lock = try_lock(file)
        if lock is None:
            return found if found.server == server else None
        file.unlink()
        os.close(lock)
    return None

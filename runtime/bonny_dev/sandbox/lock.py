"""Lock: lets one process at a time do something, and is released by the kernel when that process ends in any way."""

from __future__ import annotations

import os
from pathlib import Path

from bonny.errors import UsageError


def try_lock(path: Path) -> int | None:
    """The descriptor of the locked file, to be closed to release it; None when another process holds it.

    Raises: `UsageError` on Windows, where the rest of a sandbox does not run either.
    """
    try:
        import fcntl  # noqa: PLC0415  the other tasks work there
    except ModuleNotFoundError:
        raise UsageError("a sandbox needs Linux or macOS: on Windows use WSL2 or the dev container") from None
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor

"""Lock: lets one process at a time do something, and is released by the kernel when that process ends in any way."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

POLL_SECONDS: Final = 0.1


def try_lock(path: Path) -> int | None:
    """The descriptor of the locked file, to be closed to release it; None when another process holds it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


@contextmanager
def held(path: Path, *, while_waiting: Callable[[float], None]) -> Iterator[None]:
    """Wait for the lock, hold it for the block; `while_waiting` is called with the seconds waited so far, often."""
    began = time.monotonic()
    while (descriptor := try_lock(path)) is None:
        while_waiting(time.monotonic() - began)
        time.sleep(POLL_SECONDS)
    try:
        yield
    finally:
        os.close(descriptor)

"""Files: writes a file as a whole: readers see the former text or the new one, also after a failure."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def write(path: Path, text: str, *, mode: int = 0o600) -> Path:
    """Write `text` to `path`, with these permissions from the start (default: only its owner can read it).

    Raises: `OSError`; then nothing is left beside it.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        return temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise

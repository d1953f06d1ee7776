"""Terminal: a command in a pseudo-terminal of its own, as a person at a keyboard has it.

with Terminal(["invoke", "run-local", "--sandbox"], cwd=project) as terminal:
    terminal.wait_for("watching")
    terminal.press(CTRL_C)
    assert terminal.ended() == 0
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

__all__ = ["CTRL_C", "Terminal", "plain"]

CTRL_C: Final = b"\x03"
WAIT_SECONDS: Final = 60.0
LOOK_SECONDS: Final = 0.02
SIZE: Final = (40, 200)


def plain(text: str) -> str:
    """`text` without colours."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


class Terminal:
    """The command leads a session and the terminal's foreground group; at the end of the block it is killed."""

    def __init__(self, command: Sequence[str], *, cwd: Path, env: Mapping[str, str] | None = None) -> None:
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", *SIZE, 0, 0))
        self.process = subprocess.Popen(
            command,
            cwd=cwd,
            env=env,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509  nothing else can set it
        )
        os.close(theirs)
        self._said = bytearray()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def text(self) -> str:
        """All that was printed, colours included."""
        return self._said.decode("utf-8", "replace").replace("\r\n", "\n")

    def press(self, keys: bytes) -> None:
        os.write(self._ours, keys)

    def wait_for(self, wanted: str, *, after: int = 0, within_seconds: float = WAIT_SECONDS) -> int:
        """Wait until `wanted` stands in what was printed without colours, from the place `after`; returns its end.

        Raises: `AssertionError` when it does not come, or the command ends before.
        """
        ends = time.monotonic() + within_seconds
        while (found := plain(self.text).find(wanted, after)) < 0:
            alive = self.process.poll() is None or self._reader.is_alive()
            assert alive, f"it ended without {wanted!r}\n{self.text}"
            assert time.monotonic() < ends, f"no {wanted!r} within {within_seconds} s\n{self.text}"
            time.sleep(LOOK_SECONDS)
        return found + len(wanted)

    def ended(self, *, within_seconds: float = WAIT_SECONDS) -> int:
        """Wait for its end; returns the exit code."""
        code = self.process.wait(within_seconds)
        self._reader.join(within_seconds)
        return code

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.process.kill()
        self.process.wait()
        self._reader.join()
        os.close(self._ours)

    def _read(self) -> None:
        while True:
            try:
                read = os.read(self._ours, 65536)
            except OSError:  # EIO: nobody has the other side open any more
                return
            if not read:
                return
            self._said += read

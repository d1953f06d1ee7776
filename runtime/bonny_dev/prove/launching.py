"""Launching: processes of an operator as forks of a launcher, which has imported the runtime once for all of them.

A launcher is a process of its own (`launcher.py`), for one environment of packages. Elsewhere: the life of a process
(`process`).
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Any, Final

from ..sandbox.guard import Guard
from .life import Broken

SOURCE: Final = Path(__file__).with_name("launcher.py")
# On macOS, libraries of the system may not be used after a fork.
FORKS: Final = sys.platform == "linux"


class Launcher:
    """Starts processes with the packages of `root`, one at a time."""

    def __init__(self, guard: Guard, root: Path, env: Mapping[str, str]) -> None:
        self.root = root
        ours, theirs = socket.socketpair()
        self._connection = ours
        self._lines = ours.makefile("rw", encoding="utf-8")
        self._log = guard.folder / "launcher.log"
        # The parts of the runtime that this operator uses: this process has loaded it.
        names = [name for name in list(sys.modules) if name.startswith("bonny.")]
        command = [sys.executable, "-c", SOURCE.read_text(encoding="utf-8"), *names]
        with theirs:
            self._process = guard.popen(command, log_file=self._log, env=env, cwd=root, stdin=theirs.fileno())

    def start(self, package: str, *, env: Mapping[str, str], log: Path) -> Forked:
        """Run `python -m package`, with its output appended to `log`. Raises: `Broken`."""
        return Forked(self, self.ask({"do": "start", "package": package, "env": dict(env), "log": str(log)}))

    def ask(self, request: Mapping[str, Any]) -> Any:
        """The answer to a request. Raises: `Broken` when the launcher has ended."""
        try:
            self._lines.write(json.dumps(request) + "\n")
            self._lines.flush()
            answer = self._lines.readline()
        except OSError:
            answer = ""
        if not answer:
            raise Broken(f"the operator cannot be started: {self._log.read_text(encoding='utf-8')[-1000:].strip()}")
        return json.loads(answer)

    def close(self) -> None:
        """End the launcher, whose processes have ended."""
        with suppress(OSError):  # a request that it did not read is written once more
            self._lines.close()
        self._connection.close()


class Forked:
    """A process of an operator, with the methods of `subprocess.Popen` that `Process` needs."""

    def __init__(self, launcher: Launcher, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._launcher, self._lock = launcher, Lock()

    def poll(self) -> int | None:
        """The exit code; None while it runs."""
        return self._ended("poll")

    def wait(self) -> int | None:
        """Return when it has ended."""
        return self._ended("wait")

    def kill(self) -> None:
        """End it with SIGKILL, from any thread. Its id is its own as long as its end was not read."""
        with self._lock:
            if self.returncode is None:
                os.kill(self.pid, signal.SIGKILL)

    def _ended(self, how: str) -> int | None:
        with self._lock:
            if self.returncode is None:
                self.returncode = self._launcher.ask({"do": how})
            return self.returncode

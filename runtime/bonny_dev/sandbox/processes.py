"""Processes: one server of a sandbox, which tests can also kill, pause and start again.

You need it for fault tests: `sandbox.apiserver.kill()`, `sandbox.etcd.pause()`. The command line, and with it the
ports, stays the same over restarts.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from bonny.errors import UsageError

from .guard import Guard

# Answers come within a millisecond once the server is up; a probe costs about as much.
PROBE_SECONDS: Final = 0.05
# kube-apiserver finishes running requests for up to a minute after SIGTERM; tests do not wait that long.
TERMINATE_SECONDS: Final = 20.0
# Of the log of a server that failed: its last lines have the reason.
SHOWN_LINES: Final = 8


class SandboxError(UsageError):
    """The sandbox cannot carry out a request. Where a server failed, its own last lines follow the sentence."""


class ServerProcess:
    """A server as a process of the sandbox, such as etcd; once this is made, it is ready.

    Raises: `SandboxError` with the server's last lines when it stops instead, or is not ready in time.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        guard: Guard,
        is_ready: Callable[[], bool],
        start_seconds: float,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.log_file: Path = guard.folder / f"{name}.log"
        self._command = list(command)
        self._guard = guard
        self._env = env
        self._is_ready = is_ready
        self._start_seconds = start_seconds
        self._launch()

    @property
    def pid(self) -> int:
        """Process id of the latest start."""
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether the process lives; a paused one does."""
        return self._process.poll() is None

    def start(self) -> None:
        """Start the process again, on the same ports as before, and return when it is ready.

        Raises: `SandboxError` when it still runs, and as at its first start.
        """
        if self.running:
            raise SandboxError(f"{self.name} already runs (pid {self.pid}): stop it before you start it again")
        self._launch()

    def _launch(self) -> None:
        began = time.monotonic()
        process = self._process = self._guard.popen(self._command, log_file=self.log_file, env=self._env)
        while True:
            ready = self._is_ready()
            # Checked after the probe: its answer may have come from another process on this port.
            if process.poll() is not None:
                raise self.failure(
                    f"stopped {time.monotonic() - began:.1f} s after its start (code {process.returncode})"
                )
            if ready:
                return
            if time.monotonic() - began > self._start_seconds:
                raise self.failure(f"was not ready {self._start_seconds:.0f} s after its start")
            time.sleep(PROBE_SECONDS)

    def kill(self) -> None:
        """End it with SIGKILL, as a crash would, and return when it is gone."""
        self._process.kill()
        self._process.wait()

    def terminate(self, *, within_seconds: float = TERMINATE_SECONDS) -> None:
        """End it with SIGTERM, and with SIGKILL after `within_seconds` (default 20)."""
        end(self._process, within_seconds=within_seconds)

    def pause(self) -> None:
        """Freeze it with SIGSTOP: its port still accepts connections, nothing answers. Returns when it stands still."""
        self._process.send_signal(signal.SIGSTOP)
        # All of its threads; on a busy machine that takes a moment. Its end is left for others to see.
        os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def resume(self) -> None:
        """Let it continue after `pause`."""
        self._process.send_signal(signal.SIGCONT)

    def failure(self, what: str) -> SandboxError:
        """The error that `what` happened to it, with its last lines."""
        return failure(f"{self.name} {what}; its last lines:", self.log_file)


def end(process: subprocess.Popen[bytes], *, within_seconds: float) -> None:
    """End `process` with SIGTERM, and with SIGKILL after `within_seconds`."""
    process.terminate()
    process.send_signal(signal.SIGCONT)  # a paused process would not see the SIGTERM
    try:
        process.wait(within_seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def failure(sentence: str, log_file: Path) -> SandboxError:
    """The error with this sentence, and below it the last lines of the log."""
    lines = log_file.read_text(encoding="utf-8", errors="replace").split("\n")
    return SandboxError("\n    ".join([sentence, *list(filter(str.strip, lines))[-SHOWN_LINES:]]))

"""Run: one process of a contestant, from its exec to its end, and what its tally tells."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple, Self, TypeVar

from bonny_dev.sandbox import Sandbox
from bonny_dev.sandbox.guard import Guard

from .contestants import ROOT, Contestant

__all__ = ["Calls", "Run", "patience"]

T = TypeVar("T")

# Ten times what the API server takes of a processor for an object with a child and a status.
SECONDS_PER_OBJECT: Final = 0.1
START_SECONDS: Final = 60.0
POLL_SECONDS: Final = 0.02
STOP_SECONDS: Final = 30.0


def patience(objects: int) -> float:
    """Seconds that a contestant may take to start and to handle so many objects once."""
    return START_SECONDS + SECONDS_PER_OBJECT * objects


class Calls(NamedTuple):
    """When the handler was called for the first and for the last of all objects (seconds since 1970)."""

    first: float
    last: float


class Run:
    """See the module. Leaving the `with` block stops the process."""

    def __init__(
        self,
        contestant: Contestant,
        guard: Guard,
        sandbox: Sandbox,
        *,
        objects: int,
        settings: Mapping[str, str] | None = None,
        profile: Path | None = None,
    ) -> None:
        """Start it; `objects` is how many it has to see, `profile` a file for ours to leave a profile in.

        `settings` are variables of its environment beyond those that every contestant gets.
        """
        name = f"{contestant.name}-{time.monotonic_ns()}"
        self._name = contestant.name
        self._profile = profile
        self._log = guard.folder / f"{name}.log"
        self._tally = guard.folder / f"{name}.tally"
        self._objects = objects
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("BONNY_", "KUBE", "PYTHON"))}
        environment = {
            **kept,
            **contestant.environment,
            "KUBECONFIG": str(sandbox.kubeconfig),
            "BENCH_SERVER": sandbox.url,
            "BENCH_ACCOUNT": str(_account(guard, sandbox)),
            "BENCH_OBJECTS": str(objects),
            "BENCH_TALLY": str(self._tally),
            **({"BENCH_PROFILE": str(profile)} if profile is not None else {}),
            **(settings or {}),
        }
        self.began = time.time()
        """Just before the exec (seconds since 1970)."""
        self.process = guard.popen(contestant.command, log_file=self._log, env=environment, cwd=ROOT)

    @property
    def pid(self) -> int:
        return self.process.pid

    def seen(self, size: int) -> Calls:
        """Wait until all objects were seen at `size`. Raises: `RuntimeError` when that takes too long, or it ended."""
        return self._until(lambda told: all_calls(told, size=size, objects=self._objects))

    def first(self, size: int) -> float:
        """Wait until one object was seen at `size`; returns when that was (seconds since 1970). Raises: as `seen`."""
        return self._until(lambda told: first_call(told, size=size))

    def _until(self, found: Callable[[str], T | None]) -> T:
        """Wait until the tally has what `found` looks for."""
        ends = time.monotonic() + patience(self._objects)
        while True:
            result = found(self._told())
            if result is not None:
                return result
            if self.process.poll() is not None:
                raise self.failure(f"ended with code {self.process.returncode}")
            if time.monotonic() > ends:
                raise self.failure(f"has not seen all {self._objects} objects")
            time.sleep(POLL_SECONDS)

    @property
    def largest(self) -> int:
        """The largest size that any object was seen at; 0 before the first."""
        return largest_size(self._told())

    def failure(self, what: str) -> RuntimeError:
        """An error that says what is wrong with it, with its last lines."""
        lines = self._log.read_text("utf-8", "replace").splitlines()[-20:]
        return RuntimeError("\n".join([f"{self._name} {what}; its last lines:", *lines]))

    def mark(self) -> None:
        """Let a profile end here and a new one begin."""
        if self._profile is not None:
            self.process.send_signal(signal.SIGUSR1)

    def stop(self) -> None:
        """SIGTERM, and SIGKILL for what does not mind it."""
        self.process.terminate()
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def _told(self) -> str:
        try:
            return self._tally.read_text("utf-8")
        except FileNotFoundError:
            return ""


def all_calls(told: str, *, size: int, objects: int) -> Calls | None:
    """When all objects were seen at `size`, by the lines of a tally; None where they were not yet."""
    counted = _counted(told, size)
    return Calls(counted[1], counted[objects]) if objects in counted else None


def first_call(told: str, *, size: int) -> float | None:
    """When the first object was seen at `size`, by the lines of a tally; None where none was yet."""
    return _counted(told, size).get(1)


def _counted(told: str, size: int) -> dict[int, float]:
    """When how many objects had been seen at `size`."""
    return {int(count): float(at) for each, count, at in map(str.split, told.splitlines()) if int(each) == size}


def largest_size(told: str) -> int:
    """The largest size in the lines of a tally, or 0."""
    return max((int(line.split()[0]) for line in told.splitlines()), default=0)


def _account(guard: Guard, sandbox: Sandbox) -> Path:
    """A folder like the one in which a pod finds its ServiceAccount."""
    folder = guard.folder / "account"
    folder.mkdir(exist_ok=True)
    (folder / "token").write_text(sandbox.token, encoding="ascii")
    (folder / "ca.crt").write_bytes(sandbox.ca_file.read_bytes())
    return folder

"""Process: the operator under test from outside: its log, its probes, and what the kernel says of it (Linux)."""

from __future__ import annotations

import signal
import sys
import time
import urllib.error
import urllib.request
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bonny_dev.sandbox import Sandbox
from bonny_dev.sandbox.guard import Guard
from tests.support.processes import OperatorProcess

from .log import OperatorLog

__all__ = ["LOG", "Census", "OperatorUnderTest"]

ROOT: Final = Path(__file__).resolve().parents[2]
# As a Deployment's probe would wait before it looks.
START_SECONDS: Final = 15.0
PROBE_SECONDS: Final = 10.0
CENSUS_SECONDS: Final = 10.0
LAST_LINES: Final = 20
LOG: Final = "operator.log"


@dataclass(frozen=True, slots=True)
class Census:
    """What the process holds."""

    resident: float
    """MB."""

    blocks: int
    """Of memory, held by Python's allocator after a collection."""

    objects: Counter[str]
    """Of the runtime's own classes, by name."""

    files: Counter[str]
    """Open file descriptors, by sort: socket, pipe, anon_inode, file."""

    threads: int
    tasks: Counter[str]
    """Tasks of the event loop, by name."""

    def __str__(self) -> str:
        return f"{self.resident:.1f} MB, {self.files.total()} files, {self.threads} threads, {self.tasks.total()} tasks"


class OperatorUnderTest:
    """One operator, in one process after the other when it is killed."""

    def __init__(self, guard: Guard, *, kubeconfig: Path) -> None:
        self._guard = guard
        self._kubeconfig = kubeconfig
        self._run: OperatorProcess
        self._frozen = False
        self._killed = False
        self.log = OperatorLog(guard.folder / LOG)
        self.outages: list[tuple[float, float]] = []
        """When it was killed on purpose, and when it was started again (seconds since the epoch)."""

    # --- life ---------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        self._run = OperatorProcess(
            self._guard,
            [sys.executable, "-m", "tests.soak.controller"],
            kubeconfig=self._kubeconfig,
            cwd=ROOT,
            # A connection that is not closed properly says so on stderr, and counts as a complaint.
            settings={"PYTHONWARNINGS": "always::ResourceWarning"},
        )
        self._started = time.monotonic()
        self._killed = False
        if self.outages:
            self.outages[-1] = (self.outages[-1][0], time.time())

    def kill(self) -> None:
        """SIGKILL, on purpose."""
        self._killed = True
        self.outages.append((time.time(), float("inf")))
        self._run.process.kill()
        self._run.process.wait()

    def freeze(self) -> None:
        """SIGSTOP: it neither reads nor writes, its connections stay open."""
        self._frozen = True
        self._run.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """SIGCONT."""
        self._run.process.send_signal(signal.SIGCONT)
        self._frozen = False

    def stop(self) -> tuple[int, float]:
        """SIGTERM; returns the exit code and the seconds it took."""
        return self._run.stop()

    def must_live(self) -> None:
        """Raises: `AssertionError`, with its last lines, when it ended although nobody killed it."""
        code = self._run.process.poll()
        if code is not None and not self._killed:
            last = "\n    ".join(self._run.text.splitlines()[-LAST_LINES:])
            raise AssertionError(f"the operator ended by itself with code {code}:\n    {last}")

    # --- looking ------------------------------------------------------------------------------------------------------

    def healthy(self) -> bool:
        """Whether its liveness probe is green; also while it is held up on purpose, or starting."""
        answered = self.probe("/healthz")[0] == 200
        return answered or self._frozen or self._killed or time.monotonic() - self._started < START_SECONDS

    def probe(self, path: str) -> tuple[int, str]:
        """Status and body; status 0 when there is no answer."""
        port = self.log.read().latest["started"]["port"]
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=PROBE_SECONDS) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as refusal:
            with refusal:
                return refusal.code, refusal.read().decode()
        except OSError as error:
            return 0, str(error)

    @property
    def resident(self) -> float:
        """Resident memory in MB; 0 when it does not run."""
        try:
            status = Path(f"/proc/{self._run.process.pid}/status").read_text("utf-8")
        except OSError:
            return 0.0
        return next((int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmRSS")), 0.0)

    def census(self) -> Census:
        """Count what it holds. Raises: `AssertionError` when it does not say."""
        counted = self.log.read().messages["census"]
        self._run.process.send_signal(signal.SIGUSR1)
        Sandbox.eventually(lambda: self.log.read().messages["census"] > counted, within_seconds=CENSUS_SECONDS)
        proc = Path(f"/proc/{self._run.process.pid}")
        return Census(
            resident=self.resident,
            blocks=self.log.latest["census"]["blocks"],
            objects=Counter(self.log.latest["census"]["objects"]),
            files=Counter(_sort(file) for file in (proc / "fd").iterdir()),
            threads=len(list((proc / "task").iterdir())),
            tasks=Counter(self.log.latest["census"]["tasks"]),
        )


def _sort(file: Path) -> str:
    """What an open file descriptor leads to: `socket:[123]` is a socket, a path is a file."""
    target = str(file.readlink())
    return "file" if target.startswith("/") else target.partition(":")[0]

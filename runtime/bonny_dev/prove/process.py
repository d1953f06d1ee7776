"""Process: the operator of one life, which is killed in the middle of a request, and started again."""

from __future__ import annotations

import json
import re
import secrets
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from threading import Event
from typing import Any, Final

from bonny.run.config import ALL_NAMESPACES

from ..sandbox.guard import Guard
from ..sandbox.ports import free_ports
from ..sandbox.server import answers
from ..testing.running import START, environment
from ..uses import has_webhooks
from .launching import FORKS, Forked, Launcher
from .life import POLL_SECONDS, Broken, Interrupted, Setup

# A process starts within a second or two; the rest is for a loaded machine.
START_SECONDS: Final = 45.0
# So many failures in a row, with growing waits, are not an accident of the moment.
FAILURES: Final = 4
# How much later than announced a reconcile may be tried again.
LATE_RETRY_SECONDS: Final = 2.0
# How the runtime logs the end of a reconcile. `Retry` and `Terminal` are raised by a handler on purpose.
FAILED: Final = "reconcile failed"
OTHER_ENDS: Final = frozenset({"reconciled", "waiting", "retry requested", "stopped until the object changes"})


class Process:
    """One process at a time. `kubeconfig` leads to the proxy, `service` is the address of the external service."""

    def __init__(self, setup: Setup, guard: Guard, *, kubeconfig: Path, service: str) -> None:
        self.setup = setup
        """May be replaced between two processes: another release."""

        self.killed = Event()
        """Set when a process was killed in the middle of a request, and is not yet reaped."""

        self._guard, self._kubeconfig, self._service = guard, kubeconfig, service
        self._running: subprocess.Popen[bytes] | Forked | None = None
        self._launcher: Launcher | None = None
        self._log = Path()
        self._read_from = 0

    def renew(self) -> None:
        """Begin the log of another life."""
        self.killed.clear()
        self._log, self._read_from = self._guard.folder / f"{secrets.token_hex(4)}.log", 0

    def start(self, namespace: str) -> None:
        """Start the operator, which watches `namespace`, and return when it is ready.

        Raises: `Broken`, `Interrupted`.
        """
        setup = self.setup
        (port,) = free_ports(1)
        settings = environment(setup.operator, setup.root, kubeconfig=self._kubeconfig, port=port)
        wide = setup.wide and not setup.operator.namespaced
        settings |= {
            "BONNY_WATCH_NAMESPACE": ALL_NAMESPACES if wide else namespace,
            "PYTHONHASHSEED": str(setup.seed),
        }
        settings |= dict.fromkeys(setup.externals, self._service)
        if has_webhooks(setup.operator):
            from ..local_webhooks import Loopback  # noqa: PLC0415  its extra may be absent

            # Nothing calls them. With this certificate it needs no Secret, whose Role is in a namespace of its own.
            settings |= Loopback.at(self._guard.folder).environment()
        self._running = self._launched(settings)
        deadline = time.monotonic() + START_SECONDS
        while not answers(f"http://127.0.0.1:{port}/readyz"):
            self.check()
            if self.killed.is_set():
                return
            if time.monotonic() > deadline:
                raise Broken(f"the operator is not ready {START_SECONDS:g} s after its start")
            time.sleep(POLL_SECONDS)

    def _launched(self, settings: Mapping[str, str]) -> subprocess.Popen[bytes] | Forked:
        setup = self.setup
        if not FORKS:
            command = [sys.executable, "-c", START, setup.package]
            return self._guard.popen(command, log_file=self._log, env=settings, cwd=setup.root)
        if self._launcher is None or self._launcher.root != setup.root:  # another release has another runtime
            self.close()
            self._launcher = Launcher(self._guard, setup.root, settings)
        return self._launcher.start(setup.package, env=settings, log=self._log)

    def close(self) -> None:
        """End the launcher of the processes."""
        if self._launcher is not None:
            self._launcher.close()
            self._launcher = None

    def check(self) -> None:
        """Raises: `Interrupted`; `Broken` when the process ended by itself."""
        if self.setup.stopped.is_set():
            raise Interrupted
        if self._running is not None and self._running.poll() is not None and not self.killed.is_set():
            raise Broken(f"the operator ended by itself with code {self._running.returncode}")

    def strike(self) -> None:
        """Kill the operator; the proxy calls this in the middle of a request."""
        self.killed.set()
        if self._running is not None:
            self._running.kill()

    def kill(self) -> None:
        """Kill the operator, and return when it ended."""
        if self._running is not None:
            self._running.kill()
        self.reap()

    def reap(self) -> None:
        """Return when the killed operator ended."""
        if self._running is not None:
            self._running.wait()
            self._running = None

    # --- its log ---

    def log(self) -> str:
        """The output of the operator in this life."""
        return self._log.read_text(encoding="utf-8", errors="replace") if self._log.exists() else ""

    def mark(self) -> None:
        """From now on, `failure` reads only later lines."""
        self._read_from = len(self.log())

    def failure(self, *, now: float | None = None) -> tuple[str, bool]:
        """The error with which the reconcile of an object fails since the mark, and whether it does so again and again.

        `now` is in seconds since 1970 (default: the time).

        Empty when there is none, and when it is over: a later success was logged, or no failure followed in time.
        """
        failing: dict[tuple[str, str], list[dict[str, Any]]] = {}
        now = time.time() if now is None else now
        for line in self.log()[self._read_from :].splitlines():
            entry = _entry(line)
            key = (str(entry.get("controller")), str(entry.get("object")))
            if entry.get("message") == FAILED:
                failing.setdefault(key, []).append(entry)
            elif entry.get("message") in OTHER_ENDS:
                failing.pop(key, None)
        for entries in failing.values():
            last = entries[-1]
            waits = float(last.get("retry_in_seconds", 0.0)) + LATE_RETRY_SECONDS
            if now < datetime.fromisoformat(last["time"]).timestamp() + waits:
                return _raised(entries), len(entries) >= FAILURES
        return "", False


def _raised(entries: Iterable[Mapping[str, Any]]) -> str:
    """The type and text of an error. The last lines of a traceback are notes; later ones of its kind are left out."""
    error = ""
    for entry in entries:
        error = str(entry.get("error", ""))
        if raised := re.findall(r"^[\w.]+: .*$", str(entry.get("exception", "")), re.MULTILINE):
            return str(raised[-1])
    return error


def _entry(line: str) -> dict[str, Any]:
    try:
        entry = json.loads(line)
    except ValueError:
        return {}
    return entry if isinstance(entry, dict) else {}

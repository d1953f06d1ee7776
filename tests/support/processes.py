"""Processes: an operator as a process of its own, as a test sees it from outside."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bonny_dev.sandbox import Sandbox
from bonny_dev.sandbox.guard import Guard

from .dockerfile import allocator_settings

RUNTIME = Path(__file__).resolve().parents[2] / "runtime"
HANDWRITTEN = Path(__file__).with_name("handwritten.py")
FLOODED = Path(__file__).with_name("flooded.py")
PIPELINED = Path(__file__).with_name("pipelined.py")
SCHEDULED = Path(__file__).with_name("scheduled.py")


class OperatorProcess:
    """One run of an operator, with its log as decoded lines and its probes."""

    def __init__(
        self,
        guard: Guard,
        command: list[str],
        *,
        kubeconfig: Path,
        cwd: Path | None,
        settings: dict[str, str] | None = None,
    ) -> None:
        self.log_file = guard.folder / "operator.log"
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("BONNY_", "KUBE"))}
        self.process: subprocess.Popen[bytes] = guard.popen(
            command,
            log_file=self.log_file,
            cwd=cwd,
            env={
                **kept,
                "KUBECONFIG": str(kubeconfig),
                "BONNY_HTTP_HOST": "127.0.0.1",
                "BONNY_HTTP_PORT": "0",
                "BONNY_EVENT_LOOP": os.environ.get("TEST_EVENT_LOOP", "asyncio"),
                "BONNY_LOG_FORMAT": "json",
                "BONNY_LOG_LEVEL": "debug",
                "PYTHONPATH": os.pathsep.join((str(RUNTIME), str(RUNTIME.parent))),
                "PYTHONUNBUFFERED": "1",
                **allocator_settings(),
                **(settings or {}),
            },
        )

    @property
    def text(self) -> str:
        """Everything that it wrote."""
        return self.log_file.read_bytes().decode("utf-8", "replace")  # its end may be half a character

    def lines(self, message: str) -> list[dict[str, Any]]:
        """The log lines with this constant message. One that is still being written is not there yet."""
        complete = (line for line in self.text.splitlines(keepends=True) if line.endswith("\n"))
        decoded = [json.loads(line) for line in complete if line.startswith("{")]
        return [line for line in decoded if line["message"] == message]

    def probe(self, path: str) -> tuple[int, str]:
        """Status and body of one of its probes. Raises: `LookupError` before it started."""
        (started,) = self.lines("started") or [None]
        if started is None:
            raise LookupError("not started yet")
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{started['port']}{path}", timeout=5) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as refusal:
            with refusal:
                return refusal.code, refusal.read().decode()

    def wait_ready(self, *, within_seconds: float = 20.0) -> OperatorProcess:
        Sandbox.eventually(self._is_ready, within_seconds=within_seconds)
        return self

    def _is_ready(self) -> bool:
        if self.process.poll() is not None:
            raise RuntimeError(f"the operator ended with code {self.process.returncode}:\n{self.text}")
        return self.probe("/readyz")[0] == 200

    def stop(self) -> tuple[int, float]:
        """SIGTERM; returns the exit code and the seconds it took."""
        began = time.monotonic()
        self.process.terminate()
        return self.process.wait(30), time.monotonic() - began


@contextmanager
def frozen(sandbox: Sandbox) -> Iterator[None]:
    """The API server takes connections and answers nothing."""
    sandbox.apiserver.pause()
    try:
        yield
    finally:
        sandbox.apiserver.resume()


def handwritten() -> list[str]:
    """The command line of the hand-written operator."""
    return [sys.executable, str(HANDWRITTEN)]


def flooded() -> list[str]:
    """The command line of the operator for floods."""
    return [sys.executable, str(FLOODED)]


def pipelined() -> list[str]:
    """The command line of the operator that uses all of the pipeline."""
    return [sys.executable, str(PIPELINED)]


def scheduled() -> list[str]:
    """The command line of the operator with a scheduler."""
    return [sys.executable, str(SCHEDULED)]


def requests(sandbox: Sandbox) -> dict[tuple[str, str, str], int]:
    """Requests that the API server answered so far, by (verb, resource, subresource), from its own metrics.

    A watch counts when it ends.
    """
    counts: dict[tuple[str, str, str], int] = {}
    for line in sandbox.request("GET", "/metrics").body.splitlines():
        if not line.startswith("apiserver_request_total{"):
            continue
        labels_text, value = line.removeprefix("apiserver_request_total{").rsplit("} ", 1)
        labels = dict(part.split("=", 1) for part in labels_text.split(","))
        verb, resource, subresource = (labels[name].strip('"') for name in ("verb", "resource", "subresource"))
        counts[verb, resource, subresource] = counts.get((verb, resource, subresource), 0) + int(float(value))
    return counts


def writes(sandbox: Sandbox, *resources: str) -> dict[tuple[str, str, str], int]:
    """The write requests among `requests`, of these resources."""
    return {
        (verb, resource, subresource): count
        for (verb, resource, subresource), count in requests(sandbox).items()
        if resource in resources and verb in ("APPLY", "PATCH", "POST", "PUT", "DELETE")
    }

"""Serving: an operator in a thread of its own, with an event loop of its own, while a test asks the API server."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bonny.client.config import Kubeconfig
from bonny.operator import Operator
from bonny.run.config import Config
from bonny.run.process import Process
from bonny_dev.sandbox import Sandbox

STOP_SECONDS = 30.0


class Serving:
    """The running operator; `process` is its inside."""

    def __init__(self, operator: Operator, kubeconfig: Path, **settings: Any) -> None:
        config = Config(http_host="127.0.0.1", http_port=0, grace=5.0, pod_name="test", **settings)
        self.process = Process(operator, config, Kubeconfig(str(kubeconfig)))
        self.handled: list[tuple[str, str]] = []
        """Not filled here: for controllers of tests to note what they handled."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=f"operator {operator.name}", daemon=True)

    def start(self) -> None:
        """Return when it is ready."""
        self._thread.start()
        Sandbox.eventually(lambda: not self._thread.is_alive() or self.process.readiness().ok, within_seconds=30.0)
        if self._failure is not None:
            raise self._failure

    def call(self, function: Callable[[], object]) -> None:
        """Call it on the event loop of the operator."""
        assert self._loop is not None
        self._loop.call_soon_threadsafe(function)

    def stop(self) -> None:
        """Stop it in order. Harmless when it has stopped."""
        if self._loop is not None and self._stop is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(STOP_SECONDS)
        assert not self._thread.is_alive(), "the operator does not stop"

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:  # noqa: BLE001  it is raised where the test waits
            self._failure = error

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        await self.process.run(self._stop)


@contextmanager
def serving(operator: Operator, kubeconfig: Path, **settings: Any) -> Iterator[Serving]:
    """Run `operator` until the block ends; `settings` are fields of `Config`."""
    made = Serving(operator, kubeconfig, **settings)
    made.start()
    try:
        yield made
    finally:
        made.stop()

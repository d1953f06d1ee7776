"""Main: what `python -m <package>` does: run the operator, or print its version.

Exit codes: 0 after SIGTERM or SIGINT, 2 with one sentence for bad configuration, 1 at once on a second signal.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import sys
import threading
from collections.abc import Sequence
from typing import Final

from .client.config import Cluster, find_cluster, own_namespace
from .config import Config
from .errors import UsageError
from .operator import Operator, Process
from .steps.delegate import THREADS
from .telemetry.logging import LogFormat, configure

__all__ = ["defaults", "main", "serve"]

# Decoded metadata lives long and holds no cycles; the default of 700 scans it far too often while a list is read.
GC_THRESHOLD: Final = 50_000

log = logging.getLogger("bonny.main")


def main(operator: Operator, arguments: Sequence[str] | None = None) -> int:
    """Carry out the command line (default: the process's own); returns the exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    match words:
        case [] | ["run"]:
            return _run(operator)
        case ["version"]:
            print(operator.user_agent)
            return 0
    print(f"unknown arguments {' '.join(words)!r}: use run (the default) or version", file=sys.stderr)
    return 2


def _run(operator: Operator) -> int:
    try:
        config = Config.from_environment(base=defaults(operator))
        cluster = find_cluster(kubeconfig=config.kubeconfig, context=config.context)
        return serve(operator, config, cluster)
    except UsageError as error:
        print(error, file=sys.stderr)
        return 2


def defaults(operator: Operator) -> Config:
    """The settings of an operator whose environment says nothing."""
    return Config(watch_namespaces=(own_namespace(),) if operator.watch == "namespace" else None)


def serve(operator: Operator, config: Config, cluster: Cluster) -> int:
    """Run until SIGTERM or SIGINT; returns 0. Raises: `UsageError` when it cannot start."""
    configure(LogFormat.JSON if config.log_json else LogFormat.CONSOLE, level=config.log_level)
    gc.set_threshold(GC_THRESHOLD)
    process = asyncio.run(_serve(operator, config, cluster))
    if not process.drained and any(thread.name.startswith(THREADS) for thread in threading.enumerate()):
        # A thread cannot be cancelled, and the interpreter would wait for it: it is abandoned.
        logging.shutdown()
        sys.stdout.flush()
        os._exit(0)
    return 0


async def _serve(operator: Operator, config: Config, cluster: Cluster) -> Process:
    stop = asyncio.Event()

    def stop_or_exit(number: int) -> None:
        if stop.is_set():
            log.warning("second signal: exiting at once")
            logging.shutdown()
            os._exit(1)
        log.info("signal received", extra={"signal": signal.Signals(number).name})
        stop.set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop_or_exit, number)
    process = Process(operator, config, cluster)
    await process.run(stop)
    return process

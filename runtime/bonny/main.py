"""Main: what `python -m <package>` does: run the operator, print its version, or tell its settings.

Exit codes: 0 after SIGTERM or SIGINT, 2 with one sentence for bad configuration, 1 at once on a second signal, 3 when
the lease was lost and the work of a leader would not stop in time (`bonny.run.leader`), 4 after a stop in order because
a callback, or a task that no handler started, raised SystemExit or KeyboardInterrupt.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import gc
import logging
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from .client.config import Cluster, find_cluster, own_namespace
from .errors import UsageError
from .operator import Operator
from .run.config import Config, settings
from .run.config import __doc__ as config_help
from .run.event_loop import EXITS, running
from .run.process import Process
from .telemetry.logging import LogFormat, configure

__all__ = ["defaults", "main", "serve"]

# Decoded metadata lives long and holds no cycles; the default of 700 scans it far too often while a list is read. Ten
# times this saves nothing more, and lets the cycles that asyncio leaves behind at each lost connection grow to 10 MB.
GC_THRESHOLD: Final = 5_000

USAGE: Final = """python -m <package> [run | config | version | help]

    run                        serve until SIGTERM or SIGINT (the default)
    config                     print the settings in force, and where each comes from: default, operator, a variable
    version                    print name and version
"""

# mallopt(3). asyncio reads TLS into blocks of 256 KiB (sslproto), several for each event, of which it keeps some bytes:
# they must come from the heap, and their room stay there, or each costs two calls of the system, 25 us instead of 2.
M_MMAP_THRESHOLD: Final = -3
M_TRIM_THRESHOLD: Final = -1
LARGE_BYTES: Final = 320 * 1024
KEPT_FREE_BYTES: Final = 1024 * 1024

# 1 and 2 are in the head of this module, 3 is `bonny.run.leader`'s.
CALLED_EXIT_CODE: Final = 4

THREADS: Final = "to_thread"
# The grace period is over by then; a thread that is about to end needs no longer.
ABANDON_SECONDS: Final = 0.5

log = logging.getLogger("bonny.main")


def main(operator: Operator, arguments: Sequence[str] | None = None) -> int:
    """Carry out the command line (default: the process's own); returns the exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    match words:
        case [] | ["run"]:
            return _in_one_sentence(_run, operator)
        case ["config"]:
            return _in_one_sentence(_tell_settings, operator)
        case ["version"]:
            print(operator.user_agent)
            return 0
        case ["help" | "--help" | "-h"]:
            print(f"{USAGE}\n{config_help}")
            return 0
    print(f"unknown arguments {' '.join(words)!r}: use run (the default), config, version or help", file=sys.stderr)
    return 2


def _in_one_sentence(command: Callable[[Operator], int], operator: Operator) -> int:
    try:
        return command(operator)
    except UsageError as error:
        print(error, file=sys.stderr)
        return 2


def _run(operator: Operator) -> int:
    config = Config.from_environment(base=defaults(operator))
    return serve(operator, config, find_cluster(kubeconfig=config.kubeconfig, context=config.context))


def _tell_settings(operator: Operator) -> int:
    """Print what `run` would use; the cluster last, because it may be missing."""
    base = defaults(operator)
    for name, value, source in settings(base=base):
        print(f"{name:26} {value or '(none)':30} {source}")
    config = Config.from_environment(base=base)
    print(f"{'cluster':26} {find_cluster(kubeconfig=config.kubeconfig, context=config.context).source}")
    return 0


def defaults(operator: Operator) -> Config:
    """The settings of an operator whose environment says nothing."""
    watched = (own_namespace(),) if operator.watch == "namespace" else None
    return Config(watch_namespaces=watched, grace=operator.grace)


def serve(operator: Operator, config: Config, cluster: Cluster) -> int:
    """Run until SIGTERM or SIGINT; returns the exit code. Raises: `UsageError` when it cannot start."""
    configure(LogFormat.JSON if config.log_json else LogFormat.CONSOLE, level=config.log_level)
    # Modules stay: the collector need not look at them again.
    gc.collect()
    gc.freeze()
    gc.set_threshold(GC_THRESHOLD)
    _keep_large_blocks_apart()
    stop, code = asyncio.Event(), 0
    with asyncio.Runner() as runner:
        loop = runner.get_loop()
        serving = loop.create_task(_serve(operator, config, cluster, stop), name="the operator")
        while not serving.done():
            try:
                loop.run_until_complete(serving)
            except EXITS as error:
                # asyncio lets these two leave the loop, which can go on. A SIGINT is handled, and raises nothing.
                code = CALLED_EXIT_CODE
                _report_exit(error)
                stop.set()
        if serving.result():
            logging.shutdown()
            sys.stdout.flush()
            os._exit(code)
    return code


def _report_exit(error: BaseException) -> None:
    """Log what tried to end the process, with the fields of the handling whose code it is."""
    stack, context = running(reversed([*traceback.walk_tb(error.__traceback__)]))
    extra = {"error": type(error).__name__, "stack": stack}
    context.copy().run(log.error, "a task or callback tried to end the process: the operator stops", extra=extra)


def _keep_large_blocks_apart() -> None:
    """Let glibc give large blocks, such as pages of lists, back to the system when they are freed.

    By default it learns from the first of them to take the next ones from its heap, where what is small and lives long
    settles between them: half an hour of faults cost a fifth more memory. Other C libraries have no such call.
    """
    with contextlib.suppress(OSError, AttributeError):
        libc = ctypes.CDLL(None)
        libc.mallopt(M_MMAP_THRESHOLD, LARGE_BYTES)
        libc.mallopt(M_TRIM_THRESHOLD, KEPT_FREE_BYTES)


async def _serve(operator: Operator, config: Config, cluster: Cluster, stop: asyncio.Event) -> bool:
    """Run until `stop` is set; returns whether something goes on that would not end."""

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
    # What handlers start by `asyncio.to_thread`; in a pool that we can leave behind.
    threads = ThreadPoolExecutor(thread_name_prefix=THREADS)
    loop.set_default_executor(threads)
    process = Process(operator, config, cluster)
    await process.run(stop)
    # What cannot be cancelled is abandoned: the interpreter would wait for it.
    threads.shutdown(wait=False, cancel_futures=True)
    if process.abandoned or not await _ended(THREADS):
        log.warning("a handler that would not end was abandoned")
        return True
    return False


async def _ended(name: str) -> bool:
    """Whether all threads whose names begin with `name` end soon; idle ones do at once."""
    ends = time.monotonic() + ABANDON_SECONDS
    while any(thread.name.startswith(name) for thread in threading.enumerate()):
        if time.monotonic() > ends:
            return False
        await asyncio.sleep(0.01)
    return True

"""Main: the command line `python -m <package>`: run the operator, print its version, its settings or the help.

Exit codes: 0 after SIGTERM or SIGINT; 1 at once after a second signal; 2 with one sentence for bad configuration; 3
when the lease was lost and the work of the leader did not stop in time (`bonny.run.leader`); 4 after an orderly stop
because a callback, or a task that no handler started, raised SystemExit or KeyboardInterrupt; 5 after an orderly stop
because a lifespan failed (`bonny.lifespan`).
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import logging
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from .carried import missing, of_tools, unused_variables
from .client.config import Cluster, find_cluster, own_namespace
from .errors import UsageError
from .extras import NamespaceChoice
from .operator import Operator
from .run.config import Config, settings, variables
from .run.event_loop import EXITS, loop_factory, running
from .run.process import Process
from .telemetry.logging import Form, configure

# Decoded metadata lives long and has no cycles; the default of 700 scans it far too often while a list is read.
GC_THRESHOLD: Final = 5_000

USAGE: Final = """python -m <package> [run | config | version | help]

    run                        serve until SIGTERM or SIGINT (the default)
    config                     print the settings in force, and where each comes from: default, operator, a variable
    version                    print name and version

Environment variables; each takes precedence over the code of the operator:
"""

CALLED_EXIT_CODE: Final = 4
LIFESPAN_EXIT_CODE: Final = 5

THREADS: Final = "to_thread"
# After the grace period; enough for a thread that is about to end.
ABANDON_SECONDS: Final = 0.5

log = logging.getLogger("bonny.main")


def run(module: str) -> int:
    """Run the command line of the process for the `operator` of a module; returns the exit code.

    An operator that cannot be declared, or uses an extra that this repository does not carry, is one sentence on stderr
    and code 2.
    """
    try:
        operator: Operator = importlib.import_module(module).operator
    except (UsageError, ImportError) as raised:
        error = missing(raised) if isinstance(raised, ImportError) else raised
        if error is None:
            raise
        print(error, file=sys.stderr)
        return 2
    return main(operator)


def main(operator: Operator, arguments: Sequence[str] | None = None) -> int:
    """Run the command line (default: of the process); returns the exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        match words:
            case [] | ["run"]:
                config = Config.from_environment(base=defaults(operator))
                return serve(operator, config, find_cluster(kubeconfig=config.kubeconfig, context=config.context))
            case ["config"]:
                _print_settings(operator)
            case ["version"]:
                print(operator.user_agent)
            case ["help" | "--help" | "-h"]:
                _print_help()
            case _:
                raise UsageError(f"unknown arguments {' '.join(words)!r}: use run, config, version or help")
    except UsageError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def _print_help() -> None:
    print(USAGE)
    for name, (_, variable) in variables().items():
        print(f"    {name:30} {variable.effect}\n{'':35}{variable.accepts} (default: {variable.default})")


def _print_settings(operator: Operator) -> None:
    """Print what `run` would use; the cluster last, because it may be missing."""
    for name, value, source in settings(base=defaults(operator)):
        print(f"{name:30} {value or '(none)':30} {source}")
    config = Config.from_environment(base=defaults(operator))
    print(f"{'cluster':30} {find_cluster(kubeconfig=config.kubeconfig, context=config.context).source}")


def defaults(operator: Operator) -> Config:
    """The settings of an operator in an empty environment."""
    chosen = (operator.watch,) if isinstance(operator.watch, NamespaceChoice) else ()
    return Config(watch_namespaces=operator.watched(own_namespace()), grace=operator.grace, extras=chosen)


def serve(operator: Operator, config: Config, cluster: Cluster, *, console: Form | None = None) -> int:
    """Serve until SIGTERM or SIGINT; returns the exit code. `console` makes log lines for people, by default the
    installed developer tools do. Raises: `UsageError` when the operator cannot start."""
    configure(None if config.log_json else console or of_tools("console"), level=config.log_level)
    for unused in unused_variables(os.environ):
        log.warning("an environment variable has no effect", extra={"because": str(unused)})
    # Modules stay: the collector need not look at them again. Imports leave next to no garbage to collect before.
    gc.freeze()
    gc.set_threshold(GC_THRESHOLD)
    stop, code = asyncio.Event(), 0
    with asyncio.Runner(loop_factory=loop_factory(config.event_loop)) as runner:
        loop = runner.get_loop()
        serving = loop.create_task(_serve(operator, config, cluster, stop), name="the operator")
        while not serving.done():
            try:
                loop.run_until_complete(serving)
            except EXITS as error:
                # Both loops let these two leave, and can be resumed. SIGINT has a handler and raises nothing.
                code = CALLED_EXIT_CODE
                _report_exit(error)
                stop.set()
        failed, running_on = serving.result()
        code = code or (LIFESPAN_EXIT_CODE if failed else 0)
        if running_on:
            logging.shutdown()
            sys.stdout.flush()
            os._exit(code)
    return code


def _report_exit(error: BaseException) -> None:
    """Log what tried to end the process, with the fields of the reconcile whose code raised it."""
    stack, context = running(reversed([*traceback.walk_tb(error.__traceback__)]))
    extra = {"error": type(error).__name__, "stack": stack}
    context.copy().run(log.error, "a task or callback tried to end the process: the operator stops", extra=extra)


async def _serve(operator: Operator, config: Config, cluster: Cluster, stop: asyncio.Event) -> tuple[bool, bool]:
    """Serve until `stop` is set; returns whether a lifespan failed, and whether a handler runs that does not end."""

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
    # For `asyncio.to_thread` in handlers: a pool that can be abandoned.
    threads = ThreadPoolExecutor(thread_name_prefix=THREADS)
    loop.set_default_executor(threads)
    process = (operator.sharding.process(config) if operator.sharding else Process)(operator, config, cluster)
    await process.run(stop)
    # Threads cannot be cancelled, and the interpreter would wait for them.
    threads.shutdown(wait=False, cancel_futures=True)
    running_on = process.term.abandoned or not await _ended(THREADS)
    if running_on:
        log.warning("abandoned a handler that ignored cancellation")
    return process.lifespans.failed, running_on


async def _ended(name: str) -> bool:
    """Whether all threads whose names begin with `name` end soon; idle threads end at once."""
    ends = time.monotonic() + ABANDON_SECONDS
    while any(thread.name.startswith(name) for thread in threading.enumerate()):
        if time.monotonic() > ends:
            return False
        await asyncio.sleep(0.01)
    return True

"""Launcher: starts the operator's processes from one that has the runtime in its memory already.

It is the source of a program, for `python -c`, with the standard library only. Each process is a fork, so it begins as
a new one does, without the import of the runtime, which is two thirds of a start. The operator's own package is
imported in the fork: each process has its own state of that. Forks are killed as other processes are.

It reads one line of JSON after the other from the socket on its standard input, and answers each: `start` with a
process id, `poll` and `wait` with an exit code, or null while the process runs. A process is reaped in no other way, so
its id stays its own until its end was read.
"""

import contextlib
import gc
import importlib
import json
import os
import runpy
import socket
import sys
from typing import Any

# Modules that every start loads, and mostly not before they are needed.
PRELOADED = (
    "bonny.main",
    "bonny.run.discovery",
    "bonny.client.errors",
    "kubernetes.aio.config.kube_config",
    "kubernetes.aio.client.configuration",
    "uvloop",
)


def main() -> None:
    """Serve until the socket is closed; in a process that was started, run the package."""
    for name in (*PRELOADED, *sys.argv[1:]):
        with contextlib.suppress(Exception):  # where it is needed, the start of a process shows it
            importlib.import_module(name)
    gc.collect()
    gc.freeze()
    request = served(socket.socket(fileno=os.dup(0)))
    if request is not None:
        become(request)
        # Refusals in the log quote the objects, which are the test's own.
        importlib.import_module("bonny.client.errors").shows_values.set(True)
        sys.argv[:] = [request["package"]]
        runpy.run_module(request["package"], run_name="__main__", alter_sys=True)


def served(connection: socket.socket) -> dict[str, Any] | None:
    """Answer requests. Returns: the request that a new process carries out; None when there are no more."""
    with connection, connection.makefile("rw", encoding="utf-8") as lines:
        pid = 0
        code: int | None = None
        for line in lines:
            request: dict[str, Any] = json.loads(line)
            if request["do"] == "start":
                pid, code = os.fork(), None
                if pid == 0:
                    return request
            elif code is None:
                ended, status = os.waitpid(pid, os.WNOHANG if request["do"] == "poll" else 0)
                code = os.waitstatus_to_exitcode(status) if ended else None
            lines.write(json.dumps(pid if request["do"] == "start" else code) + "\n")
            lines.flush()
    return None


def become(request: dict[str, Any]) -> None:
    """Take over the environment and the output of a new process."""
    os.environ.clear()
    os.environ.update(request["env"])
    nothing = os.open(os.devnull, os.O_RDONLY)
    log = os.open(request["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    for source, target in ((nothing, 0), (log, 1), (log, 2)):
        os.dup2(source, target)
    os.close(nothing)
    os.close(log)


if __name__ == "__main__":
    main()

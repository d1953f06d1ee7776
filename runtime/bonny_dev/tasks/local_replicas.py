"""Local replicas: `invoke run-local --replicas 3`, processes that share the work, or stand by, as pods would.

Each line of output begins with the number of its replica. The sandbox, if there is one, belongs to this process.
"""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from pathlib import Path
from typing import IO, Final, cast

import msgspec

from bonny.client.config import Kubeconfig
from bonny.errors import UsageError
from bonny.run.config import Config

from ..project import Project
from ..sandbox.guard import Guard
from ..uses import has_webhooks
from .options import LocalRun
from .reload import HANGS_SECONDS, OTHER_CLUSTERS
from .run_local import SUMMED_IN, Sum, cluster_of, configured

# Each replica keeps two streams for each kind, and lists at a start: a laptop serves that many.
MOST: Final = 10


def run_replicas(project: Project, options: LocalRun) -> None:
    """Run so many processes until Ctrl-C, which ends all; a second one ends them at once.

    Raises: `UsageError` when flags do not fit together, the operator has webhooks, or there is no cluster.
    """
    operator = project.load_operator()
    if not 1 <= options.replicas <= MOST:
        raise UsageError(f"--replicas is {options.replicas}: use a number from 1 to {MOST}")
    if has_webhooks(operator):
        raise UsageError(
            f"{operator.name} has webhooks, which one process serves on this machine: leave out --replicas"
        )
    config = configured(options, Config())
    folder = Path(tempfile.gettempdir()) / f"bonny-replicas-{secrets.token_hex(6)}"
    with cluster_of(options, config) as cluster, Guard(folder) as guard:
        if getattr(operator, "sharding", None) is None:
            print("without Operator(sharding=...) one replica acts, and the others stand by", flush=True)
        summed = folder / "permissions.json"
        environment = {**os.environ, SUMMED_IN: str(summed), "PYTHONUNBUFFERED": "1", "BONNY_LEADER_ELECTION": "true"}
        environment.setdefault("BONNY_POD_NAMESPACE", operator.name if options.as_service_account else "default")
        if options.sandbox and isinstance(cluster, Kubeconfig):
            environment = {name: value for name, value in environment.items() if name not in OTHER_CLUSTERS}
            environment["KUBECONFIG"] = cluster.files
        words = ["--namespace", options.namespace] if options.namespace else []
        words += ["--context", options.context] if options.context else []
        words += ["--as-service-account"] if options.as_service_account else []
        children, readers = [], []
        for number in range(1, options.replicas + 1):
            # The first one installs and applies; the others find that done.
            samples = ["--apply-samples"] if options.apply_samples and number == 1 else []
            command = [sys.executable, "-m", "invoke", "run-local", *words, *samples]
            own = environment | {"BONNY_POD_NAME": f"replica-{number}"}
            child = guard.popen(command, log_file=subprocess.PIPE, cwd=project.root, env=own)
            children.append(child)
            readers.append(threading.Thread(target=_copy, args=(number, child)))
            readers[-1].start()
        with suppress(KeyboardInterrupt):
            for reader in readers:
                reader.join()
        _end(children, patience=config.grace + HANGS_SECONDS)
        for reader in readers:
            reader.join()
        if summed.exists():
            print(msgspec.json.decode(summed.read_bytes(), type=Sum).report, end="", flush=True)


def _end(children: list[subprocess.Popen[bytes]], *, patience: float) -> None:
    """End all of them together."""
    for child in children:
        child.terminate()
    for child in children:
        try:
            child.wait(patience)
        except (subprocess.TimeoutExpired, KeyboardInterrupt):
            child.kill()


def _copy(number: int, child: subprocess.Popen[bytes]) -> None:
    """Print the lines of one replica, and how it ended."""
    for line in cast("IO[bytes]", child.stdout):
        # One call for each line: others print, too.
        sys.stdout.write(f"[{number}] {line.decode(errors='replace').rstrip()}\n")
        sys.stdout.flush()
    if code := child.wait():
        print(f"[{number}] ended with code {code}", flush=True)

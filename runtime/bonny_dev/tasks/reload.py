"""Reload: runs the operator in a process of its own, and starts that anew when the source changes.

The sandbox, if there is one, belongs to this process: what is in it stays. The CRDs are installed at every start.
A start that fails, for a syntax error say, shows why and waits for the next change.
"""

from __future__ import annotations

import importlib.util
import os
import secrets
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from bonny.client.config import Kubeconfig
from bonny.errors import UsageError
from bonny.run.config import Config

from ..project import Project
from ..sandbox.guard import Guard
from .run_local import Options, cluster_of, configured

__all__ = ["run_reloading"]

WATCHED: Final = ("src", "vendor", "samples")
SUFFIXES: Final = (".py", ".yaml")
# A checkout of another branch changes hundreds.
NAMED: Final = 3
# They beat KUBECONFIG.
OTHER_CLUSTERS: Final = ("BONNY_KUBECONFIG", "BONNY_CONTEXT")
# How often the process is looked at while no file changes.
LOOK_MILLISECONDS: Final = 200
# What is not gone this long after the grace period hangs.
HANGS_SECONDS: Final = 5.0


def run_reloading(project: Project, options: Options) -> None:
    """Serve until Ctrl-C, each change of the source by a new process. A second Ctrl-C ends everything at once.

    Raises: `UsageError` when watchfiles is not installed, a flag cannot be, or there is no cluster.
    """
    if importlib.util.find_spec("watchfiles") is None:
        raise UsageError("--reload needs watchfiles, which is not installed here: run `pip install watchfiles`")
    config = configured(options, Config())
    with cluster_of(options, config) as cluster, Guard(_folder()) as guard:
        environment = dict(os.environ)
        if options.sandbox and isinstance(cluster, Kubeconfig):
            environment = {name: value for name, value in environment.items() if name not in OTHER_CLUSTERS}
            environment["KUBECONFIG"] = cluster.files
        _Supervisor(project.root, options, environment, guard, patience=config.grace + HANGS_SECONDS).run()


def _folder() -> Path:
    return Path(tempfile.gettempdir()) / f"bonny-reload-{secrets.token_hex(6)}"


class _Supervisor:
    """One operator process at a time, guarded: it ends with this process, however that ends."""

    def __init__(
        self, root: Path, options: Options, environment: Mapping[str, str], guard: Guard, *, patience: float
    ) -> None:
        self._root = root
        self._options = options
        self._environment = environment
        self._guard = guard
        self._patience = patience
        self._interrupted = False

    def run(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._interrupt)
        watched = self._changes()
        next(watched)  # from here on no change is missed; only then is the source read
        samples = self._options.apply_samples
        child = self._start(samples=samples)
        told = False
        for changes in watched:
            if self._interrupted:
                break
            if changes:
                names = sorted({str(Path(path).relative_to(self._root)) for _, path in changes})
                others = f" and {len(names) - NAMED} others" if len(names) > NAMED else ""
                print(f"\n{', '.join(names[:NAMED])}{others} changed: starting anew", flush=True)
                # A person may have edited the objects since: all samples are applied again when one of them changed, or
                # where the start that should have applied them failed; otherwise none.
                due = (samples and child.poll() is not None) or any(name.startswith("samples") for name in names)
                samples = self._options.apply_samples and due
                self._end(child)
                child, told = self._start(samples=samples), False
            elif child.poll() is not None and not told:
                told = True
                print(f"it ended with code {child.returncode}; the next change starts it again", flush=True)
        self._end(child)

    def _changes(self) -> Iterator[set[Any]]:
        """What changed, or nothing now and then."""
        from watchfiles import watch

        folders = [self._root / name for name in WATCHED if (self._root / name).is_dir()]
        yield from watch(
            *folders,
            watch_filter=lambda _, path: path.endswith(SUFFIXES),
            rust_timeout=LOOK_MILLISECONDS,
            yield_on_timeout=True,
            raise_interrupt=False,
        )

    def _start(self, *, samples: bool) -> subprocess.Popen[bytes]:
        options = self._options
        words = ["--namespace", options.namespace] if options.namespace else []
        words += ["--context", options.context] if options.context else []
        words += ["--as-service-account"] if options.as_service_account else []
        words += ["--apply-samples"] if samples else []
        command = [sys.executable, "-m", "invoke", "run-local", *words]
        return self._guard.popen(command, log_file=None, cwd=self._root, env=self._environment)

    def _end(self, child: subprocess.Popen[bytes]) -> None:
        """Let it drain."""
        child.terminate()
        try:
            child.wait(self._patience)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()

    def _interrupt(self, *_: object) -> None:
        if self._interrupted:
            os._exit(1)  # the watchdogs kill what is left, and remove the folders
        self._interrupted = True

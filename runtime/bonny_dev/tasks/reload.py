"""Reload: runs the operator in a process of its own, and restarts it when the source changes.

The sandbox, if there is one, belongs to this process and stays as it is. The CRDs are installed at every start.
A start that fails, for example because of a syntax error, shows why and waits for the next change.
"""

from __future__ import annotations

import importlib.util
import os
import secrets
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from bonny.client.config import Kubeconfig
from bonny.errors import UsageError
from bonny.run.config import Config

from ..project import Project
from ..sandbox.guard import Guard
from ..sandbox.processes import end
from .options import LocalRun
from .run_local import CALLED_IN, SUMMED_IN, Sum, cluster_of, configured

WATCHED: Final = ("src", "vendor", "samples")
SUFFIXES: Final = (".py", ".yaml")
# A checkout of another branch changes hundreds of files: name only the first ones.
NAMED: Final = 3
# They have priority over KUBECONFIG.
OTHER_CLUSTERS: Final = ("BONNY_KUBECONFIG", "BONNY_CONTEXT")
# How often to check whether the operator still runs while no file changes.
CHECK_MILLISECONDS: Final = 200
# A process that runs this long after its grace period hangs.
HANGS_SECONDS: Final = 5.0


def run_reloading(project: Project, options: LocalRun) -> None:
    """Serve until Ctrl-C, and restart at each change of the source. A second Ctrl-C ends everything at once.

    Raises: `UsageError` when watchfiles is not installed, flags do not fit together, or there is no cluster.
    """
    if importlib.util.find_spec("watchfiles") is None:
        raise UsageError("--reload needs watchfiles, which is not installed here: run `pip install watchfiles`")
    config = configured(options, Config())
    folder = Path(tempfile.gettempdir()) / f"bonny-reload-{secrets.token_hex(6)}"
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with cluster_of(options, config) as cluster, Guard(folder) as guard:
        summed = folder / "permissions.json"
        environment = {**os.environ, SUMMED_IN: str(summed)}
        if options.sandbox and isinstance(cluster, Kubeconfig):
            environment = {name: value for name, value in environment.items() if name not in OTHER_CLUSTERS}
            environment |= {"KUBECONFIG": cluster.files, CALLED_IN: str(folder)}

        def start(samples: bool) -> subprocess.Popen[bytes]:
            words = ["--namespace", options.namespace] if options.namespace else []
            words += ["--context", options.context] if options.context else []
            words += ["--as-service-account"] if options.as_service_account else []
            words += ["--apply-samples"] if samples else []
            command = [sys.executable, "-m", "invoke", "run-local", *words]
            return guard.popen(command, log_file=None, cwd=project.root, env=environment)

        _supervise(project.root, start, samples=options.apply_samples, patience=config.grace + HANGS_SECONDS)
        if summed.exists():
            print(msgspec.json.decode(summed.read_bytes(), type=Sum).report, end="", flush=True)


def _supervise(root: Path, start: Callable[[bool], subprocess.Popen[bytes]], *, samples: bool, patience: float) -> None:
    """Keep one operator process; `start` gets whether to apply the samples."""
    from watchfiles import watch

    changed = watch(
        *(root / name for name in WATCHED if (root / name).is_dir()),
        watch_filter=lambda _, path: path.endswith(SUFFIXES),
        rust_timeout=CHECK_MILLISECONDS,
        yield_on_timeout=True,
    )
    next(changed)  # no change is missed from here on; read the source only then
    due, reported = samples, False
    child = start(due)
    with suppress(KeyboardInterrupt):
        for changes in changed:
            if changes:
                names = sorted({str(Path(path).relative_to(root)) for _, path in changes})
                others = f" and {len(names) - NAMED} others" if len(names) > NAMED else ""
                print(f"\n{', '.join(names[:NAMED])}{others} changed: restarting", flush=True)
                # A person may have edited the objects: apply the samples only when one changed, or when the start that
                # should have applied them failed.
                failed = due and child.poll() is not None
                due = samples and (failed or any(name.startswith("samples") for name in names))
                end(child, within_seconds=patience)
                child, reported = start(due), False
            elif child.poll() is not None and not reported:
                reported = True
                print(f"the operator ended with code {child.returncode}; the next change restarts it", flush=True)
    end(child, within_seconds=patience)

"""Commands: what `invoke sandbox.start`, `sandbox.stop` and `sandbox.fetch` do, as plain functions.

A started sandbox is known by a folder `.sandbox` in the project: `lock` is held as long as it runs (the kernel lets go
of it however the process ends, so a stale state is recognised), `state.json` says how to reach it.
"""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Final

from .. import files
from .binaries import find_or_build
from .cache import Progress
from .lock import try_lock
from .processes import SandboxError
from .server import Sandbox

# A server that stopped by itself is noticed within this time; signals interrupt the wait.
CHECK_SECONDS: Final = 1.0
# A stop takes well under a second; afterwards SIGKILL does it, and the watchdog cleans up.
STOP_SECONDS: Final = 10.0
POLL_SECONDS: Final = 0.05
# Prints at once, also into a pipe.
SAY: Final = partial(print, flush=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningSandbox:
    """The content of `state.json` while a sandbox runs."""

    pid: int
    url: str
    kubeconfig: str

    def lines(self) -> list[str]:
        """How to reach the sandbox."""
        return [
            f"  API server: {self.url}",
            f"  kubeconfig: {self.kubeconfig}",
            "Try:",
            f"  kubectl --kubeconfig {self.kubeconfig} get namespaces",
            f"  kubectl --kubeconfig {self.kubeconfig} create configmap hello --from-literal=greeting=hi",
        ]


def start(root: Path | None = None, *, port: int = 0, say: Progress = SAY) -> None:
    """Run a sandbox in the foreground until Ctrl-C, SIGTERM or `stop`; one for each project folder `root`.

    Default root: the current folder. When one runs already, its lines are printed and nothing is started.
    Raises: `UsageError` as `Sandbox.start`; `SandboxError` when a server stops by itself.
    """
    home = project_folder(root)
    lock = try_lock(home / "lock")
    if lock is None:
        say("A sandbox is already running in this project:")
        for line in running_state(home).lines():
            say(line)
        return
    state_file = home / "state.json"
    try:
        state_file.unlink(missing_ok=True)  # left by one that was killed
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, signal.default_int_handler)
        with Sandbox(port=port, progress=say) as sandbox:
            state = RunningSandbox(pid=os.getpid(), url=sandbox.url, kubeconfig=str(sandbox.kubeconfig))
            files.write(state_file, json.dumps(asdict(state)))
            say("The sandbox is ready: etcd and kube-apiserver.")
            for line in [*state.lines(), "Ctrl-C, or `invoke sandbox.stop` in another terminal, ends it."]:
                say(line)
            watch(sandbox)
    except KeyboardInterrupt:
        say("The sandbox is stopped.")
    finally:
        state_file.unlink(missing_ok=True)
        os.close(lock)


def stop(root: Path | None = None, *, say: Progress = SAY) -> None:
    """Stop what `start` runs in the project folder `root` (default: the current folder), and return when it is gone."""
    home = project_folder(root)
    if is_stopped(home):
        say("No sandbox is running in this project.")
        return
    state = running_state(home)
    for signum in (signal.SIGTERM, signal.SIGKILL):
        os.kill(state.pid, signum)
        deadline = time.monotonic() + STOP_SECONDS
        while time.monotonic() < deadline:
            if not Path(state.kubeconfig).parent.exists() and is_stopped(home):
                say("The sandbox is stopped.")
                return
            time.sleep(POLL_SECONDS)
    raise SandboxError(f"the sandbox of process {state.pid} does not stop: end that process yourself")


def is_stopped(home: Path) -> bool:
    """Whether no sandbox runs; then what one that was killed has left in `state.json` is removed."""
    lock = try_lock(home / "lock")
    if lock is None:
        return False
    (home / "state.json").unlink(missing_ok=True)
    os.close(lock)
    return True


def fetch(*, say: Progress = SAY) -> None:
    """Find, download or build the binaries, so that later starts are quick."""
    for program in find_or_build(say).values():
        say(f"  {program}")


def watch(sandbox: Sandbox) -> None:
    """Return never; raise `SandboxError` when a server ended by itself."""
    while True:
        for server in (sandbox.etcd, sandbox.apiserver):
            if not server.running:
                raise server.failure("stopped by itself")
        time.sleep(CHECK_SECONDS)


def project_folder(root: Path | None) -> Path:
    """The folder `.sandbox` of the project; git ignores it from its first moment."""
    home = (root or Path.cwd()) / ".sandbox"
    home.mkdir(exist_ok=True)
    (home / ".gitignore").write_text("*\n", encoding="utf-8")
    return home


def running_state(home: Path) -> RunningSandbox:
    """The state of the sandbox whose lock is held. Raises: `SandboxError` while that one is still starting."""
    try:
        return RunningSandbox(**json.loads((home / "state.json").read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise SandboxError(
            f"the sandbox of {home.parent} is just starting or stopping: try again in a moment"
        ) from error

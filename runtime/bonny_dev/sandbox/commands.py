"""Commands: `invoke sandbox.start`, `sandbox.stop` and `sandbox.fetch` as plain functions.

A started sandbox has a folder `.sandbox` in the project: `lock` is held as long as it runs (the kernel lets go
of it however the process ends, so a stale state is recognised), `state.json` has its address.

In the background a process of its own runs the sandbox (`python -m bonny_dev.sandbox.commands FOLDER HOURS`, and
`workloads` for controllers and simulated kubelets), with its output in `.sandbox/log`. No terminal bounds its life, so
it ends by itself: after its hours, or when `.sandbox` is deleted. The watchdog of the sandbox guards that process as
any other.
"""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Final

from bonny.errors import UsageError

from .. import files
from .binaries import find_or_build
from .cache import Progress
from .lock import try_lock
from .processes import SandboxError
from .server import Sandbox
from .workloads import MANAGER, controller_manager, package_folders

# A server that stopped by itself is noticed within this time; signals interrupt the wait.
CHECK_SECONDS: Final = 1.0
# A stop takes well under a second; afterwards SIGKILL does it, and the watchdog cleans up.
STOP_SECONDS: Final = 10.0
POLL_SECONDS: Final = 0.05
# Long enough for a day's work. A forgotten sandbox holds several hundred MB of memory.
HOURS: Final = 12.0
# The word on the command line of the process in the background.
WORKLOADS: Final = "workloads"
RUNNING: Final = "A sandbox is already running in this project:"
# Prints at once, also into a pipe.
SAY: Final = partial(print, flush=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningSandbox:
    """The content of `state.json` while a sandbox runs."""

    pid: int
    url: str
    kubeconfig: str
    workloads: bool = False


def start(root: Path | None = None, *, hours: float = HOURS, workloads: bool = False, say: Progress = SAY) -> None:
    """Start a sandbox in the background and return when it is ready; one for each project folder `root`.

    With `workloads` it has controllers and simulated kubelets. It runs until `stop`, for `hours` at most (default 12),
    and ends when the folder `.sandbox` is deleted.
    Default root: the current folder. When one runs already, its lines are printed and nothing is started.
    Raises: `UsageError` when the binaries cannot be had, or one without `workloads` runs already; `SandboxError`, with
    the output of the process, when it fails.
    """
    home = project_folder(root)
    if not is_stopped(home):
        _say_what_runs(home, workloads, say)
        return
    binaries = find_or_build(say)  # here, because it may take minutes
    if workloads:
        controller_manager(binaries, say)
    log = home / "log"
    command = [sys.executable, "-P", "-m", "bonny_dev.sandbox.commands", str(home.parent.resolve()), str(hours)]
    command += [WORKLOADS] if workloads else []
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd="/",
            env={**os.environ, "PYTHONPATH": os.pathsep.join(package_folders())},
            start_new_session=True,  # closing the terminal does not end it
        )
    try:
        while not (home / "state.json").exists() and process.poll() is None:
            time.sleep(POLL_SECONDS)
    except BaseException:
        process.terminate()
        raise
    if not (home / "state.json").exists():
        raise SandboxError(f"the sandbox did not start; its output:\n{log.read_text(encoding='utf-8')}".rstrip())
    ready = f"The sandbox is ready. It runs until `invoke sandbox.stop`, for {hours:g} hours at most."
    _say_how_to_reach(running_state(home), ready, say)


def run(
    root: Path | None = None,
    *,
    port: int = 0,
    hours: float = math.inf,
    workloads: bool = False,
    say: Progress = SAY,
) -> None:
    """Run a sandbox in this process until Ctrl-C, SIGTERM, `stop`, `hours` (default: no limit), or until the folder
    `.sandbox` is deleted; one for each project folder `root`.

    Default root: the current folder. When one runs already, its lines are printed and nothing is started. With
    `workloads` it has controllers and simulated kubelets.
    Raises: `UsageError` as `Sandbox.start` and `start`; `SandboxError` when a server stops by itself.
    """
    home = project_folder(root)
    lock = try_lock(home / "lock")
    if lock is None:
        _say_what_runs(home, workloads, say)
        return
    state_file = home / "state.json"
    try:
        state_file.unlink(missing_ok=True)  # left by one that was killed
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, signal.default_int_handler)
        with Sandbox(port=port, workloads=workloads, progress=say) as sandbox:
            state = RunningSandbox(
                pid=os.getpid(), url=sandbox.url, kubeconfig=str(sandbox.kubeconfig), workloads=workloads
            )
            files.write(state_file, json.dumps(asdict(state)))
            _say_how_to_reach(state, "The sandbox is ready. Ctrl-C, or `invoke sandbox.stop` elsewhere, ends it.", say)
            watch(sandbox, home, seconds=hours * 3600)
            say("The sandbox has stopped: --hours have passed, or its folder was deleted.")
    except KeyboardInterrupt:
        say("The sandbox is stopped.")
    finally:
        state_file.unlink(missing_ok=True)
        os.close(lock)


def _say_what_runs(home: Path, workloads: bool, say: Progress) -> None:
    """Show how to reach the running sandbox. Raises: `UsageError` when it lacks the requested `workloads`."""
    state = running_state(home)
    if workloads and not state.workloads:
        raise SandboxError(
            "a sandbox without workloads is already running in this project: run `invoke sandbox.stop` first"
        )
    _say_how_to_reach(state, RUNNING, say)


def _say_how_to_reach(state: RunningSandbox, sentence: str, say: Progress) -> None:
    for line in (sentence, f"  export KUBECONFIG={state.kubeconfig}", "  kubectl get namespaces"):
        say(line)


def stop(root: Path | None = None, *, say: Progress = SAY) -> None:
    """Stop the sandbox of the project folder `root` (default: the current folder), and return when it is gone."""
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
    """Whether no sandbox runs; then the `state.json` of a killed sandbox is removed."""
    lock = try_lock(home / "lock")
    if lock is None:
        return False
    (home / "state.json").unlink(missing_ok=True)
    os.close(lock)
    return True


def fetch(*, workloads: bool = False, say: Progress = SAY) -> None:
    """Find, download or build the binaries, so that later starts are quick; with `workloads` also the controllers."""
    binaries = find_or_build(say)
    if workloads:
        binaries[MANAGER] = controller_manager(binaries, say)
    for program in binaries.values():
        say(f"  {program}")


def watch(sandbox: Sandbox, home: Path, *, seconds: float) -> None:
    """Return after `seconds`, or when `home` is deleted. Raises: `SandboxError` when a server ended by itself."""
    ends = time.monotonic() + seconds
    while home.exists() and time.monotonic() < ends:
        for server in sandbox.servers:
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


if __name__ == "__main__":
    try:
        run(Path(sys.argv[1]), hours=float(sys.argv[2]), workloads=WORKLOADS in sys.argv[3:])
    except UsageError as error:
        sys.exit(str(error))

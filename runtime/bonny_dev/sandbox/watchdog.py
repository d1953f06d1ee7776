"""Watchdog: kills the processes of a sandbox and removes its folder as soon as the process that started it is gone.

It runs as a script of its own, one per sandbox: `python -I -S watchdog.py FOLDER PARENT_PID`, standard library only. It
leads the process group that the servers join, and its standard input is a pipe from the process that started it. The
kernel closes that pipe however that process ends, SIGKILL included. (`prctl(PR_SET_PDEATHSIG)` would be shorter, but it
fires already when the *thread* that started the child ends, and macOS lacks it.)
"""

import os
import select
import shutil
import signal
import sys
import time

# A process that ours forked without exec keeps a copy of the pipe open; then only the parent's id shows the end.
PARENT_CHECK_SECONDS = 1.0
# Killed processes may still hold files for a moment; without a reaping init they stay zombies, so we watch the folder.
REMOVAL_SECONDS = 10.0


def wait_for_end_of(parent: int) -> None:
    """Return when standard input is closed, or our parent is not `parent` any more."""
    while os.getppid() == parent:
        readable, _, _ = select.select([0], [], [], PARENT_CHECK_SECONDS)
        if readable and not os.read(0, 64):
            return


def remove(folder: str) -> None:
    """Remove `folder`, trying again while dying processes still write to it."""
    deadline = time.monotonic() + REMOVAL_SECONDS
    while os.path.exists(folder) and time.monotonic() < deadline:  # noqa: PTH110  (pathlib would double the start-up time)
        shutil.rmtree(folder, ignore_errors=True)
        time.sleep(0.01)


def main(folder: str, parent: int) -> None:
    """Wait, kill the group, remove the folder; standard output stays open until all of that is done."""
    for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(signum, signal.SIG_IGN)
    wait_for_end_of(parent)
    group = os.getpgrp()
    if os.fork():
        signal.pause()  # ends with the group; the child lives on to clean up
    os.setpgid(0, 0)
    os.killpg(group, signal.SIGKILL)
    remove(folder)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))

"""Processes and folder vanish together, however the process that owns them ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import bonny
from bonny_dev.sandbox.guard import Guard

OWNER = """
import os, sys, threading
from pathlib import Path
from bonny_dev.sandbox.guard import Guard
guard = Guard(Path(sys.argv[1]))
def start():
    guard.popen(["sh", "-c", "echo started; while sleep 1; do :; done", sys.argv[1]], log_file=guard.folder / "log")
thread = threading.Thread(target=start)
thread.start()
thread.join()
{then}
"""
WAIT = "print('ready', flush=True); sys.stdin.read()"
FORK_AND_WAIT = "if os.fork() == 0: os.read(int(sys.argv[2]), 1); os._exit(0)\n" + WAIT


def processes_naming(text: str | Path) -> list[str]:
    listing = subprocess.run(["ps", "-ww", "-eo", "pid=,args="], capture_output=True, text=True, check=True).stdout
    return [line for line in listing.splitlines() if str(text) in line]


def wait_until_gone(folder: Path, *, within_seconds: float = 5.0) -> None:
    deadline = time.monotonic() + within_seconds
    while folder.exists() or processes_naming(folder):
        assert time.monotonic() < deadline, processes_naming(folder)
        time.sleep(0.02)


def owner(folder: Path, then: str, *arguments: str, pass_fds: tuple[int, ...] = ()) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", OWNER.format(then=then), str(folder), *arguments],
        env={**os.environ, "PYTHONPATH": str(Path(bonny.__file__).parents[1])},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        pass_fds=pass_fds,
    )


@pytest.mark.parametrize("signum", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_nothing_outlives_an_owner_that_is_killed(tmp_path: Path, signum: signal.Signals) -> None:
    folder = tmp_path / "guarded"
    with owner(folder, WAIT) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        assert len([line for line in processes_naming(folder) if OWNER[:20] not in line]) >= 2

        process.send_signal(signum)
        process.wait()

        wait_until_gone(folder)


def test_nothing_outlives_an_owner_that_simply_ends(tmp_path: Path) -> None:
    folder = tmp_path / "guarded"
    with owner(folder, "") as process:
        process.wait()

        wait_until_gone(folder)


def test_a_forked_child_that_holds_the_pipe_does_not_keep_the_rest_alive(tmp_path: Path) -> None:
    folder = tmp_path / "guarded"
    reader, writer = os.pipe()
    try:
        with owner(folder, FORK_AND_WAIT, str(reader), pass_fds=(reader,)) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"

            process.kill()
            process.wait()

            deadline = time.monotonic() + 5.0
            while folder.exists():
                assert time.monotonic() < deadline
                time.sleep(0.02)
            os.close(writer)  # lets the forked child end
            writer = -1
    finally:
        os.close(reader)
        if writer >= 0:
            os.close(writer)


def test_close_ends_processes_that_ignore_sigterm_and_their_children(tmp_path: Path) -> None:
    with Guard(tmp_path / "guarded") as guard:
        guard.popen(
            ["sh", "-c", "trap '' TERM; sleep 600 & sleep 600", str(guard.folder)], log_file=guard.folder / "log"
        )
        assert processes_naming(guard.folder)

    assert not guard.folder.exists()
    assert not processes_naming(guard.folder)


def test_a_process_started_in_a_thread_lives_on_when_the_thread_ends(tmp_path: Path) -> None:
    with Guard(tmp_path / "guarded") as guard:
        children: list[subprocess.Popen[bytes]] = []
        thread = threading.Thread(
            target=lambda: children.append(guard.popen(["cat", "/dev/zero"], log_file=Path(os.devnull)))
        )
        thread.start()
        thread.join()

        with pytest.raises(subprocess.TimeoutExpired):
            children[0].wait(0.2)


def test_the_folder_is_closed_to_others_and_closing_twice_is_fine(tmp_path: Path) -> None:
    guard = Guard(tmp_path / "guarded")
    try:
        assert guard.folder.stat().st_mode & 0o777 == 0o700
    finally:
        guard.close()
    guard.close()
    assert not guard.folder.exists()


def test_close_cleans_up_even_when_somebody_killed_the_watchdog(tmp_path: Path) -> None:
    guard = Guard(tmp_path / "guarded")
    guard.popen(["sleep", "600"], log_file=guard.folder / "log")
    os.kill(guard._watchdog.pid, signal.SIGKILL)

    guard.close()

    assert not guard.folder.exists()

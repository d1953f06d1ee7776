"""Guard: a folder and a group of processes that vanish together, at `close` or when this process ends in any way.

You need it to start a process that must not outlive this one. `watchdog.py` is the other half: it does the killing and
removing, for `close` as well, so there is one way out and every test takes it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Final, Self

WATCHDOG: Final = Path(__file__).with_name("watchdog.py")


class Guard:
    """Owns `folder`, which must not exist yet, and every process started by `popen`.

    Guarantees: when this process is gone, SIGKILL included, so are the others and the folder, within about a second. It
    does not matter which thread started them.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._children: list[subprocess.Popen[bytes]] = []
        # First the watchdog, then the folder: else a SIGKILL between the two would leave the folder behind.
        self._watchdog = subprocess.Popen(
            [sys.executable, "-I", "-S", str(WATCHDOG), str(folder), str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd="/",
            process_group=0,
        )
        folder.mkdir(mode=0o700)

    def popen(
        self,
        command: Sequence[str],
        *,
        log_file: Path | int | None,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        stdin: int = subprocess.DEVNULL,
    ) -> subprocess.Popen[bytes]:
        """Start `command` in the guarded group; its output is appended to `log_file`, or goes where ours goes for None;
        a number is a descriptor, or `subprocess.PIPE`.

        `cwd` defaults to the folder. Its copy of the watchdog's pipe is closed by exec, after it joined the group: no
        moment is left unguarded. The group is not the terminal's foreground group, so Ctrl-C reaches only us.
        """
        with log_file.open("ab") if isinstance(log_file, Path) else nullcontext(log_file) as log:
            child = subprocess.Popen(
                command,
                stdin=stdin,
                stdout=log,
                stderr=None if log is None else subprocess.STDOUT,
                cwd=cwd or self.folder,
                env=env,
                process_group=self._watchdog.pid,
            )
        self._children = [*(each for each in self._children if each.poll() is None), child]
        return child

    def close(self) -> None:
        """Kill the processes, remove the folder, and return when both are done. Calling it again does nothing."""
        if self._watchdog.returncode is not None:
            return
        self._watchdog.communicate()  # closes its input; its output ends when everything is done
        for child in self._children:
            child.kill()  # like the next line, needed only when the watchdog was killed
            child.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

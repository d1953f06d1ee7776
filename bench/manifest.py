"""Manifest: how long `invoke manifest` takes, from the command to the last line, and how long the result is.

    python -m bench.manifest            20 runs each: a fresh project, and with one kind and with ten

Prints the median, the least and the most of wall seconds, CPU seconds, and lines. Half a minute.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "runtime")]

from tests.support.baking import bake, uninstalled  # noqa: E402

RUNS: Final = 20
KINDS: Final = (0, 1, 10)
COMMAND: Final = ("manifest", "--image", "registry.example.com/widgets-operator:1.0.0", "--out", "-")


def main() -> int:
    print(f"{'kinds':>6}{'lines':>7}{'median s':>10}{'least':>8}{'most':>8}{'CPU s':>8}")
    with tempfile.TemporaryDirectory() as folder:
        project = bake(Path(folder) / "bake").project
        made = 0
        for kinds in KINDS:
            for number in range(made, kinds):
                uninstalled(project, "gen-controller", f"Widget{number}", f"widget{number}s")
            made = kinds
            lines = len(uninstalled(project, *COMMAND).splitlines())
            walls = []
            before = os.times()
            for _ in range(RUNS):
                began = time.perf_counter()
                uninstalled(project, *COMMAND)
                walls.append(time.perf_counter() - began)
            after = os.times()
            cpu = after.children_user + after.children_system - before.children_user - before.children_system
            print(
                f"{kinds:>6}{lines:>7}{statistics.median(walls):>10.2f}{min(walls):>8.2f}{max(walls):>8.2f}"
                f"{cpu / RUNS:>8.2f}"
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())

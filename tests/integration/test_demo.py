"""`make demo` comes to its end, and leaves nothing behind, however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bonny_dev.sandbox import Sandbox

ROOT = Path(__file__).parents[2]


def start(folder: Path) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "runtime"), "TMPDIR": str(folder), "PYTHONUNBUFFERED": "1"}
    with (folder / "said").open("wb") as stream:
        return subprocess.Popen(
            [sys.executable, str(ROOT / "tools" / "demo.py")], env=environment, stdout=stream, stderr=subprocess.STDOUT
        )


def left_behind(folder: Path) -> list[str]:
    """Temporary folders of the demo, and processes that name one of them."""
    folders = [path.name for path in folder.iterdir() if path.name.startswith("bonny-")]
    commands = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout.splitlines()
    return folders + [command for command in commands if f"{folder}/bonny-" in command]


def test_it_shows_a_ready_widget_and_cleans_up(tmp_path: Path) -> None:
    process = start(tmp_path)

    code = process.wait(300)

    said = (tmp_path / "said").read_text("utf-8")
    assert code == 0, said
    for telling in ("type: Ready", "repaired: {'size': '7'}", "the Widget is gone", "garbage collector", "exit code 0"):
        assert telling in said
    assert left_behind(tmp_path) == []


@pytest.mark.parametrize("reached", ["Install it", "Run the operator", "Create a Widget"])
def test_a_kill_half_way_leaves_nothing(tmp_path: Path, reached: str) -> None:
    process = start(tmp_path)
    Sandbox.eventually(lambda: reached in (tmp_path / "said").read_text("utf-8"), within_seconds=120)

    process.send_signal(signal.SIGKILL)
    process.wait()

    Sandbox.eventually(lambda: not left_behind(tmp_path), within_seconds=15)

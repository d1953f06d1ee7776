"""The soak, short and with few objects: it comes to its end, and leaves nothing behind, however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bonny_dev.sandbox import Sandbox

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.slow


def start(folder: Path, *arguments: str) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "runtime"), "TMPDIR": str(folder), "PYTHONUNBUFFERED": "1"}
    with (folder / "said").open("wb") as stream:
        return subprocess.Popen(
            [sys.executable, "-m", "tests.soak", *arguments],
            cwd=ROOT,
            env=environment,
            stdout=stream,
            stderr=subprocess.STDOUT,
        )


def left_behind(folder: Path) -> list[str]:
    """Temporary folders of the soak, and processes that name one of them or are its operator."""
    folders = [path.name for path in folder.iterdir() if path.name.startswith("bonny-")]
    commands = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout.splitlines()
    return folders + [command for command in commands if f"{folder}/bonny-" in command]


# Of the operator's death there is one within the first half minute of this seed.
KILLED = pytest.param("5", ("--kill-operator",), id="operator-killed")


@pytest.mark.parametrize(("seed", "more"), [pytest.param("1", (), id="as-it-is"), KILLED])
def test_a_short_soak_passes(tmp_path: Path, seed: str, more: tuple[str, ...]) -> None:
    process = start(tmp_path, "--seed", seed, "--minutes", "0.5", "--objects", "50", "--rest-seconds", "10", *more)

    code = process.wait(590)

    said = (tmp_path / "said").read_text("utf-8")
    assert code == 0, said
    assert said.count("| pass |") == 10
    assert f"again: .venv/bin/invoke soak --minutes 0.5 --seed {seed} --objects 50" in said
    assert ("operator SIGKILL" in said) is bool(more)
    assert left_behind(tmp_path) == []


def test_an_interrupted_soak_leaves_nothing(tmp_path: Path) -> None:
    process = start(tmp_path, "--minutes", "5", "--objects", "20")
    Sandbox.eventually(lambda: "now: " in (tmp_path / "said").read_text("utf-8"), within_seconds=120)

    process.send_signal(signal.SIGINT)

    assert process.wait(60) == 130
    assert left_behind(tmp_path) == []

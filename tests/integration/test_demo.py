"""`make demo` comes to its end, and leaves nothing behind, however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bonny_dev.sandbox import Sandbox
from tests.support.controllers import skip_without_controllers

ROOT = Path(__file__).parents[2]


# Nothing is found and nothing can be downloaded: kube-controller-manager would have to be built.
WITHOUT_CONTROLLERS = """
import runpy
from bonny_dev.sandbox import cache, download
known = cache.lookup
cache.lookup = lambda name, progress: None if name == "kube-controller-manager" else known(name, progress)
download.OFFICIAL = "http://127.0.0.1:9"
runpy.run_path(PATH, run_name="__main__")
""".replace("PATH", repr(str(ROOT / "tools" / "demo.py")))


def start(folder: Path, *command: str) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "runtime"), "TMPDIR": str(folder), "PYTHONUNBUFFERED": "1"}
    environment.pop("TEST_ASSET_KUBE_CONTROLLER_MANAGER", None)
    command = command or (str(ROOT / "tools" / "demo.py"),)
    with (folder / "said").open("wb") as stream:
        return subprocess.Popen([sys.executable, *command], env=environment, stdout=stream, stderr=subprocess.STDOUT)


def left_behind(folder: Path) -> list[str]:
    """Temporary folders of the demo, and processes that name one of them."""
    folders = [path.name for path in folder.iterdir() if path.name.startswith("bonny-")]
    commands = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout.splitlines()
    return folders + [command for command in commands if f"{folder}/bonny-" in command]


def shown_by(process: subprocess.Popen[bytes], folder: Path) -> str:
    """The output of a demo that came to its end and left nothing behind."""
    code = process.wait(300)

    said = (folder / "said").read_text("utf-8")
    assert code == 0, said
    assert left_behind(folder) == []
    return said


def test_with_controllers_the_deployment_is_available_the_widget_ready_and_the_child_is_collected(
    tmp_path: Path,
) -> None:
    skip_without_controllers()
    said = shown_by(start(tmp_path), tmp_path)

    ready, available = said.index("message: 3 of 3 replicas are ready"), said.index("availableReplicas: 3")
    updated, repaired = said.index("availableReplicas: 7"), said.index("edited:   size 9\n    repaired: size 7")
    collected = said.index("the garbage collector of Kubernetes removed its Deployment")
    assert ready < available < updated < repaired < collected < said.index("exit code 0")


@pytest.mark.slow  # the same steps but for two
def test_without_controllers_the_widget_is_ready_and_a_line_says_how_to_get_them(tmp_path: Path) -> None:
    said = shown_by(start(tmp_path, "-c", WITHOUT_CONTROLLERS), tmp_path)

    for telling in (
        "no kube-controller-manager (Connection refused), so no Deployment becomes Available",
        "`.venv/bin/invoke fetch --workloads` builds it",
        "type: Ready",
        "edited:   size 9\n    repaired: size 7",
        "the Widget is gone",
        "In a full cluster the garbage collector now removes the child",
        "exit code 0",
    ):
        assert telling in said


@pytest.mark.parametrize(
    "reached",
    [*(pytest.param(step, marks=pytest.mark.slow) for step in ("Install it", "Run the operator")), "Create a Widget"],
)
def test_a_kill_half_way_leaves_nothing(tmp_path: Path, reached: str) -> None:
    process = start(tmp_path)
    Sandbox.eventually(lambda: reached in (tmp_path / "said").read_text("utf-8"), within_seconds=120)

    process.send_signal(signal.SIGKILL)
    process.wait()

    Sandbox.eventually(lambda: not left_behind(tmp_path), within_seconds=15)

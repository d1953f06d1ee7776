"""Launching: forks of a launcher are new processes of a package, each with its own state of it."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from bonny_dev.prove.launcher import PRELOADED
from bonny_dev.prove.launching import FORKS, Launcher
from bonny_dev.prove.life import Broken
from bonny_dev.sandbox.guard import Guard

ROOT = Path(__file__).resolve().parents[3]
pytestmark = pytest.mark.skipif(not FORKS, reason="no forks here")
MAIN = """import os, random, sys, uuid
from bonny.client.errors import shows_values
print(os.environ["GIVEN"], "LEFT" in os.environ, __name__, sys.argv[1:], shows_values.get(), sys.stdin.read())
print("loaded", "kubernetes.aio.config.kube_config" in sys.modules, "uvloop" in sys.modules)
print("drawn", random.random(), uuid.uuid4(), sys.modules.get("twice.state"))
import twice.state
sys.exit(int(os.environ["GIVEN"]))
"""


@pytest.fixture
def launcher(tmp_path: Path) -> Iterator[Launcher]:
    package = tmp_path / "src" / "twice"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("", "utf-8")
    (package / "__main__.py").write_text(MAIN, "utf-8")
    (package / "state.py").write_text("", "utf-8")
    env = {**os.environ, "PYTHONPATH": f"{tmp_path / 'src'}:{ROOT / 'runtime'}", "LEFT": "1"}
    with Guard(tmp_path / "guard") as guard:
        made = Launcher(guard, tmp_path, env)
        yield made
        made.close()


def run(launcher: Launcher, given: str, log: Path) -> int | None:
    env = {name: value for name, value in os.environ.items() if name != "LEFT"}
    return launcher.start("twice", env=env | {"GIVEN": given}, log=log).wait()


def test_each_process_is_a_new_one_with_its_environment_and_its_output(launcher: Launcher, tmp_path: Path) -> None:
    one, other = tmp_path / "one.log", tmp_path / "other.log"

    assert [run(launcher, "0", one), run(launcher, "7", other)] == [0, 7]

    first, second = one.read_text("utf-8").splitlines(), other.read_text("utf-8").splitlines()
    assert first[:2] == ["0 False __main__ [] True ", "loaded True True"]
    assert second[0].startswith("7 False __main__")
    drawn, again = first[2].split(), second[2].split()
    assert drawn[3] == again[3] == "None"  # the package is imported in each process
    assert drawn[1] != again[1]
    assert drawn[2] != again[2]


def test_a_process_is_killed_and_then_its_id_is_left_alone(launcher: Launcher, tmp_path: Path) -> None:
    (tmp_path / "src" / "twice" / "__main__.py").write_text("import time\ntime.sleep(600)\n", "utf-8")
    process = launcher.start("twice", env=dict(os.environ), log=tmp_path / "log")
    assert process.poll() is None

    process.kill()

    assert process.wait() == -9
    process.kill()  # sends nothing
    assert process.poll() == -9


def test_a_launcher_that_ended_is_reported_with_its_last_words(tmp_path: Path) -> None:
    with Guard(tmp_path / "guard") as guard:
        made = Launcher(guard, tmp_path, {**os.environ, "PYTHONHASHSEED": "none"})  # Python itself refuses it

        with pytest.raises(Broken, match=r"(?s)^the operator cannot be started: .*PYTHONHASHSEED"):
            made.start("twice", env={}, log=tmp_path / "log")
        made.close()


def test_a_launcher_that_ended_before_a_request_is_closed(launcher: Launcher, tmp_path: Path) -> None:
    """Regression: the request that it did not read was written again at the close, which left the socket open."""
    launcher._process.kill()
    launcher._process.wait()

    with pytest.raises(Broken, match=r"^the operator cannot be started"):
        launcher.start("twice", env={}, log=tmp_path / "log")
    launcher.close()

    assert launcher._connection.fileno() == -1


def test_what_is_imported_before_a_fork_exists() -> None:
    """An absent module is no error there, so without this test a renamed one would only make lives slower."""
    for name in PRELOADED:
        assert importlib.util.find_spec(name), name

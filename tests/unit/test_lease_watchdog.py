"""The watchdog of a lease, in processes of their own: it ends them when it must, and only then."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time

import pytest

from bonny.run.leader import EXPIRED_EXIT_CODE
from tests.support.processes import RUNTIME

ENDS = "the lease default/w expired before all work had stopped: the process ends; "
LINE = f"{ENDS}the event loop runs "
PATIENCE = 20.0
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(RUNTIME)}
BEGIN = """
import asyncio, sys, threading, time
from bonny.run.leader import _Watchdog, clock
watchdog = _Watchdog("default/w")
watchdog.arm(clock() + 0.3)
"""


def run(then: str) -> tuple[int, str, float]:
    """Arm it for 0.3 s and do something; exit code, standard error, seconds."""
    began = time.monotonic()
    command = [sys.executable, "-c", BEGIN + then]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False, env=ENVIRONMENT)
    return done.returncode, done.stderr, time.monotonic() - began


@pytest.mark.parametrize(
    ("blocks", "innermost"),
    [
        pytest.param("time.sleep(60)", "<string>:6 <module>", id="sleeps"),
        pytest.param("while True: pass", "<string>:6 <module>", id="computes"),
        pytest.param("asyncio.run(asyncio.to_thread(time.sleep, 60))", "select", id="waits-for-a-thread"),
        pytest.param("lock = threading.Lock(); lock.acquire(); lock.acquire()", "<string>:6 <module>", id="deadlock"),
    ],
)
def test_a_process_that_is_blocked_is_ended_with_one_line_that_names_the_code(blocks: str, innermost: str) -> None:
    code, said, seconds = run(blocks)

    assert (code, said.count("\n")) == (EXPIRED_EXIT_CODE, 1)
    assert said.startswith(LINE)
    assert said.removeprefix(LINE).partition(" < ")[0].rstrip("\n").endswith(innermost)
    assert seconds < PATIENCE / 2


def test_the_line_names_the_controller_and_the_object_of_the_code_that_blocks_the_loop() -> None:
    code, said, _ = run("""
from bonny.telemetry.logging import about
async def handler():
    about(controller="Widgets", object="default/w1", reasons=frozenset({"changed"}))
    time.sleep(60)
asyncio.run(handler())
""")

    assert code == EXPIRED_EXIT_CODE
    assert said.startswith(f"{ENDS}controller=Widgets object=default/w1; the event loop runs <string>:10 handler")


def test_the_line_fits_into_one_write_that_does_not_block_whatever_the_code_is_called() -> None:
    name = "long" * 200
    code, said, _ = run(f"""
def {name}(depth):
    {name}(depth - 1) if depth else time.sleep(60)
{name}(100)
""")

    assert code == EXPIRED_EXIT_CODE
    assert said.startswith(f"{LINE}<string>:8 {name} < <string>:8 {name}")
    assert len(said.encode()) == select.PIPE_BUF


def test_a_process_that_nobody_reads_from_is_ended_all_the_same() -> None:
    """A log collector that hangs blocks whoever writes to it, and would block the watchdog, too."""
    command = [sys.executable, "-c", BEGIN + "while True: sys.stderr.write('x' * 4096)"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, env=ENVIRONMENT) as process:
        assert process.wait(PATIENCE) == EXPIRED_EXIT_CODE


def test_the_end_can_be_put_off_and_called_off() -> None:
    code, said, _ = run("""
for _ in range(10):
    time.sleep(0.1)
    watchdog.arm(clock() + 0.3)
watchdog.disarm()
time.sleep(0.6)
print("still here", file=sys.stderr)
""")

    assert (code, said) == (0, "still here\n")


def test_who_comes_back_too_late_is_ended_at_once() -> None:
    code, said, _ = run("""
watchdog.disarm()
watchdog.arm(clock() - 0.1)
print("still here", file=sys.stderr)
""")

    assert code == EXPIRED_EXIT_CODE
    assert said.startswith(LINE)
    assert "still here" not in said


def test_it_does_not_keep_a_process_that_wants_to_end() -> None:
    code, said, seconds = run("watchdog.arm(clock() + 3600)")

    assert (code, said) == (0, "")
    assert seconds < PATIENCE / 2

"""Event loop: no handler ends it, and which one an operator runs on."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest

from bonny import main
from bonny.errors import BonnyError
from bonny.run.event_loop import create_task
from bonny.telemetry.logging import about
from tests.support.loops import LOOPS
from tests.support.processes import RUNTIME

T = TypeVar("T")
PATIENCE = 30.0
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(RUNTIME)}


def run(coroutine: Coroutine[Any, Any, T], loop: str) -> T:
    with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
        return runner.run(coroutine)


async def exits() -> None:
    sys.exit(5)


async def interrupts() -> None:
    raise KeyboardInterrupt


async def _task() -> None:
    await asyncio.create_task(exits())


async def _gather() -> None:
    await asyncio.gather(interrupts(), exits())


async def _group() -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(exits())
        group.create_task(interrupts(), name="named")


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("handler", [_task, _gather, _group])
def test_a_task_of_a_handler_that_would_end_the_process_fails(handler: Callable[[], Any], loop: str) -> None:
    async def handle() -> list[BaseException]:
        asyncio.get_running_loop().set_task_factory(create_task)
        about(object="default/w1")
        try:
            await handler()
        except BaseExceptionGroup as group:
            return list(group.exceptions)
        except BonnyError as error:
            return [error]
        return []

    failures = run(handle(), loop)
    assert failures
    for failure in failures:
        assert isinstance(failure, BonnyError)
        assert isinstance(failure.__cause__, SystemExit | KeyboardInterrupt)


@pytest.mark.parametrize("loop", LOOPS)
def test_a_task_of_a_handler_is_like_any_other(loop: str) -> None:
    async def answers() -> int:
        return 42

    async def main() -> None:
        asyncio.get_running_loop().set_task_factory(create_task)
        about(object="default/w1")
        task = asyncio.create_task(answers(), name="asked")
        assert (task.get_name(), await task) == ("asked", 42)
        assert "answers" in repr(task)
        early = asyncio.create_task(answers())
        early.cancel()
        await asyncio.wait([early])
        assert early.cancelled()

    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a coroutine that was never awaited
        run(main(), loop)


@pytest.mark.parametrize("loop", LOOPS)
def test_a_task_that_no_handler_started_is_left_alone(loop: str) -> None:
    async def main() -> None:
        asyncio.get_running_loop().set_task_factory(create_task)
        await asyncio.create_task(exits())

    with pytest.raises(SystemExit):
        run(main(), loop)


CALLS_EXIT = """
import asyncio, sys
from bonny import Operator, PeriodicTask
from bonny.client.config import Connection
from bonny.run.config import Config
from bonny.main import serve

class Nowhere:
    source = "the test"
    async def connect(self):
        return Connection(server="http://127.0.0.1:1")

def ends_it():
    WHAT

async def handler(run):
    loop = asyncio.get_running_loop()
    HOW
    await asyncio.sleep(1.0)
    print("drained", flush=True)

operator = Operator(name="op", group="example.com", controllers=[PeriodicTask("t", handler, interval=0.05)])
config = Config(http_host="127.0.0.1", http_port=0, grace=20.0, event_loop="LOOP")
sys.exit(serve(operator, config, Nowhere()))
"""


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("what", ["sys.exit(0)", "raise KeyboardInterrupt"])
@pytest.mark.parametrize(
    "how",
    [
        "loop.call_soon(ends_it)",
        "loop.call_later(0.01, ends_it)",
        "asyncio.create_task(asyncio.sleep(0)).add_done_callback(lambda _: ends_it())",
    ],
)
def test_a_callback_that_would_end_the_process_leads_to_a_stop_in_order_and_an_exit_code_of_its_own(
    how: str, what: str, loop: str
) -> None:
    command = [sys.executable, "-c", CALLS_EXIT.replace("HOW", how).replace("WHAT", what).replace("LOOP", loop)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False, env=ENVIRONMENT)

    told = [json.loads(line) for line in done.stderr.splitlines()]
    assert done.returncode == main.CALLED_EXIT_CODE == 4, done.stderr
    assert done.stdout == "drained\n"
    assert told[-1]["message"] == "stopped"
    (line,) = [line for line in told if line["level"] == "error"]
    assert line["message"] == "a task or callback tried to end the process: the operator stops"
    assert line.get("task") == ("t" if loop == "asyncio" else None)
    assert "ends_it" in line["stack"]


@pytest.mark.parametrize("loop", LOOPS)
def test_a_signal_keeps_its_meaning_beside_all_that(loop: str) -> None:
    script = CALLS_EXIT.replace("HOW", 'print("begun", flush=True)').replace("WHAT", "pass").replace("LOOP", loop)
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, env=ENVIRONMENT
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=PATIENCE)
    assert (process.returncode, said) == (0, "drained\n")


# --- which one runs ---------------------------------------------------------------------------------------------------

RUNS = """
import asyncio, sys
NOT_INSTALLED
from bonny import Operator, PeriodicTask
from bonny.main import main

async def handler(run):
    print(type(asyncio.get_running_loop()).__module__, "uvloop" in sys.modules, flush=True)

operator = Operator(name="op", group="example.com", controllers=[PeriodicTask("t", handler, interval=0.05)])
sys.exit(main(operator, ["run"]))
"""
KUBECONFIG = """
current-context: nowhere
contexts: [{name: nowhere, context: {cluster: nowhere, user: nobody}}]
clusters: [{name: nowhere, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: nobody, user: {}}]
"""


def begun(folder: Path, *, installed: bool, **settings: str) -> tuple[str, str]:
    """Start an operator and stop it. Returns: the first line of its output, and the last one of its log."""
    (folder / "config").write_text(KUBECONFIG, "utf-8")
    script = RUNS.replace("NOT_INSTALLED", "" if installed else 'sys.modules["uvloop"] = None')
    environment = {**ENVIRONMENT, "KUBECONFIG": str(folder / "config"), "BONNY_HTTP_PORT": "0", **settings}
    command = [sys.executable, "-c", script]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline().rstrip()
        process.terminate()
        _, said = process.communicate(timeout=PATIENCE)
    return line, said.splitlines()[-1]


def test_an_operator_runs_on_uvloop_where_it_is_installed(tmp_path: Path) -> None:
    assert begun(tmp_path, installed=True)[0] == "uvloop True"
    assert begun(tmp_path, installed=True, BONNY_EVENT_LOOP="uvloop")[0] == "uvloop True"


def test_an_operator_runs_on_the_loop_of_asyncio_elsewhere_and_on_request(tmp_path: Path) -> None:
    own = asyncio.SelectorEventLoop.__module__
    assert begun(tmp_path, installed=True, BONNY_EVENT_LOOP="asyncio")[0] == f"{own} False"
    assert begun(tmp_path, installed=False)[0] == f"{own} True"


def test_uvloop_is_refused_where_it_is_not_installed(tmp_path: Path) -> None:
    line, said = begun(tmp_path, installed=False, BONNY_EVENT_LOOP="uvloop")
    assert (line, said) == ("", "BONNY_EVENT_LOOP is 'uvloop': use asyncio, or uvloop if that is installed")

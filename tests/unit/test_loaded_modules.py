"""What a running operator loads: no scheduler unless it has one, and nothing that only developers need."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

RUNTIME = Path(__file__).parents[2] / "runtime"
NOT_LOADED = ("bonny_dev", "bonny.scheduler", "bonny.tasks", "bonny.testing", "invoke", "jinja2", "pytest")

# Its server does not answer: it goes on trying to connect, until what was loaded is printed.
PROGRAM = """
import os, sys, threading
from bonny import Controller, Kind, Operator
from bonny.main import main
{more}

class Pods(Controller):
    resource = Kind("v1", "Pod")

    async def reconcile(self, axn): ...

def report():
    print(*sys.modules, sep="\\n", flush=True)
    os._exit(0)

operator = Operator(name="example", group="example.com", controllers=[Pods{part}])
threading.Timer(0.5, report).start()
main(operator, ["run"])
"""
SCHEDULER = """
from bonny import Scheduler
class First(Scheduler):
    name = "first"
    def select_node_for_pod(self, pod, nodes): return None
"""
KUBECONFIG = """\
apiVersion: v1
kind: Config
current-context: nowhere
contexts: [{name: nowhere, context: {cluster: nowhere, user: nobody}}]
clusters: [{name: nowhere, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: nobody, user: {}}]
"""


def loaded_by(program: str, folder: Path) -> set[str]:
    """The modules that an operator loads until it connects."""
    (folder / "kubeconfig").write_text(KUBECONFIG, "utf-8")
    environment = {**os.environ, "PYTHONPATH": str(RUNTIME), "KUBECONFIG": str(folder / "kubeconfig")}
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**environment, "BONNY_HTTP_PORT": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def test_an_operator_without_a_scheduler_loads_neither_schedulers_nor_tools(tmp_path: Path) -> None:
    loaded = loaded_by(PROGRAM.format(more="", part=""), tmp_path)

    assert "bonny.run.process" in loaded
    assert sorted(name for name in loaded if name.startswith(NOT_LOADED)) == []


def test_an_operator_with_a_scheduler_loads_it_and_no_tools(tmp_path: Path) -> None:
    loaded = loaded_by(PROGRAM.format(more=SCHEDULER, part=", First"), tmp_path)

    assert {"bonny.run.process", "bonny.scheduler.scheduler"} <= loaded
    assert sorted(name for name in loaded if name.startswith(NOT_LOADED) and "scheduler" not in name) == []
